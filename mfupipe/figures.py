"""Figures: a table with final columns in, a matplotlib Figure out. No pyplot, no state; only positions are computed.

Every figure states its finding in the title, its quantity [unit] on the axis and its basis in the footer, because
images travel alone. Tables are those of queries/4_reports, or of a comparison with the same columns.
"""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import ParamSpec

import matplotlib as mpl
import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator

from mfupipe import units
from mfupipe.figure_labels import Spot, place_labels

BASELINE, THIS_RUN, LOSS, NO_COST, INK, FAINT = "#9A9A9A", "#0072B2", "#D55E00", "#DDDDDD", "#222222", "#6B6B6B"
FAMILY_COLOURS = {"model": THIS_RUN, "kernel": LOSS, "data": "#CC79A7", "idle": "#E69F00", "unknown": NO_COST}
WIDTH_IN, DPI = 9.6, 200
OPERATORS_SHOWN, WIDE_PCT = 10, 4.0
ROOF_STYLES = {"datasheet": "-", "burst": "--", "best in trace": "-.", "user": "--", "sustained": ":"}

_STYLE = {
    "font.family": "DejaVu Sans", "font.size": 9, "axes.titlesize": 11, "axes.titleweight": "bold",
    "axes.titlelocation": "left", "axes.edgecolor": FAINT, "axes.labelcolor": INK, "text.color": INK,
    "xtick.color": FAINT, "ytick.color": FAINT, "axes.spines.top": False, "axes.spines.right": False,
    "figure.facecolor": "white", "savefig.facecolor": "white", "hatch.color": "#A8A8A8", "hatch.linewidth": 0.6,
    "text.parse_math": False, "axes.formatter.use_mathtext": False, "svg.hashsalt": "mfupipe",
}  # fmt: skip

Row = dict[str, object]
_P = ParamSpec("_P")


@dataclass(frozen=True)
class Words:
    """What a figure says beside its data: the finding, the basis (device, n, ceiling) below, and what 100 % is."""

    title: str
    footer: str
    whole: str = "one step"


def _styled(draw: Callable[_P, Figure]) -> Callable[_P, Figure]:
    """The house style around one figure, without touching matplotlib's global state."""

    @wraps(draw)
    def styled(*args: _P.args, **kwargs: _P.kwargs) -> Figure:
        with mpl.rc_context(_STYLE), warnings.catch_warnings():  # type: ignore[arg-type]
            # Names may hold any script of the world; the box that stands for a missing glyph is no fault.
            warnings.filterwarnings("ignore", message="Glyph .* missing")
            return draw(*args, **kwargs)

    return styled


def to_png(figure: Figure) -> bytes:
    """PNG at twice 960 px; the same figure gives the same bytes."""
    stream = io.BytesIO()
    with mpl.rc_context(_STYLE), warnings.catch_warnings():  # type: ignore[arg-type]
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        FigureCanvasAgg(figure)
        figure.savefig(stream, format="png", dpi=DPI, metadata={"Software": None})
    return stream.getvalue()


@_styled
def ledger(table: pa.Table, words: Words) -> Figure:
    """Where the step time went: one 100 % bar on top, and each component in its place below, signed.

    table: report_ledger of one view: label, family, pct, ns_per_step, start_pct, end_pct, sum_pct.
    """
    rows = [row for row in rows_of(table) if row["pct"]]
    figure, axes = _canvas(1.7 + 0.27 * len(rows), words)
    figure.subplots_adjust(left=0.255, right=0.81)
    for index, row in enumerate(rows):
        if number(row, "pct") > 0:
            _ledger_piece(axes, row, 0, 0.9)
        _ledger_piece(axes, row, index + 1.3, 0.62)
        _ledger_text(axes, row, index + 1.3)
    _ledger_heads(axes, rows, words.whole)
    bottom = len(rows) + 0.9
    axes.plot([100, 100], [0.5, bottom], color=INK, linewidth=0.8)
    axes.set_ylim(bottom, -0.6)
    axes.set_xlim(0, max([100.0, *(number(row, "end_pct") for row in rows)]))
    total = units.points(number(rows[0], "sum_pct")) if rows else units.UNKNOWN
    axes.set_xlabel(f"share of {words.whole} [%], signed, sum {total}")
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    return figure


