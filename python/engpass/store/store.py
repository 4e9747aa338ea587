"""Writes runs and their outcomes to a database, and reads them."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from engpass.campaign import Axis
from engpass.environment import DEFAULT_STORE, Environment, now
from engpass.error import ChoiceError, StoreError, nearest
from engpass.jsondata import Json
from engpass.results import outcomes
from engpass.results.upgrade import OldDrawing, drawing
from engpass.store.database import Database, open_database
from engpass.store.record import CAMPAIGN, Failure, Finished, RunRecord, drawn
from engpass.store.transaction import Transaction, Value
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
    def in_memory(self) -> bool:
        """Whether the store is in memory, not in a file or on a server."""
        return self._database.in_memory

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
        """All runs without their trials, the one used last at the end."""
        with self._database.read() as transaction:
            return [_record(transaction, key) for key, *_ in transaction.execute(_BY_USE).fetchall()]

    def run(self, which: str = "last", *, any_method: bool = False) -> RunRecord:
        """The run with this id, the only one whose id begins with it, or the `last`; raises `ChoiceError`.

        It is a campaign, unless `any_method` also allows searches and paths.
        """
        with self._database.read() as transaction:
            methods = {key: method for key, method, *_ in transaction.execute(_BY_USE)}
            ids = [key for key, method in methods.items() if any_method or method == CAMPAIGN]
            if not methods:
                raise ChoiceError(f"there are no runs in `{self.where}`", "`engpass run FILE` creates one")
            matching = ids[-1:] if which == "last" else _matching(which, ids)
            if not matching and (others := _matching(which, methods)):
                raise ChoiceError(
                    f"`{others[0]}` comes from `{methods[others[0]]}`, not from `engpass run`",
                    f"`engpass show {others[0]}` prints it",
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
            return _record(transaction, matching[0], with_trials=True)

    def found(self, digest: str) -> RunRecord | None:
        """The last used run with this digest that has no result, or `None`."""
        with self._database.read() as transaction:
            run_id = _latest(transaction, digest)
            return None if run_id is None else _record(transaction, run_id, with_trials=True)

    def outcomes(self, run_id: str) -> list[Outcome]:
        """Outcomes of a run in the order of its points, without the points that failed."""
        return [outcome for _, outcome in self.read_outcomes(self.run(run_id, any_method=True))]

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
        plan = record.plan
        with self._database.read() as transaction:
            rows = transaction.execute(
                "SELECT position, error FROM point WHERE run_id = ? AND error IS NOT NULL ORDER BY position",
                record.id,
            )
            return [Failure(plan.point(position), error) for position, error in rows]

    def table(self, run_id: str, of: Of = "flows") -> pa.Table:
        """The outcomes of a run as an Arrow table: a row per point and flow, line or engine."""
        from engpass.store.arrow import table

        record = self.run(run_id)
        return table(record, self.read_outcomes(record), of)

    def sessions(self, run_id: str) -> list[dict[str, Any]]:
        """The invocations that worked on a run: `started`, `ended` (`None` after a kill), `environment`."""
        with self._database.read() as transaction:
            rows = transaction.execute(
                "SELECT started, ended, environment FROM session WHERE run_id = ? ORDER BY id", run_id
            )
            return [
                {"started": started, "ended": ended, "environment": json.loads(environment)}
                for started, ended, environment in rows
            ]

    def done(self, run_id: str, total: int) -> bytearray:
        """One byte per point: 1 if the store has its outcome, else 0."""
        marks = bytearray(total)
        with self._database.read() as transaction:
            rows = transaction.execute(
                "SELECT position FROM point WHERE run_id = ? AND error IS NULL", run_id
            )
            for (position,) in rows:
                marks[position] = 1
        return marks

    def _points(
        self, run_id: str, positions: Sequence[range] | None
    ) -> Iterator[tuple[int, str | None, str | None]]:
        for part in positions if positions is not None else [range(2**63 - 1)]:
            # Pages, not one long cursor: a slow reader must not keep the writer's log from being merged.
            start = part.start
            while start < part.stop:
                with self._database.read() as transaction:
                    rows = transaction.execute(
                        "SELECT position, outcome, error FROM point"
                        " WHERE run_id = ? AND position >= ? AND position < ? ORDER BY position LIMIT ?",
                        run_id,
                        start,
                        part.stop,
                        _ROWS,
                    ).fetchall()
                yield from rows
                if len(rows) < _ROWS:
                    break
                start = rows[-1][0] + 1

    # Writing

    def begin(self, record: RunRecord, *, fresh: bool = False) -> tuple[str, int]:
        """Start a run, or resume the last used one with the same digest; returns the ids of run and session.

        With `fresh` the run is always new; so is a search or a path whose like has ended.
        """

        def work(transaction: Transaction) -> tuple[str, int]:
            # The first run is named after its digest, so that two processes that start at once share it.
            # PostgreSQL shows each statement what others have committed by then: the name is looked up first.
            first = record.digest[:10]
            taken = bool(transaction.execute("SELECT 1 FROM run WHERE id = ?", first).fetchall())
            run_id = None if fresh else _latest(transaction, record.digest)
            if run_id is None:
                run_id = secrets.token_hex(5) if taken else first
                row = _row(record) | {"id": run_id}
                transaction.execute(
                    f"INSERT INTO run ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})",  # noqa: S608 (own names)
                    *row.values(),
                )
            (session,) = transaction.one("SELECT COALESCE(MAX(id), 0) + 1 FROM session")
            transaction.execute(
                "INSERT INTO session (id, run_id, started, environment) VALUES (?, ?, ?, ?)",
                session,
                run_id,
                now(),
                json.dumps(record.environment, ensure_ascii=False),
            )
            return run_id, int(session)

        return self._database.write(work)

    def write(self, run_id: str, session: int, points: Iterable[Finished]) -> int:
        """Store finished points in one transaction, durable on return; returns how many were new.

        A stored outcome is kept, since another process may have been faster; a stored error is replaced.
        """
        rows = [(run_id, p.position, session, p.seconds, p.outcome, p.error, p.trial) for p in points]
        if not rows:
            return 0
        return self._database.write(lambda transaction: transaction.execute_for_each(_PUT, rows))

    def end(self, session: int, result: Mapping[str, Json] | None = None) -> None:
        """Record that a session ended and was not killed, and the result of a search or a path."""

        def work(transaction: Transaction) -> None:
            transaction.execute("UPDATE session SET ended = ? WHERE id = ?", now(), session)
            if result is not None:
                transaction.execute(
                    "UPDATE run SET result = ? WHERE id = (SELECT run_id FROM session WHERE id = ?)",
                    json.dumps(result, ensure_ascii=False),
                    session,
                )

        self._database.write(work)


_BY_USE = """
SELECT run.id, run.method, run.digest, run.result IS NOT NULL
FROM run LEFT JOIN session ON session.run_id = run.id
GROUP BY run.id
ORDER BY COALESCE(MAX(session.started), run.created), MAX(session.id), run.id"""
"""Id, method, digest, and whether it has a result, of all runs; the one used last at the end."""

_PUT = """
INSERT INTO point (run_id, position, session_id, seconds, outcome, error, trial) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (run_id, position) DO UPDATE
SET session_id = excluded.session_id, seconds = excluded.seconds,
    outcome = excluded.outcome, error = excluded.error, trial = excluded.trial
