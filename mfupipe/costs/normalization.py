"""Softmax and norms: traffic only; statistics of a row or channel are float32."""

from __future__ import annotations

from mfupipe.costs.shape import (
    FLOAT32_BYTES,
    Formula,
    Shape,
    ShapeCost,
    Shapes,
    argument,
    moved,
    numel,
    require,
    tensor,
    total,
)


def softmax(shapes: Shapes) -> ShapeCost:
    """Reads the scores once, writes as many."""
    return moved(2 * numel(tensor(shapes, 0)))


def softmax_backward(shapes: Shapes) -> ShapeCost:
    """grad_output, output; writes the gradient."""
    gradient, output = tensor(shapes, 0), tensor(shapes, 1)
    require(gradient == output, f"sizes {gradient} and {output} differ")
    return moved(3 * numel(gradient))


def layer_norm(shapes: Shapes) -> ShapeCost:
    """input, normalized_shape, weight, bias: writes the result, a mean and a reciprocal deviation per row."""
    return _row_norm(tensor(shapes, 0), (argument(shapes, 2), argument(shapes, 3)), 2)


def rms_norm(shapes: Shapes) -> ShapeCost:
    """input, normalized_shape, weight: writes the result and one statistic per row."""
    return _row_norm(tensor(shapes, 0), (argument(shapes, 2),), 1)


def _row_norm(data: Shape, parameters: Shapes, statistics: int) -> ShapeCost:
    rows = _rows(data, parameters)
    note = None if rows else "without weight and bias the rows do not follow: their statistics are left out"
    return moved(2 * numel(data) + total(parameters), statistics * rows * FLOAT32_BYTES, note)


def _rows(data: Shape, parameters: Shapes) -> int:
    """Rows that are normalised: leading dimensions that the parameters leave; 0 when there are no parameters."""
    inner = max(parameters, key=len, default=())
    require(not inner or data[-len(inner) :] == inner, f"parameters of size {list(inner)} for {list(data)}")
    return numel(data[: len(data) - len(inner)]) if inner else 0


def layer_norm_backward(shapes: Shapes) -> ShapeCost:
    """grad_out, input, normalized_shape, mean, rstd, weight, bias: writes the gradients of input, weight and bias."""
    gradient, data, parameters = tensor(shapes, 0), tensor(shapes, 1), total(shapes[5:7])
    weight = total((argument(shapes, 5),))
    elements = numel(gradient) + 2 * numel(data) + weight + parameters
    return moved(elements, total(shapes[3:5]) * FLOAT32_BYTES)


def rms_norm_backward(shapes: Shapes) -> ShapeCost:
    """grad_out, input, normalized_shape, rstd, weight: writes the gradients of input and weight."""
    gradient, data, weight = tensor(shapes, 0), tensor(shapes, 1), total((argument(shapes, 4),))
    return moved(numel(gradient) + 2 * numel(data) + 2 * weight, total(shapes[3:4]) * FLOAT32_BYTES)


def group_norm(shapes: Shapes) -> ShapeCost:
    """input, weight, bias, ...: groups are not in the sizes, so their statistics are left out."""
    return moved(2 * numel(tensor(shapes, 0)) + total(shapes[1:3]), note="statistics per group are left out")


def group_norm_backward(shapes: Shapes) -> ShapeCost:
    """grad_out, input, mean, rstd, weight: writes the gradients of input, weight and (as long) bias."""
    gradient, data, weight = tensor(shapes, 0), tensor(shapes, 1), total((argument(shapes, 4),))
    return moved(numel(gradient) + 2 * numel(data) + 3 * weight, total(shapes[2:4]) * FLOAT32_BYTES)


def batch_norm(shapes: Shapes) -> ShapeCost:
    """input, weight, bias, running mean and variance: each read once, the result written.

    A training pass also writes a few values per channel; the flag is not in the sizes, they are left out.
    """
    data = tensor(shapes, 0)
    return moved(2 * numel(data) + total(shapes[1:5]), note="statistics of a training pass are left out")


def batch_norm_backward(shapes: Shapes) -> ShapeCost:
    """grad_out, input, weight, ...: writes the gradients of input, weight and bias."""
    gradient, data, weight = tensor(shapes, 0), tensor(shapes, 1), total((argument(shapes, 2),))
    return moved(numel(gradient) + 2 * numel(data) + 3 * weight)


FORMULAS: dict[str, Formula] = {
    "softmax": softmax,
    "log_softmax": softmax,
    "_softmax": softmax,
    "_log_softmax": softmax,
    "_safe_softmax": softmax,
    "_softmax_backward_data": softmax_backward,
    "_log_softmax_backward_data": softmax_backward,
    "layer_norm": layer_norm,
    "native_layer_norm": layer_norm,
    "native_layer_norm_backward": layer_norm_backward,
    "rms_norm": rms_norm,
    "_fused_rms_norm": rms_norm,
    "_fused_rms_norm_backward": rms_norm_backward,
    "native_group_norm": group_norm,
    "native_group_norm_backward": group_norm_backward,
    "native_batch_norm": batch_norm,
    "_native_batch_norm_legit": batch_norm,
    "_batch_norm_with_update": batch_norm,
    "cudnn_batch_norm": batch_norm,
    "miopen_batch_norm": batch_norm,
    "native_batch_norm_backward": batch_norm_backward,
    "batch_norm_backward": batch_norm_backward,
    "cudnn_batch_norm_backward": batch_norm_backward,
    "miopen_batch_norm_backward": batch_norm_backward,
}
