"""Which ranges are steps, and where a step begins and ends on the GPU."""

from __future__ import annotations

from tests.sql.golden import Goldens
from tests.trace_builder import DEVICE_TO_HOST, Trace

goldens = Goldens()
STEPS = """
    SELECT step, step_label, start_ns, end_ns, wall_ns, is_measured, is_contiguous
    FROM steps WHERE trace_id = $trace ORDER BY process_id, step
"""
LABELS = "SELECT step_label FROM steps WHERE trace_id = $trace ORDER BY process_id, step"
RULE = "SELECT step_rule, step_count, mfu_pct FROM run_summary WHERE trace_id = $trace"


def steps(trace: Trace, *labels: str, length: int = 1_000, domain: int = 0) -> None:
    """Steps back to back on the host, each with one kernel of 600 ns, 100 ns after its launch."""
    for index, label in enumerate(labels):
        at = index * length
        trace.range(at, at + length - 10, label, domain=domain)
        trace.range(at + 10, at + 50, f"operator {'abcdefgh'[index]}")
        trace.kernel("k", at + 120, at + 720, at=at + 20)


@goldens.rows(
    STEPS,
    (0, "step|index=0", 120, 1_120, 1_000, False, True),
    (1, "step|index=1", 1_120, 2_120, 1_000, True, True),
    (2, "step|index=2", 2_120, 2_720, 600, True, False),
)
def a_step_lasts_from_its_first_compute_to_that_of_the_next_and_the_last_to_its_end(trace: Trace) -> None:
    trace.domain(1, "mfupipe")
    steps(trace, "step|index=0", "step|index=1", "step|index=2", domain=1)


@goldens.rows("SELECT start_ns, end_ns FROM steps WHERE trace_id = $trace ORDER BY step", (120, 1_120), (1_120, 2_000))
def a_copy_does_not_move_the_border_but_ends_the_last_step(trace: Trace) -> None:
    steps(trace, "step 0", "step 1")
    trace.memcpy(900, 1_000, at=1_005)
    trace.memcpy(1_900, 2_000, at=1_500, copy_kind=DEVICE_TO_HOST)


@goldens.rows(LABELS, ("iteration 7",), ("iteration 8",))
def a_numbered_iteration_is_a_step(trace: Trace) -> None:
    steps(trace, "iteration 7", "iteration 8")


@goldens.rows(LABELS, ("ProfilerStep#4",), ("ProfilerStep#5",))
def a_profiler_step_is_a_step(trace: Trace) -> None:
    steps(trace, "ProfilerStep#4", "ProfilerStep#5")


@goldens.rows(RULE, ("none", 0, None))
def a_bare_step_is_no_dialect(trace: Trace) -> None:
    steps(trace, "step", "step")


@goldens.rows(LABELS, ("train",), ("train",), ("train",))
def a_name_that_repeats_back_to_back_and_launches_nearly_all_is_a_step(trace: Trace) -> None:
    steps(trace, "train", "train", "train")


@goldens.rows(RULE, ("none", 0, None))
def a_name_that_repeats_but_launches_half_of_the_time_is_none(trace: Trace) -> None:
    trace.range(0, 5_000, "outer")
    for index in range(3):
        at = 100 + index * 1_000
        trace.range(at, at + 100, "part")
        trace.kernel("k", at + 6_000, at + 6_100, at=at + 20)
        trace.kernel("rest", at + 6_200, at + 6_400, at=at + 200)


@goldens.rows(RULE, ("none", 0, None))
def aten_operators_that_repeat_are_no_steps(trace: Trace) -> None:
    for index in range(4):
        trace.range(index * 100, index * 100 + 90, f"aten::mm, op_id = {index}")
        trace.kernel("k", 1_000 + index * 100, 1_090 + index * 100, at=index * 100 + 10)


@goldens.rows(
    "SELECT step, end_ns, is_contiguous FROM steps WHERE trace_id = $trace ORDER BY step",
    (0, 720, False),
    (1, 3_720, False),
)
def work_between_two_steps_belongs_to_neither(trace: Trace) -> None:
    for at, label in ((0, "step 0"), (3_000, "step 1")):
        trace.range(at, at + 900, label)
        trace.kernel("k", at + 120, at + 720, at=at + 20)
    trace.range(1_500, 2_500, "evaluate")
    trace.kernel("validation", 1_700, 2_700, at=1_600)


@goldens.rows(
    "SELECT lower(phase), count(*) FROM steps WHERE trace_id = $trace GROUP BY 1 ORDER BY 1",
    ("decode", 2),
    ("prefill", 1),
)
def steps_of_a_server_name_their_phase(trace: Trace) -> None:
    steps(trace, "step[PREFILL bs=1]", "step[DECODE bs=4]", "step[DECODE bs=4]")


@goldens.rows("SELECT count(DISTINCT phase), count(*) FROM run_summary WHERE trace_id = $trace", (2, 2))
def phases_are_never_pooled(trace: Trace) -> None:
    steps(trace, "step[PREFILL bs=1]", "step[DECODE bs=4]", "step[DECODE bs=4]")


@goldens.rows(
    "SELECT phase, round(sum(pct), 9) FROM ledger WHERE trace_id = $trace GROUP BY phase ORDER BY phase",
    ("decode", 100.0),
    ("prefill", 100.0),
)
def the_ledger_of_each_phase_is_whole(trace: Trace) -> None:
    steps(trace, "step[PREFILL bs=1]", "step[DECODE bs=4]", "step[DECODE bs=4]")


test_steps = goldens.test()
