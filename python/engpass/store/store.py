"""Writes runs and their outcomes to a database, and reads them."""

from __future__ import annotations

import functools
import json
import secrets
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from sqlalchemy import Connection, Row, Select, Table, case, func, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite

from engpass.campaign import axes_from_json, axes_to_json
from engpass.environment import DEFAULT_STORE, Environment, now
from engpass.error import ChoiceError, StoreError, nearest
from engpass.results import outcomes
from engpass.results.upgrade import OldDrawing, drawing
from engpass.store import schema
from engpass.store.database import Database, open_database
from engpass.store.record import Failure, Finished, RunRecord, drawn
from engpass.store.searches import Searches, SearchRecord
from engpass.types.outcome import Outcome

if TYPE_CHECKING:
    import os
    from types import TracebackType

    import pyarrow as pa

    from engpass.results.columns import Of

# Rows per query: an outcome has a few kB, so a query returns some MB.
_ROWS = 2_000


T = TypeVar("T")


class Store:
    """A store of runs. Several processes may read and write one at the same time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    def open(cls, where: str | os.PathLike[str] = DEFAULT_STORE, *, create: bool = True) -> Store:
        """Open a store by path or URL; `:memory:` is private to this object. Raises `StoreError`.

        Without `create` the store must exist, and may be on read-only media.
        """
        return cls(open_database(str(where), create))

    @property
    def where(self) -> str:
        """Path or URL (without password) of this store."""
        return self._database.where

    @property
    def searches(self) -> Searches:
        """The searches in this store."""
        return Searches(self._database)

    def close(self) -> None:
        """Close the store; it cannot be used afterwards."""
        self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Reading

    def runs(self) -> list[RunRecord]:
        """All runs, the one used last at the end."""
        with self._database.read() as connection:
            return self._records(connection)

    def run(self, which: str = "last") -> RunRecord:
        """The run with this id, the only one whose id begins with it, or the `last`; raises `ChoiceError`."""
        with self._database.read() as connection:
            ids = [row.id for row in connection.execute(_by_use())]
            if not ids:
                raise ChoiceError(f"there are no runs in `{self.where}`", "`engpass run FILE` creates one")
            matching = (
                ids[-1:]
                if which == "last"
                else [i for i in ids if i == which] or [i for i in ids if which and i.startswith(which)]
            )
            if not matching:
                raise ChoiceError(
                    f"there is no run `{which}` in `{self.where}`", nearest(which, ["last", *ids])
                )
            if len(matching) > 1:
                some = ", ".join(f"`{i}`" for i in matching[:8])
                raise ChoiceError(
                    f"`{which}` matches {len(matching)} runs: {some}", "add more characters of the id"
                )
            return self._records(connection, matching[0])[0]

    def search(self, which: str) -> SearchRecord | None:
        """The only search whose id begins with `which`; `None` if there is none, or if a run's id does."""
        if which == "last" or any(record.id.startswith(which) for record in self.runs()):
            return None
        found = [record for record in self.searches.all() if which and record.id.startswith(which)]
        return self.searches.get(found[0].id) if len(found) == 1 else None

    def outcomes(self, run_id: str) -> list[Outcome]:
        """Outcomes of a run in the order of its points, without the points that failed."""
        return [outcome for _, outcome in self.read_outcomes(self.run(run_id))]

    def read_outcomes(
        self, record: RunRecord, positions: Sequence[range] | None = None
    ) -> Iterator[tuple[int, Outcome]]:
        """Positions and outcomes in order, of all points or of ascending ranges, in the current format."""
        for position, text in self.raw_outcomes(record.id, positions):
            yield position, outcomes.read(text, record.topology)

    def raw_outcomes(
        self, run_id: str, positions: Sequence[range] | None = None
    ) -> Iterator[tuple[int, str]]:
        """Positions and outcomes as engines wrote them, in order, of all points or of ascending ranges."""
        for position, outcome, _ in self._points(run_id, positions):
            if outcome is not None:
                yield position, outcome

    def lines(self, record: RunRecord, positions: range) -> Iterator[str]:
        """One JSON line per point that has ended, in order; a point that failed has the key `error`."""
        from engpass.campaign import swept_values

        plan = record.plan
        for position, outcome, error in self._points(record.id, [positions]):
            if outcome is not None:
                yield outcomes.current(outcome, record.topology)
            else:
                point = plan.point(position)
                failure = Failure(point, error or "")
                yield json.dumps(failure.to_json(swept_values(point, plan.axes)), ensure_ascii=False)

    def failures(self, record: RunRecord) -> list[Failure]:
        """Points that ended with an error, in order."""
        t = schema.point.c
        plan = record.plan
        with self._database.read() as connection:
            rows = connection.execute(
                select(t.position, t.error)
                .where(t.run_id == record.id, t.error.is_not(None))
                .order_by(t.position)
            )
            return [Failure(plan.point(row.position), row.error) for row in rows]

    def table(self, run_id: str, of: Of = "flows") -> pa.Table:
        """The outcomes of a run as an Arrow table: a row per point and flow, line or engine."""
        from engpass.store.arrow import table

        record = self.run(run_id)
        return table(record, self.read_outcomes(record), of)

    def sessions(self, run_id: str) -> list[dict[str, Any]]:
        """The invocations that worked on a run: `started`, `ended` (`None` after a kill), `environment`."""
        t = schema.session.c
        with self._database.read() as connection:
            rows = connection.execute(
                select(t.started, t.ended, t.environment).where(t.run_id == run_id).order_by(t.id)
            )
            return [
                {"started": r.started, "ended": r.ended, "environment": json.loads(r.environment)}
                for r in rows
            ]

    def done(self, run_id: str, total: int) -> bytearray:
        """One byte per point: 1 if the store has its outcome, else 0."""
        t = schema.point.c
        marks = bytearray(total)
        with self._database.read() as connection:
            rows = connection.execute(
                select(t.position).where(t.run_id == run_id, t.error.is_(None)),
                execution_options={"yield_per": 10_000},
            )
            for (position,) in rows:
                marks[position] = 1
        return marks

    # Writing

    def begin(self, record: RunRecord, *, fresh: bool = False) -> tuple[str, int]:
        """Start a run, or resume the last used one with the same digest; returns the ids of run and session.

        With `fresh` the run is always new.
        """

        def work(connection: Connection) -> tuple[str, int]:
            run_id = None if fresh else self._latest(connection, record.digest)
            if run_id is None:
                # The first run is named after its digest, so that two processes that start at once share it.
                run_id = record.digest[:10]
                while (
                    fresh
                    and connection.execute(select(schema.run.c.id).where(schema.run.c.id == run_id)).first()
                ):
                    run_id = secrets.token_hex(5)
                connection.execute(
                    self._upsert(schema.run).values(_run_row(record, run_id)).on_conflict_do_nothing()
                )
            started = {
                "run_id": run_id,
                "started": now(),
                "environment": json.dumps(record.environment, ensure_ascii=False),
            }
            key = connection.execute(insert(schema.session).values(started)).inserted_primary_key
            assert key is not None  # noqa: S101 (every INSERT of one row has a key)
            return run_id, int(key[0])

        return self._database.write(work)

    @property
    def in_memory(self) -> bool:
        """Whether the store is in memory, not in a file or on a server."""
        return self.where == ":memory:"

    def found(self, digest: str) -> RunRecord | None:
        """The last used run with this digest, or `None`."""
        with self._database.read() as connection:
            run_id = self._latest(connection, digest)
        return None if run_id is None else self.run(run_id)

    def write(self, run_id: str, session: int, points: Iterable[Finished]) -> None:
        """Store finished points in one transaction, durable on return.

        A stored outcome is kept, since another process may have been faster; a stored error is replaced.
        """
        rows = [
            {
                "run_id": run_id,
                "position": p.position,
                "session_id": session,
                "seconds": p.seconds,
                "outcome": p.outcome,
                "error": p.error,
            }
            for p in points
        ]
        if rows:
            self._database.write(lambda connection: connection.execute(self._put, rows))

    @functools.cached_property
    def _put(self) -> postgresql.Insert | sqlite.Insert:
        """The statement that stores points, built once: building it takes longer than sending it."""
        statement = self._upsert(schema.point)
        new = statement.excluded
        return statement.on_conflict_do_update(
            index_elements=["run_id", "position"],
            set_={
                "session_id": new.session_id,
                "seconds": new.seconds,
                "outcome": new.outcome,
                "error": new.error,
            },
            where=schema.point.c.error.is_not(None),
        )

    def end(self, session: int) -> None:
        """Record that a session ended and was not killed."""
        t = schema.session
        self._database.write(
            lambda connection: connection.execute(update(t).where(t.c.id == session).values(ended=now()))
        )

    def _upsert(self, table: Table) -> postgresql.Insert | sqlite.Insert:
        dialect = self._database.engine.dialect.name
        return postgresql.insert(table) if dialect == "postgresql" else sqlite.insert(table)

    @staticmethod
    def _latest(connection: Connection, digest: str) -> str | None:
        found = connection.execute(_by_use().where(schema.run.c.digest == digest)).all()
        return str(found[-1].id) if found else None

    def _points(
        self, run_id: str, positions: Sequence[range] | None
    ) -> Iterator[tuple[int, str | None, str | None]]:
        t = schema.point.c
        query = select(t.position, t.outcome, t.error).where(t.run_id == run_id).order_by(t.position)
        for part in positions if positions is not None else [range(2**63 - 1)]:
            # Pages, not one long cursor: a slow reader must not keep the writer's log from being merged.
            start = part.start
            while start < part.stop:
                with self._database.read() as connection:
                    rows = connection.execute(
                        query.where(t.position >= start, t.position < part.stop).limit(_ROWS)
                    ).all()
                for row in rows:
                    yield row.position, row.outcome, row.error
                if len(rows) < _ROWS:
                    break
                start = rows[-1].position + 1

    def _records(self, connection: Connection, run_id: str | None = None) -> list[RunRecord]:
        t, s, p = schema.run.c, schema.session.c, schema.point.c
        counts = select(
            p.run_id,
            func.sum(case((p.error.is_(None), 1), else_=0)).label("done"),
            func.sum(case((p.error.is_(None), 0), else_=1)).label("failed"),
        ).group_by(p.run_id)
        first = select(s.run_id, func.min(s.id).label("id")).group_by(s.run_id)
        order = _by_use()
        if run_id is not None:
            counts = counts.where(p.run_id == run_id)
            first = first.where(s.run_id == run_id)
            order = order.where(t.id == run_id)
        counted = {row.run_id: row for row in connection.execute(counts)}
        firsts = first.subquery()
        environments = {
            row.run_id: row.environment
            for row in connection.execute(select(s.run_id, s.environment).join(firsts, firsts.c.id == s.id))
        }
        records = []
        for order_row in connection.execute(order).all():
            row = connection.execute(select(schema.run).where(t.id == order_row.id)).one()
            count = counted.get(row.id)
            done, failed = (int(count.done), int(count.failed)) if count is not None else (0, 0)
            records.append(
                _record(row, order_row.used or row.created, environments.get(row.id, "{}"), done, failed)
            )
        return records


