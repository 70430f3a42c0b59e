"""Facts that tie the tables to each other: devices, processes, phases, partial costs, hostile input."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from mfupipe import warehouse
from mfupipe.run import BuildOptions
from tests.sql.golden import Goldens
from tests.trace_builder import (
    BACKWARD_THREAD,
    DEVICE_TO_DEVICE,
    MAIN_THREAD,
    OTHER_PROCESS_THREAD,
    START_END,
    Trace,
    build_run,
)

goldens = Goldens()
FLOP_PER_NS, BYTES_PER_NS = 989_400, 4_800
OTHER_PROCESS = OTHER_PROCESS_THREAD & ~0xFFFFFF
SUMMARY = """
    SELECT phase, step_count, round(mfu_pct, 4), round(hfu_pct, 4) FROM run_summary WHERE trace_id = $trace ORDER BY 1
"""
OPERATOR = "SELECT name, operator, direction, attribution FROM gpu_executions WHERE trace_id = $trace ORDER BY ALL"
WHOLE = """
    SELECT round(min(total), 6), round(max(total), 6) FROM (
        SELECT sum(pct) AS total FROM ledger WHERE trace_id = $trace GROUP BY process_id, device_id, phase)
"""
WINDOWS = "SELECT step, start_ns, end_ns, busy_ns, is_contiguous FROM steps WHERE trace_id = $trace ORDER BY ALL"
LINES = """
    SELECT component, round(ns, 3) FROM ledger WHERE trace_id = $trace AND round(ns, 3) != 0
    ORDER BY device_id, position
"""


def cost(flop_ns: float, bytes_ns: float | None = 0, dtype: str = "bf16") -> str:
    """Fields of an annotation whose FLOP and bytes take these times at the H200's datasheet."""
    moved = "" if bytes_ns is None else f"|bytes={bytes_ns * BYTES_PER_NS:.0f}"
    return f"|flop={flop_ns * FLOP_PER_NS:.0f}{moved}|dtype={dtype}"


def domains(trace: Trace) -> None:
    """The mfupipe domain in both processes."""
    trace.domain(1, "mfupipe")
    trace.domain(1, "mfupipe", process=OTHER_PROCESS)


def one_step(trace: Trace, text: str = "", *, thread: int = MAIN_THREAD, device: int = 0, busy: int = 1_000) -> None:
    """A step of one operator of 500 ns ideal, launched before the GPU begins."""
    trace.range(0, 100, f"step|index=0{text}", domain=1, thread=thread)
    trace.range(10, 20, "mm" + cost(500), domain=1, thread=thread)
    trace.kernel("gemm", 1_000, 1_000 + busy, at=12, thread=thread, device=device)


@goldens.rows(SUMMARY, ("", 1, 50.0, 50.0))
def one_operator_fills_its_step(trace: Trace) -> None:
    domains(trace)
    one_step(trace)


@goldens.rows(SUMMARY, ("", 1, 50.0, 50.0))
def communication_inside_an_operator_takes_no_flop_from_it(trace: Trace) -> None:
    domains(trace)
    one_step(trace)
    trace.kernel("ncclDevKernel_AllGather", 1_000, 2_000, at=13, stream=9)


@goldens.rows(
    "SELECT operator, flop FROM operators WHERE trace_id = $trace",
    ("mm", 500.0 * FLOP_PER_NS),
)
def an_operator_keeps_its_flop_beside_a_copy_to_the_host(trace: Trace) -> None:
    domains(trace)
    one_step(trace)
    trace.memcpy(2_000, 3_000, at=14, copy_kind=1)


@goldens.rows(SUMMARY, ("", 2, 100.0, 100.0))
def two_processes_on_one_gpu_share_one_peak(trace: Trace) -> None:
    domains(trace)
    one_step(trace)
    one_step(trace, thread=OTHER_PROCESS_THREAD)


