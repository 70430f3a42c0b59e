"""Pooling: backward passes name every size; forward output sizes follow from arguments that are not sizes."""

from __future__ import annotations

from mfupipe.costs.shape import (
    INT64_BYTES,
    Formula,
    Shape,
    ShapeCost,
    Shapes,
    always,
    moved,
    named,
    numel,
    tensor,
    unmeasured,
)


def average_backward(shapes: Shapes) -> ShapeCost:
    """grad_output, input: reads the gradient, writes one of the input's size."""
    return moved(numel(tensor(shapes, 0)) + numel(tensor(shapes, 1)))


def maximum_backward(shapes: Shapes) -> ShapeCost:
    """grad_output, input, ..., indices: as average, and one int64 position per output."""
    gradient = numel(tensor(shapes, 0))
    return moved(gradient + numel(tensor(shapes, 1)), gradient * INT64_BYTES)


def average(shapes: Shapes) -> ShapeCost:
    """input, and the output's size at the end where a reader of it named it."""
    result = _output(shapes)
    return unmeasured(_NO_OUTPUT) if result is None else moved(numel(shapes[0]) + numel(result))


def maximum(shapes: Shapes) -> ShapeCost:
    """As average, and one int64 position per output."""
    result = _output(shapes)
    if result is None:
        return unmeasured(_NO_OUTPUT)
    return moved(numel(shapes[0]) + numel(result), numel(result) * INT64_BYTES)


def _output(shapes: Shapes) -> Shape | None:
    data = tensor(shapes, 0, 3, 4, 5)
    found = [shape for shape in shapes[1:] if len(shape) == len(data) and shape[:2] == data[:2]]
    return found[-1] if found else None


_NO_OUTPUT = "window, stride and output size are not in the sizes"
_MAXIMA = "max_pool2d_with_indices max_pool3d_with_indices adaptive_max_pool2d adaptive_max_pool3d"
_AVERAGES = """
avg_pool2d avg_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d upsample_nearest1d upsample_nearest2d upsample_nearest3d
upsample_linear1d upsample_bilinear2d upsample_bicubic2d upsample_trilinear3d _upsample_nearest_exact2d
"""
_UNSIZED = "upsample_nearest2d_backward upsample_bilinear2d_backward upsample_bicubic2d_backward"
_AVERAGE = "avg_pool2d_backward avg_pool3d_backward _adaptive_avg_pool2d_backward _adaptive_avg_pool3d_backward"
_MAXIMUM = """
max_pool2d_with_indices_backward max_pool3d_with_indices_backward adaptive_max_pool2d_backward
adaptive_max_pool3d_backward
"""

FORMULAS: dict[str, Formula] = (
    named(_UNSIZED, always(unmeasured(_NO_OUTPUT)))
    | named(_MAXIMA, maximum)
    | named(_AVERAGES, average)
    | named(_AVERAGE, average_backward)
    | named(_MAXIMUM, maximum_backward)
)