def _ledger_piece(axes: Axes, row: Row, y: float, height: float) -> None:
    family, gain = text(row, "family"), number(row, "pct") < 0
    hatch = "////" if gain or family == "unknown" else None
    colour = "white" if gain else FAMILY_COLOURS[family]
    axes.barh(y, number(row, "pct"), left=number(row, "start_pct"), height=height, color=colour, hatch=hatch,
              edgecolor=FAINT if gain else "white", linewidth=0.6)  # fmt: skip


def _ledger_heads(axes: Axes, rows: Sequence[Row], whole: str) -> None:
    edge = axes.get_yaxis_transform()
    axes.text(-0.012, 0, whole, ha="right", va="center", transform=edge, weight="bold")
    axes.text(1.125, 0, "points", ha="right", va="center", transform=edge, color=FAINT)
    axes.text(1.245, 0, "time", ha="right", va="center", transform=edge, color=FAINT)
    for row in rows:
        if number(row, "pct") >= WIDE_PCT:
            ink = INK if text(row, "family") in ("unknown", "idle") else "white"
            middle = (number(row, "start_pct") + number(row, "end_pct")) / 2
            axes.text(middle, 0, units.points(number(row, "pct")), ha="center", va="center", color=ink, weight="bold")


def _ledger_text(axes: Axes, row: Row, y: float) -> None:
    edge = axes.get_yaxis_transform()
    gain = "  (gain)" if number(row, "pct") < 0 else ""
    axes.text(-0.012, y, text(row, "label") + gain, ha="right", va="center", transform=edge, fontsize=8.5)
    axes.text(1.125, y, units.points(number(row, "pct")), ha="right", va="center", transform=edge)
    axes.text(1.245, y, units.duration(known(row, "ns_per_step")), ha="right", va="center", transform=edge)


@_styled
def operators(table: pa.Table, words: Words) -> Figure:
    """The ten operators with most recoverable time: at the ceiling, above it, or without a cost.

    table: report_operators of one view: operator, direction, ns_per_step, ideal_per_step_ns, recoverable_per_step_ns.
    """
    rows = rows_of(table)[:OPERATORS_SHOWN]
    figure, axes = _canvas(1.25 + 0.32 * max(len(rows), 2), words)
    figure.subplots_adjust(left=0.30, right=0.97)
    for index, row in enumerate(rows):
        _operator_bars(axes, row, index)
    axes.set_yticks(range(len(rows)), [operator_label(row, 38) for row in rows], color=INK, fontsize=8.5)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    longest = max((number(row, "ns_per_step") / units.NS_PER_MS for row in rows), default=1.0)
    axes.set_xlim(0, 1.18 * longest)
    axes.set_xlabel(f"GPU time in {words.whole} [ms]", loc="left")
    axes.tick_params(axis="y", length=0)
    _key(axes, (("at the ceiling", THIS_RUN, ""), ("above the ceiling", LOSS, ""), ("no cost model", NO_COST, "////")))
    return figure


def _operator_bars(axes: Axes, row: Row, y: int) -> None:
    total, ideal = number(row, "ns_per_step") / units.NS_PER_MS, known(row, "ideal_per_step_ns")
    lost = known(row, "recoverable_per_step_ns") or 0.0
    start = 0.0
    for length_ns, colour in ((ideal or 0.0, THIS_RUN), (lost if ideal else 0.0, LOSS)):
        length = max(0.0, min(length_ns / units.NS_PER_MS, total - start))
        axes.barh(y, length, left=start, height=0.62, color=colour)
        start += length
    # What is left has no cost: whole operators, or the calls of one whose shapes are unknown.
    axes.barh(y, total - start, left=start, height=0.62, color=NO_COST, hatch="////", edgecolor="white", linewidth=0)
    note = "no ceiling" if ideal is None else f"{units.duration(lost)} above" if lost > 0 else "beyond the ceiling"
    axes.text(total, y, f"  {note}", va="center", fontsize=8)