@goldens.rows(SUMMARY, ("", 2, 50.0, 50.0))
def two_processes_on_two_gpus_have_the_mean_mfu(trace: Trace) -> None:
    domains(trace)
    one_step(trace)
    one_step(trace, thread=OTHER_PROCESS_THREAD, device=1)


@goldens.rows(SUMMARY, ("", 1, 25.0, 25.0))
def a_second_gpu_doubles_the_peak_of_a_process(trace: Trace) -> None:
    domains(trace)
    one_step(trace)
    trace.memset(1_100, 1_200, at=15, device=1)


@goldens.rows(
    "SELECT device_id, start_ns, end_ns, cause FROM gaps WHERE trace_id = $trace ORDER BY ALL",
    (0, 2_000, 3_000, "launch"),
    (1, 1_200, 3_000, "launch"),
    (1, 3_000, 3_100, "launch"),
)
def a_gap_that_a_step_border_cuts_has_the_cause_of_its_end(trace: Trace) -> None:
    for at in (0, 2_500):
        trace.range(at, at + 450, f"step {at}")
        trace.kernel("first", at + 1_000 - (at > 0) * 500, at + 2_000, at=at + 10)
    trace.kernel("second", 1_000, 1_200, at=20, device=1)
    trace.kernel("second", 3_100, 4_500, at=2_520, device=1)


@goldens.rows(
    "SELECT level, call_count, flop, bytes FROM range_summary WHERE trace_id = $trace ORDER BY 1",
    ("name", 1, 600.0, 60.0),
    ("path", 1, 600.0, 60.0),
)
def the_cost_of_a_range_that_uses_two_gpus_counts_once(trace: Trace) -> None:
    domains(trace)
    trace.range(0, 100, "mm|flop=600|bytes=60|dtype=bf16", domain=1)
    trace.kernel("a", 1_000, 1_100, at=10)
    trace.kernel("b", 1_000, 1_100, at=11, device=1)


@goldens.rows(WINDOWS, (0, 1_000, 1_500, 500, True), (1, 1_500, 2_100, 600, False))
def the_tail_of_the_step_before_keeps_the_gpu_busy(trace: Trace) -> None:
    trace.range(0, 100, "step 0")
    trace.kernel("tail", 1_000, 2_000, at=10)
    trace.range(100, 200, "step 1")
    trace.kernel("next", 1_500, 1_600, at=110, stream=9)
    trace.kernel("next", 2_000, 2_100, at=111, stream=9)


@goldens.rows(
    "SELECT bytes FROM operator_calls WHERE trace_id = $trace AND bytes IS NOT NULL",
    (1024.0,),
)
def a_memset_has_its_bytes_beside_a_copy_from_the_host(trace: Trace) -> None:
    trace.range(0, 100, "load")
    trace.memcpy(1_000, 1_100, at=10)
    trace.memset(1_100, 1_200, at=20)


@goldens.rows("SELECT step_rule FROM run_summary WHERE trace_id = $trace", ("none",))
def a_gap_with_a_third_of_the_launches_is_no_repetition(trace: Trace) -> None:
    for index in range(22):
        trace.range(index * 100, index * 100 + 50, "block")
        trace.kernel("k", 10_000 + index * 100, 10_100 + index * 100, at=index * 100 + 10)
    for index in range(10):
        trace.kernel("tiny", 10_010, 10_012, at=1_060 + index, stream=9)


@goldens.rows(OPERATOR, ("k", "aten::mm", "forward", "thread"))
def a_plain_range_called_backward_is_no_autograd_node(trace: Trace) -> None:
    trace.range(0, 100, "TrainBackward")
    trace.range(10, 50, "aten::mm, seq = 3, op_id = 1")
    trace.kernel("k", 1_000, 1_100, at=20)


@goldens.rows(SUMMARY, ("decode", 1, 50.0, 50.0), ("prefill", 1, 50.0, 50.0))
def phases_of_a_server_have_their_own_mfu(trace: Trace) -> None:
    domains(trace)
    for index, text in enumerate(("execute_context_1(512)_generation_0(0)", "execute_context_0(0)_generation_4(4)")):
        at = index * 1_000
        trace.range(at, at + 100, text)
        trace.range(at + 10, at + 20, "mm" + cost(500), domain=1)
        trace.kernel("gemm", at + 1_000, at + 2_000, at=at + 12)


