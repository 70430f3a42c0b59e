"""The roofline: roofs with their values on the line, points with the rank of their operator, names in a key beside."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product

import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from mfupipe import units
from mfupipe.figure_canvas import (
    DPI,
    FAINT,
    INK,
    LOSS,
    THIS_RUN,
    WIDTH_IN,
    Row,
    Words,
    canvas,
    fits,
    key,
    known,
    number,
    operator_labels,
    rows_of,
    styled,
    text_of,
)
from mfupipe.figure_labels import Shape, Spot, disc, line_shape, place_labels, place_text

ROOF_STYLES = {"datasheet": "-", "burst": "--", "best in trace": "-.", "user": "--", "sustained": ":"}
MARKS = {"-": "solid", "--": "dashed", "-.": "dash-dotted", ":": "dotted"}
BOUNDS = (("compute", "compute bound", THIS_RUN), ("memory", "memory bound", LOSS), ("", "calls differ", FAINT))
LABELS_SHOWN, NAME_LIMIT = 16, 46
LEFT, RIGHT, KEY_LEFT, KEY_RIGHT = 0.125, 0.66, 0.674, 0.992
KEY_LINE_IN, KEY_SIZE, ROOF_SIZE = 0.155, 7.5, 7.5
SMALLEST_AREA, AREA_RANGE = 25, 275
ROOM_RIGHT, ROOM_ABOVE = 0.6, 0.16  # of the decades that lie left and below
NEAREST, OFFSETS = 3.0, (3.0, 9.0, 18.0)  # points between a roof and its text


@styled
def roofline(table: pa.Table, roofs: pa.Table, words: Words) -> Figure:
    """Which ceiling binds each operator: log-log, every roof with its value and kind on the line.

    table: report_operators (rows with flop_per_byte and flop_per_s are drawn, area by time, number = position);
    roofs: report_roofs.
    """
    rows = sorted(_drawable(table), key=lambda row: -number(row, "ns_per_step"))
    figure, axes = canvas(4.9, words)
    figure.subplots_adjust(left=LEFT, right=RIGHT)
    lines = [row for row in rows_of(roofs) if row["is_used"]]
    _log_limits(axes, rows, lines)
    axes.set_xlabel(f"arithmetic intensity [FLOP/byte]      area: time in {words.whole}", loc="left")
    axes.set_ylabel("achieved [FLOP/s]")
    axes.grid(visible=True, which="major", color="#EEEEEE", linewidth=0.7)
    met = {text_of(row, "bound") for row in rows}
    key(axes, [(label, colour, "") for bound, label, colour in BOUNDS if bound in met], KEY_RIGHT)
    spots = _points(axes, rows)
    _draw_roofs(axes, lines)
    roof_lines = [line_shape(axes, line) for line in axes.lines]
    texts, homeless = _roof_texts(axes, lines, [*roof_lines, *(disc(axes, spot) for spot in spots)])
    placed = place_labels(axes, spots, LABELS_SHOWN, (texts, roof_lines))
    numbered = [row for row, spot in zip(rows, spots, strict=True) if spot in placed]
    _write_key(figure, axes, numbered, [*homeless, *_left_out(len(rows) - len(placed), table.num_rows - len(rows))])
    return figure


def has_roofline(table: pa.Table, roofs: pa.Table) -> bool:
    """True when there is a point, and a roof to compare it with."""
    return bool(_drawable(table)) and any(row["is_used"] for row in rows_of(roofs))


def _drawable(table: pa.Table) -> list[Row]:
    columns = ("flop_per_byte", "flop_per_s", "ns_per_step")
    return [row for row in rows_of(table) if all(known(row, column) for column in columns)]


def _points(axes: Axes, rows: Sequence[Row]) -> list[Spot]:
    """Draw the points; most time first, so that the small lie upon the large."""
    longest = max((number(row, "ns_per_step") for row in rows), default=1.0)
    colours = {bound: colour for bound, _, colour in BOUNDS}
    spots = []
    for row in rows:
        area = SMALLEST_AREA + AREA_RANGE * number(row, "ns_per_step") / longest
        x, y = number(row, "flop_per_byte"), number(row, "flop_per_s")
        axes.scatter([x], [y], s=[area], c=[colours[text_of(row, "bound")]], alpha=0.75, edgecolor="white",
                     linewidth=0.8, zorder=3)  # fmt: skip
        spots.append(Spot(x, y, math.sqrt(area) / 2, f"{number(row, 'position'):.0f}"))
    return spots


def _log_limits(axes: Axes, rows: Sequence[Row], roofs: Sequence[Row]) -> None:
    tops = [number(row, "flop_per_s") for row in roofs if row["flop_per_s"] is not None]
    rates = [number(row, "flop_per_s") for row in rows] or tops or [1.0]
    intensities = [number(row, "flop_per_byte") for row in rows] or [1.0]
    bandwidths = [number(row, "bytes_per_s") for row in roofs if row["bytes_per_s"] is not None]
    ridge = max(tops) / max(bandwidths) if tops and bandwidths else max(intensities)
    axes.set_xscale("log")
    axes.set_yscale("log")
    # Both roofs and the ridge between them stay in sight, wherever the points lie, and there is room for their texts.
    left, low, top = min(min(intensities) / 4, ridge / 30), min(rates) / 4, max([*rates, *tops])
    low = min(low, max(tops, default=top) / 30)
    axes.set_xlim(left, max(5 * max(intensities), ridge * (ridge / left) ** ROOM_RIGHT))
    axes.set_ylim(low, top * (top / low) ** ROOM_ABOVE)
    axes.yaxis.set_major_formatter(lambda value, _: units.decade(value, "FLOP/s"))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
    axes.tick_params(which="minor", length=0, labelleft=False, labelbottom=False)


def _draw_roofs(axes: Axes, roofs: Sequence[Row]) -> None:
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    bandwidths = [number(row, "bytes_per_s") for row in roofs if row["bytes_per_s"] is not None]
    tops = [number(row, "flop_per_s") for row in roofs if row["flop_per_s"] is not None]
    for row in roofs:
        flop, bandwidth = known(row, "flop_per_s"), known(row, "bytes_per_s")
        if flop is not None and flop > low:
            start = max(left, flop / max(bandwidths)) if bandwidths else left
            axes.plot([start, right], [flop, flop], _roof_style(row), color=INK, linewidth=1.0)
        elif bandwidth is not None:
            start, end = max(left, low / bandwidth), min(right, (max(tops) if tops else high) / bandwidth)
            axes.plot([start, end], [start * bandwidth, end * bandwidth], _roof_style(row), color=INK, linewidth=1.0)


def _roof_texts(axes: Axes, roofs: Sequence[Row], taken: Sequence[Shape]) -> tuple[list[Shape], list[str]]:
    """The value of every roof on its line: the shapes of the texts, and the texts that found no place."""
    shapes: list[Shape] = []
    homeless: list[str] = []
    for label, family in _families(roofs):
        candidates = _on_slope if family[0]["flop_per_s"] is None else _on_level
        placed = (place_text(axes, text, [*taken, *shapes]) for text in candidates(axes, family, label, roofs))
        shape = next((shape for shape in placed if shape is not None), None)
        shapes += [] if shape is None else [shape]
        homeless += [label] if shape is None else []
    return shapes, homeless


def _families(roofs: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Roofs that lie closer together than a line of text is high share one: those of one dtype, and equal dtypes."""
    by_values: dict[str, list[str]] = {}
    families: dict[str, list[Row]] = {}
    for dtype in dict.fromkeys(text_of(row, "dtype") for row in roofs if row["flop_per_s"] is not None):
        family = [row for row in roofs if row["dtype"] == dtype]
        values = _roof_values(family, "flop_per_s")
        by_values.setdefault(values, []).append(dtype)
        families[values] = family
    for values, dtypes in by_values.items():
        yield f"{', '.join(dtypes)}: {values} TFLOP/s", families[values]
    memory = [row for row in roofs if row["bytes_per_s"] is not None]
    if memory:
        yield f"memory: {_roof_values(memory, 'bytes_per_s')} TB/s", memory


