"""Pooling: backward passes name every size; forward output sizes follow from arguments that are not sizes."""

from __future__ import annotations

from mfupipe.costs.shape import INT64_BYTES, Formula, ShapeCost, Shapes, always, moved, named, numel, tensor, unmeasured


def average_backward(shapes: Shapes) -> ShapeCost:
    """grad_output, input: reads the gradient, writes one of the input's size."""
    return moved(numel(tensor(shapes, 0)) + numel(tensor(shapes, 1)))


def maximum_backward(shapes: Shapes) -> ShapeCost:
    """grad_output, input, ..., indices: as average, and one int64 position per output."""
    gradient = numel(tensor(shapes, 0))
    return moved(gradient + numel(tensor(shapes, 1)), gradient * INT64_BYTES)


_UNSIZED = """
max_pool2d_with_indices max_pool3d_with_indices avg_pool2d avg_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d
adaptive_max_pool2d adaptive_max_pool3d upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_linear1d
upsample_bilinear2d upsample_bicubic2d upsample_trilinear3d _upsample_nearest_exact2d upsample_nearest2d_backward
upsample_bilinear2d_backward upsample_bicubic2d_backward
"""
_AVERAGE = "avg_pool2d_backward avg_pool3d_backward _adaptive_avg_pool2d_backward _adaptive_avg_pool3d_backward"
_MAXIMUM = """
max_pool2d_with_indices_backward max_pool3d_with_indices_backward adaptive_max_pool2d_backward
adaptive_max_pool3d_backward
"""

FORMULAS: dict[str, Formula] = (
    named(_UNSIZED, always(unmeasured("window, stride and output size are not in the sizes")))
    | named(_AVERAGE, average_backward)
    | named(_MAXIMUM, maximum_backward)
)