@goldens.rows(
    LINES,
    ("model_flop", 250.0),
    ("extra_flop", 50.0),
    ("precision", 300.0),
    ("memory_bound", 100.0),
    ("kernel_inefficiency", 300.0),
)
def the_lines_telescope_from_flop_to_kernel_time(trace: Trace) -> None:
    """tf32 has half of the bf16 peak on an H200."""
    domains(trace)
    trace.range(0, 100, "step|index=0", domain=1)
    extra = f"|extra_flop={50 * FLOP_PER_NS}"
    trace.range(10, 20, "mm" + cost(250, 700, "tf32") + extra, domain=1)
    trace.kernel("gemm", 1_000, 2_000, at=12)


@goldens.rows(LINES, ("model_flop", 500.0), ("precision", -250.013), ("kernel_inefficiency", 750.013))
def fp8_gains_precision(trace: Trace) -> None:
    domains(trace)
    trace.range(0, 100, "step|index=0", domain=1)
    trace.range(10, 20, "mm" + cost(500, 0, "fp8"), domain=1)
    trace.kernel("gemm", 1_000, 2_000, at=12)


@goldens.rows(LINES, ("model_flop", 500.0), ("no_cost_model", 500.0))
def an_unknown_dtype_keeps_its_flop(trace: Trace) -> None:
    domains(trace)
    trace.range(0, 100, "step|index=0", domain=1)
    trace.range(10, 20, "mm" + cost(500, 0, "weird"), domain=1)
    trace.kernel("gemm", 1_000, 2_000, at=12)


@goldens.rows(LINES, ("model_flop", 500.0), ("no_cost_model", 500.0))
def flop_without_bytes_are_counted(trace: Trace) -> None:
    domains(trace)
    trace.range(0, 100, "step|index=0", domain=1)
    trace.range(10, 20, "mm" + cost(500, None), domain=1)
    trace.kernel("gemm", 1_000, 2_000, at=12)


@goldens.rows(LINES, ("no_cost_model", 1_000.0))
def bytes_without_flop_are_no_cost(trace: Trace) -> None:
    domains(trace)
    trace.range(0, 100, "step|index=0", domain=1)
    trace.range(10, 20, "mm|bytes=4800", domain=1)
    trace.kernel("gemm", 1_000, 2_000, at=12)


@goldens.rows(LINES, ("model_flop", 600.0), ("kernel_inefficiency", 500.0), ("unattributed_flop", -100.0))
def a_stated_step_flop(trace: Trace) -> None:
    domains(trace)
    one_step(trace, f"|flop={600 * FLOP_PER_NS}")


@goldens.rows(
    "SELECT operator, cost_source, flop FROM operator_calls WHERE trace_id = $trace ORDER BY start_ns",
    ("outer", None, None),
    ("inner", "annotation", 200.0),
)
def what_an_outer_range_launches_outside_its_parts_has_no_cost(trace: Trace) -> None:
    domains(trace)
    trace.range(0, 100, "outer|flop=300|bytes=3|dtype=bf16", domain=1)
    trace.kernel("rest", 1_000, 1_100, at=5)
    trace.range(10, 20, "inner|flop=200|bytes=2|dtype=bf16", domain=1)
    trace.kernel("gemm", 1_100, 1_200, at=12)


@goldens.rows(OPERATOR, ("k", "mm", "backward", "thread"))
def an_annotated_backward_range_names_its_operator(trace: Trace) -> None:
    domains(trace)
    trace.range(0, 100, "MmBackward0, seq = 3, op_id = 1", thread=BACKWARD_THREAD)
    trace.range(10, 50, "mm|flop=3|bytes=3|direction=backward", domain=1, thread=BACKWARD_THREAD)
    trace.kernel("k", 1_000, 1_100, at=20, thread=BACKWARD_THREAD)


