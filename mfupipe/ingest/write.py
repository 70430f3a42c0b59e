"""One trace in, one directory of canonical raw Parquet out: whole, or not at all."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa

from mfupipe.errors import MfupipeError
from mfupipe.ingest import engine as engines
from mfupipe.ingest import examine, identify, raw_tables, refusals
from mfupipe.ingest.derived import Value, write_names, write_processes, write_rows
from mfupipe.ingest.engine import Engine
from mfupipe.ingest.identify import Opened
from mfupipe.ingest.metadata import Metadata, read_metadata
from mfupipe.ingest.model import Finding, Progress, TraceInfo, no_progress

WRITE_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}
STEPS = (*(table.name for table in raw_tables.COPIED), "names", "integrity")
TRACE = pa.schema(
    [
        ("source_file", pa.string()),
        ("source_format", pa.string()),
        ("source_bytes", pa.int64()),
        ("nsys_version", pa.string()),
        ("schema_version", pa.string()),
        ("utc_epoch_ns", pa.int64()),
        ("duration_ns", pa.int64()),
        ("is_time_normalized", pa.bool_()),
        ("time_shift_ns", pa.int64()),
        ("times_filter", pa.string()),
        ("start_trigger", pa.string()),
        ("graph_trace_mode", pa.string()),
        ("rank", pa.int64()),
        ("driver_version", pa.string()),
        ("cuda_version", pa.string()),
    ]
)
DIAGNOSTICS = pa.schema([("severity", pa.int64()), ("text", pa.string())])
FINDINGS = pa.schema([("code", pa.string()), ("count", pa.int64()), ("detail", pa.string())])


def write_raw(
    source: Path, destination: Path, *, trace_id: int, nsys: Path | None = None, progress: Progress = no_progress
) -> TraceInfo:
    """Copy what the tables need from a trace to destination/*.parquet (RUN/raw/trace_id=N), and say what it held.

    source: .sqlite, .sqlite.gz, the directory of `nsys export --type=parquetdir`, or .nsys-rep / .qdrep, which `nsys`
    exports first. Nothing is written beside the source, no network is used, memory does not grow with the trace.
    Raises UnusableTrace (not a trace, damaged, locked), EnvironmentProblem (no nsys, no space, no permission),
    UsageError (no source, destination exists). Then nothing is left behind.
    """
    with _explained(source, destination), _directories(source, destination) as (scratch, staging):
        before = examine.fingerprint(source)
        opened = identify.open_source(source, scratch, nsys)
        info = _write_tables(source, opened, trace_id, (scratch, staging), progress)
        if examine.fingerprint(source) != before:
            raise refusals.changed(source)
        staging.rename(destination)
    return info


def _write_tables(
    source: Path, opened: Opened, trace_id: int, directories: tuple[Path, Path], progress: Progress
) -> TraceInfo:
    scratch, raw = directories
    with examine.examining(source, opened.data) as digest, closing(engines.connect(scratch)) as connection:
        metadata = read_metadata(opened.data, source)
        if opened.data.setup is not None:
            connection.execute(opened.data.setup)
        engine = Engine(source, opened.data, connection, scratch, raw, metadata.time)
        counts = _copy(engine, progress)
        progress("integrity", len(STEPS) - 1, len(STEPS))
        sha256 = digest.result()
    findings = (*metadata.findings, *identify.stale_export(source), *engine.findings)
    _write_facts(raw, _trace_row(source, opened, metadata), metadata, findings)
    return TraceInfo(
        trace_id=trace_id,
        source_file=source.name,
        source_format=opened.format,
        source_sha256=sha256,
        source_bytes=_size(source),
        rank=metadata.rank,
        nsys_version=metadata.nsys_version,
        kernel_count=counts["kernels"],
        memcpy_count=counts["memcpys"],
        memset_count=counts["memsets"],
        graph_count=counts["graph_traces"],
        range_count=counts["nvtx_ranges"],
        api_call_count=counts["api_calls"],
        findings=findings,
    )


def _copy(engine: Engine, progress: Progress) -> Mapping[str, int]:
    counts: dict[str, int] = {}
    for done, table in enumerate(raw_tables.COPIED):
        progress(table.name, done, len(STEPS))
        counts[table.name] = engine.copy(table)
    progress("names", len(raw_tables.COPIED), len(STEPS))
    write_names(engine)
    write_processes(engine)
    return counts


def _trace_row(source: Path, opened: Opened, metadata: Metadata) -> Mapping[str, Value]:
    return {
        "source_file": source.name,
        "source_format": str(opened.format),
        "source_bytes": _size(source),
        "nsys_version": metadata.nsys_version,
        "schema_version": metadata.schema_version,
        "utc_epoch_ns": metadata.utc_epoch_ns,
        "duration_ns": metadata.duration_ns,
        "is_time_normalized": metadata.time.is_normalized,
        "time_shift_ns": metadata.time.shift_ns,
        "times_filter": metadata.times_filter,
        "start_trigger": metadata.start_trigger,
        "graph_trace_mode": metadata.graph_trace_mode,
        "rank": metadata.rank,
        "driver_version": metadata.driver_version,
        "cuda_version": metadata.cuda_version,
    }


def _write_facts(raw: Path, trace: Mapping[str, Value], metadata: Metadata, findings: tuple[Finding, ...]) -> None:
    write_rows(raw / "trace.parquet", [trace], TRACE)
    messages = [{"severity": severity, "text": text} for severity, text in metadata.diagnostics]
    write_rows(raw / "diagnostics.parquet", messages, DIAGNOSTICS)
    found = [{"code": finding.code, "count": finding.count, "detail": finding.detail} for finding in findings]
    write_rows(raw / "findings.parquet", found, FINDINGS)


def _size(source: Path) -> int:
    return sum(path.stat().st_size for path in examine.files_of(source))


@contextmanager
def _directories(source: Path, destination: Path) -> Iterator[tuple[Path, Path]]:
    """Yield a private scratch directory, and the staging directory beside the destination; both end with the block."""
    if not source.exists():
        raise refusals.missing(source)
    if destination.exists():
        raise refusals.exists(destination)
    destination.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="mfupipe-", ignore_cleanup_errors=True) as scratch:
        staging = Path(tempfile.mkdtemp(prefix=f".{destination.name}.", dir=destination.parent))
        try:
            staging.chmod(0o777 & ~_umask())
            yield Path(scratch), staging
        finally:
            shutil.rmtree(staging, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@contextmanager
def _explained(source: Path, destination: Path) -> Iterator[None]:
    """Turn what SQLite, DuckDB, Arrow and the system raise into errors that name the file and the remedy."""
    try:
        yield
    except (sqlite3.DatabaseError, duckdb.Error, pa.ArrowException, OSError) as error:
        raise _explanation(source, destination, error) from error


def _explanation(source: Path, destination: Path, error: Exception) -> MfupipeError:
    said = str(error).partition("\n")[0]
    if isinstance(error, OSError) and error.errno is not None:
        about_source = error.filename is not None and Path(error.filename) == source
        if about_source and error.errno not in WRITE_ERRORS:
            return refusals.unreadable(source, error)
        return refusals.cannot_write(destination.parent, error.strerror or said)
    if isinstance(error, duckdb.IOException) and str(destination.parent) in said:
        return refusals.cannot_write(destination.parent, said)
    return refusals.database_error(source, said)
