"""Upgrades the tables of an older version to the current one, one step per version."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection, insert, inspect, select, update
from sqlalchemy import text as sql

from engpass.error import StoreError
from engpass.store import schema

Step = Callable[[Connection], None]

# STEPS[n] turns version n into n + 1. A step uses plain SQL, since `schema.py` has only the current version.
STEPS: dict[int, Step] = {}


def _add_searches(connection: Connection) -> None:
    """Upgrade to version 2: searches and their trials."""
    connection.execute(
        sql(
            "CREATE TABLE search (id VARCHAR(32) NOT NULL PRIMARY KEY, digest VARCHAR(64) NOT NULL,"
            " name TEXT NOT NULL, source TEXT NOT NULL, text TEXT NOT NULL, overrides TEXT NOT NULL,"
            " engine VARCHAR(32) NOT NULL, variant TEXT NOT NULL, traffic TEXT NOT NULL,"
            " method VARCHAR(32) NOT NULL, settings TEXT NOT NULL, environment TEXT NOT NULL,"
            " created VARCHAR(32) NOT NULL, result TEXT)"
        )
    )
    connection.execute(sql("CREATE INDEX search_digest ON search (digest)"))
    connection.execute(
        sql(
            "CREATE TABLE trial (search_id VARCHAR(32) NOT NULL REFERENCES search (id),"
            " position INTEGER NOT NULL, seconds FLOAT NOT NULL, trial TEXT NOT NULL, outcome TEXT,"
            " PRIMARY KEY (search_id, position))"
        )
    )


STEPS[1] = _add_searches


def current(connection: Connection, where: str) -> int | None:
    """Version of a store; `None` for an empty database. Raises `StoreError` for any other database."""
    tables = set(inspect(connection).get_table_names())
    if schema.version.name not in tables:
        # A PostgreSQL database may have tables of other programs, but not with the names of ours.
        if tables & set(schema.metadata.tables) or (tables and connection.dialect.name == "sqlite"):
            raise StoreError(
                f"`{where}` is a database, but not a store of Engpass", "give another file with `--store`"
            )
        return None
    found = connection.execute(select(schema.version.c.version)).scalar()
    if found is None:
        raise StoreError(f"`{where}` has no version", "the store is damaged; restore it from a backup")
    return int(found)


def upgrade(connection: Connection, where: str) -> None:
    """Bring a database to the current version, within the caller's transaction."""
    found = current(connection, where)
    if found is None:
        schema.metadata.create_all(connection)
        connection.execute(insert(schema.version).values(version=schema.VERSION))
        return
    check_not_newer(found, where)
    for old in range(found, schema.VERSION):
        STEPS[old](connection)
    if found != schema.VERSION:
        connection.execute(update(schema.version).values(version=schema.VERSION))


def check_not_newer(found: int, where: str) -> None:
    """Raise `StoreError` for a store of a later version, which this version could misread."""
    if found > schema.VERSION:
        raise StoreError(
            f"`{where}` is a store of version {found}; this Engpass supports versions up to {schema.VERSION}",
            "upgrade Engpass, or give another store with `--store`",
        )
