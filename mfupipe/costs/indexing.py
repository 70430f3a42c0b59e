"""Embedding, gathers, scatters, concatenation and cross entropy: traffic; indices are int64 unless said otherwise."""

from __future__ import annotations

from mfupipe.costs.shape import (
    INT64_BYTES,
    Formula,
    ShapeCost,
    Shapes,
    always,
    argument,
    moved,
    numel,
    require,
    tensor,
    total,
    unmeasured,
)

_DISTINCT = "every index is taken to name another row, up to all rows"
_ROWS_ONLY = (
    "the gradient's zero fill is an operator of its own; the number of distinct rows is taken as one (lower bound)"
)
_MAYBE_MASK = always(unmeasured("an index may be a mask, so the number of elements does not follow"))
_SMALLEST = "the dimension is not in the sizes: the one with the smallest result (lower bound)"


def embedding(shapes: Shapes) -> ShapeCost:
    """weight (V, D), indices: reads the named rows, writes one per index."""
    (rows, width), indices = tensor(shapes, 0, 2), numel(argument(shapes, 1))
    return moved((min(rows, indices) + indices) * width, indices * INT64_BYTES, _DISTINCT)


def embedding_backward(shapes: Shapes) -> ShapeCost:
    """grad_output (..., D), indices: reads the gradient and adds it to rows of the weight's gradient."""
    gradient, indices = tensor(shapes, 0), numel(argument(shapes, 1))
    return moved(numel(gradient) + gradient[-1], indices * INT64_BYTES, _ROWS_ONLY)


def index_select(shapes: Shapes) -> ShapeCost:
    """self, dim, index: copies slices."""
    data, indices = tensor(shapes, 0), numel(argument(shapes, 2))
    require(all(data), "an empty tensor has no slices")
    result = min(numel(data) // length * indices for length in data)
    return moved(2 * result, indices * INT64_BYTES, _SMALLEST if len(data) > 1 else None)


def gather(shapes: Shapes) -> ShapeCost:
    """self, dim, index: one element per index."""
    tensor(shapes, 0)
    indices = numel(tensor(shapes, 2))
    return moved(2 * indices, indices * INT64_BYTES)


def scatter_in_place(shapes: Shapes) -> ShapeCost:
    """self, dim, index, src or a number: reads the sources, reads and writes the named elements of self."""
    indices = numel(tensor(shapes, 2))
    sources = indices if argument(shapes, 3) else 0
    return moved(sources + 2 * indices, indices * INT64_BYTES)


def scatter(shapes: Shapes) -> ShapeCost:
    """Like in place, on a copy: all of self is read and written."""
    data, indices = tensor(shapes, 0), numel(tensor(shapes, 2))
    sources = indices if argument(shapes, 3) else 0
    return moved(2 * numel(data) + sources, indices * INT64_BYTES)


def index_add_in_place(shapes: Shapes) -> ShapeCost:
    """self, dim, index, source: reads the source, reads and writes as many elements of self."""
    source = numel(tensor(shapes, 3))
    return moved(3 * source, numel(argument(shapes, 2)) * INT64_BYTES)


def index_copy_in_place(shapes: Shapes) -> ShapeCost:
    """self, dim, index, source: reads the source and writes as many elements of self."""
    source = numel(tensor(shapes, 3))
    return moved(2 * source, numel(argument(shapes, 2)) * INT64_BYTES)


def concatenate(shapes: Shapes) -> ShapeCost:
    """A list of tensors, each read and written once."""
    require(any(shapes), "the list of tensors is not in the sizes")
    return moved(2 * total(shapes))


def nll_loss(shapes: Shapes) -> ShapeCost:
    """log-probabilities (N, C) or (N, C, ...), target: one element read per target."""
    targets = _targets(shapes, 0)
    return moved(targets, targets * INT64_BYTES, "one loss is written, or one per target: left out (lower bound)")


def nll_loss_backward(shapes: Shapes) -> ShapeCost:
    """grad_output, log-probabilities, target: one element written per target."""
    targets = _targets(shapes, 1)
    return moved(targets, targets * INT64_BYTES, "the gradient's zero fill is an operator of its own")


def _targets(shapes: Shapes, position: int) -> int:
    data, target = tensor(shapes, position), argument(shapes, position + 1)
    expected = data[:1] + data[2:] if len(data) > 1 else ()
    require(target == expected, f"target of size {list(target)} for {list(data)}")
    return numel(target)


def mse_loss(shapes: Shapes) -> ShapeCost:
    """input, target: a fused read of both; the mean is written by a reduction of its own where there is one."""
    return moved(total(shapes[:2]), note="the result, one value or as many as inputs, is left out (lower bound)")


def mse_loss_backward(shapes: Shapes) -> ShapeCost:
    """grad_output, input, target: writes the gradient of the input."""
    return moved(total(shapes[:1]) + total(shapes[1:3]) + numel(tensor(shapes, 1)))


FORMULAS: dict[str, Formula] = {
    "embedding": embedding,
    "embedding_dense_backward": embedding_backward,
    "index_select": index_select,
    "gather": gather,
    "scatter": scatter,
    "scatter_": scatter_in_place,
    "scatter_add": scatter,
    "scatter_add_": scatter_in_place,
    "scatter_reduce": scatter,
    "scatter_reduce_": scatter_in_place,
    "index_add_": index_add_in_place,
    "index_copy_": index_copy_in_place,
    "index_fill_": _MAYBE_MASK,
    "index": _MAYBE_MASK,
    "index_put": _MAYBE_MASK,
    "index_put_": _MAYBE_MASK,
    "_index_put_impl_": _MAYBE_MASK,
    "cat": concatenate,
    "concat": concatenate,
    "stack": concatenate,
    "nll_loss_forward": nll_loss,
    "nll_loss2d_forward": nll_loss,
    "nll_loss_backward": nll_loss_backward,
    "nll_loss2d_backward": nll_loss_backward,
    "mse_loss": mse_loss,
    "mse_loss_backward": mse_loss_backward,
    "smooth_l1_loss_backward": mse_loss_backward,
    "huber_loss_backward": mse_loss_backward,
    "binary_cross_entropy_backward": mse_loss_backward,
}
