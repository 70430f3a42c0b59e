"""Which launch, range, operator and direction an execution gets."""

from __future__ import annotations

from tests.sql.golden import Goldens
from tests.trace_builder import BACKWARD_THREAD, MAIN_THREAD, OTHER_PROCESS_THREAD, START_END, Trace

goldens = Goldens()
RANGE = """
    SELECT execution.name, message FROM gpu_executions AS execution LEFT JOIN ranges USING (trace_id, range_id)
    WHERE trace_id = $trace ORDER BY ALL
"""
OPERATOR = "SELECT name, operator, direction, attribution FROM gpu_executions WHERE trace_id = $trace ORDER BY ALL"
PATH = "SELECT name, path FROM gpu_executions WHERE trace_id = $trace ORDER BY ALL"


@goldens.rows(RANGE, ("at_end", None), ("at_start", "r"), ("before", None), ("inside", "r"))
def a_range_is_open_from_its_start_until_before_its_end(trace: Trace) -> None:
    trace.range(100, 200, "r")
    for name, at in (("before", 99), ("at_start", 100), ("inside", 199), ("at_end", 200)):
        trace.kernel(name, at + 1000, at + 1001, at=at)


@goldens.rows(PATH, ("k", ["longer", "shorter"]))
def of_two_ranges_with_one_start_the_shorter_is_inside(trace: Trace) -> None:
    trace.range(100, 150, "shorter")
    trace.range(100, 200, "longer")
    trace.kernel("k", 300, 310, at=120)


@goldens.rows(PATH, ("k", ["first", "second"]))
def of_two_equal_ranges_the_later_row_is_inside(trace: Trace) -> None:
    trace.range(100, 200, "first")
    trace.range(100, 200, "second")
    trace.kernel("k", 300, 310, at=120)


@goldens.rows(RANGE, ("k", "closed"))
def a_range_that_never_ended_is_no_candidate(trace: Trace) -> None:
    trace.range(100, 400, "closed")
    trace.range(110, None, "never closed")
    trace.kernel("k", 300, 310, at=120)


@goldens.rows(RANGE, ("k", "started and ended"))
def a_start_end_range_counts_on_the_thread_that_opened_it(trace: Trace) -> None:
    trace.range(100, 200, "started and ended", event_type=START_END)
    trace.kernel("k", 300, 310, at=120)


@goldens.rows(RANGE, ("first_use", "early"), ("second_use", "late"))
def a_restarted_correlation_id_means_the_latest_call_before_the_execution(trace: Trace) -> None:
    for at, label, name in ((100, "early", "first_use"), (10_000, "late", "second_use")):
        trace.range(at, at + 50, label)
        trace.api("cudaLaunchKernel", at + 10, at + 11, correlation=77)
        trace.kernel(name, at + 100, at + 200, at=None, correlation=77)


@goldens.rows(RANGE, ("k", "launching"))
def a_later_call_that_launches_nothing_does_not_take_a_restarted_id(trace: Trace) -> None:
    trace.range(100, 150, "launching")
    trace.api("cudaLaunchKernel", 110, 111, correlation=77)
    trace.range(200, 250, "freeing")
    trace.api("cudaFree", 210, 211, correlation=77)
    trace.kernel("k", 300, 310, at=None, correlation=77)


@goldens.rows(RANGE, ("k", None))
def a_call_after_the_end_of_an_execution_did_not_launch_it(trace: Trace) -> None:
    trace.range(400, 500, "r")
    trace.api("cudaLaunchKernel", 410, 411, correlation=77)
    trace.kernel("k", 300, 310, at=None, correlation=77)


@goldens.rows(
    "SELECT api_name, is_launch FROM api_calls WHERE trace_id = $trace ORDER BY start_ns",
    ("cuModuleGetFunction", False),
    ("cudaLaunchKernel", True),
    ("cudaLaunchKernel_v7000", False),
)
def of_calls_that_share_an_id_the_outermost_with_a_launching_name_launched(trace: Trace) -> None:
    trace.api("cuModuleGetFunction", 100, 200, correlation=77)
    trace.api("cudaLaunchKernel", 110, 190, correlation=77)
    trace.api("cudaLaunchKernel_v7000", 120, 180, correlation=77)
    trace.kernel("k", 300, 310, at=None, correlation=77)


@goldens.rows(
    OPERATOR,
    ("in_library", "(library)", "", "thread"),
    ("in_nothing", "(unattributed)", "", "none"),
    ("in_step", "(step)", "", "thread"),
)
def without_an_operator_range_the_operator_says_what_there_was(trace: Trace) -> None:
    trace.domain(1, "mfupipe")
    trace.domain(2, "cuBLAS")
    trace.range(0, 50, "step|index=0", domain=1)
    trace.kernel("in_step", 300, 310, at=10)
    trace.range(60, 90, "cublasCreate_v2", domain=2)
    trace.kernel("in_library", 310, 320, at=70)
    trace.kernel("in_nothing", 320, 330, at=100)


