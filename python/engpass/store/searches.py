"""Writes searches and their trials to a database, and reads them."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, insert, inspect, select, update

from engpass.environment import Environment
from engpass.error import ChoiceError, nearest
from engpass.store import schema
from engpass.store.database import Database


@dataclass(frozen=True)
class SearchRecord:
    """A stored search: its settings, environment and trials, and its result once it has ended."""

    name: str
    source: str
    text: str
    overrides: list[tuple[str, str]]
    engine: str
    variant: str
    traffic: str
    method: str
    settings: dict[str, Any]
    environment: Environment
    created: str
    id: str = ""
    result: dict[str, Any] | None = None
    trials: list[dict[str, Any]] = field(default_factory=list)

    @property
    def digest(self) -> str:
        """Hash of everything that affects the trials; equal digests mean the same search."""
        content = [
            self.text,
            [list(pair) for pair in self.overrides],
            self.engine,
            self.variant,
            self.traffic,
            self.method,
            self.settings,
            self.environment.get("build"),
        ]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """The record as JSON data."""
        names = ("id", "name", "source", "engine", "variant", "traffic", "method", "settings", "created")
        told = {name: getattr(self, name) for name in names}
        pairs = [list(pair) for pair in self.overrides]
        rest = {"overrides": pairs, "trials": self.trials, "result": self.result}
        return {**told, **rest, "environment": self.environment, "text": self.text}


class Searches:
    """The searches of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, record: SearchRecord, *, fresh: bool = False) -> SearchRecord:
        """Resume the latest unfinished search with the same digest, or store a new one; returns its record.

        With `fresh` the search is always new.
        """
        digest = record.digest
        t = schema.search.c

        def work(connection: Connection) -> str:
            if not fresh:
                query = select(t.id).where(t.digest == digest, t.result.is_(None)).order_by(t.created.desc())
                if (found := connection.execute(query).first()) is not None:
                    return str(found.id)
            search_id = secrets.token_hex(5)
            connection.execute(
                insert(schema.search).values(
                    id=search_id,
                    digest=digest,
                    name=record.name,
                    source=record.source,
                    text=record.text,
                    overrides=json.dumps(record.overrides, ensure_ascii=False),
                    engine=record.engine,
                    variant=record.variant,
                    traffic=record.traffic,
                    method=record.method,
                    settings=json.dumps(record.settings),
                    environment=json.dumps(record.environment, ensure_ascii=False),
                    created=record.created,
                )
            )
            return search_id

        return self.get(self._database.write(work))

    def add(
        self, search_id: str, position: int, seconds: float, trial: Mapping[str, Any], outcome: str | None
    ) -> None:
        """Store a trial; it is durable when this returns."""
        row = {
            "search_id": search_id,
            "position": position,
            "seconds": seconds,
            "trial": json.dumps(trial, ensure_ascii=False),
            "outcome": outcome,
        }
        self._database.write(lambda connection: connection.execute(insert(schema.trial).values(row)))

    def end(self, search_id: str, result: Mapping[str, Any]) -> None:
        """Store the result of a search, which marks it as ended."""
        t = schema.search
        text = json.dumps(result, ensure_ascii=False)
        self._database.write(
            lambda connection: connection.execute(update(t).where(t.c.id == search_id).values(result=text))
        )

    def all(self) -> list[SearchRecord]:
        """All searches without their trials, the latest at the end."""
        with self._database.read() as connection:
            if not inspect(connection).has_table(schema.search.name):
                # An old store on read-only media.
                return []
            rows = connection.execute(select(schema.search).order_by(schema.search.c.created)).all()
        return [_record(row) for row in rows]

    def get(self, which: str) -> SearchRecord:
        """The search with this id, or the only one whose id begins with it; raises `ChoiceError`."""
        known = self.all()
        found = [record for record in known if record.id == which] or [
            record for record in known if which and record.id.startswith(which)
        ]
        if not found:
            raise ChoiceError(f"there is no search `{which}`", nearest(which, [one.id for one in known]))
        if len(found) > 1:
            raise ChoiceError(f"`{which}` matches {len(found)} searches", "add more characters of the id")
        t = schema.trial.c
        with self._database.read() as connection:
            query = select(t.trial).where(t.search_id == found[0].id).order_by(t.position)
            trials = [json.loads(row.trial) for row in connection.execute(query)]
        return replace(found[0], trials=trials)

    def outcomes(self, search_id: str) -> Sequence[str | None]:
        """Outcomes of the trials of a search, as the engines wrote them."""
        t = schema.trial.c
        with self._database.read() as connection:
            query = select(t.outcome).where(t.search_id == search_id).order_by(t.position)
            return [row.outcome for row in connection.execute(query)]


def _record(row: Row[Any]) -> SearchRecord:
    return SearchRecord(
        name=row.name,
        source=row.source,
        text=row.text,
        overrides=[(path, value) for path, value in json.loads(row.overrides)],
        engine=row.engine,
        variant=row.variant,
        traffic=row.traffic,
        method=row.method,
        settings=json.loads(row.settings),
        environment=msgspec.json.decode(row.environment, type=Environment),
        created=row.created,
        id=row.id,
        result=None if row.result is None else json.loads(row.result),
    )
