"""Elementwise operators, copies and fills: their cost is their traffic, every tensor once, in-place = read + write."""

from __future__ import annotations

from mfupipe.costs.shape import (
    BOOL_BYTES,
    Formula,
    ShapeCost,
    Shapes,
    argument,
    broadcast,
    moved,
    named,
    noted,
    numel,
    require,
    tensor,
    total,
)

_SAME_WIDTH = "both ends are taken to have one element size, and a source that was expanded counts in full"


def elementwise(*positions: int) -> Formula:
    """The tensors at these positions are read, and what they broadcast to is written."""

    def formula(shapes: Shapes) -> ShapeCost:
        read = _pick(shapes, positions)
        return moved(total(read) + numel(broadcast(read)))

    return formula


def compared(*positions: int) -> Formula:
    """Like elementwise, with a result of bool."""

    def formula(shapes: Shapes) -> ShapeCost:
        read = _pick(shapes, positions)
        return moved(total(read), index_bytes=numel(broadcast(read)) * BOOL_BYTES)

    return formula


def masked(mask: int, *positions: int) -> Formula:
    """Like elementwise, with one argument more that is bool."""

    def formula(shapes: Shapes) -> ShapeCost:
        read, flags = _pick(shapes, positions), argument(shapes, mask)
        return moved(total(read) + numel(broadcast((*read, flags))), index_bytes=total((flags,)) * BOOL_BYTES)

    return formula


def _pick(shapes: Shapes, positions: tuple[int, ...]) -> Shapes:
    require(bool(shapes), "no sizes")
    return tuple(argument(shapes, position) for position in positions)


def written(shapes: Shapes) -> ShapeCost:
    """The first tensor is written and not read."""
    require(bool(shapes), "no sizes")
    return moved(numel(shapes[0]))


def copied(shapes: Shapes) -> ShapeCost:
    """destination, source: `copy_`."""
    require(len(shapes) > 1, "no source among the sizes")
    return moved(numel(shapes[0]) + numel(shapes[1]), note=_SAME_WIDTH)


def duplicated(shapes: Shapes) -> ShapeCost:
    """A new tensor of the source's size: `clone`."""
    require(bool(shapes), "no sizes")
    return moved(2 * numel(shapes[0]), note=_SAME_WIDTH)


def dropout(shapes: Shapes) -> ShapeCost:
    """Writes the result and a mask of bool."""
    elements = numel(tensor(shapes, 0))
    return moved(2 * elements, index_bytes=elements * BOOL_BYTES)


def gated(shapes: Shapes) -> ShapeCost:
    """glu: the result has half the elements."""
    elements = numel(tensor(shapes, 0))
    require(elements % 2 == 0, "an odd count cannot be halved")
    return moved(elements + elements // 2)


def gated_backward(shapes: Shapes) -> ShapeCost:
    """grad_output (half), input; the gradient has the input's size."""
    return moved(numel(tensor(shapes, 0)) + 2 * numel(tensor(shapes, 1)))


_UNARY = """
abs neg exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal square sin cos tan sinh cosh tanh asin acos atan
asinh acosh atanh sinc sigmoid logit erf erfc erfinv lgamma digamma floor ceil round trunc frac sign sgn positive
nan_to_num deg2rad rad2deg relu relu6 gelu silu mish elu selu celu hardtanh hardswish hardsigmoid leaky_relu softplus
softshrink hardshrink threshold bitwise_not conj_physical angle i0 polygamma tril triu flip roll
"""
_BINARY = """
add sub subtract mul multiply div divide true_divide floor_divide rsub pow float_power maximum minimum fmax fmin fmod
remainder atan2 copysign hypot xlogy logaddexp logaddexp2 heaviside nextafter ldexp bitwise_and bitwise_or bitwise_xor
bitwise_left_shift bitwise_right_shift __and__ __or__ __xor__ clamp_min clamp_max prelu _prelu_kernel
"""
_TERNARY = "addcmul addcdiv lerp clamp clip"
_COMPARED = "eq ne lt le gt ge logical_and logical_or logical_xor isclose"
_TESTED = "isnan isinf isfinite isposinf isneginf logical_not signbit"
_FIRST_TWO = """
threshold_backward gelu_backward silu_backward sigmoid_backward tanh_backward hardtanh_backward hardswish_backward
hardsigmoid_backward leaky_relu_backward softplus_backward softshrink_backward hardshrink_backward mish_backward
logit_backward
"""
_WRITTEN = """
fill_ zero_ normal_ uniform_ random_ exponential_ bernoulli_ log_normal_ cauchy_ geometric_
"""
_NOT_IN_PLACE = "flip roll prelu _prelu_kernel isclose angle"


def _with_in_place(names: str, formula: Formula) -> dict[str, Formula]:
    in_place = [name for name in names.split() if name not in _NOT_IN_PLACE.split() and not name.startswith("__")]
    return named(names, formula) | {f"{name}_": formula for name in in_place}


def _padded(shapes: Shapes) -> ShapeCost:
    return noted(duplicated(shapes), "padding widths are not in the sizes: the input's elements alone (lower bound)")


_OTHERS: dict[str, Formula] = {
    "constant_pad_nd": _padded,
    "copy_": copied,
    "clone": duplicated,
    "_to_copy": duplicated,
    "where": masked(0, 1, 2),
    "masked_fill": masked(1, 0),
    "masked_fill_": masked(1, 0),
    "native_dropout": dropout,
    "_fused_dropout": dropout,
    "native_dropout_backward": masked(1, 0),
    "_masked_scale": masked(1, 0),
    "elu_backward": elementwise(0, 5),
    "log_sigmoid_backward": elementwise(0, 1),
    "log_sigmoid_forward": elementwise(0),
    "rrelu_with_noise": elementwise(0),
    "glu": gated,
    "glu_backward": gated_backward,
    "bernoulli": elementwise(0),
}

FORMULAS: dict[str, Formula] = (
    _with_in_place(_UNARY, elementwise(0))
    | _with_in_place(_BINARY, elementwise(0, 1))
    | _with_in_place(_TERNARY, elementwise(0, 1, 2))
    | _with_in_place(_COMPARED, compared(0, 1))
    | _with_in_place(_TESTED, compared(0))
    | named(_FIRST_TWO, elementwise(0, 1))
    | named(_WRITTEN, written)
    | _OTHERS
)
