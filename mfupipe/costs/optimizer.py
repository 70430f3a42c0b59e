"""Operators on lists of tensors: `_foreach_*` and fused optimizers. emit_nvtx writes the lists flat, one after another.

How many lists a flat one holds is found by splitting it into equal parts; where two splits fit, the one with the least
traffic is taken and said (lower bound).
"""

from __future__ import annotations

from fractions import Fraction

from mfupipe.costs.shape import Formula, ShapeCost, Shapes, moved, require, total

_NO_LIST = "the list of tensors is not in the sizes"
_AMBIGUOUS = "the flat list fits more than one call: the one with the least traffic (lower bound)"


def per_element(*splits: tuple[int, int]) -> Formula:
    """One formula for calls of several signatures.

    splits: (lists in the call, lists that are read and lists that are written, together). A call of one list that is
    read and written is (1, 2); one of a list updated by another is (2, 3).
    """

    def formula(shapes: Shapes) -> ShapeCost:
        present = [shape for shape in shapes if shape]
        require(bool(present), _NO_LIST)
        elements = total(present)
        fitting = sorted(Fraction(moves, lists) for lists, moves in splits if _has_equal_parts(present, lists))
        require(bool(fitting), f"{len(present)} tensors do not divide into equal lists")
        note = _AMBIGUOUS if len(set(fitting)) > 1 else None
        return moved(int(fitting[0] * elements), note=note)

    return formula


def _has_equal_parts(shapes: list[tuple[int, ...]], parts: int) -> bool:
    length, rest = divmod(len(shapes), parts)
    return rest == 0 and all(shapes[index] == shapes[index % length] for index in range(len(shapes)))


_UNARY = """
abs neg exp expm1 log log2 log10 log1p sqrt rsqrt reciprocal sin cos tan tanh sinh cosh sigmoid erf erfc ceil floor
round trunc frac sign lgamma
"""
_BINARY = "add sub mul div maximum minimum clamp_min clamp_max pow"
_TERNARY = "addcmul addcdiv"
# A list read and a result of its size written, in place or not, move the same.
_ONE, _TWO, _THREE = (1, 2), (2, 3), (3, 4)


def _both_forms(names: str, formula: Formula) -> dict[str, Formula]:
    return {f"_foreach_{name}{suffix}": formula for name in names.split() for suffix in ("", "_")}


FORMULAS: dict[str, Formula] = (
    _both_forms(_UNARY, per_element(_ONE))
    | _both_forms(_BINARY, per_element(_ONE, _TWO))
    | _both_forms(_TERNARY, per_element(_THREE))
    | _both_forms("lerp", per_element(_TWO, _THREE))
    | {
        "_foreach_zero_": per_element((1, 1)),
        "_foreach_copy_": per_element((2, 2)),
        "_amp_foreach_non_finite_check_and_unscale_": per_element(_ONE),
        # params, grads, momentum (without momentum: two lists); grads are read only
        "_fused_sgd_": per_element((2, 3), (3, 5)),
        # params, grads, sums; params and sums are written
        "_fused_adagrad_": per_element((3, 5)),
        # params, grads, exp_avgs, exp_avg_sqs (amsgrad: and their maxima); all but grads are written
        "_fused_adam_": per_element((4, 7), (5, 9)),
        "_fused_adamw_": per_element((4, 7), (5, 9)),
    }
)
