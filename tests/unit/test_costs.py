"""FLOP and elements of operators against totals worked out by hand."""

from __future__ import annotations

import pytest

from mfupipe.costs import costed_operators, shape_cost

MATMUL = {
    # (2, 3) @ (3, 5): 2 * 2 * 5 * 3; reads 6 + 15, writes 10
    ("mm", "[[2, 3], [3, 5]]"): (60, 31),
    ("addmm", "[[5], [2, 3], [3, 5], [], []]"): (60, 36),
    ("addmm", "[[2, 5], [2, 3], [3, 5], [], []]"): (60, 41),
    ("_addmm_activation", "[[5], [2, 3], [3, 5], [], [], []]"): (60, 36),
    ("bmm", "[[7, 2, 3], [7, 3, 5]]"): (7 * 60, 7 * 31),
    ("baddbmm", "[[7, 2, 5], [7, 2, 3], [7, 3, 5], [], []]"): (7 * 60, 7 * 41),
    ("addbmm", "[[2, 5], [7, 2, 3], [7, 3, 5], [], []]"): (7 * 60, 7 * 21 + 10 + 10),
    ("mv", "[[2, 3], [3]]"): (12, 6 + 3 + 2),
    ("addmv", "[[2], [2, 3], [3], [], []]"): (12, 2 + 6 + 3 + 2),
    ("dot", "[[9], [9]]"): (18, 19),
    ("outer", "[[4], [6]]"): (0, 4 + 6 + 24),
    ("linear", "[[4, 2, 3], [5, 3], [5]]"): (4 * 60, 24 + 15 + 5 + 40),
    ("linear", "[[4, 2, 3], [5, 3], []]"): (4 * 60, 24 + 15 + 40),
    ("matmul", "[[4, 1, 2, 3], [6, 3, 5]]"): (24 * 60, 24 + 90 + 240),
    ("matmul", "[[3], [3, 5]]"): (30, 3 + 15 + 5),
    ("matmul", "[[2, 3], [3]]"): (12, 6 + 3 + 2),
}
TRAFFIC = {
    ("add", "[[4, 6], [6], []]"): 24 + 6 + 24,
    ("add_", "[[4, 6], [4, 6], []]"): 3 * 24,
    ("add_", "[[4, 6], [], []]"): 2 * 24,
    ("mul", "[[4, 1], [1, 6]]"): 4 + 6 + 24,
    ("rsub", "[[4], [], []]"): 8,
    ("relu", "[[4, 6]]"): 48,
    ("relu_", "[[4, 6]]"): 48,
    ("clamp_min", "[[4, 6], []]"): 48,
    ("gelu", "[[4, 6], []]"): 48,
    ("addcmul", "[[4], [4], [4], []]"): 16,
    ("threshold_backward", "[[4, 6], [4, 6], []]"): 72,
    ("gelu_backward", "[[4, 6], [4, 6], []]"): 72,
    ("elu_backward", "[[4], [], [], [], [], [4]]"): 12,
    ("fill_", "[[4, 6], []]"): 24,
    ("fill_", "[[], []]"): 1,
    ("zero_", "[[4, 6]]"): 24,
    ("copy_", "[[4, 6], [6], []]"): 30,
    ("copy_", "[[4, 6], [4, 6], []]"): 48,
    ("clone", "[[4, 6], []]"): 48,
    ("_to_copy", "[[4, 6], [], [], [], [], [], []]"): 48,
    ("glu", "[[4, 6], []]"): 36,
    ("_softmax", "[[4, 6], [], []]"): 48,
    ("_log_softmax_backward_data", "[[4, 6], [4, 6], [], []]"): 72,
    ("native_batch_norm", "[[2, 3, 4, 4], [3], [3], [3], [3], [], [], []]"): 192 + 12,
    ("cudnn_batch_norm_backward", "[[2, 3, 4, 4], [2, 3, 4, 4], [3], [3], [3], [3], [3], [], []]"): 3 * 96 + 9,
    ("native_group_norm", "[[2, 6, 8], [6], [6], [], [], [], [], []]"): 192 + 12,
    ("sum", "[[4, 6], [], [], []]"): 24,
    ("mean", "[[], []]"): 1,
    ("cumsum", "[[4, 6], [], []]"): 48,
    ("cat", "[[2, 3], [4, 3], []]"): 36,
    ("stack", "[[2, 3], [2, 3], []]"): 24,
    ("avg_pool2d_backward", "[[2, 3, 2, 2], [2, 3, 4, 4], [], [], [], [], [], []]"): 24 + 96,
    ("_adaptive_avg_pool2d", "[[2, 3, 4, 4], [], [2, 3, 2, 2]]"): 96 + 24,
    ("_foreach_zero_", "[[4], [6]]"): 10,
    ("_foreach_sqrt", "[[4], [6]]"): 20,
    # halves differ: one list and a number
    ("_foreach_mul_", "[[4], [6], []]"): 20,
    # self 10, other 10: read both, write self
    ("_foreach_copy_", "[[4], [6], [4], [6], []]"): 20,
    ("_foreach_addcdiv_", "[[4], [6], [4], [6], [4], [6], []]"): 40,
    # two parameters of 4 and 6: parameters, gradients and two moments read, all but the gradients written
    ("_fused_adamw_", "[" + "[4], [6], " * 4 + "[], [], []" + ", []" * 9 + "]"): 70,
    ("_fused_adam_", "[" + "[4], [6], " * 5 + "[], []" + ", []" * 9 + "]"): 90,
    ("_fused_sgd_", "[" + "[4], [6], " * 3 + "[]" + ", []" * 8 + "]"): 50,
    ("_fused_sgd_", "[" + "[4], [6], " * 2 + "[], []" + ", []" * 8 + "]"): 30,
}
WITH_OTHER_WIDTHS = {
    # mean and rstd of 2 * 4 rows in float32
    ("native_layer_norm", "[[2, 4, 8], [], [8], [8], []]"): (128 + 16, 2 * 8 * 4),
    ("native_layer_norm_backward", "[[2, 4, 8], [2, 4, 8], [], [2, 4, 1], [2, 4, 1], [8], [8], []]"): (
        3 * 64 + 8 + 16,
        64,
    ),
    ("_fused_rms_norm", "[[2, 4, 8], [], [8], []]"): (128 + 8, 32),
    ("_fused_rms_norm_backward", "[[2, 4, 8], [2, 4, 8], [], [2, 4, 1], [8], []]"): (192 + 16, 32),
    ("eq", "[[4, 6], [6]]"): (30, 24),
    ("isnan", "[[4, 6]]"): (24, 24),
    ("where", "[[4, 6], [4, 6], []]"): (48, 24),
    ("masked_fill_", "[[4, 6], [6], []]"): (48, 6),
    ("native_dropout", "[[4, 6], [], []]"): (48, 24),
    ("native_dropout_backward", "[[4, 6], [4, 6], []]"): (48, 24),
    # 6 indices into 10 rows of 8: six rows read, six written
    ("embedding", "[[10, 8], [2, 3], [], [], []]"): (96, 48),
    # 60 indices into 10 rows: at most ten rows are read
    ("embedding", "[[10, 8], [60], [], [], []]"): (80 + 480, 480),
    ("embedding_dense_backward", "[[2, 3, 8], [2, 3], [], [], []]"): (48 + 8, 48),
    ("index_select", "[[10, 8], [], [3]]"): (48, 24),
    ("gather", "[[10, 8], [], [10, 2], []]"): (40, 160),
    ("scatter_add_", "[[10, 8], [], [10, 2], [10, 2]]"): (60, 160),
    ("index_add_", "[[10, 8], [], [3], [3, 8], []]"): (72, 24),
    ("nll_loss_forward", "[[16, 100], [16], [], [], []]"): (16, 128),
    ("nll_loss_backward", "[[], [16, 100], [16], [], [], [], []]"): (16, 128),
    ("sort", "[[4, 6], [], []]"): (48, 192),
    ("max_pool2d_with_indices", "[[1, 1, 4, 4], [], [], [], [], [], [1, 1, 2, 2]]"): (20, 32),
    ("max_pool2d_with_indices_backward", "[[1, 1, 2, 2], [1, 1, 4, 4], [], [], [], [], [], [1, 1, 2, 2]]"): (20, 32),
}


