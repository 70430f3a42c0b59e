"""Convolutions: FLOP = 2 * outputs * (input channels / groups) * taps; padding taps count (convention)."""

from __future__ import annotations

from mfupipe.costs.shape import Formula, Shape, ShapeCost, Shapes, named, numel, tensor, total, unknown

_NO_OUTPUT = "stride, padding and dilation are not in the sizes, so the output size does not follow"
_BOTH_GRADIENTS = "output_mask is not in the sizes: input and weight gradients are both counted (flop_min: one)"
_TRANSPOSED_UNKNOWN = "the sizes fit a transposed and a plain convolution of different FLOP"


def forward(shapes: Shapes) -> ShapeCost:
    """(N, C, ...) with weight (O, C / groups, ...): needs the output among the sizes (out= variants)."""
    data, weight = tensor(shapes, 0, 3, 4, 5), tensor(shapes, 1, 3, 4, 5)
    result = next((shape for shape in shapes[2:] if _is_output(shape, data, weight)), None)
    if result is None:
        return unknown(_NO_OUTPUT)
    flop = _flop(result, data, weight)
    if flop is None:
        return unknown(_TRANSPOSED_UNKNOWN)
    bias = next((shape for shape in shapes[2:] if len(shape) == 1), ())
    return ShapeCost(flop=flop, elements=total((data, weight, bias, result)))


def backward(shapes: Shapes) -> ShapeCost:
    """Sizes of grad_output, input and weight: the input gradient and the weight gradient cost the forward FLOP each."""
    gradient, data, weight = (tensor(shapes, position, 3, 4, 5) for position in range(3))
    flop = _flop(gradient, data, weight)
    if flop is None:
        return unknown(_TRANSPOSED_UNKNOWN)
    elements = numel(gradient) + 2 * numel(data) + 2 * numel(weight)
    return ShapeCost(flop=2 * flop, flop_min=flop, elements=elements, note=_BOTH_GRADIENTS)


def _is_output(shape: Shape, data: Shape, weight: Shape) -> bool:
    return len(shape) == len(data) and shape[0] == data[0] and _is_plain(shape, data, weight)


def _is_plain(result: Shape, data: Shape, weight: Shape) -> bool:
    return result[1] == weight[0] and weight[1] > 0 and data[1] % weight[1] == 0


def _is_transposed(result: Shape, data: Shape, weight: Shape) -> bool:
    return data[1] == weight[0] and weight[1] > 0 and result[1] % weight[1] == 0


def _flop(result: Shape, data: Shape, weight: Shape) -> int | None:
    taps = numel(weight[1:])
    candidates = set()
    if _is_plain(result, data, weight):
        candidates.add(2 * numel(result) * taps)
    if _is_transposed(result, data, weight) and _may_be_transposed(result, data):
        candidates.add(2 * numel(data) * taps)
    return candidates.pop() if len(candidates) == 1 else None


def _may_be_transposed(result: Shape, data: Shape) -> bool:
    """A transposed convolution that shrinks its input needs padding beyond its kernel; a plain one shrinks normally."""
    return all(out >= length for out, length in zip(result[2:], data[2:], strict=True))


_FORWARD = """
convolution _convolution convolution_overrideable cudnn_convolution cudnn_convolution_relu cudnn_convolution_add_relu
cudnn_convolution_transpose miopen_convolution conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d
_conv_depthwise2d conv_depthwise3d _slow_conv2d_forward thnn_conv2d slow_conv3d
"""

FORMULAS: dict[str, Formula] = named(_FORWARD, forward) | {"convolution_backward": backward}
