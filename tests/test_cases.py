"""Every statement of cases/*/expected.json, refusals included: a test per kind of statement, one per `must_not`."""

from __future__ import annotations

import hashlib
import math
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mfupipe import warehouse
from mfupipe.errors import EnvironmentProblem, MfupipeError, UnusableTrace
from mfupipe.ingest import write_raw
from tests.runs import CASE_DIRECTORIES, CASES, EXPECTED, CaseRun, ingest_and_build

CaseOf = Callable[[str], CaseRun]
CODES = {code for expected in EXPECTED.values() for code in expected["warnings"]}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest, case_run: CaseOf) -> CaseRun:
    return case_run(request.param)


def executions(case: CaseRun) -> list[tuple[Any, ...]]:
    """(name, kind, start, end, is_valid, message of the innermost range, messages of the open ranges)."""
    messages = dict(case.rows("SELECT range_id, message FROM ranges WHERE trace_id = $trace"))
    found = case.rows(
        "SELECT name, kind, start_ns, end_ns, is_valid, range_id, range_ids FROM gpu_executions WHERE trace_id = $trace"
    )
    return [(*row[:5], messages.get(row[5]), tuple(messages[each] for each in row[6] or ())) for row in found]


def gpu_ns_by_name(case: CaseRun, column: str) -> dict[str, int]:
    assert column in {"inclusive_busy_ns", "exclusive_busy_ns"}
    totals = f"SELECT name, sum({column})::BIGINT FROM range_summary"
    return dict(case.rows(f"{totals} WHERE trace_id = $trace AND level = 'name' GROUP BY 1"))


def test_each_kernel_has_its_range_and_path(case: CaseRun) -> None:
    found = Counter(
        (start, end - start, innermost, path)
        for _, kind, start, end, is_valid, innermost, path in executions(case)
        if kind == "kernel" and is_valid
    )
    wanted = Counter(
        (each["start"], each["duration_ns"], each["range"], tuple(each["path"]))
        for each in case.expected["kernels"]
        if each["duration_ns"] >= 0 and each["start"] > 0
    )
    assert found == wanted


def test_each_kernel_has_its_name(case: CaseRun) -> None:
    found = {start: name for name, kind, start, *_ in executions(case) if kind == "kernel" and start is not None}
    for each in case.expected["kernels"]:
        is_free = each["name"] is None or "\ufffd" in each["name"]
        assert is_free or each["start"] not in found or found[each["start"]] == each["name"]


def test_kernel_times_add_up_and_none_is_lost(case: CaseRun) -> None:
    kernels = [row for row in executions(case) if row[1] == "kernel"]
    assert len(kernels) == len(case.expected["kernels"])
    assert (
        sum(end - start for _, _, start, end, is_valid, *_ in kernels if is_valid) == case.expected["total_kernel_ns"]
    )


def test_time_outside_any_range_is_shown_as_unattributed(case: CaseRun) -> None:
    shown = case.value(
        "SELECT coalesce(sum(exclusive_ns), 0) FROM operators WHERE trace_id = $trace AND operator = '(unattributed)'"
    )
    assert shown == pytest.approx(case.expected["unattributed_ns"], rel=1e-12)


def test_exactly_the_expected_codes_are_among_the_warnings(case: CaseRun) -> None:
    found = {code for (code,) in case.rows("SELECT code FROM warnings WHERE trace_id = $trace")}
    assert found & CODES == set(case.expected["warnings"])


def test_gpu_time_below_each_range_name(case: CaseRun) -> None:
    expected = case.expected.get("range_gpu_ns", {}) | case.expected.get("inclusive_ns", {})
    found = gpu_ns_by_name(case, "inclusive_busy_ns")
    assert {name: found.get(name) for name in expected} == expected


def test_gpu_time_of_each_range_name_alone(case: CaseRun) -> None:
    expected = case.expected.get("exclusive_ns", {})
    found = gpu_ns_by_name(case, "exclusive_busy_ns")
    assert {name: found.get(name) for name in expected} == expected


