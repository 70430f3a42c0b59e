"""Idle time by its cause, and what each compute line of the ledger holds."""

from __future__ import annotations

from tests.sql.golden import Goldens
from tests.trace_builder import DEVICE_TO_DEVICE, DEVICE_TO_HOST, MAIN_THREAD, Trace

goldens = Goldens()
GAPS = "SELECT start_ns, end_ns, gap_ns, cause FROM gaps WHERE trace_id = $trace ORDER BY start_ns"
CLASSES = "SELECT name, execution_class FROM gpu_executions WHERE trace_id = $trace ORDER BY start_ns"
COSTS = """
    SELECT operator, bytes, cost_source FROM operator_calls WHERE trace_id = $trace ORDER BY start_ns
"""


@goldens.rows(GAPS, (10, 25, 15, "launch"))
def a_gap_is_of_the_launch_when_the_next_launch_ended_after_it_began(trace: Trace) -> None:
    trace.kernel("a", 0, 10, at=-10)
    trace.kernel("b", 25, 30, at=20)


@goldens.rows(GAPS, (10, 25, 15, "other"))
def a_gap_before_a_kernel_that_was_queued_already_has_another_cause(trace: Trace) -> None:
    trace.kernel("a", 0, 10, at=-10)
    trace.kernel("b", 25, 30, at=2)


@goldens.rows(GAPS, (10, 40, 30, "sync"))
def a_gap_is_of_a_synchronisation_that_the_next_launch_waited_for(trace: Trace) -> None:
    trace.kernel("a", 0, 10, at=-10)
    trace.api("cudaDeviceSynchronize", 5, 30)
    trace.kernel("b", 40, 50, at=32)


@goldens.rows(GAPS, (10, 40, 30, "launch"))
def a_synchronisation_that_was_over_when_the_gap_began_is_not_its_cause(trace: Trace) -> None:
    trace.kernel("a", 0, 10, at=-10)
    trace.api("cudaDeviceSynchronize", 5, 9)
    trace.kernel("b", 40, 50, at=32)


@goldens.rows(GAPS)
def executions_that_touch_or_overlap_leave_no_gap(trace: Trace) -> None:
    trace.kernel("a", 0, 10, at=-10)
    trace.kernel("b", 10, 30, at=-8)
    trace.kernel("c", 20, 40, at=-6, stream=8)


@goldens.rows(
    CLASSES,
    ("k", "compute"),
    ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "communication"),
    ("memcpy HtoD", "copy"),
    ("memcpy DtoH", "copy"),
    ("memcpy DtoD", "compute"),
    ("memset", "compute"),
    ("CUDA graph", "compute"),
)
def only_copies_that_leave_the_device_are_of_class_copy(trace: Trace) -> None:
    trace.kernel("k", 0, 10, at=-100)
    trace.kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 10, 20, at=-90)
    trace.memcpy(20, 30, at=-80)
    trace.memcpy(30, 40, at=-70, copy_kind=DEVICE_TO_HOST)
    trace.memcpy(40, 50, at=-60, copy_kind=DEVICE_TO_DEVICE)
    trace.memset(50, 60, at=-50)
    trace.graph(60, 70, at=-40)


@goldens.rows(COSTS, ("copy", 2_048.0, "copied_bytes"), ("set", 1_024.0, "copied_bytes"))
def a_copy_within_the_device_moves_its_bytes_twice_and_a_memset_once(trace: Trace) -> None:
    trace.range(-100, -80, "copy")
    trace.memcpy(0, 10, at=-90, copy_kind=DEVICE_TO_DEVICE)
    trace.range(-70, -50, "set")
    trace.memset(20, 30, at=-60)


@goldens.rows(
    "SELECT name, flop, bytes, dtype FROM ranges WHERE trace_id = $trace ORDER BY range_id",
    ("a|b", 1_200.0, 3_400.0, "bf16"),
    ("c", None, 5.0, None),
    ("d", None, None, None),
    ("plain | text", None, None, None),
    ("other|key=1", None, None, None),
    ("e", 7.0, None, None),
)
def the_annotation_grammar_reads_what_it_knows(trace: Trace) -> None:
    trace.domain(1, "mfupipe")
    trace.range(0, 10, "a%7Cb|flop=1.2e3|bytes=3400|dtype=bf16|unknown=1", domain=1)
    trace.range(10, 20, "c|flop=many|bytes=5", domain=1)
    trace.range(20, 30, "d|flop=1|flop=2", domain=1)
    trace.range(30, 40, "plain | text")
    trace.range(40, 50, "other|key=1")
    trace.range(50, 60, "e|flop=7", domain=0)
    trace.kernel("k", 100, 110, at=5, thread=MAIN_THREAD)


@goldens.rows(
    "SELECT code, count FROM warnings WHERE trace_id = $trace AND code = 'bad_annotation'", ("bad_annotation", 2)
)
def fields_that_cannot_be_read_are_counted(trace: Trace) -> None:
    the_annotation_grammar_reads_what_it_knows(trace)


@goldens.rows(
    "SELECT name, count, total_ns, median_ns, p95_ns, operators FROM kernels WHERE trace_id = $trace ORDER BY name",
    ("a", 3, 90, 30, 40, ["r"]),
    ("b", 1, 5, 5, 5, ["(unattributed)"]),
)
def kernels_are_summed_by_name_and_launch_shape(trace: Trace) -> None:
    trace.range(-100, -50, "r")
    for index, length in enumerate((20, 30, 40)):
        trace.kernel("a", index * 100, index * 100 + length, at=-90 + index)
    trace.kernel("b", 400, 405, at=-40)


@goldens.rows(
    "SELECT level, name, path, call_count, kernel_count, inclusive_busy_ns, exclusive_busy_ns FROM range_summary"
    " WHERE trace_id = $trace ORDER BY ALL",
    ("name", "in", None, 2, 2, 30, 30),
    ("name", "out", None, 1, 3, 35, 5),
    ("path", "in", ["out", "in"], 2, 2, 30, 30),
    ("path", "out", ["out"], 1, 3, 35, 5),
)
def ranges_are_summed_by_name_and_by_path_as_unions(trace: Trace) -> None:
    trace.range(0, 100, "out")
    trace.range(10, 20, "in")
    trace.range(30, 40, "in")
    trace.kernel("k", 200, 220, at=15)
    trace.kernel("k", 210, 230, at=35, stream=8)
    trace.kernel("k", 230, 235, at=50)


test_ledger_lines = goldens.test()