@goldens.rows(
    OPERATOR,
    ("in_aten", "aten::add", "forward", "thread"),
    ("in_mine", "mine", "forward", "thread"),
    ("in_plain", "block", "forward", "thread"),
)
def the_innermost_annotated_range_is_the_operator_before_any_other(trace: Trace) -> None:
    trace.domain(1, "mfupipe")
    trace.range(0, 100, "block")
    trace.kernel("in_plain", 300, 310, at=5)
    trace.range(10, 40, "mine|flop=10", domain=1)
    trace.range(20, 30, "aten::mul")
    trace.kernel("in_mine", 310, 320, at=25)
    trace.range(50, 60, "aten::add")
    trace.kernel("in_aten", 320, 330, at=55)


@goldens.rows(
    OPERATOR,
    ("dgrad", "aten::t", "backward", "sequence"),
    ("fprop", "aten::addmm", "forward", "thread"),
    ("grad_sum", "torch::autograd::AccumulateGrad", "backward", "thread"),
    ("sum", "aten::t", "backward", "sequence"),
)
def backward_belongs_to_the_last_forward_range_started_with_its_seq(trace: Trace) -> None:
    trace.range(0, 100, "aten::linear, seq = 5, op_id = 1")
    trace.range(10, 50, "aten::addmm, seq = 5, op_id = 2")
    trace.kernel("fprop", 1_000, 1_010, at=20)
    trace.range(60, 70, "aten::t, seq = 5, op_id = 3")
    backward = BACKWARD_THREAD
    trace.range(200, 300, "autograd::engine::evaluate_function: AddmmBackward0, op_id = 4", thread=backward)
    trace.range(210, 250, "AddmmBackward0, seq = 5, op_id = 5", thread=backward)
    trace.range(215, 225, "aten::mm, op_id = 6", thread=backward)
    trace.kernel("dgrad", 1_010, 1_020, at=220, thread=backward)
    trace.kernel("sum", 1_020, 1_030, at=260, thread=backward)
    trace.range(
        400, 500, "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad, op_id = 7", thread=backward
    )
    trace.range(410, 490, "torch::autograd::AccumulateGrad, op_id = 8", thread=backward)
    trace.range(420, 480, "aten::detach, op_id = 9", thread=backward)
    trace.kernel("grad_sum", 1_030, 1_040, at=430, thread=backward)


@goldens.rows(OPERATOR, ("early", "aten::mm", "backward", "sequence"), ("late", "aten::bmm", "backward", "sequence"))
def a_repeated_seq_links_to_the_forward_before_it_and_not_to_a_later_one(trace: Trace) -> None:
    for at, forward, name in ((0, "aten::mm", "early"), (10_000, "aten::bmm", "late")):
        trace.range(at, at + 100, f"{forward}, seq = 1, op_id = 1")
        trace.range(at + 200, at + 300, "MmBackward0, seq = 1, op_id = 2", thread=BACKWARD_THREAD)
        trace.kernel(name, at + 1_000, at + 1_010, at=at + 250, thread=BACKWARD_THREAD)


@goldens.rows(OPERATOR, ("k", "backward pass", "forward", "phase"))
def a_call_without_a_range_goes_to_the_phase_of_another_thread(trace: Trace) -> None:
    trace.range(0, 1_000, "backward pass", thread=MAIN_THREAD)
    trace.kernel("k", 2_000, 2_010, at=500, thread=BACKWARD_THREAD)


@goldens.rows(OPERATOR, ("k", "(unattributed)", "", "none"))
def a_call_of_another_process_has_no_phase(trace: Trace) -> None:
    trace.range(0, 1_000, "backward pass", thread=MAIN_THREAD)
    trace.kernel("k", 2_000, 2_010, at=500, thread=OTHER_PROCESS_THREAD)


@goldens.rows(
    "SELECT start_ns, operator, step FROM gpu_executions WHERE trace_id = $trace ORDER BY start_ns",
    (1_000, "mm", 0),
    (11_000, "mm", 1),
)
def a_graph_node_has_the_operator_of_its_creation_and_the_step_of_its_launch(trace: Trace) -> None:
    graph_with_two_launches(trace)


@goldens.rows(
    "SELECT step, flop FROM operator_calls WHERE trace_id = $trace AND operator = 'mm' ORDER BY step",
    (0, 600.0),
    (1, 600.0),
)
def the_cost_of_a_graph_node_counts_once_per_launch(trace: Trace) -> None:
    graph_with_two_launches(trace)


def graph_with_two_launches(trace: Trace) -> None:
    trace.domain(1, "mfupipe")
    trace.range(-500, -400, "mm|flop=600|bytes=60|dtype=bf16", domain=1)
    trace.node(7, -450)
    trace.node(8, -100, original=7)
    for index in range(2):
        at = index * 10_000
        trace.range(at, at + 500, f"step|index={index}", domain=1)
        launch = trace.api("cudaGraphLaunch", at + 10, at + 20)
        trace.kernel("gemm", at + 1_000, at + 2_000, at=None, correlation=launch, graph_node=8)


test_attribution = goldens.test()
