"""Fused attention, and the whole training step of one transformer layer, against totals worked out by hand."""

from __future__ import annotations

import pytest

from mfupipe.costs import shape_cost

# batch 2, 8 query heads over 2 key heads, 16 queries, 32 keys, width 4
PRODUCT = 2 * 8 * 16 * 32  # pairs of query and key, over heads
FORWARD_FLOP = 4 * PRODUCT * 4
QUERY, KEY = 2 * 8 * 16 * 4, 2 * 2 * 32 * 4
HEADS_FIRST = "[2, 8, 16, 4], [2, 2, 32, 4], [2, 2, 32, 4]"
HEADS_THIRD = "[2, 16, 8, 4], [2, 32, 2, 4], [2, 32, 2, 4]"
FORWARD = {
    "_scaled_dot_product_cudnn_attention": f"[{HEADS_FIRST}, [], [], [], [], [], []]",
    "_cudnn_attention_forward": f"[{HEADS_FIRST}, [], [], [], [], [], [], [], [], [], []]",
    "_scaled_dot_product_efficient_attention": f"[{HEADS_FIRST}, [], [], [], [], []]",
    "_scaled_dot_product_flash_attention": f"[{HEADS_FIRST}, [], [], [], []]",
    "_flash_attention_forward": f"[{HEADS_THIRD}, [], [], [], [], [], [], [], [], [], [], [], []]",
    "_efficient_attention_forward": f"[{HEADS_THIRD}, [], [], [], [], [], [], [], [], [], [], []]",
}
BACKWARD = {
    "_scaled_dot_product_cudnn_attention_backward": "[{g}, {qkv}, {g}, [2, 8, 16, 1]" + ", []" * 10 + "]",
    "_cudnn_attention_backward": "[{g}, {qkv}, {g}, [2, 8, 16, 1]" + ", []" * 10 + "]",
    "_scaled_dot_product_flash_attention_backward": "[{g}, {qkv}, {g}, [2, 8, 16]" + ", []" * 9 + "]",
    "_scaled_dot_product_efficient_attention_backward": "[{g}, {qkv}, [], {g}, [2, 8, 16]" + ", []" * 6 + "]",
    "_flash_attention_backward": "[{g}, {qkv}, {g}, [2, 8, 16]" + ", []" * 9 + "]",
    "_efficient_attention_backward": "[{g}, {qkv}, [], {g}, [], [], [], [], [2, 8, 16]" + ", []" * 8 + "]",
}


@pytest.mark.parametrize(("name", "sizes"), FORWARD.items())
def test_forward_attention_is_two_products_over_all_pairs(name: str, sizes: str) -> None:
    cost = shape_cost(f"aten::{name}", sizes)
    assert (cost.flop, cost.extra_flop, cost.elements) == (FORWARD_FLOP, 0, 2 * QUERY + 2 * KEY)
    assert cost.causal_unknown
    assert cost.flop_min == 4 * 2 * 8 * (16 * 16) * 4 // 2


@pytest.mark.parametrize(("name", "sizes"), BACKWARD.items())
def test_backward_attention_is_twice_forward_and_recomputes_half(name: str, sizes: str) -> None:
    rows = name in ("_flash_attention_backward", "_efficient_attention_backward")
    gradient, inputs = ("[2, 16, 8, 4]", HEADS_THIRD) if rows else ("[2, 8, 16, 4]", HEADS_FIRST)
    cost = shape_cost(f"aten::{name}", sizes.format(g=gradient, qkv=inputs))
    assert (cost.flop, cost.extra_flop) == (2 * FORWARD_FLOP, FORWARD_FLOP // 2)
    # reads gradient, query, key, value, result; writes three gradients
    assert (cost.elements, cost.index_bytes) == (2 * QUERY + 2 * (QUERY + 2 * KEY), 4 * 2 * 8 * 16)


def test_decoding_one_token_is_never_halved() -> None:
    cost = shape_cost(
        "aten::_scaled_dot_product_flash_attention", "[[4, 8, 1, 64], [4, 8, 512, 64], [4, 8, 512, 64], [], [], [], []]"
    )
    assert (cost.flop, cost.flop_min, cost.causal_unknown) == (4 * 4 * 8 * 512 * 64, None, False)


def test_values_of_another_width_are_counted_with_it() -> None:
    cost = shape_cost("aten::_cudnn_attention_forward", "[[1, 2, 3, 5], [1, 2, 7, 5], [1, 2, 7, 11], [], []]")
    assert (cost.flop, cost.elements) == (2 * 2 * 3 * 7 * (5 + 11), 30 + 70 + 154 + 66)


@pytest.mark.parametrize("name", ["_flash_attention_forward", "_flash_attention_backward"])
def test_packed_sequences_are_unknown(name: str) -> None:
    cost = shape_cost(f"aten::{name}", "[[99, 8, 64], [99, 8, 64], [99, 8, 64], [99, 8, 64], [99, 8, 64], [9], [9]]")
    assert (cost.flop, cost.elements) == (None, None)
    assert cost.reason is not None
    assert "packed" in cost.reason


# One nn.TransformerEncoderLayer: batch 8, sequence 2048, width 4096, 32 heads, feed-forward 16384. Its products are
# 16384 rows by (4096 x 12288), (4096 x 4096), (4096 x 16384), (16384 x 4096); each is run again twice by backward.
ROWS, WIDTH, INNER = 16384, 4096, 16384
LAYER_FORWARD = [
    ("mm", "[[16384, 4096], [4096, 12288]]"),
    ("_cudnn_attention_forward", "[[8, 32, 2048, 128], [8, 32, 2048, 128], [8, 32, 2048, 128], [], []]"),
    ("addmm", "[[4096], [16384, 4096], [4096, 4096], [], []]"),
    ("addmm", "[[16384], [16384, 4096], [4096, 16384], [], []]"),
    ("addmm", "[[4096], [16384, 16384], [16384, 4096], [], []]"),
]
_GRADIENT = "[8, 32, 2048, 128]"
LAYER_BACKWARD = [
    ("mm", "[[16384, 4096], [4096, 16384]]"),
    ("mm", "[[4096, 16384], [16384, 16384]]"),
    ("mm", "[[16384, 16384], [16384, 4096]]"),
    ("mm", "[[16384, 16384], [16384, 4096]]"),
    ("mm", "[[16384, 4096], [4096, 4096]]"),
    ("mm", "[[4096, 16384], [16384, 4096]]"),
    ("_cudnn_attention_backward", f"[{', '.join([_GRADIENT] * 5)}, [8, 32, 2048, 1], [], [], []]"),
    ("mm", "[[16384, 12288], [12288, 4096]]"),
    ("mm", "[[12288, 16384], [16384, 4096]]"),
]


def total(calls: list[tuple[str, str]]) -> int:
    costs = [shape_cost(f"aten::{name}", sizes).flop for name, sizes in calls]
    assert None not in costs
    return sum(cost for cost in costs if cost is not None)


def test_the_layer_of_the_h200_capture_has_its_hand_derived_flop() -> None:
    products = 2 * ROWS * WIDTH * (3 * WIDTH + WIDTH + 2 * INNER)  # 6.597e12
    attention = 4 * 8 * 32 * 2048 * 2048 * 128  # 5.498e11
    assert (products, attention) == (6_597_069_766_656, 549_755_813_888)
    assert total(LAYER_FORWARD) == products + attention
    assert total(LAYER_BACKWARD) == 2 * (products + attention)
