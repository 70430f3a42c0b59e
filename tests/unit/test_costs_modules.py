"""Costs of layers, forward and backward, against totals worked out by hand. Two bytes an element unless said."""

from __future__ import annotations

import pytest

from mfupipe.costs import modules
from mfupipe.costs.modules import AttentionMask, Cost, Operand, Window
from mfupipe.costs.shape import ShapeMismatch


def trained(*shape: int) -> Operand:
    return Operand(shape, 2, needs_gradient=True)


def fixed(*shape: int) -> Operand:
    return Operand(shape, 2)


def test_linear_backward_is_two_products() -> None:
    cost = modules.linear(trained(4, 2, 3), trained(5, 3), trained(5), 2)
    assert cost.forward == Cost(flop=2 * 8 * 5 * 3, bytes=2 * (24 + 15 + 5 + 40))
    assert cost.backward == Cost(flop=2 * 240, bytes=2 * (40 + 24 + 15 + 24 + 15 + 5))


def test_linear_on_data_computes_only_the_gradient_of_its_weight() -> None:
    cost = modules.linear(fixed(8, 3), trained(5, 3), None, 2)
    assert cost.backward == Cost(flop=240, bytes=2 * (40 + 24 + 15))


def test_matmul_broadcasts_and_adds_in_its_epilogue() -> None:
    cost = modules.matmul(fixed(7, 2, 3), fixed(3, 5), fixed(2, 5), 2)
    assert cost.forward == Cost(flop=7 * 60, bytes=2 * (42 + 15 + 10 + 70))


def test_matmul_of_lengths_that_differ_is_refused() -> None:
    with pytest.raises(ShapeMismatch):
        modules.matmul(fixed(2, 3), fixed(4, 5), None, 2)


@pytest.mark.parametrize(
    ("stride", "padding", "dilation", "side"), [(1, 1, 1, 8), (2, 1, 1, 4), (1, 0, 1, 6), (1, 0, 3, 2), (3, 1, 2, 2)]
)
def test_a_convolution_counts_its_outputs(stride: int, padding: int, dilation: int, side: int) -> None:
    window = Window((3, 3), (stride,) * 2, (padding,) * 2, (dilation,) * 2)
    cost = modules.convolution(trained(2, 4, 8, 8), trained(6, 2, 3, 3), None, window, 2)
    results = 2 * 6 * side * side
    assert cost.forward == Cost(flop=2 * results * 18, bytes=2 * (512 + 108 + results))
    assert cost.backward == Cost(flop=4 * results * 18, bytes=2 * (results + 2 * 512 + 2 * 108))


def test_a_transposed_convolution_counts_its_inputs() -> None:
    cost = modules.transposed_convolution(fixed(2, 4, 8, 8), fixed(4, 3, 2, 2), None, fixed(2, 3, 16, 16))
    assert cost.forward.flop == 2 * 512 * 12


def test_attention_is_two_products_and_backward_twice_as_many() -> None:
    cost = modules.attention(trained(2, 8, 6, 4), trained(2, 2, 6, 4), trained(2, 2, 6, 4), AttentionMask())
    flop, query, key, rows = 4 * 2 * 8 * 36 * 4, 2 * 8 * 6 * 4, 2 * 2 * 6 * 4, 2 * 8 * 6
    assert cost.forward == Cost(flop, 2 * (2 * query + 2 * key) + 4 * rows)
    assert cost.backward == Cost(2 * flop, 2 * (3 * query + 2 * key + query + 2 * key) + 4 * rows, flop // 2)


@pytest.mark.parametrize(("queries", "keys", "pairs"), [(1, 1, 1), (4, 4, 10), (2, 5, 3), (5, 2, 9), (1, 9, 1)])
def test_causal_pairs_are_counted_one_by_one(queries: int, keys: int, pairs: int) -> None:
    assert sum(1 for q in range(queries) for k in range(keys) if k <= q) == pairs
    assert modules.causal_pairs(queries, keys) == pairs


def test_decoding_reads_the_whole_cache() -> None:
    cost = modules.attention(fixed(4, 8, 1, 16), fixed(4, 2, 512, 16), fixed(4, 2, 512, 16), AttentionMask())
    assert cost.forward == Cost(4 * 4 * 8 * 512 * 16, 2 * (2 * 512 + 2 * 4 * 2 * 512 * 16))


def test_an_elementwise_backward_reads_what_was_saved() -> None:
    cost = modules.elementwise((trained(4, 6),), fixed(4, 6), (trained(4, 6),))
    assert (cost.forward, cost.backward) == (Cost(bytes=2 * 48), Cost(bytes=2 * 72))


def test_a_norm_keeps_float32_statistics() -> None:
    cost = modules.normalization(trained(4, 6), (trained(6), trained(6)), fixed(4, 6), 2 * 4)
    assert cost.forward == Cost(bytes=2 * (48 + 12) + 32)
    assert cost.backward == Cost(bytes=2 * (24 + 24 + 6 + 24 + 12) + 32)


def test_embedding_writes_a_dense_gradient() -> None:
    cost = modules.embedding(trained(10, 8), Operand((2, 3), 8))
    assert (cost.forward, cost.backward) == (Cost(bytes=2 * 96 + 48), Cost(bytes=2 * (48 + 80) + 48))


def test_cross_entropy_reads_its_scores_twice_in_training() -> None:
    cost = modules.cross_entropy(trained(4, 6), Operand((4,), 8))
    assert (cost.forward, cost.backward) == (Cost(bytes=48 + 32), Cost(bytes=96 + 32))


def test_maximum_pooling_keeps_positions() -> None:
    cost = modules.maximum_pooling(trained(1, 1, 4, 4), fixed(1, 1, 2, 2))
    assert (cost.forward, cost.backward) == (Cost(bytes=32 + 8 + 32), Cost(bytes=8 + 32 + 32))


def test_dropout_has_a_mask_of_bytes() -> None:
    cost = modules.dropout(trained(4, 6))
    assert (cost.forward, cost.backward) == (Cost(bytes=2 * 48 + 24), Cost(bytes=2 * 48 + 24))


def test_an_optimizer_reads_and_writes_its_states() -> None:
    assert modules.optimizer_step([fixed(10)], [Operand((10,), 4), Operand((10,), 4)]) == Cost(bytes=60 + 160)
