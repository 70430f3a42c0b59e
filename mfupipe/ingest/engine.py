"""DuckDB as the copying machine: one COPY per table, and a slower way round values that it refuses."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from mfupipe.errors import MfupipeError
from mfupipe.ingest import refusals
from mfupipe.ingest.launder import BAD, UNDECODABLE, launder
from mfupipe.ingest.model import Finding
from mfupipe.ingest.raw_tables import Column, Kind, RawTable
from mfupipe.ingest.sources import Relation, Source, literal
from mfupipe.ingest.timebase import TimeBase

MEMORY_LIMIT = "384MB"
THREADS = 2
READER_PACKAGE = "duckdb_extension_sqlite_scanner"
# What DuckDB says when the fault is not in a value. The first word of each list decides which refusal it becomes.
DAMAGE = ("malformed", "not a database", "Parquet magic bytes", "too small to be a Parquet file", "disk I/O error")
NO_ROOM = ("No space left", "File too large", "Disk quota", "Read-only file system", "Permission denied")


def connect(scratch: Path) -> duckdb.DuckDBPyConnection:
    """An in-memory DuckDB that spills to `scratch`, asks no network, and can read SQLite.

    Raises EnvironmentProblem when the wheel with the SQLite reader does not fit this DuckDB.
    """
    connection = duckdb.connect(
        config={
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "extension_directory": str(scratch / "extensions"),
            "temp_directory": str(scratch / "spill"),
            "memory_limit": MEMORY_LIMIT,
            "threads": THREADS,
        }
    )
    connection.execute(f"LOAD {literal(reader_path())}")
    return connection


def reader_path() -> Path:
    """The SQLite reader inside its wheel, for exactly this DuckDB."""
    spec = importlib.util.find_spec(READER_PACKAGE)
    if spec is None or spec.origin is None:
        raise refusals.reader_missing(duckdb.__version__, f"{READER_PACKAGE} is not installed")
    extensions = Path(spec.origin).parent / "extensions"
    path = extensions / f"v{duckdb.__version__}" / "sqlite_scanner.duckdb_extension"
    if not path.is_file():
        found = ", ".join(sorted(entry.name for entry in extensions.glob("v*"))) or "none"
        raise refusals.reader_missing(duckdb.__version__, f"the installed one is for {found}")
    return path


@dataclass
class Engine:
    """Copies tables of one opened trace to `raw`. `findings` grows with the values that had to be replaced."""

    source_path: Path
    source: Source
    connection: duckdb.DuckDBPyConnection
    scratch: Path
    raw: Path
    time: TimeBase
    findings: list[Finding] = field(default_factory=list)

    def copy(self, table: RawTable, directory: Path | None = None) -> int:
        """Write the raw table, and return its rows. Values that cannot be read are replaced, counted and a finding."""
        target = (directory or self.raw) / f"{table.name}.parquet"
        name = self._table_of(table)
        if name is None:
            return self._write(target, _empty(table))
        relation = self.source.relation(name)
        columns = self._present(table, relation)
        if all(kind is Kind.TEXT or relation.is_integer(column) for column, kind in columns):
            try:
                return self._write(target, self._select(table, relation))
            except duckdb.Error as error:
                refusal = self.refusal(error)
                if refusal is not None:
                    raise refusal from error
        laundered = launder(self.source, name, columns, self.scratch)
        count = self._write(target, self._select(table, laundered))
        self._note_faults(table, name, laundered)
        return count

    def scan(self, name: str) -> str:
        """FROM clause of a raw table that was written."""
        return f"read_parquet({literal(self.raw / f'{name}.parquet')})"

    def refusal(self, error: duckdb.Error) -> MfupipeError | None:
        """What an error of DuckDB means for the user; None when it is about single values."""
        said = str(error).partition("\n")[0]
        if "locked" in said or any(word in said for word in DAMAGE):
            return refusals.database_error(self.source_path, said)
        if any(word in said for word in NO_ROOM):
            return refusals.cannot_write(self.scratch, said)
        if isinstance(error, duckdb.OutOfMemoryException):
            return refusals.out_of_memory(said)
        return None

    def _table_of(self, table: RawTable) -> str | None:
        columns = self.source.columns
        found = next((name for name in table.sources if table.needs in columns.get(name, ())), None)
        if found is None and len(table.sources) == 1 and table.sources[0] in columns:
            evidence = f"its table {table.sources[0]} has no column {table.needs}"
            raise refusals.damaged(self.source_path, evidence)
        return found

    def _present(self, table: RawTable, relation: Relation) -> Sequence[tuple[str, Kind]]:
        """Source columns that the table and its condition use, with their kinds."""
        chosen = [(_source_column(column, relation), column.kind) for column in table.columns]
        kinds = {table.needs: Kind.INTEGER} | {name: kind for name, kind in chosen if name is not None}
        return list(kinds.items())

    def _select(self, table: RawTable, relation: Relation) -> str:
        values = [f"{self._value(column, relation)} AS {column.name}" for column in table.columns]
        if table.has_row_id:
            values.insert(0, f"{relation.row_id} AS row_id")
        return f"SELECT {', '.join(values)} FROM {relation.sql} WHERE {table.condition}"

    def _value(self, column: Column, relation: Relation) -> str:
        name = _source_column(column, relation)
        if name is None:
            return self._only_process() if column.kind is Kind.PROCESS else f"NULL::{column.kind.sql_type}"
        if column.kind is Kind.TEXT:
            return relation.text(name)
        value = relation.integer(name)
        return self.time.session_time(value) if column.kind is Kind.TIME else value

    def _only_process(self) -> str:
        """The process of all API calls when there is one; old exports do not name it with each kernel."""
        statement = f"SELECT DISTINCT global_tid & ~16777215 FROM {self.scan('api_calls')} WHERE global_tid IS NOT NULL"
        found = self.connection.execute(f"{statement} LIMIT 2").fetchall()
        return f"{found[0][0]}::BIGINT" if len(found) == 1 else "NULL::BIGINT"

    def _write(self, target: Path, select: str) -> int:
        statement = f"COPY ({select}) TO {literal(target)} (FORMAT parquet, COMPRESSION zstd)"
        row = self.connection.execute(statement).fetchone()
        return int(row[0]) if row else 0

    def _note_faults(self, table: RawTable, name: str, laundered: Relation) -> None:
        sums = f"SELECT sum({UNDECODABLE})::BIGINT, sum({BAD})::BIGINT FROM {laundered.sql} WHERE {table.condition}"
        undecodable, bad = self.connection.execute(sums).fetchone() or (0, 0)
        counts = (("undecodable_names", undecodable), ("bad_values", bad))
        self.findings += [Finding(code, count, name) for code, count in counts if count]


def _source_column(column: Column, relation: Relation) -> str | None:
    return next((name for name in column.sources if name in relation.types), None)


def _empty(table: RawTable) -> str:
    columns = [f"NULL::{column.kind.sql_type} AS {column.name}" for column in table.columns]
    if table.has_row_id:
        columns.insert(0, "NULL::BIGINT AS row_id")
    return f"SELECT {', '.join(columns)} WHERE false"
