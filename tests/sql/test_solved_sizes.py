"""Output sizes of convolutions, found in the sizes of the operators that read the output."""

from __future__ import annotations

from tests.sql.golden import Goldens
from tests.trace_builder import Trace

goldens = Goldens()
COST = "SELECT flop, cost_reason FROM operator_calls WHERE trace_id = $trace"
STRIDE_UNKNOWN = "stride, padding and dilation are not in the sizes, so the output size does not follow"
ARGUMENTS = "sizes = [[1, 2, 8, 8], [4, 2, 3, 3], []], input_op_ids = [(0,-1), (0,-1), (0,-1)]"
FLOP = 2 * (1 * 4 * 4 * 4) * (2 * 9)


def convolve(trace: Trace, op_id: int) -> None:
    """conv2d (op_id) around cudnn_convolution (op_id + 1), which launches one bf16 kernel."""
    trace.range(100, 200, f"aten::conv2d, seq = 7, op_id = {op_id}, {ARGUMENTS}")
    trace.range(110, 190, f"aten::cudnn_convolution, op_id = {op_id + 1}, {ARGUMENTS}")
    trace.kernel("sm90_xmma_fprop_bf16bf16", 300, 400, at=120)


@goldens.rows(COST, (float(FLOP), None))
def the_reader_of_the_output_names_its_size(trace: Trace) -> None:
    convolve(trace, 10)
    trace.range(210, 220, "aten::relu, op_id = 12, sizes = [[1, 4, 4, 4]], input_op_ids = [(11,0)]")


@goldens.rows(COST, (float(FLOP), None))
def the_output_of_the_enclosing_operator_is_the_same_tensor(trace: Trace) -> None:
    convolve(trace, 20)
    trace.range(210, 220, "aten::relu, op_id = 22, sizes = [[1, 4, 4, 4]], input_op_ids = [(20,0)]")


@goldens.rows(COST, (None, STRIDE_UNKNOWN))
def without_a_reader_the_size_stays_unknown(trace: Trace) -> None:
    convolve(trace, 30)
    trace.range(210, 220, "aten::relu, op_id = 32, sizes = [[1, 4, 4, 4]], input_op_ids = [(39,0)]")


@goldens.rows(COST, (None, STRIDE_UNKNOWN))
def a_size_that_cannot_be_the_output_is_not_taken(trace: Trace) -> None:
    """A batch of 5 does not come out of a batch of 1."""
    convolve(trace, 40)
    trace.range(210, 220, "aten::relu, op_id = 42, sizes = [[5, 4, 4, 4]], input_op_ids = [(41,0)]")


@goldens.rows(COST, (float(FLOP), None))
def a_reader_before_the_call_had_the_number_of_an_earlier_one(trace: Trace) -> None:
    trace.range(10, 20, "aten::relu, op_id = 52, sizes = [[1, 4, 2, 2]], input_op_ids = [(51,0)]")
    convolve(trace, 50)
    trace.range(210, 220, "aten::relu, op_id = 52, sizes = [[1, 4, 4, 4]], input_op_ids = [(51,0)]")


@goldens.rows(COST, (None, STRIDE_UNKNOWN))
def one_of_two_traces_with_the_same_message_names_it(trace: Trace) -> None:
    convolve(trace, 90)
    trace.range(210, 220, "aten::relu, op_id = 92, sizes = [[1, 4, 4, 4]], input_op_ids = [(91,0)]")


@goldens.rows(COST, (None, STRIDE_UNKNOWN))
def the_other_of_two_traces_does_not(trace: Trace) -> None:
    convolve(trace, 90)


test_solved_sizes = goldens.test()