@goldens.rows(
    "SELECT step, count(*), sum(flop) FROM operator_calls WHERE trace_id = $trace GROUP BY step ORDER BY step",
    (0, 2, 1200.0),
    (1, 2, 1200.0),
)
def each_replay_of_a_graph_counts_its_cost(trace: Trace) -> None:
    domains(trace)
    trace.range(-500, -400, "mm|flop=600|bytes=60|dtype=bf16", domain=1)
    for node in (7, 8):
        trace.node(node, -450 + node)
    for index in range(2):
        at = index * 10_000
        trace.range(at, at + 500, f"step|index={index}", domain=1)
        for replay in range(2):
            launch = trace.api("cudaGraphLaunch", at + 10 + replay * 20, at + 20 + replay * 20)
            for node in (7, 8):
                begin = at + 1_000 + replay * 500 + (node - 7) * 100
                trace.kernel("gemm", begin, begin + 100, at=None, correlation=launch, graph_node=node)


@goldens.rows("SELECT operator, flop FROM operator_calls WHERE trace_id = $trace", ("replay", 600.0))
def a_whole_graph_has_the_cost_of_its_launch_range(trace: Trace) -> None:
    domains(trace)
    trace.range(0, 100, "replay|flop=600|bytes=60|dtype=bf16", domain=1)
    trace.graph(1_000, 2_000, at=10)


@goldens.rows(
    "SELECT name, is_unclosed FROM ranges WHERE trace_id = $trace ORDER BY range_id",
    ('it\'s "quoted"; DROP TABLE ranges; --', False),
    ("a|b", False),
    ("bad %FF name", False),
    ("%ZZ", False),
    ("nul \x00", False),
    ("(unnamed)", False),
)
def hostile_names_are_text(trace: Trace) -> None:
    domains(trace)
    trace.range(0, 100, 'it\'s "quoted"; DROP TABLE ranges; --')
    trace.range(1, 99, "a%7Cb|flop=3", domain=1)
    trace.range(2, 98, "bad %FF name|flop=3", domain=1)
    trace.range(3, 97, "%ZZ|flop=3", domain=1)
    trace.range(4, 96, "nul %00|flop=3", domain=1)
    trace.range(5, 95, None, domain=1)  # type: ignore[arg-type]
    trace.kernel("k'\"|%FF", 1_000, 1_100, at=20)


@goldens.rows("SELECT max(length(name)), count(*) FROM ranges WHERE trace_id = $trace", (1_000_000, 3))
def a_message_of_a_megabyte_is_a_name(trace: Trace) -> None:
    domains(trace)
    trace.range(0, 100, "x" * 1_000_000)
    trace.range(0, 100, "y, seq = 3" * 10_000)
    trace.range(0, 100, "z|" * 100_000, domain=1)
    trace.kernel("k", 1_000, 1_100, at=20)


@goldens.rows("SELECT count(*) FROM run_summary WHERE trace_id = $trace", (0,))
def an_empty_trace_has_no_summary(trace: Trace) -> None:
    del trace


@goldens.rows(WHOLE, (100.0, 100.0))
def executions_without_length_or_times_leave_the_ledger_whole(trace: Trace) -> None:
    domains(trace)
    one_step(trace)
    trace.kernel("zero", 1_500, 1_500, at=14)
    trace.kernel("invalid", 0, 0, at=15)
    trace.kernel("reversed", 1_900, 1_800, at=16)
    trace.memset(1_000, 1_000, at=17)


@goldens.rows(OPERATOR, ("k", "request", "forward", "phase"))
def a_start_end_range_is_a_phase_of_other_threads(trace: Trace) -> None:
    trace.range(0, 100, "request", event_type=START_END)
    trace.kernel("k", 1_000, 1_100, at=20, thread=BACKWARD_THREAD)