def test_no_derived_number_is_infinite_or_nan(case: CaseRun) -> None:
    columns = case.connection.execute(
        "SELECT table_name, list(column_name) FILTER (data_type = 'DOUBLE') FROM duckdb_columns() WHERE NOT internal"
        " GROUP BY 1 HAVING bool_or(column_name = 'trace_id') AND bool_or(data_type = 'DOUBLE') ORDER BY 1"
    ).fetchall()
    assert columns
    for table, names in columns:
        wanted = ", ".join(f'"{name}"' for name in names)
        for row in case.rows(f'SELECT {wanted} FROM "{table}" WHERE trace_id = $trace'):
            assert all(value is None or math.isfinite(value) for value in row), (table, names, row)


# backward_seq_numbers


def test_backward_kernels_carry_the_forward_operator_and_its_time(case_run: CaseOf) -> None:
    case = case_run("backward_seq_numbers")
    found = dict(
        case.rows("SELECT direction, busy_ns FROM operators WHERE trace_id = $trace AND operator = 'aten::addmm'")
    )
    expected = case.expected["operators"]["aten::addmm"]
    assert found == {"forward": expected["forward_ns"], "backward": expected["backward_ns"]}
    attribution = case.rows(
        "SELECT name, attribution FROM gpu_executions WHERE trace_id = $trace AND direction = 'backward' ORDER BY name"
    )
    assert attribution == [("dgrad_gemm", "sequence"), ("wgrad_gemm", "sequence")]


def test_op_id_does_not_make_each_call_an_operator(case_run: CaseOf) -> None:
    case = case_run("backward_seq_numbers")
    names = case.rows("SELECT DISTINCT operator FROM operators WHERE trace_id = $trace")
    assert names == [("aten::addmm",)]
    assert not case.rows("SELECT name FROM ranges WHERE trace_id = $trace AND name LIKE '%op_id%'")


# bad_timestamps


def test_invalid_clocks_are_kept_but_in_no_sum(case_run: CaseOf) -> None:
    case = case_run("bad_timestamps")
    invalid = case.rows(
        "SELECT name, start_ns, end_ns, range_id IS NOT NULL FROM gpu_executions"
        " WHERE trace_id = $trace AND NOT is_valid ORDER BY name"
    )
    assert invalid == [("negative", None, None, True), ("not_collected", None, None, True)]
    assert len(invalid) == case.expected["invalid_kernels"]
    assert case.value("SELECT count FROM warnings WHERE trace_id = $trace AND code = 'invalid_timestamps'") == 2
    assert case.value("SELECT sum(busy_ns)::BIGINT FROM operators WHERE trace_id = $trace") == 100
    assert case.value("SELECT sum(total_ns)::BIGINT FROM kernels WHERE trace_id = $trace") == 100


def test_the_span_starts_at_the_first_valid_execution(case_run: CaseOf) -> None:
    case = case_run("bad_timestamps")
    span = case.rows("SELECT min(start_ns), max(end_ns) FROM gpu_executions WHERE trace_id = $trace")
    assert span == [(1000, 1000 + case.expected["span_ns"])]
    assert case.value("SELECT window_ns FROM run_summary WHERE trace_id = $trace") == case.expected["span_ns"]


# crossed_push_pop


def test_a_kernel_in_two_crossed_ranges_is_counted_once_in_totals(case_run: CaseOf) -> None:
    case = case_run("crossed_push_pop")
    assert case.value("SELECT sum(busy_ns)::BIGINT FROM operators WHERE trace_id = $trace") == 70
    assert sum(gpu_ns_by_name(case, "exclusive_busy_ns").values()) == 70


def test_a_kernel_launched_after_the_outer_range_closed_is_not_lost(case_run: CaseOf) -> None:
    case = case_run("crossed_push_pop")
    assert case.rows("SELECT path FROM gpu_executions WHERE trace_id = $trace AND name = 'k_writer'") == [(["writer"],)]


# cuda_graph_whole_graph_only


def test_graph_executions_count_in_the_time_of_their_range(case_run: CaseOf) -> None:
    case = case_run("cuda_graph_whole_graph_only")
    found = [
        {"start": start, "duration_ns": end - start, "range": innermost}
        for _, kind, start, end, _, innermost, _ in sorted(executions(case), key=lambda row: row[2])
        if kind == "graph"
    ]
    assert found == case.expected["graph_launches"]
    assert gpu_ns_by_name(case, "inclusive_busy_ns")["decode"] != 100