def _on_level(axes: Axes, family: Sequence[Row], label: str, roofs: Sequence[Row]) -> Iterator[Text]:
    """The text above the highest line of a family or below its lowest: at the right end, the left end, between."""
    values = [number(row, "flop_per_s") for row in family]
    bandwidths = [number(row, "bytes_per_s") for row in roofs if row["bytes_per_s"] is not None]
    left, right = axes.get_xlim()
    start = max(left, min(values) / max(bandwidths)) if bandwidths else left
    for content, rise in product(dict.fromkeys((label, _two_lines(label))), OFFSETS):
        for value, offset, vertical in ((max(values), rise, "bottom"), (min(values), -rise, "top")):
            for share, side in ((1.0, "right"), (0.0, "left"), (0.5, "center"), (0.75, "right"), (0.25, "left")):
                place = (start * (right / start) ** share, value)
                inwards = {"right": -2.0, "left": 8.0, "center": 0.0}[side]
                yield axes.annotate(content, place, xytext=(inwards, offset), textcoords="offset points", ha=side,
                                    va=vertical, fontsize=ROOF_SIZE)  # fmt: skip


def _on_slope(axes: Axes, family: Sequence[Row], label: str, roofs: Sequence[Row]) -> Iterator[Text]:
    """The text along the bandwidth roofs, above the highest or below the lowest; a long one is broken in the middle."""
    values = [number(row, "bytes_per_s") for row in family]
    tops = [number(row, "flop_per_s") for row in roofs if row["flop_per_s"] is not None]
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    for content in dict.fromkeys((label, _two_lines(label))):
        for value, rise, vertical in ((max(values), NEAREST, "bottom"), (min(values), -NEAREST, "top")):
            start, end = max(left, low / value), min(right, (max(tops) if tops else high) / value)
            (x0, y0), (x1, y1) = axes.transData.transform([(start, start * value), (end, end * value)])
            angle = math.atan2(y1 - y0, x1 - x0)
            offset = (-rise * math.sin(angle), rise * math.cos(angle))
            for share in (0.06, 0.02, 0.12, 0.2, 0.3, 0.4, 0.5):
                x = start * (end / start) ** share
                yield axes.annotate(content, (x, x * value), xytext=offset, textcoords="offset points", va=vertical,
                                    fontsize=ROOF_SIZE, rotation=math.degrees(angle),
                                    rotation_mode="anchor")  # fmt: skip


