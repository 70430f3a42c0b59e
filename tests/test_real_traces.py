"""Real captures: every row once, ranges and busy time as the oracle finds them, steps found or said to be absent."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from tests.oracle.busy import NameTotals, totals_by_name, union_ns
from tests.oracle.source import EXECUTION_TABLES, unpack
from tests.runs import CAPTURES, RealRun

RealOf = Callable[[str], RealRun]

STEPS: dict[str, tuple[str, list[str]]] = {
    "h200_transformer_layer_train_emit_nvtx": ("dialect", ["step0", "step1", "step2"]),
    "h200_resnet50_infer_bf16_modules": ("dialect", ["step0", "step1", "step2", "step3", "step4"]),
    # Five replays back to back launch all that is launched between the first and the last of them.
    "h200_cuda_graph_node": ("repeat", ["replay0", "replay1", "replay2", "replay3", "replay4"]),
}
"""Captures in which steps exist, by the kind of rule that finds them. In the others there is none to be found:

2022.2.1_a100_saxpy_mpi_rank0: `saxpy` repeats, but the copies between two repeats are most of the GPU time.
2024.6.2_a100_llm2.7B_nvtx: init_model, generate_data, warmup and benchmark_loop occur once; what repeats,
`scaled dot product attention`, is a part of a layer and launches 7 % of the GPU time.
2026.2.1_h100x2_megatron_1s: one second of FSDP inference: each process has the end of one forward pass and the start of
the next (one FSDP::root_pre_forward), and FSDP::pre_forward (..) and post_forward (..) hold no linear layer.
The rest have no ranges, or too few executions.
"""
WARNINGS = {
    "2022.2.1_a100_saxpy_mpi_rank0": {"no_step_rule", "dup_correlation"},
    "2024.5.1_a100x4_cloverleaf": {"no_nvtx_ranges"},
    "2024.6.2_a100_llm2.7B_cudagraph": {"no_nvtx_ranges", "graph_kernels_not_traced"},
    "2024.6.2_a100_llm2.7B_nvtx": {"no_step_rule"},
    "2025.1.3_rtx5060ti_no_kernel_table": {"no_kernel_data"},
    "2026.2.1_a100_nvtx_type39_only": {"no_kernel_data"},
    "2026.2.1_h100x2_megatron_1s": {"no_step_rule", "kernels_without_api", "unattributed_kernels"},
    "h200_cuda13_truncated_capture": {"importer_truncated"},
    "h200_cuda_graph_node": set(),
    "h200_nvtx_0.2.16_no_ranges": {"ranges_lost"},
    "h200_resnet50_infer_bf16_modules": set(),
    "h200_transformer_layer_train_emit_nvtx": {"causal_unknown"},
}
FORBIDDEN = {
    "h200_cuda_graph_node": {"graph_kernels_not_traced", "ranges_lost", "no_nvtx_ranges", "importer_truncated"},
    "h200_resnet50_infer_bf16_modules": {"no_step_rule", "ranges_lost", "unattributed_kernels", "importer_truncated"},
    "h200_transformer_layer_train_emit_nvtx": {
        "no_step_rule",
        "ranges_lost",
        "unattributed_kernels",
        "importer_truncated",
        "unclosed_ranges",
        "sol_above_100",
        "bad_annotation",
    },
}


@pytest.fixture(params=CAPTURES)
def real(request: pytest.FixtureRequest, real_run: RealOf) -> RealRun:
    return real_run(request.param)


def test_every_capture_is_covered() -> None:
    assert set(WARNINGS) == set(CAPTURES)
    assert set(STEPS) <= set(CAPTURES)


def test_every_row_of_the_capture_is_one_execution(real: RealRun, tmp_path: Any) -> None:
    with closing(sqlite3.connect(unpack(CAPTURES[real.name], tmp_path))) as source:
        tables = {name for (name,) in source.execute("SELECT name FROM sqlite_master")}
        counts = {
            kind: source.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for kind, table in EXECUTION_TABLES.items()
            if table in tables
        }
    found = dict(real.rows("SELECT kind, count(*) FROM gpu_executions GROUP BY kind"))
    assert found == {kind: count for kind, count in counts.items() if count}
    assert real.value("SELECT count(*) - count(DISTINCT gpu_execution_id) FROM gpu_executions") == 0
    assert real.value("SELECT count(*) FROM executions_wide") == sum(counts.values())


def test_executions_keep_their_times_place_and_name(real: RealRun) -> None:
    found = Counter(
        real.rows(
            "SELECT kind, start_ns, end_ns, process_id, cuda_device, stream_id, correlation_id,"
            " CASE WHEN kind = 'kernel' THEN name END FROM gpu_executions WHERE is_valid"
        )
    )
    runs = (each.execution for each in real.attributed)
    expected = Counter(
        (run.kind, run.start, run.end, run.process, run.device, run.stream, run.correlation, run.name)
        for run in runs
        if run.is_valid
    )
    assert found == expected


def test_each_execution_is_launched_by_the_call_the_oracle_finds(real: RealRun) -> None:
    found = Counter(
        real.rows(
            "SELECT execution.kind, execution.start_ns, execution.correlation_id, call.thread_id, call.start_ns"
            " FROM gpu_executions AS execution LEFT JOIN api_calls AS call USING (trace_id, api_call_id)"
        )
    )
    expected = Counter(
        (
            each.execution.kind,
            each.execution.start if each.execution.is_valid else None,
            each.execution.correlation,
            each.launch.thread if each.launch else None,
            each.launch.start if each.launch else None,
        )
        for each in real.attributed
    )
    assert found == expected


def test_innermost_range_and_path_are_those_of_the_oracle(real: RealRun) -> None:
    messages = {row[0]: row[1:] for row in real.rows("SELECT range_id, message, start_ns FROM ranges")}
    found = Counter(
        (kind, start, correlation, messages.get(innermost), tuple(messages[each] for each in opened or ()))
        for kind, start, correlation, innermost, opened in real.rows(
            "SELECT kind, start_ns, correlation_id, range_id, range_ids FROM gpu_executions WHERE is_valid"
        )
    )
    expected = Counter(
        (
            each.execution.kind,
            each.execution.start,
            each.execution.correlation,
            (each.innermost.message, each.innermost.start) if each.innermost else None,
            tuple((member.message, member.start) for member in each.path),
        )
        for each in real.attributed
        if each.execution.is_valid
    )
    assert found == expected


def test_the_path_of_an_execution_ends_in_its_range_and_names_what_is_open(real: RealRun) -> None:
    wrong = real.value(
        "SELECT count(*) FROM gpu_executions WHERE len(path) != len(range_ids)"
        " OR range_id IS DISTINCT FROM range_ids[-1] AND attribution != 'phase'"
    )
    assert wrong == 0
    names = dict(real.rows("SELECT range_id, name FROM ranges"))
    for opened, path in real.rows("SELECT DISTINCT range_ids, path FROM gpu_executions WHERE range_id IS NOT NULL"):
        assert [names[each] for each in opened] == path


def test_busy_time_by_range_name_is_the_union_that_the_oracle_finds(real: RealRun) -> None:
    found = {
        (process, domain, name): NameTotals(kernels, inclusive, exclusive)
        for process, domain, name, kernels, inclusive, exclusive in real.rows(
            "SELECT process_id, domain, name, kernel_count, inclusive_busy_ns, exclusive_busy_ns FROM range_summary"
            " WHERE level = 'name' AND inclusive_busy_ns > 0"
        )
    }
    domains = real.export.domains
    expected = {
        (process, domains.get((process, domain), ""), name): totals
        for (process, domain, name), totals in totals_by_name(real.attributed).items()
        if totals.inclusive_ns > 0
    }
    assert found == expected


def test_ranges_of_the_capture_are_all_there(real: RealRun) -> None:
    found = Counter(real.rows("SELECT thread_id, start_ns, message, is_unclosed FROM ranges"))
    assert found == Counter((each.thread, each.start, each.message, each.is_unclosed) for each in real.export.ranges)


def test_steps_are_found_where_they_are_and_nowhere_else(real: RealRun) -> None:
    rule, labels = STEPS.get(real.name, ("none", []))
    assert [label for (label,) in real.rows("SELECT step_label FROM steps ORDER BY process_id, step")] == labels
    rules = {found for (found,) in real.rows("SELECT DISTINCT step_rule FROM run_summary")}
    if rule == "none":
        assert rules <= {"none"}
        assert real.rows("SELECT mfu_pct FROM run_summary WHERE mfu_pct IS NOT NULL") == []
    else:
        assert len(rules) == 1
        assert "none" not in rules


def test_the_first_of_three_or_more_steps_is_not_measured(real: RealRun) -> None:
    _, labels = STEPS.get(real.name, ("none", []))
    measured = [is_measured for (is_measured,) in real.rows("SELECT is_measured FROM steps ORDER BY process_id, step")]
    assert measured == [index > 0 for index in range(len(labels))]


def test_the_warnings_say_what_is_wrong_with_the_capture(real: RealRun) -> None:
    found = {code for (code,) in real.rows("SELECT code FROM warnings")}
    assert found >= WARNINGS[real.name]
    assert not found & FORBIDDEN.get(real.name, set())


def test_the_ledger_sums_to_100_percent(real: RealRun) -> None:
    sums = real.rows("SELECT sum(pct), sum(ns) FROM ledger GROUP BY trace_id, process_id, device_id, phase")
    assert sums or not any(each.execution.is_valid for each in real.attributed)
    for pct, ns in sums:
        assert pct == pytest.approx(100, abs=1e-9)
        assert ns > 0


def test_exclusive_times_of_the_operators_sum_to_compute_time(real: RealRun) -> None:
    compute = (
        "model_flop",
        "extra_flop",
        "precision",
        "memory_bound",
        "clock",
        "kernel_inefficiency",
        "no_cost_model",
    )
    keys = "trace_id, process_id, device_id, phase"
    ledger = f"SELECT {keys}, sum(ns) FROM ledger WHERE list_contains($compute, component) GROUP BY {keys}"
    telescoped = {tuple(key): ns for *key, ns in real.rows(ledger, compute=list(compute))}
    shared = {
        tuple(key): ns for *key, ns in real.rows(f"SELECT {keys}, sum(exclusive_ns) FROM operators GROUP BY {keys}")
    }
    assert set(shared) == set(telescoped)
    for key, ns in telescoped.items():
        assert shared[key] == pytest.approx(ns, rel=1e-9)


def test_without_a_known_flop_there_is_no_mfu(real: RealRun) -> None:
    if real.value("SELECT coalesce(sum(flop), 0) FROM operator_calls") == 0:
        assert (
            real.rows("SELECT mfu_pct, hfu_pct FROM run_summary WHERE mfu_pct IS NOT NULL OR hfu_pct IS NOT NULL") == []
        )


def test_copies_outside_any_range_are_unattributed_busy_time(real_run: RealOf) -> None:
    saxpy = real_run("2022.2.1_a100_saxpy_mpi_rank0")
    busy = {
        inside: union_ns(
            (each.execution.start, each.execution.end) for each in saxpy.attributed if bool(each.path) == inside
        )
        for inside in (True, False)
    }
    attributed = saxpy.value("SELECT attributed_pct FROM coverage")
    assert attributed == pytest.approx(100 * busy[True] / (busy[True] + busy[False]), abs=0.1)


def test_busy_time_without_steps_is_the_union_of_the_device(real: RealRun) -> None:
    if real.name in STEPS:
        return
    found = dict(real.rows("SELECT process_id, sum(busy_ns)::BIGINT FROM coverage GROUP BY process_id"))
    by_process: dict[int, list[tuple[int, int]]] = {}
    for each in real.attributed:
        if each.execution.is_valid:
            by_process.setdefault(each.execution.process, []).append((each.execution.start, each.execution.end))
    assert found == {process: union_ns(intervals) for process, intervals in by_process.items()}