@pytest.mark.parametrize(("call", "expected"), MATMUL.items(), ids=str)
def test_a_matrix_product_counts_two_flop_per_multiplication(call: tuple[str, str], expected: tuple[int, int]) -> None:
    cost = shape_cost(f"aten::{call[0]}", call[1])
    assert (cost.flop, cost.elements, cost.reason) == (*expected, None)


@pytest.mark.parametrize(("call", "expected"), TRAFFIC.items(), ids=str)
def test_traffic_counts_every_tensor_once(call: tuple[str, str], expected: int) -> None:
    cost = shape_cost(f"aten::{call[0]}", call[1])
    assert (cost.flop, cost.elements, cost.index_bytes, cost.reason) == (0, expected, 0, None)


@pytest.mark.parametrize(("call", "expected"), WITH_OTHER_WIDTHS.items(), ids=str)
def test_masks_indices_and_statistics_have_their_own_width(call: tuple[str, str], expected: tuple[int, int]) -> None:
    cost = shape_cost(f"aten::{call[0]}", call[1])
    assert (cost.flop, cost.elements, cost.index_bytes, cost.reason) == (0, *expected, None)


@pytest.mark.parametrize("name", ["view", "t", "transpose", "expand", "as_strided", "empty", "reshape", "detach"])
def test_a_view_costs_nothing(name: str) -> None:
    cost = shape_cost(f"aten::{name}", "[[4, 6], []]")
    assert (cost.flop, cost.elements, cost.note) == (0, 0, "no kernel of its own")


