"""Fused attention: FLOP = 2 B H Sq Sk (Dqk + Dv), counted in full; whether it is causal is not in the sizes.

Backward is 2.0 x forward; the scores that fused backward kernels compute again are extra_flop, 0.5 x forward.
"""

from __future__ import annotations

from dataclasses import dataclass

from mfupipe.costs.shape import (
    FLOAT32_BYTES,
    Formula,
    Shape,
    ShapeCost,
    Shapes,
    argument,
    numel,
    require,
    tensor,
    total,
    unknown,
)

_PACKED = "packed sequences: their lengths are values of cum_seq, not sizes"
_PACKED_RANK = 3
_CAUSAL = "is_causal is not in the sizes: counted in full (flop_min: causal)"


@dataclass(frozen=True)
class _Problem:
    """One attention: batch, heads of the query, lengths and widths."""

    batch: int
    heads: int
    queries: int
    keys: int
    key_width: int
    value_width: int

    def flop(self, pairs: int) -> int:
        """Two products over `pairs` pairs of query and key."""
        return 2 * self.batch * self.heads * pairs * (self.key_width + self.value_width)

    def full(self) -> int:
        return self.flop(self.queries * self.keys)

    def causal(self) -> int | None:
        """Half of the square that the diagonal crosses; None for a single query or key, which no mask halves."""
        side = min(self.queries, self.keys)
        return self.flop(side * side) // 2 if side > 1 else None


def _heads_first(shapes: Shapes, first: int) -> _Problem:
    """Query, key and value as (B, H, S, D)."""
    query, key, value = (tensor(shapes, first + index, 4) for index in range(3))
    return _problem(query, key, value)


def _heads_third(shapes: Shapes, first: int) -> _Problem:
    """Query, key and value as (B, S, H, D)."""
    query, key, value = (_swap(tensor(shapes, first + index, 4)) for index in range(3))
    return _problem(query, key, value)


def _swap(shape: Shape) -> Shape:
    batch, length, heads, width = shape
    return (batch, heads, length, width)


def _problem(query: Shape, key: Shape, value: Shape) -> _Problem:
    require(query[3] == key[3], f"widths of query and key, {query[3]} and {key[3]}, differ")
    require(key[2] == value[2], f"lengths of key and value, {key[2]} and {value[2]}, differ")
    require(key[1] > 0 and query[1] % key[1] == 0, f"{query[1]} query heads over {key[1]} key heads")
    return _Problem(query[0], query[1], query[2], key[2], key[3], value[3])


def _forward(problem: _Problem, elements: int, statistics: int) -> ShapeCost:
    causal = problem.causal()
    return ShapeCost(
        flop=problem.full(),
        flop_min=causal,
        elements=elements,
        index_bytes=statistics * FLOAT32_BYTES,
        causal_unknown=causal is not None,
        note=_CAUSAL if causal is not None else None,
    )


def _backward(problem: _Problem, elements: int, statistics: int) -> ShapeCost:
    causal = problem.causal()
    return ShapeCost(
        flop=2 * problem.full(),
        extra_flop=problem.full() // 2,
        flop_min=None if causal is None else 2 * causal,
        elements=elements,
        index_bytes=statistics * FLOAT32_BYTES,
        causal_unknown=causal is not None,
        note=_CAUSAL if causal is not None else None,
    )


def _result(problem: _Problem) -> int:
    return problem.batch * problem.heads * problem.queries * problem.value_width


def _rows(problem: _Problem) -> int:
    return problem.batch * problem.heads * problem.queries


def flash(shapes: Shapes) -> ShapeCost:
    """Heads first; the row statistics are always written."""
    problem = _heads_first(shapes, 0)
    return _forward(problem, total(shapes[:3]) + _result(problem), _rows(problem))


def biased(shapes: Shapes) -> ShapeCost:
    """Heads first, bias or mask at position 3; whether statistics are written is a flag and not counted."""
    problem = _heads_first(shapes, 0)
    return _forward(problem, total(shapes[:4]) + _result(problem), 0)


