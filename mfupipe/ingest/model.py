"""What ingest says of a trace once it has been copied."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class SourceFormat(StrEnum):
    """Format of the file or directory that was given."""

    REPORT = "nsys-rep"
    SQLITE = "sqlite"
    SQLITE_GZ = "sqlite.gz"
    PARQUET_DIRECTORY = "parquetdir"


@dataclass(frozen=True)
class Finding:
    """Something about the data that the report has to say. `code` is a row of warning_codes.csv."""

    code: str
    count: int
    detail: str | None = None


@dataclass(frozen=True)
class TraceInfo:
    """An ingested trace: what a manifest and a headline need. Counts are rows of the raw tables."""

    trace_id: int
    source_file: str
    source_format: SourceFormat
    source_sha256: str
    source_bytes: int
    rank: int | None
    nsys_version: str | None
    kernel_count: int
    memcpy_count: int
    memset_count: int
    graph_count: int
    range_count: int
    api_call_count: int
    findings: tuple[Finding, ...]


class Progress(Protocol):
    """Told of each step before it begins: `done` of `total` steps are over."""

    def __call__(self, step: str, done: int, total: int) -> None:
        """Show the step."""


def no_progress(step: str, done: int, total: int) -> None:
    """Show nothing."""