@goldens.rows(
    "SELECT step, start_ns, end_ns FROM steps WHERE trace_id = $trace ORDER BY step",
    (0, 3_000, 5_000),
    (1, 5_000, 5_500),
)
def an_optimizer_marker_ends_a_step(trace: Trace) -> None:
    for index in range(3):
        at = index * 1_000
        trace.kernel("fwd", at * 2 + 1_000, at * 2 + 1_300, at=at + 10)
        trace.range(at + 500, at + 600, "Optimizer.step#AdamW.step")
        trace.kernel("adam", at * 2 + 1_300, at * 2 + 1_500, at=at + 510)


@goldens.rows(
    "SELECT step, start_ns, end_ns FROM steps WHERE trace_id = $trace ORDER BY step",
    (0, 1_000, 2_000),
    (1, 2_000, 2_500),
)
def a_prefetch_copy_does_not_move_the_border(trace: Trace) -> None:
    trace.range(0, 100, "step 0")
    trace.kernel("a", 1_000, 1_800, at=10)
    trace.range(100, 200, "step 1")
    trace.memcpy(1_100, 1_500, at=110)
    trace.kernel("b", 2_000, 2_500, at=120)


@goldens.rows(
    "SELECT model_flop FROM run_summary WHERE trace_id = $trace",
    (600.0,),
)
def a_stated_flop_on_an_unknown_gpu(trace: Trace) -> None:
    domains(trace)
    trace.gpu["name"] = "Some Other GPU"
    trace.range(0, 100, "step|index=0|flop=600", domain=1)
    trace.range(10, 20, "mm", domain=1)
    trace.kernel("gemm", 1_000, 2_000, at=12)


@goldens.rows(
    "SELECT operator, dtype, dtype_count, shapes FROM operators WHERE trace_id = $trace",
    ("mm", None, 1, None),
)
def a_dtype_that_only_some_calls_have_is_not_shared(trace: Trace) -> None:
    domains(trace)
    trace.range(0, 100, "mm|flop=3|bytes=3|dtype=bf16", domain=1)
    trace.range(100, 200, "mm|flop=3|bytes=3", domain=1)
    trace.kernel("a", 1_000, 1_100, at=20)
    trace.memset(1_100, 1_200, at=120)


@goldens.rows(
    "SELECT operator, flop, extra_flop FROM operator_calls WHERE trace_id = $trace ORDER BY start_ns",
    ("attention", 100.0, 0.0),
)
def an_annotation_outranks_sizes(trace: Trace) -> None:
    domains(trace)
    trace.range(0, 100, "attention|flop=100|bytes=1|dtype=bf16", domain=1)
    trace.range(10, 90, "aten::mm, op_id = 1, sizes = [[2, 3], [3, 4]]")
    trace.kernel("a", 1_000, 1_100, at=20)
    trace.kernel("b", 1_100, 1_200, at=95)


@goldens.rows(
    "SELECT operator, direction, cost_source FROM operators WHERE trace_id = $trace",
    ("softmax", "forward", "annotation"),
)
def an_annotated_operator_that_is_run_in_a_loop_keeps_its_name(trace: Trace) -> None:
    domains(trace)
    for index in range(4):
        at = index * 100
        trace.range(at, at + 50, "softmax|flop=0|bytes=48|dtype=bf16", domain=1)
        trace.kernel("softmax", 1_000 + at, 1_100 + at, at=at + 10)


@goldens.rows(
    "SELECT execution_class FROM gpu_executions WHERE trace_id = $trace ORDER BY name",
    ("communication",),
    ("communication",),
    ("compute",),
)
def the_all_reduce_of_vllm_is_communication(trace: Trace) -> None:
    trace.kernel("cross_device_reduce_2stage", 1_000, 1_100, at=10)
    trace.kernel("ncclDevKernel", 1_000, 1_100, at=10)
    trace.kernel("softmax_warp_forward", 1_000, 1_100, at=10)


@goldens.rows("SELECT operator, call_count FROM operators WHERE trace_id = $trace", ("aten::foo", 1))
def one_range_is_one_call_of_its_operator(trace: Trace) -> None:
    trace.range(0, 100, "aten::foo, op_id = 1")
    trace.memset(1_000, 1_100, at=10)
    trace.kernel("k", 1_100, 1_200, at=11)


