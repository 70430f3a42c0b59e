"""What a trace says of itself: allow-listed, in the units and on the clock that the tables promise."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from mfupipe.ingest import Finding, TraceInfo, cells, diagnostics
from mfupipe.ingest.metadata import process_name
from mfupipe.ingest.timebase import TimeBase, time_base
from tests.unit.ingest_export import (
    KERNEL,
    PROCESS,
    RUNTIME,
    THREAD,
    Tables,
    ingest,
    integers,
    pairs,
    small,
    write_sqlite,
)

UTC = 1_796_148_085_876_414_925
SECRET = "hunter2swordfish"


def read(tmp_path: Path, extra: Tables, name: str = "a.sqlite") -> tuple[TraceInfo, dict[str, list[dict[str, Any]]]]:
    return ingest(write_sqlite(tmp_path / name, small() | extra), tmp_path)


def trace(tmp_path: Path, extra: Tables, name: str = "a.sqlite") -> dict[str, Any]:
    (row,) = read(tmp_path, extra, name)[1]["trace"]
    return row


def export_settings(**values: object) -> Tables:
    settings = [
        ("EXPORT_PRODUCT_VERSION", "2023.4.4.54"),
        *((f"EXPORT_{name}", value) for name, value in values.items()),
    ]
    return {"META_DATA_EXPORT": pairs(*settings)}


def capture(*rows: tuple[str, object]) -> Tables:
    return {"META_DATA_CAPTURE": pairs(*rows)}


def system(*rows: tuple[str, object]) -> Tables:
    return {"TARGET_INFO_SYSTEM_ENV": pairs(*rows)}


def test_versions_come_from_the_tables_of_both_generations(tmp_path: Path) -> None:
    old = {"META_DATA_EXPORT": pairs(), "EXPORT_META_DATA": pairs(("EXPORT_PRODUCT_VERSION", "2022.2.1.31"))}
    assert trace(tmp_path, old)["nsys_version"] == "2022.2.1.31"


def test_a_trace_without_its_version_says_so(tmp_path: Path) -> None:
    info, _ = read(tmp_path, {"META_DATA_EXPORT": pairs()})
    assert info.findings == (Finding("unknown_nsys_version", 1),)
    assert info.nsys_version is None


@pytest.mark.parametrize(
    ("driver", "cuda", "expected"),
    [
        ("570.172.08", "12080", ("570.172.08", "12.8")),
        ("52510517", "12000", ("525.105.17", "12.0")),
        ("5355403", "13030", ("535.54.03", "13.3")),
        ("; rm -rf /", "secret", (None, None)),
    ],
)
def test_driver_and_cuda_versions_are_dotted(driver: str, cuda: str, expected: tuple[str, str], tmp_path: Path) -> None:
    row = trace(tmp_path, system(("NvDriverVersion", driver), ("CudaDriverVersion", cuda)))
    assert (row["driver_version"], row["cuda_version"]) == expected


@pytest.mark.parametrize(
    ("name", "value"), [("PROCESS_0:CUDA_GRAPH_TRACE_OPTIONS:MODE", "Node"), ("CUDA_GRAPH_TRACE_OPTIONS:MODE", "Node")]
)
def test_the_graph_trace_mode_is_found_under_both_names(name: str, value: str, tmp_path: Path) -> None:
    row = trace(tmp_path, capture((name, value), ("START_TRIGGER", "Immediate")))
    assert (row["graph_trace_mode"], row["start_trigger"]) == ("node", "Immediate")


@pytest.mark.parametrize(
    ("variables", "file", "rank"),
    [
        (['RANK="3"', 'LOCAL_RANK="1"', 'SLURM_PROCID="9"'], "a.sqlite", 3),
        (['SLURM_PROCID="9"', 'LOCAL_RANK="1"'], "a.sqlite", 9),
        (['LOCAL_RANK="1"'], "run.rank7.sqlite", 1),
        (['MY_RANK="5"', 'RANK="five"', 'RANKS="2"', 'RANK="12345678901"'], "a.sqlite", None),
        ([], "2022_mpi_rank12.sqlite", 12),
        ([], "frank4.sqlite", None),
    ],
)
def test_the_rank_is_an_integer_from_the_launcher_or_the_file_name(
    variables: list[str], file: str, rank: int | None, tmp_path: Path
) -> None:
    rows = [("PROCESS_0:ENVIRONMENT_VARIABLE", value) for value in variables]
    info, raw = read(tmp_path, capture(*rows), file)
    assert info.rank == raw["trace"][0]["rank"] == rank


def test_the_rank_is_found_in_the_environment_of_2022_too(tmp_path: Path) -> None:
    assert trace(tmp_path, system(("Environment", f"TOKEN={SECRET}\0RANK=2\0HOME=/root")))["rank"] == 2


def test_nothing_outside_the_allow_list_is_written(tmp_path: Path) -> None:
    hidden: Tables = {
        "META_DATA_CAPTURE": pairs(
            ("PROCESS_0:ENVIRONMENT_VARIABLE", f'TOKEN="{SECRET}"'),
            ("PROCESS_0:ENVIRONMENT_VARIABLE", f"RANK=1 {SECRET}"),
            ("PROCESS_0:COMMAND", f"/opt/{SECRET}"),
            ("START_TRIGGER", f"x={SECRET}"),
            ("CUDA_GRAPH_TRACE_OPTIONS:MODE", f"${SECRET}"),
        ),
        "TARGET_INFO_SYSTEM_ENV": pairs(("NvDriverVersion", SECRET), ("Hostname", SECRET), ("X", f"A={SECRET}\0B=1")),
        "META_DATA_EXPORT": pairs(
            ("EXPORT_PRODUCT_VERSION", SECRET),
            ("EXPORT_PARAM_TIMES_TO_EXPORT", f'"{SECRET}"'),
            ("EXPORT_PARAM_INPUT_FILE", SECRET),
        ),
        "PROCESSES": (
            integers("globalPid pid") | {"name": "TEXT"},
            [(PROCESS, 77, f"/opt/{SECRET}/bin/python3 --token={SECRET} /x/{SECRET}")],
        ),
        "DIAGNOSTIC_EVENT": (
            integers("severity") | {"text": "TEXT"},
            [(3, SECRET), (2, f"{SECRET} CUPTI dropped 5 records {SECRET}"), (1, f"Loaded /opt/{SECRET}")],
        ),
        "ProcessStreams": (integers("globalPid filenameId contentId"), [(PROCESS, 3, 3)]),
        "StringIds": ({"id": "INTEGER", "value": "TEXT"}, [(1, "gemm"), (2, "cudaLaunchKernel"), (3, SECRET)]),
    }
    source = write_sqlite(tmp_path / "a.sqlite", small() | hidden)
    assert SECRET.encode() in source.read_bytes()
    info, raw = ingest(source, tmp_path)
    assert SECRET not in repr(raw) and SECRET not in repr(info)
    assert raw["processes"][0]["name"] == "python3"
    assert raw["diagnostics"] == [{"severity": 2, "text": "CUPTI dropped 5 records"}]


@pytest.mark.parametrize(
    ("captured", "name"),
    [
        ("/usr/bin/python3.11", "python3.11"),
        ("python3 --key abc/def", "python3"),
        (r"C:\Program Files\App\train.exe --key x", "train.exe"),
        ("python\0--key=x", "python"),
        ("/", None),
        ("", None),
        (None, None),
    ],
)
def test_a_process_is_named_without_directory_and_arguments(captured: str | None, name: str | None) -> None:
    assert process_name(captured) == name


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("Number of CUDA events collected: \t4639.", "Number of CUDA events collected: 4639"),
        ("No NVTX events collected. Does the process use NVTX?", "No NVTX events collected"),
        ("No secret events collected", None),
        ("Process was launched by the profiler, see /tmp/nvidia/x", None),
    ],
)
def test_a_known_phrase_is_kept_and_nothing_around_it(text: str, phrase: str | None) -> None:
    assert diagnostics.known_phrase(text) == phrase


def test_messages_of_lost_events_are_counted(tmp_path: Path) -> None:
    messages = ["CUPTI dropped 12 records due to", "Couldn't allocate CUPTI buffers", "Profiling has started."]
    rows = [(2, text) for text in messages]
    info, _ = read(tmp_path, {"DIAGNOSTIC_EVENT": (integers("severity") | {"text": "TEXT"}, rows)})
    assert info.findings == (Finding("events_dropped", 2, "CUPTI dropped 12 records"),)


def test_a_partial_export_is_a_finding_and_names_its_times(tmp_path: Path) -> None:
    info, raw = read(tmp_path, export_settings(PARAM_TIMES_TO_EXPORT="1s/2s", PARAM_TABLES_TO_EXPORT="CUPTI.*"))
    assert info.findings == (Finding("partial_export", 2, "--times, --tables"),)
    assert raw["trace"][0]["times_filter"] == "1s/2s"


def clocked(added: int, **settings: object) -> Tables:
    """The small trace with `added` ns on each time."""
    tables: Tables = {
        "TARGET_INFO_SESSION_START_TIME": (integers("utcEpochNs"), [(UTC,)]),
        "ANALYSIS_DETAILS": (integers("duration startTime"), [(5000, added + 77)]),
        RUNTIME: (
            integers("start end globalTid correlationId nameId"),
            [(added + 10, added + 20, THREAD, 4, 2)],
        ),
        KERNEL: (
            integers("start end deviceId correlationId globalPid demangledName shortName"),
            [(added + 1000, added + 1100, 0, 4, PROCESS, 1, 1), (0, 0, 0, 5, PROCESS, 1, 1)],
        ),
        "NVTX_EVENTS": (
            integers("start end eventType domainId globalTid") | {"text": "TEXT"},
            [(added - 5, added + 5000, 59, 0, THREAD, "step 1"), (added + 6, None, 60, 0, THREAD, "open")],
        ),
    }
    return tables | export_settings(**settings) if settings else tables


@pytest.mark.parametrize(
    ("added", "settings"),
    [
        (UTC, {"PARAM_TIME_NORMALIZE": "true", "PARAM_TIME_SHIFT": "0", "CONFIG_TIME_SHIFT": str(UTC)}),
        (
            UTC + 1000,
            {"PARAM_TIME_NORMALIZE": "true", "PARAM_TIME_SHIFT": "1000", "CONFIG_TIME_SHIFT": str(UTC + 1000)},
        ),
        (UTC, {"PARAM_TIME_NORMALIZE": "true"}),
        (UTC, {}),
    ],
)
def test_times_of_a_normalized_export_are_brought_back_to_the_session(
    added: int, settings: dict[str, object], tmp_path: Path
) -> None:
    info, raw = read(tmp_path, clocked(added, **settings))
    assert [(row["start_ns"], row["end_ns"]) for row in raw["kernels"]] == [(1000, 1100), (0, 0)]
    assert [(row["start_ns"], row["end_ns"]) for row in raw["nvtx_ranges"]] == [(-5, 5000), (6, None)]
    (row,) = raw["trace"]
    assert (row["is_time_normalized"], row["utc_epoch_ns"], row["duration_ns"]) == (True, UTC, 5000)
    assert info.findings == (Finding("time_normalized", 1, f"{added} ns"),)


def test_a_shift_is_taken_off(tmp_path: Path) -> None:
    _, raw = read(tmp_path, clocked(-700, PARAM_TIME_SHIFT="-700", CONFIG_TIME_SHIFT="-700"))
    assert raw["kernels"][0]["start_ns"] == 1000
    assert (raw["trace"][0]["is_time_normalized"], raw["trace"][0]["time_shift_ns"]) == (False, -700)


def test_times_of_a_usual_export_are_left_alone(tmp_path: Path) -> None:
    info, raw = read(tmp_path, clocked(0, PARAM_TIME_NORMALIZE="false", CONFIG_TIME_SHIFT="0"))
    assert raw["kernels"][0]["start_ns"] == 1000
    assert info.findings == ()


def test_a_statement_that_the_times_contradict_is_not_applied() -> None:
    assert time_base(UTC, UTC, 0, [5, 6]) == TimeBase(0, 0)


def test_epoch_times_without_a_known_epoch_stay_as_they_are() -> None:
    assert time_base(None, None, 0, [UTC]) == TimeBase(0, 0)


def test_an_export_older_than_its_report_is_a_finding(tmp_path: Path) -> None:
    source = write_sqlite(tmp_path / "a.sqlite", small())
    report = tmp_path / "a.nsys-rep"
    report.touch()
    os.utime(source, (1000, 1000))
    assert ingest(source, tmp_path / "older")[0].findings == (Finding("stale_export", 1, "a.nsys-rep"),)
    os.utime(report, (999, 999))
    assert ingest(source, tmp_path / "newer")[0].findings == ()


@pytest.mark.parametrize(
    ("value", "expected", "bad"),
    [
        (7, 7, 0),
        (2**64 - 1, -1, 0),
        (2**64, None, 1),
        (2.0, 2, 0),
        (2.5, None, 1),
        (float("nan"), None, 1),
        (b"12", 12, 0),
        (b"x", None, 1),
        (None, None, 0),
    ],
)
def test_an_integer_is_exact_or_null_and_counted(value: object, expected: int | None, bad: int) -> None:
    faults = cells.Faults()
    assert (cells.integer(value, faults), faults.bad) == (expected, bad)


def test_findings_are_written_with_their_detail(tmp_path: Path) -> None:
    ingest(write_sqlite(tmp_path / "a.sqlite", small() | {"META_DATA_EXPORT": pairs()}), tmp_path)
    table = pq.ParquetFile(tmp_path / "raw" / "trace_id=0" / "findings.parquet").read()
    assert table.to_pylist() == [{"code": "unknown_nsys_version", "count": 1, "detail": None}]
