"""Reductions and scans: a reduction reads its input once; its output is at most as large and not in the sizes."""

from __future__ import annotations

from mfupipe.costs.shape import (
    INT64_BYTES,
    Formula,
    ShapeCost,
    Shapes,
    always,
    moved,
    named,
    numel,
    require,
    tensor,
    total,
    unmeasured,
)

_INPUT_ALONE = "the output size does not follow: the input's elements alone (lower bound, at most doubled)"


def reduced(shapes: Shapes) -> ShapeCost:
    """The input, read once: a lower bound of the bytes."""
    require(bool(shapes), "no sizes")
    return moved(numel(shapes[0]), note=_INPUT_ALONE)


def scanned(shapes: Shapes) -> ShapeCost:
    """cumsum and its like: as many results as inputs."""
    return moved(2 * numel(tensor(shapes, 0)))


def scanned_with_indices(shapes: Shapes) -> ShapeCost:
    """sort, cummax: values and int64 positions for every input."""
    elements = numel(tensor(shapes, 0))
    return moved(2 * elements, index_bytes=elements * INT64_BYTES)


def listed(shapes: Shapes) -> ShapeCost:
    """Norms of a list of tensors: every element read once, one result per tensor."""
    return moved(total(shapes) + sum(1 for shape in shapes if shape))


_REDUCED = """
sum nansum mean prod amax amin aminmax max min argmax argmin var std var_mean std_mean norm linalg_vector_norm
logsumexp all any count_nonzero median nanmedian mode kthvalue topk equal
"""

FORMULAS: dict[str, Formula] = (
    named(_REDUCED, reduced)
    | named("cumsum cumsum_ cumprod cumprod_ logcumsumexp", scanned)
    | named("sort cummax cummin", scanned_with_indices)
    | named("_foreach_norm _foreach_max", listed)
    | named(
        "nonzero unique _unique2 unique_consecutive masked_select",
        always(unmeasured("the output size depends on the data")),
    )
)