@_styled
def steps(table: pa.Table, words: Words) -> Figure:
    """Was the run steady: each step as a point, the median of the measured ones as a line.

    table: report_steps of one view: step, wall_ns, is_measured, median_ns. The axis spans at least a tenth around the
    median, so that noise of a percent looks like a percent.
    """
    rows = [row for row in rows_of(table) if row["wall_ns"] is not None]
    figure, axes = _canvas(2.9, words)
    figure.subplots_adjust(left=0.085, right=0.86)
    for measured, style in ((True, THIS_RUN), (False, "none")):
        chosen = [row for row in rows if bool(row["is_measured"]) is measured]
        walls = [number(row, "wall_ns") / units.NS_PER_MS for row in chosen]
        axes.scatter([number(row, "step") for row in chosen], walls, s=26, facecolor=style, zorder=3,
                     edgecolor=THIS_RUN if measured else BASELINE, linewidth=1.1)  # fmt: skip
    walls = [number(row, "wall_ns") / units.NS_PER_MS for row in rows]
    median = known(rows[0], "median_ns") if rows else None
    if median is not None:
        _median_line(axes, median / units.NS_PER_MS)
        walls += [median / units.NS_PER_MS * 0.9, median / units.NS_PER_MS * 1.1]
    pad = 0.06 * (max(walls) - min(walls)) if walls else 0
    axes.set_ylim(min(walls) - pad, max(walls) + pad)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("step [ordinal]      filled: measured, hollow: dropped")
    axes.set_ylabel("wall time per step [ms]")
    return figure


def _median_line(axes: Axes, median_ms: float) -> None:
    axes.axhline(median_ms, color=THIS_RUN, linewidth=0.9)
    axes.text(1.01, median_ms, f"median\n{units.significant(median_ms)} ms", transform=axes.get_yaxis_transform(),
              va="center", color=THIS_RUN, fontsize=8.5)  # fmt: skip


@_styled
def roofline(table: pa.Table, roofs: pa.Table, words: Words) -> Figure:
    """Which ceiling binds each operator: log-log, every roof with its value and kind on the line.

    table: report_operators (rows with flop_per_byte and flop_per_s are drawn, area by time); roofs: report_roofs.
    """
    rows = [row for row in rows_of(table) if row["flop_per_byte"] is not None and row["flop_per_s"] is not None]
    figure, axes = _canvas(4.9, words)
    figure.subplots_adjust(left=0.125, right=0.97)
    lines = [row for row in rows_of(roofs) if row["is_used"]]
    _log_limits(axes, rows, lines)
    roof_texts = _bandwidth_roofs(axes, lines) + _flop_roofs(axes, lines) + _not_drawn(axes, table.num_rows - len(rows))
    roof_lines = list(axes.lines)
    longest = max((number(row, "ns_per_step") for row in rows if row["ns_per_step"] is not None), default=1.0)
    points = [(number(row, "flop_per_byte"), number(row, "flop_per_s")) for row in rows]
    sizes = [25 + 275 * (known(row, "ns_per_step") or 0.0) / longest for row in rows]
    colours = [FAINT if row["bound"] is None else LOSS if row["bound"] == "memory" else THIS_RUN for row in rows]
    axes.scatter([x for x, _ in points], [y for _, y in points], s=sizes, c=colours, alpha=0.75, edgecolor="white",
                 linewidth=0.8, zorder=3)  # fmt: skip
    _key(axes, (("compute bound", THIS_RUN, ""), ("memory bound", LOSS, ""), ("calls differ", FAINT, "")))
    axes.set_xlabel(f"arithmetic intensity [FLOP/byte]      area: time in {words.whole}", loc="left")
    axes.set_ylabel("achieved [FLOP/s]")
    axes.grid(visible=True, which="major", color="#EEEEEE", linewidth=0.7)
    order = sorted(range(len(rows)), key=lambda index: -sizes[index])
    spots = [Spot(*points[index], math.sqrt(sizes[index]) / 2, operator_label(rows[index], 34)) for index in order]
    place_labels(axes, spots, (roof_texts, roof_lines))
    return figure


