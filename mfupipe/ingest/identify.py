"""What is at the path: told by content first, then opened as one of the two kinds of source."""

from __future__ import annotations

import gzip
import re
import shutil
import zlib
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from mfupipe.ingest import database, nsight, refusals
from mfupipe.ingest.model import Finding, SourceFormat
from mfupipe.ingest.raw_tables import NVTX, STRINGS
from mfupipe.ingest.sources import ParquetSource, Source, SqliteSource

LFS_START = b"version https://git-lfs.github.com/spec/"
GZIP_START = b"\x1f\x8b"
REPORT_SUFFIXES = (".nsys-rep", ".qdrep")
COPY_BYTES = 1 << 20
# How tables of other profilers' SQLite files begin, to name what was given instead.
STRANGERS = {"StringTable": "nvprof", "rocpd_": "an AMD profiler (rocpd)"}
OURS = re.compile(rf"{STRINGS}|{NVTX}|(CUPTI_ACTIVITY|TARGET_INFO|META_DATA|CUDA_GRAPH)_.*|.*_EVENTS|ANALYSIS_DETAILS")


@dataclass(frozen=True)
class Opened:
    """A source that can be read."""

    format: SourceFormat
    data: Source


def open_source(source: Path, scratch: Path, nsys: Path | None) -> Opened:
    """Recognise and open a trace; what has to be unpacked or exported goes to `scratch`.

    Raises UnusableTrace (not a trace, damaged, locked), EnvironmentProblem (no nsys).
    """
    opened = _open_directory(source) if source.is_dir() else _open_file(source, scratch, nsys)
    _refuse_strangers(source, opened.data)
    return opened


def stale_export(source: Path) -> tuple[Finding, ...]:
    """The finding `stale_export` when a report of the same name is newer than this export."""
    stem = source.name.removesuffix(".gz").removesuffix(".sqlite")
    if stem == source.name or source.is_dir():
        return ()
    reports = (source.with_name(stem + suffix) for suffix in REPORT_SUFFIXES)
    newer = [path.name for path in reports if path.is_file() and path.stat().st_mtime > source.stat().st_mtime]
    return tuple(Finding("stale_export", 1, name) for name in newer[:1])


def _open_directory(source: Path) -> Opened:
    if (source / "manifest.json").is_file():
        raise refusals.not_a_database(source, "it is a RUN, already ingested (mfupipe report RUN)")
    if not any(source.glob("*.parquet")):
        arrow = " but .arrow files: export with --type=parquetdir" if any(source.glob("*.arrow")) else ""
        raise refusals.not_a_database(source, f"the directory holds no .parquet files{arrow}")
    data = ParquetSource(source.absolute())
    try:
        _ = data.columns
    except (pa.ArrowException, OSError) as error:
        raise refusals.damaged(source, f"a Parquet file in it cannot be read ({error})") from error
    return Opened(SourceFormat.PARQUET_DIRECTORY, data)


def _open_file(source: Path, scratch: Path, nsys: Path | None) -> Opened:
    start = database.read_start(source)
    if start.startswith(LFS_START):
        raise refusals.lfs_pointer(source)
    if start.startswith(GZIP_START):
        path = scratch / "unpacked.sqlite"
        _unpack(source, path)
        _refuse_other_content(source, database.read_start(path))
        return Opened(SourceFormat.SQLITE_GZ, database.opened(source, path, scratch))
    if start.startswith(nsight.REPORT_START) or source.suffix in REPORT_SUFFIXES:
        return Opened(SourceFormat.REPORT, _exported(source, start, scratch, nsys))
    _refuse_other_content(source, start)
    return Opened(SourceFormat.SQLITE, database.opened(source, source, scratch))


def _exported(source: Path, start: bytes, scratch: Path, nsys: Path | None) -> SqliteSource:
    if not start.strip(b"\0"):
        raise refusals.damaged(source, "it is empty or begins with zeros", "copy it again from where it was captured")
    path = scratch / "exported.sqlite"
    nsight.export(source, path, nsys)
    return database.opened(source, path, scratch)


def _refuse_other_content(source: Path, start: bytes) -> None:
    if start.startswith(database.MAGIC):
        return
    if source.suffix == ".qdstrm":
        raise refusals.running_capture(source)
    if not start:
        raise refusals.damaged(source, "it is empty (0 bytes)")
    if not start.strip(b"\0"):
        raise refusals.damaged(source, "it begins with zeros, as an export does that was interrupted or still runs")
    raise refusals.not_a_database(source, "its content is no SQLite database, report or gzip file")


def _unpack(source: Path, path: Path) -> None:
    try:
        with gzip.open(source) as packed, path.open("wb") as unpacked:
            shutil.copyfileobj(packed, unpacked, COPY_BYTES)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        hint = "copy or download it again"
        raise refusals.damaged(source, f"it cannot be unpacked ({error})", hint) from error


def _refuse_strangers(source: Path, data: Source) -> None:
    tables = set(data.columns)
    if not tables:
        raise refusals.damaged(source, "it is a database without tables: its export failed or was interrupted")
    if STRINGS not in tables:
        tool = next((STRANGERS[start] for start in STRANGERS for table in tables if table.startswith(start)), None)
        if tool is not None:
            raise refusals.not_a_database(source, f"its tables are those of {tool}")
    if not any(OURS.fullmatch(table) for table in tables):
        shown = ", ".join(repr(table) for table in sorted(tables)[:3])
        raise refusals.not_a_database(source, f"none of its {len(tables)} tables is one of Nsight Systems ({shown})")