def test_a_range_of_whole_graphs_has_no_utilisation(case_run: CaseOf) -> None:
    case = case_run("cuda_graph_whole_graph_only")
    rows = case.rows("SELECT mfu_pct, sol_pct, sol_measured_pct FROM operators WHERE trace_id = $trace")
    assert rows
    assert set(rows) == {(None, None, None)}


# library_ranges_only


def test_library_ranges_are_neither_steps_nor_operators(case_run: CaseOf) -> None:
    case = case_run("library_ranges_only")
    assert case.value("SELECT count(*) FROM steps WHERE trace_id = $trace") == case.expected["iterations"]
    assert case.value("SELECT step_rule FROM run_summary WHERE trace_id = $trace") == "none"
    operators = case.rows("SELECT operator, busy_ns, mfu_pct FROM operators WHERE trace_id = $trace ORDER BY 1")
    assert operators == [("(library)", 30, None), ("(unattributed)", 3000, None)]


# locked_by_writer

HOLD_LOCK = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
time.sleep(60)
"""


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def refusal_of(sources: list[Path], run_dir: Path) -> MfupipeError | None:
    try:
        ingest_and_build(sources, run_dir)
    except (EnvironmentProblem, UnusableTrace) as refusal:
        return refusal
    return None


def test_a_file_locked_by_a_writer_is_read_or_named_within_bounded_time(tmp_path: Path) -> None:
    source = Path(shutil.copy(CASE_DIRECTORIES["locked_by_writer"] / "trace.sqlite", tmp_path))
    before = digest(source)
    with subprocess.Popen([sys.executable, "-c", HOLD_LOCK, str(source)], stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"locked\n"
            began = time.monotonic()
            refusal = refusal_of([source], tmp_path / "run")
            assert time.monotonic() - began < 30
        finally:
            holder.kill()
    assert digest(source) == before
    if refusal is None:
        with warehouse.open_run(tmp_path / "run") as connection:
            assert connection.execute("SELECT sum(end_ns - start_ns) FROM gpu_executions").fetchone() == (100,)
    else:
        assert "lock" in refusal.message.lower()


@pytest.mark.parametrize("case_name", CASES)
def test_ingest_leaves_nothing_beside_the_input_and_does_not_change_it(case_name: str, tmp_path: Path) -> None:
    directory = tmp_path / "read_only"
    directory.mkdir()
    source = Path(shutil.copy(CASE_DIRECTORIES[case_name] / "trace.sqlite", directory))
    source.chmod(0o444)
    before = digest(source), source.stat().st_mtime_ns
    directory.chmod(0o555)
    try:
        write_raw(source, tmp_path / "raw" / "trace_id=0", trace_id=0)
        assert [path.name for path in directory.iterdir()] == ["trace.sqlite"]
        assert (digest(source), source.stat().st_mtime_ns) == before
    finally:
        directory.chmod(0o755)


# nested_and_recursive_ranges


def test_recursion_and_nesting_are_counted_once(case_run: CaseOf) -> None:
    case = case_run("nested_and_recursive_ranges")
    assert gpu_ns_by_name(case, "inclusive_busy_ns")["block"] == 90  # 160 with the recursion counted twice
    assert sum(gpu_ns_by_name(case, "exclusive_busy_ns").values()) == 100
    assert case.value("SELECT sum(busy_ns)::BIGINT FROM operators WHERE trace_id = $trace") == 100


# no_kernel_table


def test_a_trace_without_kernels_says_so_and_gives_no_utilisation(case_run: CaseOf) -> None:
    case = case_run("no_kernel_table")
    message, hint = case.rows("SELECT message, hint FROM warnings WHERE trace_id = $trace AND code = 'no_kernel_data'")[
        0
    ]
    assert "no such table" not in message
    assert message
    assert hint
    assert case.rows("SELECT DISTINCT mfu_pct, sol_pct FROM run_summary WHERE trace_id = $trace") in (
        [],
        [(None, None)],
    )


# odd_names


def test_a_kernel_without_a_name_keeps_its_time(case_run: CaseOf) -> None:
    case = case_run("odd_names")
    assert case.value("SELECT sum(total_ns)::BIGINT FROM kernels WHERE trace_id = $trace") == 150
    assert case.value("SELECT count(*) FROM kernels WHERE trace_id = $trace AND total_ns = 80") == 1


def test_a_message_with_a_bar_that_is_no_annotation_is_a_name_whole(case_run: CaseOf) -> None:
    case = case_run("odd_names")
    (expected,) = case.expected["range_gpu_ns"]
    assert case.rows("SELECT name, message FROM ranges WHERE trace_id = $trace") == [(expected, expected)]
    assert case.rows("SELECT DISTINCT operator FROM operators WHERE trace_id = $trace") == [(expected,)]


# same_range_name_on_every_rank


def test_ranks_are_kept_apart(case_run: CaseOf) -> None:
    case = case_run("same_range_name_on_every_rank")
    found = case.rows(
        "SELECT pid, name, call_count, inclusive_busy_ns, exclusive_busy_ns FROM range_summary"
        " JOIN processes USING (trace_id, process_id) WHERE trace_id = $trace AND level = 'name' ORDER BY pid"
    )
    assert found == [
        (int(pid), "iter", of["iter"]["instances"], of["iter"]["gpu_ns"], of["iter"]["gpu_ns"])
        for pid, of in sorted(case.expected["per_process"].items())
    ]


def test_each_rank_runs_on_its_own_device(case_run: CaseOf) -> None:
    case = case_run("same_range_name_on_every_rank")
    found = case.rows(
        "SELECT DISTINCT pid, device_id FROM gpu_executions JOIN processes USING (trace_id, process_id)"
        " WHERE trace_id = $trace ORDER BY pid"
    )
    assert found == [(int(pid), of["device"]) for pid, of in sorted(case.expected["per_process"].items())]


def test_no_process_has_the_iterations_of_all_and_four_devices_are_four(case_run: CaseOf) -> None:
    case = case_run("same_range_name_on_every_rank")
    counts = case.rows("SELECT count(*) FROM steps WHERE trace_id = $trace GROUP BY process_id")
    assert all(count <= 2 for (count,) in counts)
    assert case.rows("SELECT gpu_count, process_count FROM run_summary WHERE trace_id = $trace") == [(4, 4)]
    assert case.value("SELECT count(DISTINCT device_id) FROM operators WHERE trace_id = $trace") == 4


# shared_correlation_two_processes


def test_a_correlation_id_that_two_processes_share_joins_neither_to_the_other(case_run: CaseOf) -> None:
    case = case_run("shared_correlation_two_processes")
    assert case.value("SELECT count(*) FROM gpu_executions WHERE trace_id = $trace") == 3
    assert case.value("SELECT count(*) FROM executions_wide WHERE trace_id = $trace") == 3
    assert gpu_ns_by_name(case, "inclusive_busy_ns") == {"rank0": 400, "rank1": 500}


# two_api_rows_per_correlation


def test_two_api_rows_of_one_launch_are_one_launch(case_run: CaseOf) -> None:
    case = case_run("two_api_rows_per_correlation")
    launches = case.value("SELECT count(*) FROM api_calls WHERE trace_id = $trace AND is_launch")
    assert launches == case.expected["launches"]
    assert case.value("SELECT count(*) FROM gpu_executions WHERE trace_id = $trace") == 3
    assert case.value("SELECT sum(busy_ns)::BIGINT FROM operators WHERE trace_id = $trace") == 180


# lfs_pointer, truncated_file


@pytest.mark.parametrize(
    ("case_name", "words"), [("lfs_pointer", "LFS"), ("truncated_file", "damaged|malformed|truncated|cut short")]
)
def test_a_file_that_cannot_be_read_is_refused_whole(case_name: str, words: str, tmp_path: Path) -> None:
    source = CASE_DIRECTORIES[case_name] / "trace.sqlite"
    before = digest(source)
    with pytest.raises(UnusableTrace, match=f"(?i){words}") as refusal:
        write_raw(source, tmp_path / "raw" / "trace_id=0", trace_id=0)
    assert refusal.value.exit_code == 5
    assert refusal.value.hint
    assert not list(tmp_path.rglob("*.parquet"))
    assert digest(source) == before