def _not_drawn(axes: Axes, missing: int) -> list[Text]:
    """A logarithm has no place for zero: what moves bytes only, or has no cost, is counted instead."""
    if not missing:
        return []
    note = f"not drawn: {units.plural(missing, 'operator')} without FLOP or without cost"
    return [axes.text(0.99, 0.02, note, transform=axes.transAxes, ha="right", va="bottom", color=FAINT, fontsize=7.5)]


def _log_limits(axes: Axes, rows: Sequence[Row], roofs: Sequence[Row]) -> None:
    tops = [number(row, "flop_per_s") for row in roofs if row["flop_per_s"] is not None]
    rates = [number(row, "flop_per_s") for row in rows] or tops or [1.0]
    intensities = [number(row, "flop_per_byte") for row in rows] or [1.0]
    bandwidths = [number(row, "bytes_per_s") for row in roofs if row["bytes_per_s"] is not None]
    ridge = max(tops) / max(bandwidths) if tops and bandwidths else max(intensities)
    axes.set_xscale("log")
    axes.set_yscale("log")
    # Both roofs and the ridge between them stay in sight, wherever the points lie.
    axes.set_xlim(min(min(intensities) / 4, ridge / 60), max([*intensities, ridge]) * 8)
    axes.set_ylim(min(min(rates) / 4, max([*rates, *tops]) / 60), max([*rates, *tops]) * 3)
    axes.yaxis.set_major_formatter(lambda value, _: units.decade(value, "FLOP/s"))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.tick_params(which="minor", length=0, labelleft=False, labelbottom=False)


def _flop_roofs(axes: Axes, roofs: Sequence[Row]) -> list[Text]:
    """Horizontal roofs; those of one dtype share one text, as they lie closer together than a line of text is high."""
    right = axes.get_xlim()[1]
    bandwidth = max((number(row, "bytes_per_s") for row in roofs if row["bytes_per_s"] is not None), default=None)
    highest = max((number(row, "flop_per_s") for row in roofs if row["flop_per_s"] is not None), default=0.0)
    texts: list[Text] = []
    for dtype in dict.fromkeys(text(row, "dtype") for row in roofs if row["flop_per_s"] is not None):
        family = [row for row in roofs if row["dtype"] == dtype]
        for row in family:
            value = number(row, "flop_per_s")
            left = axes.get_xlim()[0] if bandwidth is None else value / bandwidth
            axes.plot([left, right], [value, value], _roof_style(row), color=INK, linewidth=1.0)
        top = max(number(row, "flop_per_s") for row in family)
        label = f"{dtype}: {_roof_values(family, 'flop_per_s')} TFLOP/s"
        # Points crowd under the highest roof and to the right: its text stays above, the others begin at the ridge.
        place, offset, side = ((right, top), (-2, 10), "right")
        if top < highest and bandwidth is not None:
            place, offset, side = ((1.3 * top / bandwidth, top), (16, 2), "left")
        texts.append(axes.annotate(label, place, xytext=offset, textcoords="offset points", ha=side, fontsize=7.5))
    return texts


