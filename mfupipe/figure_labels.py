"""Labels beside points so that no text covers a text, a point or a line; one without a free place is left out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.lines import Line2D
from matplotlib.text import Annotation, Text
from matplotlib.transforms import Bbox

LABELS_SHOWN = 8
LEADER = {"arrowstyle": "-", "color": "#9A9A9A", "linewidth": 0.6, "shrinkA": 0, "shrinkB": 0}
POINTS_PER_INCH = 72
PIECES = 32
LINE_MARGIN, SLANT_MARGIN = 2.0, 18.0  # pixels of the figure
GAPS = (3.0, 14.0, 26.0, 40.0, 56.0, 75.0)


@dataclass(frozen=True)
class Spot:
    """A drawn point that wants a label: position in data units, radius in points."""

    x: float
    y: float
    radius: float
    label: str


def place_labels(axes: Axes, spots: Sequence[Spot], drawn: tuple[Sequence[Text], Sequence[Line2D]]) -> list[str]:
    """Label the first spots; returns the labels that found a place.

    spots: most important first; drawn: the texts and lines that are there already. Axis limits must be final.
    """
    figure = axes.get_figure(root=True)
    assert figure is not None
    renderer = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
    texts, lines = drawn
    written = [box for text in texts for box in _text_boxes(text, text.get_window_extent(renderer))]
    crossable = [box for line in lines for box in _line_boxes(axes, line)]
    scale = figure.dpi / POINTS_PER_INCH
    own = {spot: _disc(axes, spot, scale) for spot in spots}
    taken = list(own.values())
    placed: list[str] = []
    for spot in spots[:LABELS_SHOWN]:
        # A label clear of the lines is better than one across a line, and that is better than none.
        # The same holds for its leader and the other points.
        others = [disc for disc in own.values() if not disc.overlaps(own[spot])]
        for avoided, uncrossed in ((crossable, others), ([], others), ([], [])):
            box = _place(axes, spot, renderer, ([*taken, *avoided, *written], [*written, *uncrossed]))
            if box is not None:
                taken += _leader_boxes(axes, spot, box)
                written.append(box)
                placed.append(spot.label)
                break
    return placed


def _place(
    axes: Axes, spot: Spot, renderer: RendererBase, occupied: tuple[Sequence[Bbox], Sequence[Bbox]]
) -> Bbox | None:
    """The box of the label at its first free place, or None and no label. occupied: for the label, for its leader."""
    for_label, for_leader = occupied
    for offset in _offsets(spot.radius):
        label = _annotate(axes, spot, offset)
        label.update_positions(renderer)  # an annotation's own extent would include its leader
        box = Text.get_window_extent(label, renderer)
        leader = _leader_boxes(axes, spot, box)
        if _is_inside(axes, box) and not _meet([box], for_label) and not _meet(leader, for_leader):
            return box
        label.remove()
    return None


def _annotate(axes: Axes, spot: Spot, offset: tuple[float, float, str, str]) -> Annotation:
    dx, dy, horizontal, vertical = offset
    halo = [patheffects.withStroke(linewidth=1.5, foreground="white")]
    return axes.annotate(spot.label, (spot.x, spot.y), xytext=(dx, dy), textcoords="offset points", fontsize=7.5,
                         ha=horizontal, va=vertical, zorder=4, arrowprops=LEADER, path_effects=halo)  # fmt: skip


def _offsets(radius: float) -> Iterable[tuple[float, float, str, str]]:
    """Offsets in points with their alignment, nearest first: right, left, below, above, corners, then further out."""
    for gap in GAPS:
        far = radius + gap
        yield from ((far, 0.0, "left", "center"), (-far, 0.0, "right", "center"), (0.0, -far, "center", "top"),
                    (0.0, far, "center", "bottom"), (far, -far, "left", "top"), (-far, -far, "right", "top"),
                    (far, far, "left", "bottom"), (-far, far, "right", "bottom"),
                    (-2.5 * far, -far, "right", "top"), (2.5 * far, -far, "left", "top"))  # fmt: skip


def _meet(boxes: Sequence[Bbox], others: Sequence[Bbox]) -> bool:
    return any(box.overlaps(other) for box in boxes for other in others)


def _is_inside(axes: Axes, box: Bbox) -> bool:
    frame = axes.bbox
    return bool(frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1)


def _disc(axes: Axes, spot: Spot, pixels_per_point: float) -> Bbox:
    (x, y), half = axes.transData.transform((spot.x, spot.y)), (spot.radius + 1) * pixels_per_point
    return Bbox.from_extents(x - half, y - half, x + half, y + half)


def _text_boxes(text: Text, box: Bbox) -> list[Bbox]:
    """The box of a text; of a slanted one, small boxes along its diagonal, for most of its own box is empty."""
    return [box] if text.get_rotation() == 0 else _between((box.x0, box.y0), (box.x1, box.y1), SLANT_MARGIN)


def _line_boxes(axes: Axes, line: Line2D) -> list[Bbox]:
    points = axes.transData.transform(line.get_xydata())
    return _between(tuple(points[0]), tuple(points[-1]), LINE_MARGIN)


def _leader_boxes(axes: Axes, spot: Spot, box: Bbox) -> list[Bbox]:
    x, y = axes.transData.transform((spot.x, spot.y))
    return _between((x, y), (min(max(x, box.x0), box.x1), min(max(y, box.y0), box.y1)), LINE_MARGIN)


def _between(start: tuple[float, ...], end: tuple[float, ...], margin: float) -> list[Bbox]:
    """Small boxes along a straight line of pixels."""
    width, height = (end[0] - start[0]) / PIECES, (end[1] - start[1]) / PIECES
    corners = [(start[0] + index * width, start[1] + index * height) for index in range(PIECES)]
    return [Bbox.from_extents(min(x, x + width) - margin, min(y, y + height) - margin,
                              max(x, x + width) + margin, max(y, y + height) + margin) for x, y in corners]  # fmt: skip