WHERE point.error IS NOT NULL"""


def _matching(which: str, ids: Iterable[str]) -> list[str]:
    """The id `which`, or all that begin with it."""
    ids = list(ids)
    return [i for i in ids if i == which] or [i for i in ids if which and i.startswith(which)]


def _latest(transaction: Transaction, digest: str) -> str | None:
    """The last used run with this digest that has no result."""
    found = [key for key, _, its, ended in transaction.execute(_BY_USE) if its == digest and not ended]
    return found[-1] if found else None


_PLAIN = tuple(
    "id digest name description source text created repeats points_total method traffic".split()  # noqa: SIM905
)
_JSON: dict[str, Any] = {
    "overrides": list[tuple[str, str]],
    "engines": list[str],
    "variants": list[str],
    "axes": tuple[Axis, ...],
    "topology": OldDrawing,
    "settings": dict[str, Any],
    "result": dict[str, Any] | None,
}
"""Columns with JSON text, by their types."""


def _row(record: RunRecord) -> dict[str, Value]:
    """The row of a record in the table of runs."""
    values = {name: getattr(record, name) for name in (*_PLAIN, *_JSON)} | {
        "topology": drawn(record.topology)
    }
    return values | {
        name: None if values[name] is None else msgspec.json.encode(values[name]).decode() for name in _JSON
    }


def _record(transaction: Transaction, run_id: str, *, with_trials: bool = False) -> RunRecord:
    columns = (*_PLAIN, *_JSON)
    row = transaction.one(f"SELECT {', '.join(columns)} FROM run WHERE id = ?", run_id)  # noqa: S608 (own names)
    sessions = transaction.execute(
        "SELECT started, environment FROM session WHERE run_id = ? ORDER BY id", run_id
    ).fetchall()
    ended, failed = transaction.one("SELECT COUNT(*), COUNT(error) FROM point WHERE run_id = ?", run_id)
    trials: Iterable[tuple[str]] = ()
    if with_trials:
        trials = transaction.execute(
            "SELECT trial FROM point WHERE run_id = ? AND trial IS NOT NULL ORDER BY position", run_id
        ).fetchall()
    values = dict(zip(columns, row, strict=True))
    values |= {name: _decoded(values[name], kind) for name, kind in _JSON.items() if values[name] is not None}
    done = ended - failed
    is_campaign = values["method"] == CAMPAIGN
    if not is_campaign:
        values["points_total"] = ended
    total = values["points_total"]
    whole = done == total if is_campaign else values["result"] is not None
    status = "done" if whole else "failed" if ended == total and is_campaign else "partial"
    return RunRecord(
        **{**values, "topology": drawing(values["topology"])},
        environment=_decoded(sessions[0][1] if sessions else "{}", Environment),
        used=max((started for started, _ in sessions), default=values["created"]),
        points_done=done,
        points_failed=failed,
        status=status,
        trials=[json.loads(trial) for (trial,) in trials],
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
