"""The rows of an export, as plain objects. Only `SELECT columns FROM one table` is asked of SQLite."""

from __future__ import annotations

import gzip
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

THREAD_BITS = 0xFFFFFF
RANGE_EVENT_TYPES = (59, 60, 70, 71)
EXECUTION_TABLES = {
    "kernel": "CUPTI_ACTIVITY_KIND_KERNEL",
    "memcpy": "CUPTI_ACTIVITY_KIND_MEMCPY",
    "memset": "CUPTI_ACTIVITY_KIND_MEMSET",
    "graph": "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
}


@dataclass(frozen=True)
class Range:
    """One NVTX range; `is_unclosed` when its end was never seen (an end of NULL reads as the start)."""

    row: int
    start: int
    end: int
    thread: int
    domain: int
    message: str | None
    is_unclosed: bool


@dataclass(frozen=True)
class ApiCall:
    """One CUDA API call."""

    row: int
    start: int
    end: int
    thread: int
    correlation: int
    name: str


@dataclass(frozen=True)
class Execution:
    """One kernel, memcpy, memset or whole-graph execution; `device` is the CUDA ordinal of its process."""

    kind: str
    row: int
    start: int
    end: int
    process: int
    device: int
    stream: int
    correlation: int | None
    name: str | None

    @property
    def is_valid(self) -> bool:
        """False when the clock was not collected (0, 0) or runs backwards; a zero length elsewhere is valid."""
        return self.end >= self.start and (self.start, self.end) != (0, 0)


@dataclass(frozen=True)
class Export:
    """Everything that attribution needs from one export."""

    executions: tuple[Execution, ...]
    api_calls: tuple[ApiCall, ...]
    ranges: tuple[Range, ...]
    domains: dict[tuple[int, int], str] = field(default_factory=dict)


def unpack(source: Path, directory: Path) -> Path:
    """Path of the plain .sqlite of `source`, unpacked into `directory` when it is gzipped."""
    if source.suffix != ".gz":
        return source
    target = directory / source.stem
    if not target.exists():
        target.write_bytes(gzip.decompress(source.read_bytes()))
    return target


def read_export(sqlite_file: Path) -> Export:
    """Read one .sqlite export; undecodable bytes become U+FFFD."""
    with closing(sqlite3.connect(f"file:{sqlite_file}?mode=ro&immutable=1", uri=True)) as connection:
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        strings = dict(_select(connection, "StringIds", ("id", "value")))
        return Export(
            executions=tuple(_executions(connection, strings)),
            api_calls=tuple(_api_calls(connection, strings)),
            ranges=tuple(_ranges(connection, strings)),
            domains=dict(_domains(connection, strings)),
        )


def _select(connection: sqlite3.Connection, table: str, columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """Rows of a table; none when it is absent, None for a column that is absent."""
    present = {row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')}
    if not present:
        return []
    wanted = ", ".join(f'"{name}"' if name in present or name == "rowid" else "NULL" for name in columns)
    return connection.execute(f'SELECT {wanted} FROM "{table}"').fetchall()


def _executions(connection: sqlite3.Connection, strings: dict[int, str]) -> Iterator[Execution]:
    columns = ("rowid", "start", "end", "globalPid", "deviceId", "streamId", "correlationId", "shortName")
    for kind, table in EXECUTION_TABLES.items():
        for row, start, end, process, device, stream, correlation, name_id in _select(connection, table, columns):
            name = strings.get(name_id) if kind == "kernel" else None
            yield Execution(kind, row, start, end, process, device, stream, correlation, name)


def _api_calls(connection: sqlite3.Connection, strings: dict[int, str]) -> Iterator[ApiCall]:
    columns = ("rowid", "start", "end", "globalTid", "correlationId", "nameId")
    for row, start, end, thread, correlation, name_id in _select(connection, "CUPTI_ACTIVITY_KIND_RUNTIME", columns):
        yield ApiCall(row, start, end, thread, correlation, strings.get(name_id, ""))


def _ranges(connection: sqlite3.Connection, strings: dict[int, str]) -> Iterator[Range]:
    durations = {duration for (duration,) in _select(connection, "ANALYSIS_DETAILS", ("duration",))}
    columns = ("rowid", "start", "end", "eventType", "text", "textId", "domainId", "globalTid")
    for row, start, end, event_type, text, text_id, domain, thread in _select(connection, "NVTX_EVENTS", columns):
        if event_type in RANGE_EVENT_TYPES:
            message = text if text is not None else strings.get(text_id)
            is_unclosed = end is None or end in durations
            yield Range(row, start, start if end is None else end, thread, domain, message, is_unclosed)


def _domains(connection: sqlite3.Connection, strings: dict[int, str]) -> Iterator[tuple[tuple[int, int], str]]:
    columns = ("eventType", "text", "textId", "domainId", "globalTid")
    for event_type, text, text_id, domain, thread in _select(connection, "NVTX_EVENTS", columns):
        if event_type == 75:
            name = text if text is not None else strings.get(text_id, "")
            yield (thread & ~THREAD_BITS, domain), name
