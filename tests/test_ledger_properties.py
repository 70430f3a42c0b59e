"""The ledger on random interval sets: an exact partition that equals a count of nanoseconds."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mfupipe import warehouse
from mfupipe.run import BuildOptions
from tests.oracle.grid import Grid, count_grid
from tests.random_traces import IntervalSet, Run, interval_sets, seeded_interval_set, to_trace
from tests.trace_builder import Trace, build_run

COMPUTE = (
    "model_flop",
    "extra_flop",
    "precision",
    "memory_bound",
    "clock",
    "kernel_inefficiency",
    "no_cost_model",
    "unattributed_flop",
)
IDLE = ("idle_launch", "idle_sync", "idle_other")
EXPOSED = ("exposed_communication", "exposed_copy")
BF16, BANDWIDTH = 989.4e12, 4.8e12
# A build takes a second whatever it holds, so each example is 20 interval sets in one RUN: 200 in all.
few_builds = settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
sets = st.lists(interval_sets(), min_size=20, max_size=20)


@dataclass(frozen=True)
class Ledger:
    """Ledger of one trace: component -> ns and pct; exclusive time by order of launch, and of all operators."""

    ns: dict[str, float]
    pct: dict[str, float]
    exclusive_ns: list[float | None]
    operators_ns: float

    def sum_of(self, components: Sequence[str]) -> float:
        return sum(self.ns.get(component, 0.0) for component in components)


@contextmanager
def built(traces: Sequence[Trace], options: BuildOptions | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
    with tempfile.TemporaryDirectory() as directory:
        run_dir = build_run(Path(directory) / "run", traces, options)
        with warehouse.open_run(run_dir) as connection:
            yield connection


def ledgers(traces: Sequence[Trace], options: BuildOptions | None = None) -> list[Ledger]:
    ns: dict[int, dict[str, float]] = defaultdict(dict)
    pct: dict[int, dict[str, float]] = defaultdict(dict)
    exclusive: dict[int, list[float | None]] = defaultdict(list)
    with built(traces, options) as connection:
        for trace, component, component_ns, component_pct in connection.execute(
            "SELECT trace_id, component, ns, pct FROM ledger"
        ).fetchall():
            assert component not in ns[trace]
            ns[trace][component], pct[trace][component] = component_ns, component_pct
        for trace, share in connection.execute(
            "SELECT trace_id, exclusive_ns FROM gpu_executions JOIN api_calls USING (trace_id, api_call_id)"
            " ORDER BY trace_id, api_calls.start_ns"
        ).fetchall():
            exclusive[trace].append(share)
        operators = dict(
            connection.execute("SELECT trace_id, sum(exclusive_ns) FROM operators GROUP BY trace_id").fetchall()
        )
    return [Ledger(ns[each], pct[each], exclusive[each], operators.get(each, 0.0)) for each in range(len(traces))]


def exactly(value: Any) -> Any:
    """Equal but for the rounding of doubles."""
    return pytest.approx(value, rel=1e-9, abs=1e-6)


def grid_of(intervals: IntervalSet) -> Grid:
    return count_grid(intervals.activities(), intervals.windows())


def assert_ledger_is_the_grid(ledger: Ledger, intervals: IntervalSet) -> None:
    grid = grid_of(intervals)
    assert sum(ledger.pct.values()) == pytest.approx(100, abs=1e-9)
    assert sum(ledger.ns.values()) == exactly(grid.window_ns)
    assert ledger.ns.get("exposed_communication", 0) == exactly(grid.communication_ns)
    assert ledger.ns.get("exposed_copy", 0) == exactly(grid.copy_ns)
    assert ledger.sum_of(IDLE) == exactly(grid.idle_ns)
    assert ledger.sum_of(COMPUTE) == exactly(grid.compute_ns)
    assert ledger.operators_ns == exactly(grid.compute_ns)
    for component, pct in ledger.pct.items():
        assert pct == exactly(100 * ledger.ns[component] / grid.window_ns)


def assert_shares_are_those_of_the_grid(ledger: Ledger, intervals: IntervalSet) -> None:
    """Without steps the window is all there is, so an execution's share is the grid's."""
    share = grid_of(intervals).share_ns
    for index, run in enumerate(intervals.in_order()):
        if run.execution_class == "compute":
            assert ledger.exclusive_ns[index] == exactly(float(share[index]))


def assert_costs_are_those_declared(ledger: Ledger, intervals: IntervalSet) -> None:
    """model_flop: FLOP over the peak; no_cost_model: time of those without a whole cost; by hand, without steps."""
    share = grid_of(intervals).share_ns
    compute = [(index, run) for index, run in enumerate(intervals.in_order()) if run.execution_class == "compute"]
    model_ns = sum((run.flop or 0) / BF16 * 1e9 for _, run in compute if run.length > 0)
    assert ledger.ns.get("model_flop", 0) == exactly(model_ns)
    costed = [
        (index, run) for index, run in compute if run.flop is not None and run.bytes is not None and run.length > 0
    ]
    ideal_ns = [max((run.flop or 0) / BF16, (run.bytes or 0) / BANDWIDTH) * 1e9 for _, run in costed]
    lost_ns = sum(float(share[index]) for index, _ in costed) - sum(ideal_ns)
    assert ledger.ns.get("kernel_inefficiency", 0) == exactly(lost_ns)


@few_builds
@given(sets)
def test_the_ledger_equals_a_count_of_nanoseconds(many: list[IntervalSet]) -> None:
    for ledger, intervals in zip(ledgers([to_trace(each) for each in many]), many, strict=True):
        assert_ledger_is_the_grid(ledger, intervals)
        if not intervals.step_count:
            assert_shares_are_those_of_the_grid(ledger, intervals)


def test_the_ledger_equals_a_count_of_nanoseconds_in_200_traces_of_one_run() -> None:
    many = [seeded_interval_set(seed) for seed in range(200)]
    for ledger, intervals in zip(ledgers([to_trace(each) for each in many]), many, strict=True):
        assert_ledger_is_the_grid(ledger, intervals)
        if not intervals.step_count:
            assert_shares_are_those_of_the_grid(ledger, intervals)
            assert_costs_are_those_declared(ledger, intervals)


@settings(few_builds, max_examples=3)
@given(sets)
def test_row_order_changes_nothing(many: list[IntervalSet]) -> None:
    traces = [to_trace(each) for each in many]
    forward, backward = ledgers(traces), ledgers([trace.reversed() for trace in traces])
    for one, other in zip(forward, backward, strict=True):
        assert one.ns == exactly(other.ns)
        assert one.exclusive_ns == exactly(other.exclusive_ns)


@settings(few_builds, max_examples=3)
@given(sets)
def test_a_hidden_communication_is_not_exposed(many: list[IntervalSet]) -> None:
    alone = ledgers([to_trace(each) for each in many])
    hidden = ledgers([to_trace(each.with_hidden_communication()) for each in many])
    for without, having in zip(alone, hidden, strict=True):
        for component in (*EXPOSED, *COMPUTE):
            assert having.ns.get(component, 0) == exactly(without.ns.get(component, 0))
        assert having.sum_of(IDLE) == exactly(without.sum_of(IDLE))


def test_twice_the_peak_is_half_the_mfu_and_the_same_sum() -> None:
    traces = [to_trace(seeded_interval_set(seed)) for seed in range(20)]
    doubled = ledgers(traces, BuildOptions(peaks={"bf16": 2 * BF16}))
    for one, other in zip(ledgers(traces), doubled, strict=True):
        assert other.pct.get("model_flop", 0) == pytest.approx(one.pct.get("model_flop", 0) / 2, rel=1e-9, abs=1e-12)
        assert sum(other.pct.values()) == pytest.approx(100, abs=1e-9)


def test_a_trace_gives_the_same_rows_alone_as_among_others() -> None:
    many = [to_trace(seeded_interval_set(seed)) for seed in range(6)]
    together = ledgers(many)
    for index in (0, 3, 5):
        (alone,) = ledgers([many[index]])
        assert alone.ns == pytest.approx(together[index].ns, rel=1e-12)
        assert alone.exclusive_ns == pytest.approx(together[index].exclusive_ns, rel=1e-12)


def by_hand(*runs: Run) -> IntervalSet:
    return IntervalSet(runs, step_count=0)


def test_three_classes_that_overlap_are_split_by_rank() -> None:
    # compute [0, 10), communication [5, 25), copy [20, 40), nothing [40, 50), compute [50, 60)
    intervals = by_hand(
        Run("compute", 0, 0, 10),
        Run("communication", 0, 5, 20, stream=8),
        Run("copy", 0, 20, 20, stream=9),
        Run("compute", 0, 50, 10),
    )
    (ledger,) = ledgers([to_trace(intervals)])
    assert ledger.ns["exposed_communication"] == 15
    assert ledger.ns["exposed_copy"] == 15
    assert ledger.sum_of(IDLE) == 10
    assert ledger.ns["no_cost_model"] == 20


def test_two_computes_share_what_they_overlap() -> None:
    # [0, 20) and [10, 40): 10 alone, 10 shared, 20 alone
    (ledger,) = ledgers([to_trace(by_hand(Run("compute", 0, 0, 20), Run("compute", 0, 10, 30, stream=8)))])
    assert ledger.exclusive_ns == [15, 25]


def test_a_zero_length_execution_has_no_time_and_its_cost_does_not_break_the_sum() -> None:
    intervals = by_hand(Run("compute", 0, 0, 20), replace(Run("compute", 0, 5, 0, stream=8), flop=1000, bytes=10))
    (ledger,) = ledgers([to_trace(intervals)])
    assert sum(ledger.pct.values()) == pytest.approx(100, abs=1e-9)
