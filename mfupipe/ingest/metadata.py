"""What a trace says of itself.

An export carries the whole environment, command lines and captured output of the program: only the names listed here
are looked at, and only values of the expected form are kept.
"""

from __future__ import annotations

import ntpath
import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mfupipe.ingest import cells, diagnostics
from mfupipe.ingest.model import Finding
from mfupipe.ingest.raw_tables import KERNEL, NVTX, RUNTIME
from mfupipe.ingest.sources import Row, Source
from mfupipe.ingest.timebase import TimeBase, time_base

EXPORT_TABLES = ("META_DATA_EXPORT", "EXPORT_META_DATA")  # since 2023, and before
# The rank of a process among all, by launcher; the rank on its node only when nothing else is known.
RANK_VARIABLES = (
    "RANK",
    "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK",
    "PMI_RANK",
    "MV2_COMM_WORLD_RANK",
    "SLURM_PROCID",
    "LOCAL_RANK",
)
RANK = re.compile(rf'(?:^|\0)({"|".join(RANK_VARIABLES)})="?(\d{{1,9}})"?(?=\0|$)')
RANK_IN_NAME = re.compile(r"(?:^|[^a-z])rank[._=-]?(\d{1,9})(?!\d)", re.IGNORECASE)
VERSION = re.compile(r"\d[\w.+-]{0,63}")
WORDS = re.compile(r"[A-Za-z][\w ,-]{0,39}")
TIMES = re.compile(r"[\d\w/.,:; +-]{1,200}")
DOTLESS_DRIVER = re.compile(r"(\d{3})(\d{2,3})(\d{2})")  # up to 2024: 52510517 is 525.105.17
SAMPLE_ROWS = 100


@dataclass(frozen=True)
class Metadata:
    """The row of the raw table `trace`, less what is known of the source file; and what comes with it."""

    nsys_version: str | None
    schema_version: str | None
    utc_epoch_ns: int | None
    duration_ns: int | None
    times_filter: str | None
    start_trigger: str | None
    graph_trace_mode: str | None
    rank: int | None
    driver_version: str | None
    cuda_version: str | None
    time: TimeBase
    diagnostics: tuple[tuple[int | None, str], ...]
    findings: tuple[Finding, ...]


def read_metadata(data: Source, source: Path) -> Metadata:
    """Read the allow-listed facts of a trace. `source` gives the rank by its name when the trace does not."""
    export = _settings(data, EXPORT_TABLES)
    capture = list(_pairs(data, "META_DATA_CAPTURE"))
    system = list(_pairs(data, "TARGET_INFO_SYSTEM_ENV"))
    utc = _first_integer(data, "TARGET_INFO_SESSION_START_TIME", "utcEpochNs")
    messages = tuple(_diagnostics(data))
    time = _time_base(data, export, utc)
    version = _matching(VERSION, export.get("PRODUCT_VERSION"))
    times_filter = export.get("TIMES_TO_EXPORT") or None
    return Metadata(
        nsys_version=version,
        schema_version=_matching(VERSION, export.get("SCHEMA_VERSION")),
        utc_epoch_ns=utc,
        duration_ns=_first_integer(data, "ANALYSIS_DETAILS", "duration"),
        times_filter=times_filter and (_matching(TIMES, times_filter) or "set"),
        start_trigger=_matching(WORDS, _agreed(capture, "START_TRIGGER")),
        graph_trace_mode=_graph_trace_mode(capture),
        rank=_rank([*capture, *system], source),
        driver_version=_driver_version(_agreed(system, "NvDriverVersion")),
        cuda_version=_cuda_version(_agreed(system, "CudaDriverVersion")),
        time=time,
        diagnostics=messages,
        findings=(
            *_version_findings(version),
            *_partial_findings(export),
            *((Finding("time_normalized", 1, f"{time.added_ns} ns"),) if time.added_ns else ()),
            *diagnostics.lost_events(text for _, text in messages),
        ),
    )


def process_name(value: str | None) -> str | None:
    """Base name of a program, without directories and arguments."""
    if not value:
        return None
    windows = re.match(r"[A-Za-z]:\\.*?\.exe", value, re.IGNORECASE)
    if windows:
        return ntpath.basename(windows.group())
    words = re.split(r"[\s\0]", value.strip(), maxsplit=1)
    return posixpath.basename(words[0]) or None


