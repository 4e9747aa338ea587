"""`engpass export`: writes the points of a run to a file for other programs."""

from __future__ import annotations

import enum
import os
import sys
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from engpass.cli import console, files, options
from engpass.error import EngpassError

if TYPE_CHECKING:
    import pyarrow as pa


class Format(enum.StrEnum):
    """File formats of an export."""

    CSV = "csv"
    PARQUET = "parquet"
    ARROW = "arrow"


_SUFFIXES = {".csv": Format.CSV, ".parquet": Format.PARQUET, ".arrow": Format.ARROW, ".feather": Format.ARROW}

Output = Annotated[
    str | None,
    typer.Option("--output", "-o", metavar="FILE", help="File to write (default: standard output)."),
]
As = Annotated[
    Format | None, typer.Option("--format", help="Default: by the suffix of the file, otherwise csv.")
]


class Rows(enum.StrEnum):
    """Kind of the rows of an export: flows, lines or engines."""

    FLOWS = "flows"
    LINES = "lines"
    ENGINES = "engines"


RowsOf = Annotated[
    Rows, typer.Option("--of", help="A row for each point and flow, or for each line, or for each engine.")
]
Spreadsheet = Annotated[
    bool,
    typer.Option(
        "--spreadsheet", help="Put a ' before text in the CSV that a spreadsheet would run as a formula."
    ),
]

_FORMULA = "^[=+@\\-\t\r\n\uff1d\uff0b\uff0d\uff20]"
"""First characters of a formula: = + - @, also full width, tab and line ends (OWASP, CSV Injection)."""


def command(
    run: options.Run = "last",
    format_: As = None,
    output: Output = None,
    store: options.StoreAt = options.STORE,
    spreadsheet: Spreadsheet = False,
    of: RowsOf = Rows.FLOWS,
) -> None:
    """Write the points of a run as a table: a row for each flow, or with `--of` for each line or engine."""
    from engpass.store import Store

    if output == "-":
        output = None
    chosen = format_ or (_SUFFIXES.get(Path(output).suffix.lower()) if output else None) or Format.CSV
    if output is not None and format_ is None:
        endings = " or ".join(f"`{ending}`" for ending in _SUFFIXES)
        cure = f"use {endings}, or choose the format with `--format`; spreadsheets open `.csv`"
        files.matching(output, list(_SUFFIXES), "there is no such export", cure)
    if spreadsheet and chosen is not Format.CSV:
        raise EngpassError(
            f"`--spreadsheet` is for csv, but the format is {chosen}",
            f"remove it: columns of {chosen} have types, so their text is never run as a formula",
        )
    if output is None and chosen is not Format.CSV and sys.stdout is not None and sys.stdout.isatty():
        raise EngpassError(
            f"{chosen} is binary and cannot be written to a terminal", "write to a file with `-o FILE`"
        )
    with Store.open(store, create=False) as opened:
        record = opened.run(run)
        table = opened.table(record.id, of.value)
    if spreadsheet:
        table = _without_formulas(table)
    if output is None:
        if sys.stdout is not None:
            _write(table, chosen, sys.stdout.buffer)
        return
    _write_file(table, chosen, Path(output))
    console.tell(f"{table.num_rows:,} rows of run {record.id} written to `{output}`")
    if record.points_done < record.points_total:
        console.tell(
            f"note: only {record.points_done:,} of {record.points_total:,} points of the run are done"
        )


def _without_formulas(table: pa.Table) -> pa.Table:
    """Put a `'` before each text and column name that begins like a formula; numbers stay unchanged."""
    import pyarrow as pa
    from pyarrow import compute

    def quoted(texts: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
        begins = compute.match_substring_regex(texts, _FORMULA)
        return compute.if_else(begins, compute.binary_join_element_wise("'", texts, ""), texts)

    for place, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            table = table.set_column(place, field, quoted(table.column(place)))
    return table.rename_columns(quoted(pa.array(table.column_names)).to_pylist())


def _write(table: pa.Table, chosen: Format, sink: IO[bytes]) -> None:
    import pyarrow as pa
    from pyarrow import csv, ipc, parquet

    buffer = pa.BufferOutputStream()
    match chosen:
        case Format.CSV:
            csv.write_csv(table, buffer)
        case Format.PARQUET:
            parquet.write_table(table, buffer, compression="zstd")
        case Format.ARROW:
            with ipc.new_file(buffer, table.schema) as writer:
                writer.write_table(table)
    # Python writes the file, so that for every format errors are an `OSError` with a number.
    sink.write(buffer.getvalue())
    sink.flush()


def _write_file(table: pa.Table, chosen: Format, path: Path) -> None:
    """Write to a temporary file and rename it, so that a full disk leaves no partial file."""
    temporary = None
    try:
        if path.exists() and not path.is_file():
            # A device or a pipe, such as `-o >(gzip)`, cannot be replaced by renaming a file.
            with path.open("wb") as sink:
                _write(table, chosen, sink)
            return
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as sink:
            temporary = sink.name
            _write(table, chosen, sink)
        umask = os.umask(0)
        os.umask(umask)
        Path(temporary).chmod(0o666 & ~umask)
        Path(temporary).replace(path)
        temporary = None
    except OSError as error:
        raise EngpassError(
            f"`{path}` cannot be written: {error.strerror}", "check the path and the disk"
        ) from None
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
