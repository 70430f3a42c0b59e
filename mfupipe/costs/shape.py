"""What the sizes of an operator's arguments say about its cost, and how a formula states it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

Shape = tuple[int, ...]
Shapes = tuple[Shape, ...]

MAX_TEXT_CHARACTERS = 1 << 20
MAX_DEPTH = 3
MAX_RANK = 64
MAX_COUNT = (1 << 63) - 1
FLOAT32_BYTES = 4
INT64_BYTES = 8
BOOL_BYTES = 1

_ALLOWED_TEXT = re.compile(r"[\[\]0-9,\s-]*")
_TOO_MANY_DIGITS = re.compile(r"[0-9]{19}")


@dataclass(frozen=True)
class ShapeCost:
    """Cost of one operator call as far as its argument sizes determine it; None is unknown.

    flop: model FLOP (FMA = 2), 0 where the mathematics is not tensor-core work. extra_flop: executed beyond the model
    (flash backward recompute). flop_min: lower bound where a flag that is not in the sizes may halve the work.
    elements: of every distinct tensor crossing the border once, in the operator's own dtype (in-place = read + write).
    index_bytes: bytes whose width does not follow the dtype (int64 indices, bool masks, float32 statistics).
    bytes = elements * element size + index_bytes. reason: why flop or elements is None.
    note: what a known value assumes.
    """

    flop: int | None = 0
    extra_flop: int | None = 0
    flop_min: int | None = None
    elements: int | None = None
    index_bytes: int = 0
    reason: str | None = None
    causal_unknown: bool = False
    note: str | None = None


Formula = Callable[[Shapes], ShapeCost]


class ShapeMismatch(ValueError):
    """The sizes are not those of the operator; `shape_cost` turns it into an unknown cost with this reason."""


def unknown(reason: str) -> ShapeCost:
    """Neither FLOP nor bytes follow."""
    return ShapeCost(flop=None, extra_flop=None, elements=None, reason=reason)


def moved(elements: int, index_bytes: int = 0, note: str | None = None) -> ShapeCost:
    """An operator whose cost is its traffic: model FLOP 0 (research convention: only tensor-core work counts)."""
    return ShapeCost(elements=elements, index_bytes=index_bytes, note=note)


def unmeasured(reason: str) -> ShapeCost:
    """An operator without model FLOP whose traffic does not follow."""
    return ShapeCost(elements=None, reason=reason)


def numel(shape: Shape) -> int:
    """Elements of a tensor of this shape (1 for a scalar)."""
    return math.prod(shape)


def total(shapes: Iterable[Shape]) -> int:
    """Elements of all tensors; an empty shape is a scalar or an absent argument and counts 0."""
    return sum(numel(shape) for shape in shapes if shape)


def argument(shapes: Shapes, position: int) -> Shape:
    """Size of the argument at a position, () when it is absent, a scalar, or not a tensor."""
    return shapes[position] if position < len(shapes) else ()


def tensor(shapes: Shapes, position: int, *ranks: int) -> Shape:
    """Size of a tensor that must be there, with one of the given ranks. Raises ShapeMismatch."""
    shape = argument(shapes, position)
    if not shape or (ranks and len(shape) not in ranks):
        raise ShapeMismatch(f"argument {position} has size {list(shape)}, not that of the operator's tensor")
    return shape


def require(condition: object, what: str) -> None:
    """Raise ShapeMismatch unless the sizes fit together."""
    if not condition:
        raise ShapeMismatch(what)


def broadcast(shapes: Iterable[Shape]) -> Shape:
    """Shape that all shapes broadcast to, by the rules of torch. Raises ShapeMismatch."""
    present = [shape for shape in shapes if shape]
    rank = max((len(shape) for shape in present), default=0)
    padded = [(1,) * (rank - len(shape)) + shape for shape in present]
    return tuple(_common_length(lengths) for lengths in zip(*padded, strict=True))


def _common_length(lengths: tuple[int, ...]) -> int:
    wide = {length for length in lengths if length != 1}
    require(len(wide) <= 1, f"lengths {sorted(wide)} do not broadcast")
    return wide.pop() if wide else 1


def parse_sizes(text: str) -> Shapes:
    """Sizes of the arguments out of the text that emit_nvtx writes, `[[16384, 4096], [4096], []]`.

    A nested tensor list is flattened. Only brackets, digits, commas, minus and blanks are accepted; nothing is
    evaluated. Raises ShapeMismatch on anything else, on negative lengths, and beyond the limits on length and depth.
    """
    require(len(text) <= MAX_TEXT_CHARACTERS, f"sizes text has {len(text)} characters (limit {MAX_TEXT_CHARACTERS})")
    require(_ALLOWED_TEXT.fullmatch(text) is not None, "sizes text has other characters than brackets, digits, commas")
    require(_TOO_MANY_DIGITS.search(text) is None, "sizes text has a number of more than 18 digits")
    require(_depth(text) <= MAX_DEPTH, f"sizes text is nested deeper than {MAX_DEPTH}")
    try:
        parsed: object = json.loads(text)
    except ValueError as error:
        raise ShapeMismatch("sizes text is not a list of lists") from error
    require(isinstance(parsed, list), "sizes text is not a list of lists")
    return tuple(shape for item in _children(parsed) for shape in _flatten(item))


def _depth(text: str) -> int:
    depth = deepest = 0
    for character in text:
        depth += (character == "[") - (character == "]")
        deepest = max(deepest, depth)
    return deepest


def _children(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _flatten(item: object) -> list[Shape]:
    require(isinstance(item, list), "sizes text holds a number where a size is expected")
    children = _children(item)
    if any(isinstance(child, list) for child in children):
        return [shape for child in children for shape in _flatten(child)]
    lengths = tuple(child for child in children if isinstance(child, int))
    require(len(lengths) <= MAX_RANK, f"sizes text holds a tensor of {len(lengths)} dimensions (limit {MAX_RANK})")
    require(all(length >= 0 for length in lengths), "sizes text holds a negative length")
    return [lengths]


def named(names: str, formula: Formula) -> dict[str, Formula]:
    """One formula for several operators, their names separated by blanks."""
    return dict.fromkeys(names.split(), formula)


def always(cost: ShapeCost) -> Formula:
    """The same cost whatever the sizes."""

    def formula(_: Shapes) -> ShapeCost:
        return cost

    return formula


def bounded(cost: ShapeCost) -> ShapeCost:
    """The cost, or unknown when a count does not fit a signed 64-bit integer."""
    counts = (cost.flop, cost.extra_flop, cost.elements, cost.index_bytes)
    if any(count is not None and count > MAX_COUNT for count in counts):
        return unknown("a count exceeds 64 bits")
    return cost


def noted(cost: ShapeCost, note: str) -> ShapeCost:
    """The same cost with a remark on what it assumes."""
    return replace(cost, note=note)