def _two_lines(label: str) -> str:
    parts = label.split(", ")
    half = (len(parts) + 1) // 2
    return label if len(parts) == 1 else ", ".join(parts[:half]) + ",\n" + ", ".join(parts[half:])


def _roof_style(row: Row) -> str:
    return ROOF_STYLES.get(text_of(row, "condition") or text_of(row, "kind"), "--")


def _roof_values(family: Sequence[Row], column: str) -> str:
    # GPUs of one kind have the same roofs.
    values = (
        f"{units.teras(number(row, column))} {text_of(row, 'condition') or text_of(row, 'kind')} "
        f"({MARKS[_roof_style(row)]})"
        for row in family
    )
    return ", ".join(dict.fromkeys(values))


def _left_out(unnumbered: int, undrawn: int) -> list[str]:
    """A logarithm has no place for zero, and a crowd none for every number: what is not there is counted."""
    notes = [f"{units.plural(unnumbered, 'point')} without a number"] if unnumbered else []
    return notes + ([f"not drawn: {units.plural(undrawn, 'operator')} without FLOP or cost"] if undrawn else [])


def _write_key(figure: Figure, axes: Axes, rows: Sequence[Row], notes: Sequence[str]) -> None:
    """Number and name of each numbered point, in the order of the report's table; below, what is not in the plot."""
    ranked = sorted(rows, key=lambda row: number(row, "position"))
    step = KEY_LINE_IN / figure.get_figheight()
    top = axes.get_position().y1
    indent = 0.026
    width = (KEY_RIGHT - KEY_LEFT - indent) * WIDTH_IN * DPI
    figure.text(KEY_LEFT, top, "# as in the operator table", size=KEY_SIZE, color=FAINT, va="top")
    for line, (row, label) in enumerate(zip(ranked, operator_labels(ranked, NAME_LIMIT), strict=True), 1):
        figure.text(KEY_LEFT + 0.8 * indent, top - line * step, f"{number(row, 'position'):.0f}", size=KEY_SIZE,
                    va="top", ha="right", weight="bold")  # fmt: skip
        _fitted(figure.text(KEY_LEFT + indent, top - line * step, "", size=KEY_SIZE, va="top"), label, width)
    lines = [part for note in notes for part in _two_lines(note).split("\n")]
    for line, note in enumerate(lines, len(ranked) + 2):
        text = figure.text(KEY_LEFT, top - line * step, "", size=KEY_SIZE, color=FAINT, va="top")
        _fitted(text, note, width + indent * WIDTH_IN * DPI)


def _fitted(text: Text, content: str, width: float) -> None:
    """The text as long as its room allows: letters of some scripts are twice as wide as others."""
    room = len(content)
    while not fits(text, units.shortened(content, room), width) and room > 1:
        room -= 1
