"""Upgrades the tables of an older version to the current one, one step per version."""

from __future__ import annotations

import json
from collections.abc import Callable

from engpass.error import StoreError
from engpass.store import schema
from engpass.store.transaction import Transaction

Step = Callable[[Transaction], None]


def _add_searches(store: Transaction) -> None:
    """Upgrade to version 2: searches and their trials."""
    store.execute(
        "CREATE TABLE search (id VARCHAR(32) NOT NULL PRIMARY KEY, digest VARCHAR(64) NOT NULL,"
        " name TEXT NOT NULL, source TEXT NOT NULL, text TEXT NOT NULL, overrides TEXT NOT NULL,"
        " engine VARCHAR(32) NOT NULL, variant TEXT NOT NULL, traffic TEXT NOT NULL,"
        " method VARCHAR(32) NOT NULL, settings TEXT NOT NULL, environment TEXT NOT NULL,"
        " created VARCHAR(32) NOT NULL, result TEXT)"
    )
    store.execute("CREATE INDEX search_digest ON search (digest)")
    store.execute(
        "CREATE TABLE trial (search_id VARCHAR(32) NOT NULL REFERENCES search (id),"
        " position INTEGER NOT NULL, seconds FLOAT NOT NULL, trial TEXT NOT NULL, outcome TEXT,"
        " PRIMARY KEY (search_id, position))"
    )


def _join_searches(store: Transaction) -> None:
    """Upgrade to version 3: a search is a run, and its trials are points."""
    for column in (
        "method VARCHAR(32) NOT NULL DEFAULT 'campaign'",
        "traffic TEXT NOT NULL DEFAULT ''",
        "settings TEXT NOT NULL DEFAULT '{}'",
        "result TEXT",
    ):
        store.execute(f"ALTER TABLE run ADD COLUMN {column}")
    store.execute("ALTER TABLE point ADD COLUMN trial TEXT")
    (session,) = store.one("SELECT COALESCE(MAX(id), 0) FROM session")
    for key, engine, variant in store.execute("SELECT id, engine, variant FROM search").fetchall():
        session += 1
        store.execute(
            "INSERT INTO run (id, digest, name, source, text, overrides, engines, variants, axes, repeats,"
            " topology, points_total, created, method, traffic, settings, result)"
            " SELECT id, digest, name, source, text, overrides, ?, ?, '[]', 1,"
            " '{}', 0, created, method, traffic, settings, result FROM search WHERE id = ?",
            json.dumps([engine]),
            json.dumps([variant], ensure_ascii=False),
            key,
        )
        store.execute(
            "INSERT INTO session (id, run_id, started, ended, environment)"
            " SELECT ?, id, created, NULL, environment FROM search WHERE id = ?",
            session,
            key,
        )
        store.execute(
            "INSERT INTO point (run_id, position, session_id, seconds, outcome, error, trial)"
            " SELECT search_id, position, ?, seconds, outcome, NULL, trial FROM trial"
            " WHERE search_id = ?",
            session,
            key,
        )
    store.execute("DROP TABLE trial")
    store.execute("DROP TABLE search")


# STEPS[n] turns version n into n + 1. A step has its own SQL, since `schema.py` has only the current version.
STEPS: dict[int, Step] = {1: _add_searches, 2: _join_searches}


def current(store: Transaction, where: str) -> int | None:
    """Version of a store; `None` for an empty database. Raises `StoreError` for any other database."""
    tables = store.tables()
    if "engpass_store" not in tables:
        # A PostgreSQL database may have tables of other programs, but not with the names of ours.
        if tables and (tables & schema.TABLES.keys() or store.is_own_file):
            raise StoreError(
                f"`{where}` is a database, but not a store of Engpass", "give another file with `--store`"
            )
        return None
    (found,) = store.one("SELECT MAX(version) FROM engpass_store")
    if found is None:
        raise StoreError(f"`{where}` has no version", "the store is damaged; restore it from a backup")
    return int(found)


def upgrade(store: Transaction, where: str) -> None:
    """Bring a database to the current version, within the caller's transaction."""
    found = current(store, where)
    if found is None:
        for name, columns in schema.TABLES.items():
            store.execute(f"CREATE TABLE {name} ({columns})")
        for statement in schema.INDICES:
            store.execute(statement)
        store.execute("INSERT INTO engpass_store VALUES (?)", schema.VERSION)
        return
    check_not_newer(found, where)
    for old in range(found, schema.VERSION):
        STEPS[old](store)
    if found != schema.VERSION:
        store.execute("UPDATE engpass_store SET version = ?", schema.VERSION)


def check_not_newer(found: int, where: str) -> None:
    """Raise `StoreError` for a store of a later version, which this version could misread."""
    if found > schema.VERSION:
        raise StoreError(
            f"`{where}` is a store of version {found}; this Engpass supports versions up to {schema.VERSION}",
            "upgrade Engpass, or give another store with `--store`",
        )
