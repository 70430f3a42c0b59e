"""FLOP and bytes of one call of a layer, forward and backward, from its operands: what annotated workloads declare.

Conventions: FMA = 2 FLOP; only matrix products, convolutions and attention have model FLOP; each gradient of a product
costs the forward FLOP; bytes are of every distinct tensor that crosses the border once, in its own element size.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mfupipe.costs.shape import FLOAT32_BYTES, INT64_BYTES, Shape, broadcast, numel, require


@dataclass(frozen=True)
class Operand:
    """A tensor at the border of an operator. width: bytes per element."""

    shape: Shape
    width: int
    needs_gradient: bool = False

    @property
    def elements(self) -> int:
        """Number of elements."""
        return numel(self.shape)

    @property
    def bytes(self) -> int:
        """Bytes of all elements."""
        return numel(self.shape) * self.width


@dataclass(frozen=True)
class Cost:
    """FLOP and bytes of one execution. extra_flop: recomputation, beyond what the mathematics needs."""

    flop: int = 0
    bytes: int = 0
    extra_flop: int = 0


@dataclass(frozen=True)
class CallCost:
    """One call of a layer: its forward pass, and its backward pass when a gradient is needed."""

    forward: Cost
    backward: Cost


def _size(operands: Iterable[Operand | None]) -> int:
    return sum(operand.bytes for operand in operands if operand is not None)


def _gradients(operands: Iterable[Operand | None]) -> int:
    return _size(operand for operand in operands if operand is not None and operand.needs_gradient)


def product(flop: int, factors: tuple[Operand, Operand], addend: Operand | None, result: Operand) -> CallCost:
    """A product that is linear in both factors: the gradient of each reads the result's gradient and the other one."""
    left, right = factors
    read = _size((right if left.needs_gradient else None, left if right.needs_gradient else None))
    backward = result.bytes + read + _gradients((left, right, addend))
    gradients = int(left.needs_gradient) + int(right.needs_gradient)
    return CallCost(Cost(flop, _size((left, right, addend, result))), Cost(gradients * flop, backward))


def linear(data: Operand, weight: Operand, bias: Operand | None, result_width: int) -> CallCost:
    """(..., K) @ (N, K)^T + (N): 2 M N K."""
    require(data.shape[-1] == weight.shape[-1], "inner lengths differ")
    result = Operand(data.shape[:-1] + weight.shape[:-1], result_width)
    return product(2 * result.elements * data.shape[-1], (data, weight), bias, result)


def matmul(left: Operand, right: Operand, addend: Operand | None, result_width: int) -> CallCost:
    """(..., M, K) @ (..., K, N), leading dimensions broadcast, an addend in the epilogue when there is one."""
    require(left.shape[-1] == right.shape[-2], "inner lengths differ")
    batch = broadcast((left.shape[:-2], right.shape[:-2]))
    result = Operand((*batch, left.shape[-2], right.shape[-1]), result_width)
    return product(2 * result.elements * left.shape[-1], (left, right), addend, result)


