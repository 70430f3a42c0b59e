"""Labels beside points so that no text covers a text, a point or a line; one without a free place is left out.

Everything drawn is a convex shape in pixels of the figure: a text its rectangle, a line its two ends, a point a circle.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Annotation, Text

LEADER = {"arrowstyle": "-", "color": "#6B6B6B", "linewidth": 0.6, "shrinkA": 0, "shrinkB": 0}
POINTS_PER_INCH = 72
LABEL_SIZE = 7.5
CLEARANCE = 1.0  # points between a label and whatever is drawn
GAPS = (2.0, 6.0, 11.0, 17.0, 24.0)  # points between the rim of a point and its label: no leader is longer
DIRECTIONS = (0, 180, 90, 270, 45, 315, 135, 225, 20, 340, 160, 200, 70, 290, 110, 250)
CORNERS = 12

Corner = tuple[float, float]


@dataclass(frozen=True)
class Shape:
    """A convex polygon in pixels; two corners are a line."""

    corners: tuple[Corner, ...]

    @cached_property
    def box(self) -> tuple[float, float, float, float]:
        """Left, bottom, right, top."""
        xs, ys = zip(*self.corners, strict=True)
        return min(xs), min(ys), max(xs), max(ys)

    @cached_property
    def normals(self) -> tuple[Corner, ...]:
        """The directions across its sides."""
        sides = zip(self.corners, (*self.corners[1:], self.corners[0]), strict=True)
        return tuple((y0 - y1, x1 - x0) for (x0, y0), (x1, y1) in sides)

    def meets(self, other: Shape) -> bool:
        """Whether two shapes share a point: convex shapes do not when a line across one of their sides parts them."""
        one, two = self.box, other.box
        if one[2] < two[0] or two[2] < one[0] or one[3] < two[1] or two[3] < one[1]:
            return False
        return not any(_parted(axis, self, other) for axis in (*self.normals, *other.normals))


@dataclass(frozen=True)
class Spot:
    """A drawn point that wants a label: position in data units, radius in points."""

    x: float
    y: float
    radius: float
    label: str


def place_labels(
    axes: Axes, spots: Sequence[Spot], wanted: int, drawn: tuple[Sequence[Shape], Sequence[Shape]]
) -> list[Spot]:
    """Label the first `wanted` spots; returns those that found a place close by.

    spots: all points, most important first; drawn: the texts and lines that are there. Axis limits must be final.
    """
    discs = [disc(axes, spot) for spot in spots]
    texts, lines = list(drawn[0]), drawn[1]
    leaders: list[Shape] = []
    placed: list[Spot] = []
    for spot, own in zip(spots[:wanted], discs, strict=False):
        # A leader may cross a roof, and points that lie upon its own; a label never.
        others = [other for other in discs if not other.meets(own)]
        found = _place(axes, spot, ([*texts, *lines, *leaders, *discs], [*texts, *others]))
        if found is not None:
            texts.append(found[0])
            leaders.append(found[1])
            placed.append(spot)
    return placed


def place_text(axes: Axes, text: Text, taken: Sequence[Shape]) -> Shape | None:
    """The shape of a text that covers nothing and stays inside the axes; otherwise it is removed, and None."""
    shape = text_shape(axes, text)
    if _is_inside(axes, shape) and not any(shape.meets(other) for other in taken):
        return shape
    text.remove()
    return None


def text_shape(axes: Axes, text: Text) -> Shape:
    """The rectangle of a text with its clearance, turned as the text is (`rotation_mode` anchor)."""
    renderer, angle = renderer_of(_figure(axes)), text.get_rotation()
    text.set_rotation(0)
    if isinstance(text, Annotation):
        text.update_positions(renderer)
    box = Text.get_window_extent(text, renderer)  # an annotation's own extent would include its leader
    anchor = text.get_transform().transform(text.get_unitless_position())
    text.set_rotation(angle)
    pad = CLEARANCE * _pixels(axes)
    corners = ((box.x0 - pad, box.y0 - pad), (box.x1 + pad, box.y0 - pad),
               (box.x1 + pad, box.y1 + pad), (box.x0 - pad, box.y1 + pad))  # fmt: skip
    return Shape(
        tuple(_turned(corner, (float(anchor[0]), float(anchor[1])), math.radians(angle)) for corner in corners)
    )


def line_shape(axes: Axes, line: Line2D) -> Shape:
    """The straight line from the first point of a Line2D to its last."""
    ends = axes.transData.transform(line.get_xydata())
    return Shape(((float(ends[0][0]), float(ends[0][1])), (float(ends[-1][0]), float(ends[-1][1]))))


def disc(axes: Axes, spot: Spot) -> Shape:
    """The circle of a point, as a polygon around it."""
    x, y = axes.transData.transform((spot.x, spot.y))
    radius = (spot.radius + 0.5) * _pixels(axes) / math.cos(math.pi / CORNERS)
    angles = (2 * math.pi * index / CORNERS for index in range(CORNERS))
    return Shape(tuple((float(x) + radius * math.cos(a), float(y) + radius * math.sin(a)) for a in angles))


def renderer_of(figure: Figure) -> RendererBase:
    """The renderer that measures texts of a figure."""
    canvas = figure.canvas if isinstance(figure.canvas, FigureCanvasAgg) else FigureCanvasAgg(figure)
    renderer: RendererBase = canvas.get_renderer()  # type: ignore[no-untyped-call]
    return renderer


def _place(axes: Axes, spot: Spot, occupied: tuple[Sequence[Shape], Sequence[Shape]]) -> tuple[Shape, Shape] | None:
    """Label and leader at the first free place, or None and no label. occupied: for the label, for its leader."""
    for_label, for_leader = occupied
    x, y = axes.transData.transform((spot.x, spot.y))
    for offset in _offsets(spot.radius):
        label = axes.annotate(spot.label, (spot.x, spot.y), xytext=offset[:2], textcoords="offset points",
                              fontsize=LABEL_SIZE, ha=offset[2], va=offset[3], zorder=4, arrowprops=LEADER)  # fmt: skip
        shape = place_text(axes, label, for_label)
        if shape is None:
            continue
        left, bottom, right, top = shape.box
        leader = Shape(((float(x), float(y)), ((left + right) / 2, (bottom + top) / 2)))
        if not any(leader.meets(other) for other in for_leader):
            return shape, leader
        label.remove()
    return None


def _offsets(radius: float) -> Iterable[tuple[float, float, str, str]]:
    """Offsets in points with their alignment, nearest first, around the point."""
    for gap in GAPS:
        for degrees in DIRECTIONS:
            across, up = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
            horizontal = "center" if abs(across) < 0.4 else "left" if across > 0 else "right"  # noqa: PLR2004
            vertical = "center" if abs(up) < 0.4 else "bottom" if up > 0 else "top"  # noqa: PLR2004
            yield (radius + gap) * across, (radius + gap) * up, horizontal, vertical


def _parted(axis: Corner, one: Shape, other: Shape) -> bool:
    first = [axis[0] * x + axis[1] * y for x, y in one.corners]
    second = [axis[0] * x + axis[1] * y for x, y in other.corners]
    return max(first) < min(second) or max(second) < min(first)


def _is_inside(axes: Axes, shape: Shape) -> bool:
    frame, (left, bottom, right, top) = axes.bbox, shape.box
    return bool(frame.x0 <= left and right <= frame.x1 and frame.y0 <= bottom and top <= frame.y1)


def _turned(corner: Corner, centre: Corner, angle: float) -> Corner:
    x, y = corner[0] - centre[0], corner[1] - centre[1]
    return (
        centre[0] + x * math.cos(angle) - y * math.sin(angle),
        centre[1] + x * math.sin(angle) + y * math.cos(angle),
    )


def _figure(axes: Axes) -> Figure:
    figure = axes.get_figure(root=True)
    assert figure is not None
    return figure


def _pixels(axes: Axes) -> float:
    """Pixels of one point."""
    return float(_figure(axes).dpi) / POINTS_PER_INCH