UNKNOWN = {
    ("cross_entropy_loss", "[[4, 6], [4], [], [], [], []]"): "the operators that it calls carry the cost",
    ("arange", "[[], [], [], []]"): "the size of the result is a number",
    ("cudnn_convolution", "[[2, 3, 8, 8], [4, 3, 3, 3], [], [], [], [], [], [], []]"): "stride, padding and dilation",
    ("index", "[[4, 6], [2]]"): "may be a mask",
    ("nonzero", "[[4]]"): "depends on the data",
    ("max_pool2d_with_indices", "[[1, 1, 4, 4], [], [], [], [], []]"): "window, stride",
    ("_foreach_add_", "[[], []]"): "the list of tensors is not in the sizes",
    ("_fused_adam_", "[[4], [6], [4]]"): "3 tensors do not divide into equal lists",
    ("mm", "[[2, 3], [4, 5]]"): "inner lengths 3 and 4 differ",
    ("mm", "[[2, 3]]"): "argument 1 has size []",
    ("mm", ""): "not a list of lists",
    ("add", "[[4], [5], []]"): "do not broadcast",
    ("mm", f"[[{10**17}, {10**17}], [{10**17}, {10**17}]]"): "exceeds 64 bits",
    ("no_such_operator", "[[1]]"): "no cost formula for aten::no_such_operator",
}


@pytest.mark.parametrize(("call", "reason"), UNKNOWN.items(), ids=str)
def test_what_does_not_follow_is_unknown_with_the_reason(call: tuple[str, str], reason: str) -> None:
    cost = shape_cost(f"aten::{call[0]}", call[1])
    assert cost.elements is None
    assert cost.reason is not None
    assert reason in cost.reason


@pytest.mark.parametrize("name", ["AddmmBackward0", "mm", "torch::autograd::AccumulateGrad", "step0", ""])
def test_only_aten_operators_have_formulas(name: str) -> None:
    assert shape_cost(name, "[[2, 3], [3, 5]]").reason == f"no cost formula for {name}"


def test_eight_bit_products_have_flop_and_no_bytes() -> None:
    cost = shape_cost("aten::_scaled_mm", "[[2, 3], [3, 5], [], [], [], [], [], []]")
    assert (cost.flop, cost.elements) == (60, None)
    assert cost.reason is not None


def test_a_convolution_with_its_output_among_the_sizes_is_counted() -> None:
    # 4 x 6 x 6 outputs of 3 x 3 x 3 taps, two images
    cost = shape_cost("aten::_slow_conv2d_forward", "[[2, 3, 8, 8], [4, 3, 3, 3], [], [4], [], [], [2, 4, 6, 6]]")
    assert (cost.flop, cost.elements) == (2 * 2 * 4 * 36 * 27, 384 + 108 + 4 + 288)


def test_grouped_convolution_backward_counts_only_the_channels_of_a_group() -> None:
    # 32 -> 64 channels in 8 groups, 3 x 3, 16 x 16 -> 16 x 16: each gradient 2 * 64 * 256 * 4 * 9
    sizes = "[[1, 64, 16, 16], [1, 32, 16, 16], [64, 4, 3, 3], [], [], [], [], [], [], [], []]"
    cost = shape_cost("aten::convolution_backward", sizes)
    assert (cost.flop, cost.flop_min) == (2 * 2 * 64 * 256 * 36, 2 * 64 * 256 * 36)
    assert cost.elements == 64 * 256 + 2 * 32 * 256 + 2 * 64 * 36


def test_foreach_add_of_equal_halves_takes_the_call_with_less_traffic() -> None:
    cost = shape_cost("aten::_foreach_add_", "[[4], [4], []]")
    assert cost.elements == 12  # a list added to a list; a number added to a list would be 16
    assert cost.note is not None
    assert "lower bound" in cost.note


def test_every_operator_survives_no_sizes_and_a_scalar() -> None:
    for operator in costed_operators():
        for sizes in ("[]", "[[]]", "[[], [], [], [], [], [], [], []]"):
            cost = shape_cost(operator, sizes)
            assert cost.reason or (cost.flop is not None and cost.elements is not None)