@dataclass(frozen=True)
class Window:
    """Kernel, stride, padding and dilation of a convolution or pooling, one value per spatial dimension."""

    kernel: Shape
    stride: Shape
    padding: Shape
    dilation: Shape

    def result(self, spatial: Shape) -> Shape:
        """Spatial size of the result, rounded down."""
        columns = zip(spatial, self.kernel, self.stride, self.padding, self.dilation, strict=True)
        return tuple((n + 2 * pad - step * (k - 1) - 1) // stride + 1 for n, k, stride, pad, step in columns)


def convolution(data: Operand, weight: Operand, bias: Operand | None, window: Window, result_width: int) -> CallCost:
    """(B, C, ...) by (O, C / groups, ...): 2 * results * (C / groups) * taps; padding taps count (convention)."""
    result = Operand((data.shape[0], weight.shape[0], *window.result(data.shape[2:])), result_width)
    return product(2 * result.elements * numel(weight.shape[1:]), (data, weight), bias, result)


def transposed_convolution(data: Operand, weight: Operand, bias: Operand | None, result: Operand) -> CallCost:
    """(B, C, ...) by (C, O / groups, ...): 2 * inputs * (O / groups) * taps."""
    return product(2 * data.elements * numel(weight.shape[1:]), (data, weight), bias, result)


@dataclass(frozen=True)
class AttentionMask:
    """What the scores are masked with: causal (top left, exact), a tensor that is read, or neither."""

    causal: bool = False
    tensor: Operand | None = None


def attention(query: Operand, key: Operand, value: Operand, mask: AttentionMask) -> CallCost:
    """(B, H, S, D) with as many or fewer key heads: 2 FLOP per pair and width, for the scores and for the values.

    Causal: exactly the pairs with key <= query, S (S + 1) / 2 of a square. Backward: 2 x forward, and 0.5 x again for
    the scores that fused kernels compute anew (extra_flop). Row statistics are float32.
    """
    *batch, queries, width = query.shape
    keys = key.shape[-2]
    pairs = causal_pairs(queries, keys) if mask.causal else queries * keys
    flop = 2 * numel(tuple(batch)) * pairs * (width + value.shape[-1])
    result = Operand((*batch, queries, value.shape[-1]), query.width)
    inputs, needed = (query, key, value, mask.tensor), _gradients((query, key, value, mask.tensor))
    statistics = numel(tuple(batch)) * queries * FLOAT32_BYTES if needed else 0
    forward = Cost(flop, _size(inputs) + result.bytes + statistics)
    return CallCost(forward, Cost(2 * flop, _size(inputs) + 2 * result.bytes + statistics + needed, flop // 2))


@dataclass(frozen=True)
class AttentionLayer:
    """Projections of query, key and value (E x E each, one tensor), attention over heads, projection of the result."""

    weight: Operand
    bias: Operand | None
    out_weight: Operand
    out_bias: Operand | None
    heads: int


def multi_head_attention(
    inputs: tuple[Operand, Operand, Operand], distinct: tuple[Operand, ...], layer: AttentionLayer, mask: AttentionMask
) -> CallCost:
    """(L, N, E) or (L, E) each. FLOP are those of the parts; bytes cross the border of the whole, and what lies between
    counts only where backward needs it (projected query, key, value, and the mixed values: written, then read).
    """
    query = inputs[0]
    width, needs = layer.weight.shape[-1], layer.weight.needs_gradient
    square = Operand((width, width), layer.weight.width, needs)
    lengths = [operand.shape[0] for operand in inputs]
    batch = numel(query.shape[1:-1]) * layer.heads
    parts = [
        Operand((batch, length, width // layer.heads), operand.width, needs or operand.needs_gradient)
        for length, operand in zip(lengths, inputs, strict=True)
    ]
    mixed = Operand(query.shape, query.width, any(part.needs_gradient for part in parts))
    costs = [linear(operand, square, None, operand.width) for operand in inputs]
    costs += [attention(parts[0], parts[1], parts[2], mask), linear(mixed, layer.out_weight, None, mixed.width)]
    border = (*distinct, layer.weight, layer.bias, layer.out_weight, layer.out_bias, mask.tensor)
    kept = _size((*parts, mixed)) if mixed.needs_gradient else 0
    backward = Cost(
        sum(cost.backward.flop for cost in costs),
        mixed.bytes + _size(border) + kept + _gradients(border),
        sum(cost.backward.extra_flop for cost in costs),
    )
    return CallCost(Cost(sum(cost.forward.flop for cost in costs), _size(border) + mixed.bytes + kept), backward)


def causal_pairs(queries: int, keys: int) -> int:
    """Pairs with key <= query, the first query seeing the first key."""
    side = min(queries, keys)
    return side * (side + 1) // 2 + max(0, queries - keys) * keys


def elementwise(inputs: tuple[Operand, ...], result: Operand, saved: tuple[Operand, ...] = ()) -> CallCost:
    """Reads the inputs, writes the result; backward reads its gradient and what was saved, writes the gradients."""
    return CallCost(
        Cost(bytes=_size(inputs) + result.bytes),
        Cost(bytes=result.bytes + _size(saved) + _gradients(inputs)),
    )


def dropout(data: Operand) -> CallCost:
    """A mask of one byte per element is written, and read by backward."""
    return CallCost(
        Cost(bytes=2 * data.bytes + data.elements),
        Cost(bytes=data.bytes + data.elements + _gradients((data,))),
    )


def softmax(data: Operand, result: Operand) -> CallCost:
    """Backward reads the gradient and the result."""
    return elementwise((data,), result, (result,))


def normalization(data: Operand, parameters: tuple[Operand, ...], result: Operand, statistics: int) -> CallCost:
    """statistics: float32 values kept for backward (mean and deviation of every row or channel)."""
    kept, weight = statistics * FLOAT32_BYTES, _size(parameters[:1])
    backward = result.bytes + data.bytes + kept + weight + _gradients((data, *parameters))
    return CallCost(Cost(bytes=data.bytes + _size(parameters) + result.bytes + kept), Cost(bytes=backward))


def embedding(weight: Operand, indices: Operand) -> CallCost:
    """Every index is taken to name another row, up to all. Backward writes the dense gradient."""
    width = weight.shape[-1]
    result = indices.elements * width * weight.width
    rows = min(weight.shape[0], indices.elements) * width * weight.width
    backward = Cost(bytes=result + indices.bytes + _gradients((weight,)))
    return CallCost(Cost(bytes=rows + indices.bytes + result), backward)


def cross_entropy(scores: Operand, target: Operand) -> CallCost:
    """Fused bound: the scores are read once; backward reads them again and writes their gradient."""
    return CallCost(
        Cost(bytes=scores.bytes + target.bytes),
        Cost(bytes=scores.bytes + target.bytes + _gradients((scores,))),
    )


def average_pooling(data: Operand, result: Operand) -> CallCost:
    """Windows of the input; backward needs nothing saved."""
    return elementwise((data,), result)


def maximum_pooling(data: Operand, result: Operand) -> CallCost:
    """An int64 position per result is kept when a gradient is needed."""
    positions = result.elements * INT64_BYTES if data.needs_gradient else 0
    return CallCost(
        Cost(bytes=data.bytes + result.bytes + positions),
        Cost(bytes=result.bytes + positions + _gradients((data,))),
    )


def optimizer_step(parameters: Iterable[Operand], states: Iterable[Operand]) -> Cost:
    """Reads parameters, their gradients and states; writes parameters and states."""
    return Cost(bytes=3 * _size(parameters) + 2 * _size(states))
