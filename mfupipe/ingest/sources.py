"""The two kinds of trace that can be read: an SQLite database, and a directory of Parquet files.

Each gives its tables to DuckDB (fast, refuses odd values), and row by row to Python (slow, accepts anything).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

Row = tuple[object, ...]
BATCH_ROWS = 16_384


def literal(value: str | Path) -> str:
    """A SQL string literal."""
    return "'" + str(value).replace("'", "''") + "'"


@dataclass(frozen=True)
class Relation:
    """A table as DuckDB sees it.

    row_id: expression of a row's place. types: declared type per column. is_checked: text is known to be UTF-8.
    """

    sql: str
    row_id: str
    types: Mapping[str, str]
    is_checked: bool

    def is_integer(self, column: str) -> bool:
        """True when the column was declared to hold integers; others would be rounded or refused."""
        return "INT" in self.types[column]

    def integer(self, column: str) -> str:
        """Expression of the column as BIGINT; unsigned 64-bit ids wrap around, as in SQLite."""
        if self.types[column] != "UBIGINT":
            return f'"{column}"::BIGINT'
        wrapped = f'("{column}"::HUGEINT - {2**64})::BIGINT'
        return f'CASE WHEN "{column}" > {2**63 - 1} THEN {wrapped} ELSE "{column}"::BIGINT END'

    def text(self, column: str) -> str:
        """Expression of the column as VARCHAR; an error where it is not UTF-8 (the SQLite reader does not look)."""
        return f'"{column}"::VARCHAR' if self.is_checked else f'decode(encode("{column}"::VARCHAR))'


class Source(Protocol):
    """An opened trace."""

    @property
    def columns(self) -> Mapping[str, Mapping[str, str]]:
        """Table -> column -> declared type."""

    @property
    def setup(self) -> str | None:
        """Statement that DuckDB has to run first."""

    def relation(self, table: str) -> Relation:
        """The table for DuckDB."""

    def batches(self, table: str, columns: Sequence[str]) -> Iterator[list[Row]]:
        """Rows in their order, with text as bytes. Raises sqlite3.DatabaseError or pyarrow.ArrowException on damage."""


@dataclass(frozen=True)
class SqliteSource:
    """An SQLite export. `path`: checked, unlocked, and free of a journal that would have to be replayed."""

    path: Path

    @cached_property
    def columns(self) -> Mapping[str, Mapping[str, str]]:
        """Table -> column -> declared type."""
        with closing(self.connect()) as connection:
            connection.text_factory = _replacing
            tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            found = {
                name: connection.execute("SELECT name, type FROM pragma_table_info(?)", (name,)) for (name,) in tables
            }
            return {name: {column: kind.upper() for column, kind in rows} for name, rows in found.items()}

    @property
    def setup(self) -> str | None:
        """Attach the database, never writing to it."""
        return f"ATTACH {literal(self.path)} AS source (TYPE sqlite, READ_ONLY)"

    def relation(self, table: str) -> Relation:
        """The table through DuckDB's SQLite reader."""
        return Relation(f'source."{table}"', "rowid", self.columns[table], is_checked=False)

    def batches(self, table: str, columns: Sequence[str]) -> Iterator[list[Row]]:
        """Rows in the order of their rowid."""
        chosen = ", ".join(f'"{column}"' for column in columns)
        with closing(self.connect()) as connection:
            connection.text_factory = bytes
            cursor = connection.execute(f'SELECT {chosen} FROM "{table}" ORDER BY rowid')
            while rows := cursor.fetchmany(BATCH_ROWS):
                yield rows

    def connect(self) -> sqlite3.Connection:
        """A connection that cannot write."""
        return sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=ro", uri=True)


@dataclass(frozen=True)
class ParquetSource:
    """A directory as `nsys export --type=parquetdir` writes it: TABLE.parquet for each table that has rows."""

    directory: Path

    @cached_property
    def columns(self) -> Mapping[str, Mapping[str, str]]:
        """Table -> column -> DuckDB type. Raises pyarrow.ArrowException when a file is damaged."""
        schemas = {path.stem: pq.read_schema(path) for path in sorted(self.directory.glob("*.parquet"))}
        return {table: {field.name: _duckdb_type(field.type) for field in schema} for table, schema in schemas.items()}

    @property
    def setup(self) -> str | None:
        """Parquet needs none."""
        return None

    def relation(self, table: str) -> Relation:
        """The table through DuckDB's Parquet reader, which refuses text that is not UTF-8."""
        return parquet_relation(self.directory / f"{table}.parquet", self.columns[table])

    def batches(self, table: str, columns: Sequence[str]) -> Iterator[list[Row]]:
        """Rows in the order of the file."""
        with pq.ParquetFile(self.directory / f"{table}.parquet") as file:
            for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=list(columns)):
                values = [_as_bytes(batch.column(column)).to_pylist() for column in columns]
                yield list(zip(*values, strict=True))


def parquet_relation(path: Path, types: Mapping[str, str]) -> Relation:
    """A Parquet file as a relation."""
    sql = f"read_parquet({literal(path)}, file_row_number = true)"
    return Relation(sql, "file_row_number + 1", types, is_checked=True)


def _replacing(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _duckdb_type(arrow_type: pa.DataType) -> str:
    if pa.types.is_uint64(arrow_type):
        return "UBIGINT"
    if pa.types.is_integer(arrow_type):
        return "BIGINT"
    return str(arrow_type).upper()


def _as_bytes(column: pa.Array) -> pa.Array:
    return column.cast(pa.binary()) if pa.types.is_string(column.type) else column
