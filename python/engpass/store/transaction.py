"""One transaction of a database, in the SQL that SQLite and PostgreSQL have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec

Value: TypeAlias = str | int | float | None
Row: TypeAlias = tuple[Any, ...]


class Rows(Protocol):
    """The rows that a statement returns."""

    def fetchall(self) -> list[Row]:
        """Return the remaining rows."""

    def __iter__(self) -> Iterator[Row]: ...


class Changes(Protocol):
    """A cursor that runs a statement repeatedly."""

    @property
    def rowcount(self) -> int:
        """The number of rows that it changed."""

    def executemany(self, statement: str, rows: Iterable[Sequence[Value]], /) -> object:
        """Run a statement once per row of parameters."""


class Connection(Protocol):
    """The methods of connections that `sqlite3` and `psycopg` both have; not all are in PEP 249."""

    def execute(self, statement: str, parameters: Sequence[Value] = (), /) -> Rows:
        """Run a statement and return its rows."""

    def cursor(self) -> Changes:
        """Return a cursor."""

    def commit(self) -> None:
        """End the transaction."""

    def rollback(self) -> None:
        """Undo the transaction."""

    def close(self) -> None:
        """Close the connection."""


class Kind(msgspec.Struct, frozen=True):
    """Differences between SQLite and PostgreSQL."""

    connect: Callable[[], Connection]
    is_alive: Callable[[Connection], bool]
    """Whether a connection that was idle can still be used."""
    error: type[Exception]
    marker: str
    """The placeholder of a parameter."""
    begin_read: str
    begin_write: str
    tables: str
    """The statement that lists the names of the tables."""
    is_own_file: bool
    """Whether no other program has tables in the same database."""


class Transaction:
    """An open transaction. Statements are SQL with `?` for each parameter."""

    def __init__(self, connection: Connection, kind: Kind) -> None:
        self._connection, self._kind = connection, kind

    @property
    def is_own_file(self) -> bool:
        """Whether no other program has tables in the same database."""
        return self._kind.is_own_file

    def execute(self, statement: str, *parameters: Value) -> Rows:
        """Run a statement and return its rows."""
        return self._connection.execute(statement.replace("?", self._kind.marker), parameters)

    def one(self, statement: str, *parameters: Value) -> Row:
        """Run a statement and return its only row."""
        (row,) = self.execute(statement, *parameters).fetchall()
        return row

    def execute_for_each(self, statement: str, rows: Iterable[Sequence[Value]]) -> int:
        """Run a statement once per row of parameters and return how many rows of the table it changed."""
        cursor = self._connection.cursor()
        cursor.executemany(statement.replace("?", self._kind.marker), rows)
        return cursor.rowcount

    def tables(self) -> set[str]:
        """Names of the tables."""
        return {name for (name,) in self.execute(self._kind.tables)}