@goldens.rows(WINDOWS, (0, 1_000, 1_100, 100, False), (2, 5_000, 5_100, 100, False))
def work_after_a_step_without_gpu_work_is_still_between(trace: Trace) -> None:
    trace.range(0, 100, "step 0")
    trace.kernel("a", 1_000, 1_100, at=10)
    trace.range(100, 200, "step 1")
    trace.kernel("evaluation", 2_000, 4_000, at=250)
    trace.range(300, 400, "step 2")
    trace.kernel("b", 5_000, 5_100, at=310)


@goldens.rows(
    LINES,
    ("no_cost_model", 400.0),
    ("exposed_communication", 300.0),
    ("exposed_copy", 200.0),
    ("idle_other", 100.0),
)
def communication_and_copies_count_where_no_compute_runs(trace: Trace) -> None:
    trace.range(0, 100, "step 0")
    trace.kernel("k", 1_000, 1_400, at=5)
    trace.kernel("ncclKernel", 1_200, 1_700, at=6, stream=9)
    trace.memcpy(1_300, 1_900, at=7)
    trace.memcpy(2_000, 2_000, at=8)


@goldens.rows(
    "SELECT cause, api_name FROM gaps WHERE trace_id = $trace",
    ("launch", "cudaLaunchKernel"),
)
def a_synchronisation_that_outlasts_the_launch_is_not_the_cause(trace: Trace) -> None:
    trace.kernel("a", 1_000, 1_100, at=5)
    trace.api("cudaStreamSynchronize", 900, 1_500, thread=BACKWARD_THREAD)
    trace.kernel("b", 1_300, 1_400, at=1_250)


@goldens.rows("SELECT operator, flop, busy_ns FROM operator_calls WHERE trace_id = $trace", ("mm", 600.0, 100))
def a_call_with_an_invalid_execution_keeps_its_cost(trace: Trace) -> None:
    domains(trace)
    trace.range(0, 100, "mm|flop=600|bytes=60|dtype=bf16", domain=1)
    trace.kernel("k", 0, 0, at=4)
    trace.kernel("k", 1_000, 1_100, at=5)
    trace.kernel("k", 1_000, 1_000, at=6)
    trace.memset(1_000, 1_050, at=7)
    trace.memcpy(1_000, 1_050, at=8, copy_kind=DEVICE_TO_DEVICE)


@goldens.rows(
    "SELECT level, call_count, kernel_count, inclusive_busy_ns, exclusive_busy_ns, flop FROM range_summary "
    "WHERE trace_id = $trace ORDER BY ALL",
    ("name", 2, 2, 300, 300, 6.0),
    ("path", 1, 1, 200, 200, 3.0),
    ("path", 1, 2, 300, 100, 3.0),
)
def recursion_counts_once(trace: Trace) -> None:
    domains(trace)
    trace.range(0, 100, "f|flop=3|bytes=6|dtype=bf16", domain=1)
    trace.range(10, 50, "f|flop=3|bytes=6|dtype=bf16", domain=1)
    trace.kernel("k", 1_000, 1_200, at=20)
    trace.kernel("k", 1_200, 1_300, at=60)


@goldens.rows(
    "SELECT step_ns, round(items_per_s), step_count FROM run_summary WHERE trace_id = $trace",
    (1_000.0, 128e6, 2),
)
def items_are_per_measured_step(trace: Trace) -> None:
    domains(trace)
    for index in range(3):
        at = index * 1_000
        trace.range(at, at + 100, f"step|index={index}|items=128|tokens=5", domain=1)
        trace.kernel("k", at + 1_000, at + 2_000, at=at + 10)