def _by_use() -> Select[tuple[str, str | None]]:
    """Ids of runs, the one used last at the end."""
    t, s = schema.run.c, schema.session.c
    return (
        select(t.id, func.max(s.started).label("used"))
        .outerjoin(schema.session, s.run_id == t.id)
        .group_by(t.id, t.created)
        .order_by(func.coalesce(func.max(s.started), t.created), func.max(s.id), t.id)
    )


def _run_row(record: RunRecord, run_id: str) -> dict[str, str | int | None]:
    return {
        "id": run_id,
        "digest": record.digest,
        "name": record.name,
        "description": record.description,
        "source": record.source,
        "text": record.text,
        "overrides": json.dumps(record.overrides, ensure_ascii=False),
        "engines": json.dumps(record.engines),
        "variants": json.dumps(record.variants, ensure_ascii=False),
        "axes": axes_to_json(record.axes),
        "repeats": record.repeats,
        "topology": json.dumps(drawn(record.topology), ensure_ascii=False),
        "points_total": record.points_total,
        "created": record.created,
    }


def _record(row: Row[Any], used: str, environment: str, done: int, failed: int) -> RunRecord:
    status = (
        "done" if done == row.points_total else "failed" if done + failed == row.points_total else "partial"
    )
    return RunRecord(
        id=row.id,
        name=row.name,
        description=row.description,
        source=row.source,
        text=row.text,
        overrides=[(path, value) for path, value in json.loads(row.overrides)],
        engines=json.loads(row.engines),
        variants=json.loads(row.variants),
        axes=axes_from_json(row.axes),
        repeats=row.repeats,
        topology=drawing(_decoded(row.topology, OldDrawing)),
        environment=_decoded(environment, Environment),
        created=row.created,
        points_total=row.points_total,
        points_done=done,
        points_failed=failed,
        status=status,
        used=used,
        digest=row.digest,
    )


def _decoded(text: str, kind: type[T]) -> T:
    """Decode a part of a run's record; raises `StoreError` if it is damaged or of a later version."""
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.MsgspecError as error:
        raise StoreError(
            f"the record of a run cannot be read: {error}",
            "it is damaged, or a later version wrote it: upgrade Engpass, or use another store",
        ) from None