def _bandwidth_roofs(axes: Axes, roofs: Sequence[Row]) -> list[Text]:
    family = [row for row in roofs if row["bytes_per_s"] is not None]
    tops = [number(row, "flop_per_s") for row in roofs if row["flop_per_s"] is not None]
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    for row in family:
        value = number(row, "bytes_per_s")
        end = min(right, (max(tops) if tops else high) / value)
        axes.plot([left, end], [left * value, end * value], _roof_style(row), color=INK, linewidth=1.0)
    if not family:
        return []
    best = max(number(row, "bytes_per_s") for row in family)
    start = max(left, low / best) * 1.25
    (x0, y0), (x1, y1) = axes.transData.transform([(start, start * best), (start * 10, start * best * 10)])
    label = _two_lines(f"memory: {_roof_values(family, 'bytes_per_s')} TB/s")
    return [axes.annotate(label, (start, start * best), xytext=(-2, 5), textcoords="offset points", fontsize=7.5,
                          rotation=math.degrees(math.atan2(y1 - y0, x1 - x0)), rotation_mode="anchor")]  # fmt: skip


def _two_lines(label: str) -> str:
    """A label with more than two values, broken in the middle: a slope is shorter than a roof."""
    parts = label.split(", ")
    half = (len(parts) + 1) // 2
    return label if len(parts) < 3 else ", ".join(parts[:half]) + ",\n" + ", ".join(parts[half:])  # noqa: PLR2004


def _roof_style(row: Row) -> str:
    return ROOF_STYLES.get(text(row, "condition") or text(row, "kind"), "--")


def _roof_values(family: Sequence[Row], column: str) -> str:
    marks = {"-": "solid", "--": "dashed", "-.": "dash-dotted", ":": "dotted"}
    return ", ".join(
        f"{units.teras(number(row, column))} {text(row, 'condition') or text(row, 'kind')} ({marks[_roof_style(row)]})"
        for row in family
    )


def _canvas(height_in: float, words: Words) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH_IN, height_in), dpi=DPI)
    axes = figure.subplots()
    figure.subplots_adjust(top=1 - 0.42 / height_in, bottom=0.80 / height_in)
    figure.text(0.012, 1 - 0.09 / height_in, units.shortened(words.title, 108), weight="bold", size=11, va="top")
    figure.text(0.012, 0.07 / height_in, units.shortened(words.footer, 175), color=FAINT, size=7, va="bottom")
    return figure, axes


def _key(axes: Axes, entries: Sequence[tuple[str, str, str]]) -> None:
    for label, colour, hatch in entries:
        axes.bar([float("nan")], [float("nan")], color=colour, hatch=hatch, label=label, edgecolor="white")
    # Under the axis, beside its name: no corner inside is free of data on every run.
    figure = axes.get_figure(root=True)
    assert figure is not None
    handles, labels = axes.get_legend_handles_labels()
    corner = (axes.get_position().x1, 0.3 / figure.get_figheight())
    figure.legend(handles, labels, loc="lower right", bbox_to_anchor=corner, ncols=len(entries), frameon=False,
                  fontsize=8, handlelength=1.0)  # fmt: skip


def has_roofline(table: pa.Table, roofs: pa.Table) -> bool:
    """True when there is a point, and a roof to compare it with."""
    points = [row for row in rows_of(table) if row["flop_per_byte"] is not None and row["flop_per_s"] is not None]
    return bool(points) and any(row["is_used"] for row in rows_of(roofs))


def rows_of(table: pa.Table) -> list[Row]:
    """The rows as plain dictionaries, in order."""
    rows: list[Row] = table.to_pylist()
    return rows


def number(row: Row, column: str) -> float:
    """A cell that must be a number."""
    value = row[column]
    if not isinstance(value, int | float):
        raise TypeError(f"{column} is {value!r}, not a number")
    return float(value)


def known(row: Row, column: str) -> float | None:
    """A cell that may be NULL."""
    return None if row[column] is None else number(row, column)


def text(row: Row, column: str) -> str:
    """A cell of text; NULL is the empty string."""
    return "" if row[column] is None else str(row[column])


def operator_label(row: Row, limit: int) -> str:
    """'aten::mm backward': the direction is said unless it is forward or none."""
    direction = text(row, "direction")
    suffix = "" if direction in ("", "forward") else f" {direction}"
    return units.plain(text(row, "operator"), limit - len(suffix)) + suffix