def text_rows(data: Source, table: str, columns: Sequence[str]) -> Iterator[tuple[str | None, ...]]:
    """Rows of a small table as text; none when it or a column is absent. Undecodable bytes become U+FFFD."""
    if all(column in data.columns.get(table, ()) for column in columns):
        for rows in data.batches(table, columns):
            yield from (_texts(row) for row in rows)


def integer(value: str | None) -> int | None:
    """The text as a signed 64-bit integer; None when it is none."""
    return cells.integer(value, cells.Faults())


def _texts(row: Row) -> tuple[str | None, ...]:
    return tuple(cells.text(value, cells.Faults()) for value in row)


def _pairs(data: Source, table: str) -> Iterator[tuple[str, str]]:
    for name, value in text_rows(data, table, ("name", "value")):
        if name and value:
            yield name, value


def _settings(data: Source, tables: Sequence[str]) -> dict[str, str]:
    """Settings of the export without the prefix, which was EXPORT_ and is EXPORT_PARAM_ for some."""
    rows = (pair for table in tables for pair in _pairs(data, table))
    return {name.removeprefix("EXPORT_").removeprefix("PARAM_"): value for name, value in rows}


def _first_integer(data: Source, table: str, column: str) -> int | None:
    return next((integer(value) for (value,) in text_rows(data, table, (column,))), None)


def _agreed(pairs: Sequence[tuple[str, str]], ending: str) -> str | None:
    """The value of a name (or of PREFIX:name) that all its rows share; None when they differ."""
    values = {value for name, value in pairs if name == ending or name.endswith(f":{ending}")}
    return values.pop() if len(values) == 1 else None


def _matching(pattern: re.Pattern[str], value: str | None) -> str | None:
    return value if value is not None and pattern.fullmatch(value) else None


def _graph_trace_mode(capture: Sequence[tuple[str, str]]) -> str | None:
    mode = _agreed([(name.rpartition("CUDA_GRAPH_TRACE_")[2], value) for name, value in capture], "OPTIONS:MODE")
    word = _matching(WORDS, mode)
    return word.lower() if word else None


def _rank(pairs: Sequence[tuple[str, str]], source: Path) -> int | None:
    found: dict[str, int] = {}
    for name, value in pairs:
        if "ENVIRONMENT" in name.upper() or "\0" in value:
            found |= {variable: int(number) for variable, number in RANK.findall(value)}
    named = RANK_IN_NAME.search(source.name)
    ranks = [found[variable] for variable in RANK_VARIABLES if variable in found]
    return next(iter(ranks), int(named[1]) if named else None)


def _driver_version(value: str | None) -> str | None:
    dotless = DOTLESS_DRIVER.fullmatch(value or "")
    return ".".join(dotless.groups()) if dotless else _matching(VERSION, value)


def _cuda_version(value: str | None) -> str | None:
    """'12.8' from CUDA's own 12080."""
    number = integer(value)
    return None if number is None else f"{number // 1000}.{number % 1000 // 10}"


def _time_base(data: Source, export: dict[str, str], utc: int | None) -> TimeBase:
    starts = [start for table in (RUNTIME, NVTX, KERNEL) for start in _first_starts(data, table)]
    stated = integer(export.get("CONFIG_TIME_SHIFT") or export.get("EXPORT_CONFIG_TIME_SHIFT"))
    return time_base(utc, stated, integer(export.get("TIME_SHIFT")) or 0, starts)


def _first_starts(data: Source, table: str) -> list[int]:
    if "start" not in data.columns.get(table, ()):
        return []
    rows = next(iter(data.batches(table, ("start",))), [])
    starts = (cells.integer(start, cells.Faults()) for (start,) in rows[:SAMPLE_ROWS])
    return [start for start in starts if start is not None]


def _diagnostics(data: Source) -> Iterator[tuple[int | None, str]]:
    for severity, message in text_rows(data, "DIAGNOSTIC_EVENT", ("severity", "text")):
        phrase = diagnostics.known_phrase(message or "")
        if phrase is not None:
            yield integer(severity), phrase


def _version_findings(version: str | None) -> tuple[Finding, ...]:
    return () if version else (Finding("unknown_nsys_version", 1),)


def _partial_findings(export: dict[str, str]) -> tuple[Finding, ...]:
    filters = {"TIMES_TO_EXPORT": "--times", "TABLES_TO_EXPORT": "--tables"}
    used = [option for name, option in filters.items() if export.get(name)]
    return (Finding("partial_export", len(used), ", ".join(used)),) if used else ()