@goldens.rows(OPERATOR, ("k", "aten::mm", "forward", "thread"))
def a_phase_range_is_no_operator_when_sizes_are_inside(trace: Trace) -> None:
    domains(trace)
    trace.range(0, 100, "serve|phase=prefill", domain=1)
    trace.range(10, 50, "aten::mm, op_id = 1, sizes = [[2, 3], [3, 4]]")
    trace.kernel("k", 1_000, 1_100, at=20)


@goldens.rows(SUMMARY, ("", 2, 120.0, 120.0))
def steps_that_begin_together_are_both_counted(trace: Trace) -> None:
    """The windows of 0 and 1,000 ns hold 1,200 ns of FLOP: two steps, of 600 ns each."""
    domains(trace)
    for index in range(2):
        at = index * 200
        trace.range(at, at + 100, f"step|index={index}|flop={600 * FLOP_PER_NS}", domain=1)
        trace.kernel("k", 1_000, 2_000, at=at + 10, stream=index)


@goldens.rows("SELECT cause, api_name FROM gaps WHERE trace_id = $trace", ("launch", "cudaLaunchKernel"))
def of_two_executions_that_end_a_gap_the_launched_one_tells_the_cause(trace: Trace) -> None:
    trace.kernel("a", 1_000, 1_100, at=5)
    trace.kernel("without call", 2_000, 2_100, at=None, correlation=999, stream=9)
    trace.kernel("b", 2_000, 2_100, at=1_900)


test_review = goldens.test()


def built(
    directory: Path, sql: str, *makes: Callable[[Trace], None], options: BuildOptions | None = None
) -> list[tuple[Any, ...]]:
    """Rows of a query on a RUN of these traces."""
    traces = []
    for make in makes:
        traces.append(Trace())
        make(traces[-1])
    with warehouse.open_run(build_run(directory / "run", traces, options)) as connection:
        return connection.execute(sql).fetchall()


def slow_memory(trace: Trace) -> None:
    """A GPU whose bandwidth contradicts the peak table."""
    domains(trace)
    one_step(trace)
    trace.gpu["memory_bandwidth_bytes_per_s"] = 2_000_000_000_000


def fast_memory(trace: Trace) -> None:
    """The same GPU as the table has it."""
    domains(trace)
    one_step(trace)


def test_a_contradicted_bandwidth_stays_unknown_beside_another_trace(tmp_path: Path) -> None:
    sql = "SELECT trace_id, bandwidth_bytes_per_s FROM run_summary ORDER BY trace_id"
    assert built(tmp_path, sql, fast_memory, slow_memory) == [(0, 4.8e12), (1, None)]


def test_a_device_warning_is_of_the_trace_that_contradicts(tmp_path: Path) -> None:
    sql = "SELECT trace_id FROM warnings WHERE code = 'device_mismatch'"
    assert built(tmp_path, sql, fast_memory, slow_memory) == [(1,)]


def annotated_step(trace: Trace) -> None:
    """The user's step is an annotated range; an aten operator is inside."""
    domains(trace)
    trace.range(0, 100, f"train|flop={600 * FLOP_PER_NS}|bytes=48", domain=1)
    trace.range(10, 50, "aten::mm, op_id = 1, sizes = [[1000, 1000], [1000, 1000]]")
    trace.kernel("gemm", 1_000, 2_000, at=12)


def test_an_annotated_range_that_the_user_calls_a_step_is_no_operator(tmp_path: Path) -> None:
    options = BuildOptions(step_regex="train")
    assert built(tmp_path, "SELECT operator, cost_source FROM operators", annotated_step, options=options) == [
        ("aten::mm", "shapes")
    ]


def garbage_end(trace: Trace) -> None:
    """A range whose end is garbage, in a trace of three threads."""
    for thread in (MAIN_THREAD, BACKWARD_THREAD, OTHER_PROCESS_THREAD):
        trace.kernel("k", 1_000, 1_100, at=6, thread=thread)
    trace.range(0, 1 << 62, "garbage")


def test_a_garbage_time_does_not_stop_the_build(tmp_path: Path) -> None:
    assert built(tmp_path, "SELECT count(*) FROM gpu_executions", garbage_end) == [(3,)]
