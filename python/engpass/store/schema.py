"""The tables of the store in its current version.

A change here needs a new `VERSION`, a step in `migrations.py`, and an old file in `tests/data/`.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, ForeignKey, Index, Integer, MetaData, String, Table, Text

VERSION = 2

metadata = MetaData()

# One row. No other program uses this table name, so it identifies a store.
version = Table("engpass_store", metadata, Column("version", Integer, nullable=False))

run = Table(
    "run",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("digest", String(64), nullable=False),
    Column("name", Text, nullable=False),
    Column("description", Text),
    Column("source", Text, nullable=False),
    Column("text", Text, nullable=False),
    # JSON as text works the same on every database and keeps the bytes of a record.
    Column("overrides", Text, nullable=False),
    Column("engines", Text, nullable=False),
    Column("variants", Text, nullable=False),
    Column("axes", Text, nullable=False),
    Column("repeats", Integer, nullable=False),
    Column("topology", Text, nullable=False),
    Column("points_total", BigInteger, nullable=False),
    Column("created", String(32), nullable=False),
    Index("run_digest", "digest"),
)

# One row per invocation that worked on a run: environment and times. `ended` stays NULL after a kill.
session = Table(
    "session",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("run_id", String(32), ForeignKey("run.id"), nullable=False),
    Column("started", String(32), nullable=False),
    Column("ended", String(32)),
    Column("environment", Text, nullable=False),
    Index("session_run", "run_id"),
)

# The primary key ensures that a point is stored only once, even if several processes write it.
point = Table(
    "point",
    metadata,
    Column("run_id", String(32), ForeignKey("run.id"), primary_key=True),
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("session_id", Integer, ForeignKey("session.id"), nullable=False),
    # Wall-clock time of the point; no outcome depends on it.
    Column("seconds", Float, nullable=False),
    Column("outcome", Text),
    Column("error", Text),
)

# A search over the offered load, or the steps of a path measurement: each trial depends on earlier results.
search = Table(
    "search",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("digest", String(64), nullable=False),
    Column("name", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("overrides", Text, nullable=False),
    Column("engine", String(32), nullable=False),
    Column("variant", Text, nullable=False),
    Column("traffic", Text, nullable=False),
    Column("method", String(32), nullable=False),
    Column("settings", Text, nullable=False),
    Column("environment", Text, nullable=False),
    Column("created", String(32), nullable=False),
    # NULL until the search has ended.
    Column("result", Text),
    Index("search_digest", "digest"),
)

trial = Table(
    "trial",
    metadata,
    Column("search_id", String(32), ForeignKey("search.id"), primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("seconds", Float, nullable=False),
    Column("trial", Text, nullable=False),
    Column("outcome", Text),
)