def flash_rows(shapes: Shapes) -> ShapeCost:
    """_flash_attention_forward: (B, S, H, D), or packed (T, H, D)."""
    if len(argument(shapes, 0)) == _PACKED_RANK:
        return unknown(_PACKED)
    problem = _heads_third(shapes, 0)
    return _forward(problem, total(shapes[:3]) + _result(problem), _rows(problem))


def efficient_rows(shapes: Shapes) -> ShapeCost:
    """_efficient_attention_forward: (B, S, H, D), bias at 3, cumulative lengths at 4 when packed."""
    if argument(shapes, 4):
        return unknown(_PACKED)
    problem = _heads_third(shapes, 0)
    return _forward(problem, total(shapes[:4]) + _result(problem), 0)


def _gradient_elements(shapes: Shapes, out: int, bias: int | None) -> int:
    """Reads grad_out, query, key, value, out, bias; writes the gradients of query, key and value."""
    inputs = total(shapes[1:4])
    extra = numel(shapes[bias]) if bias is not None and argument(shapes, bias) else 0
    return 2 * inputs + numel(tensor(shapes, 0)) + numel(tensor(shapes, out)) + extra


def flash_backward(shapes: Shapes) -> ShapeCost:
    """grad_out, query, key, value, out, logsumexp; heads first."""
    problem = _heads_first(shapes, 1)
    return _backward(problem, _gradient_elements(shapes, 4, None), _rows(problem))


def cudnn_backward(shapes: Shapes) -> ShapeCost:
    """grad_out, query, key, value, out, logsumexp, seed, offset, bias; heads first."""
    problem = _heads_first(shapes, 1)
    return _backward(problem, _gradient_elements(shapes, 4, 8), _rows(problem))


def efficient_backward(shapes: Shapes) -> ShapeCost:
    """grad_out, query, key, value, bias, out, logsumexp; heads first."""
    problem = _heads_first(shapes, 1)
    return _backward(problem, _gradient_elements(shapes, 5, 4), _rows(problem))


def flash_rows_backward(shapes: Shapes) -> ShapeCost:
    """_flash_attention_backward: (B, S, H, D), or packed."""
    if len(argument(shapes, 1)) == _PACKED_RANK:
        return unknown(_PACKED)
    problem = _heads_third(shapes, 1)
    return _backward(problem, _gradient_elements(shapes, 4, None), _rows(problem))


def efficient_rows_backward(shapes: Shapes) -> ShapeCost:
    """_efficient_attention_backward: (B, S, H, D), bias at 4, out at 5, cumulative lengths at 6 when packed."""
    if argument(shapes, 6):
        return unknown(_PACKED)
    problem = _heads_third(shapes, 1)
    return _backward(problem, _gradient_elements(shapes, 5, 4), _rows(problem))


FORMULAS: dict[str, Formula] = {
    "scaled_dot_product_attention": biased,
    "_scaled_dot_product_flash_attention": flash,
    "_scaled_dot_product_flash_attention_for_cpu": flash,
    "_scaled_dot_product_efficient_attention": biased,
    "_scaled_dot_product_cudnn_attention": biased,
    "_scaled_dot_product_fused_attention_overrideable": biased,
    "_cudnn_attention_forward": biased,
    "_flash_attention_forward": flash_rows,
    "_efficient_attention_forward": efficient_rows,
    "_scaled_dot_product_flash_attention_backward": flash_backward,
    "_scaled_dot_product_flash_attention_for_cpu_backward": flash_backward,
    "_scaled_dot_product_efficient_attention_backward": efficient_backward,
    "_scaled_dot_product_cudnn_attention_backward": cudnn_backward,
    "_cudnn_attention_backward": cudnn_backward,
    "_flash_attention_backward": flash_rows_backward,
    "_efficient_attention_backward": efficient_rows_backward,
}
