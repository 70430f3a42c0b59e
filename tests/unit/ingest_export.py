"""Small Nsight Systems exports written by hand, and raw tables read back."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from mfupipe.ingest import TraceInfo, write_raw

PROCESS = 1 << 48 | 77 << 24
THREAD = PROCESS | 5
KERNEL, RUNTIME = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"

Columns = Mapping[str, str]
Rows = Sequence[Sequence[object]]
Tables = dict[str, tuple[Columns, Rows]]


def integers(names: str) -> dict[str, str]:
    """Columns declared INTEGER."""
    return dict.fromkeys(names.split(), "INTEGER")


def pairs(*rows: tuple[str, object]) -> tuple[Columns, Rows]:
    """A table of names and values."""
    return {"name": "TEXT", "value": "TEXT"}, rows


def small() -> Tables:
    """One kernel of 100 ns, launched by one call inside one range, in a trace of 2024."""
    return {
        "StringIds": ({"id": "INTEGER", "value": "TEXT"}, [(1, "gemm"), (2, "cudaLaunchKernel"), (3, "unused")]),
        RUNTIME: (integers("start end globalTid correlationId nameId"), [(10, 20, THREAD, 4, 2)]),
        KERNEL: (
            integers("start end deviceId streamId correlationId globalPid demangledName shortName"),
            [(1000, 1100, 0, 7, 4, PROCESS, 1, 1)],
        ),
        "NVTX_EVENTS": (
            integers("start end eventType textId domainId globalTid") | {"text": "TEXT"},
            [(5, 30, 59, None, 0, THREAD, "step 1")],
        ),
        "META_DATA_EXPORT": pairs(("EXPORT_PRODUCT_VERSION", "2024.6.2.225"), ("EXPORT_SCHEMA_VERSION", "3.16.1")),
    }


def write_sqlite(path: Path, tables: Tables) -> Path:
    """The tables as an SQLite export."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for name, (columns, rows) in tables.items():
            declared = ", ".join(f'"{column}" {kind}' for column, kind in columns.items())
            connection.execute(f'CREATE TABLE "{name}" ({declared})')
            marks = ", ".join("?" for _ in columns)
            connection.executemany(f'INSERT INTO "{name}" VALUES ({marks})', rows)
    return path


def write_parquet(directory: Path, tables: Tables, unsigned: Sequence[str] = ()) -> Path:
    """The tables as a Parquet directory; columns named in `unsigned` are UINT64, as nsys writes them."""
    directory.mkdir()
    for name, (columns, rows) in tables.items():
        kinds = [pa.uint64() if column in unsigned else _arrow(kind) for column, kind in columns.items()]
        arrays = [pa.array([_wrapped(row[index], kind) for row in rows], kind) for index, kind in enumerate(kinds)]
        pq.write_table(pa.Table.from_arrays(arrays, names=list(columns)), directory / f"{name}.parquet")
    return directory


def ingest(source: Path, directory: Path) -> tuple[TraceInfo, dict[str, list[dict[str, Any]]]]:
    """What write_raw returned, and the rows of every raw table."""
    raw = directory / "raw" / "trace_id=0"
    info = write_raw(source, raw, trace_id=0)
    return info, read_raw(raw)


def read_raw(raw: Path) -> dict[str, list[dict[str, Any]]]:
    """Rows of every raw table, by their key where they have one: threads write them in any order."""
    tables = {path.stem: pq.ParquetFile(path).read().to_pylist() for path in sorted(raw.glob("*.parquet"))}
    return {name: sorted(rows, key=_key) if _has_key(rows) else rows for name, rows in tables.items()}


def _has_key(rows: list[dict[str, Any]]) -> bool:
    return bool(rows) and next(iter(rows[0])) in ("row_id", "id")


def _key(row: dict[str, Any]) -> int:
    return int(next(iter(row.values())))


def _arrow(kind: str) -> pa.DataType:
    return pa.int64() if kind == "INTEGER" else pa.string()


def _wrapped(value: object, kind: pa.DataType) -> object:
    return value + 2**64 if kind == pa.uint64() and isinstance(value, int) and value < 0 else value
