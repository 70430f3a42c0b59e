"""FLOP and bytes of an operator call, from the sizes of its arguments."""

from __future__ import annotations

from mfupipe.costs import (
    attention,
    convolution,
    indexing,
    matmul,
    normalization,
    optimizer,
    pointwise,
    pooling,
    reduction,
    views,
)
from mfupipe.costs.shape import Formula, ShapeCost, ShapeMismatch, bounded, parse_sizes, unknown

__all__ = ["ShapeCost", "costed_operators", "shape_cost"]

_NAMESPACE = "aten::"
_MAX_NAME = 80
_MODULES = (
    views,
    pointwise,
    reduction,
    normalization,
    indexing,
    pooling,
    optimizer,
    matmul,
    convolution,
    attention,
)
_FORMULAS: dict[str, Formula] = {name: formula for module in _MODULES for name, formula in module.FORMULAS.items()}


def shape_cost(operator: str, sizes: str) -> ShapeCost:
    """Cost of one call of an aten operator. Never raises: what does not follow is None, with the reason.

    operator: its name, `aten::addmm`. sizes: its argument sizes as emit_nvtx writes them, `[[4096], [16, 4096]]`.
    Formulas: the modules of this package; conventions: FMA = 2 FLOP, backward attention 2.0 x forward.
    """
    formula = _FORMULAS.get(operator.removeprefix(_NAMESPACE)) if operator.startswith(_NAMESPACE) else None
    if formula is None:
        return unknown(f"no cost formula for {operator[:_MAX_NAME]}")
    try:
        return bounded(formula(parse_sizes(sizes)))
    except ShapeMismatch as mismatch:
        return unknown(str(mismatch))


def costed_operators() -> tuple[str, ...]:
    """Names of the operators that have a formula, sorted."""
    return tuple(sorted(_NAMESPACE + name for name in _FORMULAS))
