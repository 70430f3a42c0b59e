"""Figures: a table with final columns in, a matplotlib Figure out. No pyplot, no state; only positions are computed.

Every figure states its finding in the title, its quantity [unit] on the axis and its basis in the footer, because
images travel alone. Tables are those of queries/4_reports, or of a comparison with the same columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from mfupipe import phrases, units
from mfupipe.figure_canvas import (
    BASELINE,
    FAINT,
    INK,
    LOSS,
    NO_COST,
    THIS_RUN,
    Row,
    Words,
    canvas,
    key,
    known,
    number,
    operator_labels,
    rows_of,
    styled,
    text_of,
    time_scale,
    to_png,
)
from mfupipe.figure_roofline import has_roofline, roofline

__all__ = ["Words", "has_roofline", "ledger", "operators", "roofline", "steps", "to_png"]

FAMILY_COLOURS = {"model": THIS_RUN, "kernel": LOSS, "data": "#CC79A7", "idle": "#E69F00", "unknown": NO_COST}
OPERATOR_KEY = (("at the ceiling", THIS_RUN, ""), ("above the ceiling", LOSS, ""), ("no ceiling", NO_COST, "////"))
OPERATORS_SHOWN, WIDE_PCT, NAME_LIMIT = 10, 5.5, 44


@styled
def ledger(table: pa.Table, words: Words) -> Figure:
    """Where the step time went: one 100 % bar on top, and each component in its place below, signed.

    table: report_ledger of one view: label, family, pct, ns_per_step, start_pct, end_pct, sum_pct.
    """
    rows = [row for row in rows_of(table) if row["pct"]]
    figure, axes = canvas(1.7 + 0.27 * len(rows), words)
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
    family, gain = text_of(row, "family"), number(row, "pct") < 0
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
            ink = INK if text_of(row, "family") in ("unknown", "idle") else "white"
            middle = (number(row, "start_pct") + number(row, "end_pct")) / 2
            axes.text(middle, 0, units.points(number(row, "pct")), ha="center", va="center", color=ink, weight="bold")


def _ledger_text(axes: Axes, row: Row, y: float) -> None:
    edge = axes.get_yaxis_transform()
    gain = "  (gain)" if number(row, "pct") < 0 else ""
    axes.text(-0.012, y, text_of(row, "label") + gain, ha="right", va="center", transform=edge, fontsize=8.5)
    axes.text(1.125, y, units.points(number(row, "pct")), ha="right", va="center", transform=edge)
    axes.text(1.245, y, phrases.short_time(known(row, "ns_per_step")), ha="right", va="center", transform=edge)


@styled
def operators(table: pa.Table, words: Words) -> Figure:
    """The ten operators with most recoverable time: at the ceiling, above it, or without a cost.

    table: report_operators of one view: position, operator, direction, ns_per_step, ideal_per_step_ns,
    recoverable_per_step_ns, flop_per_s.
    """
    rows = rows_of(table)[:OPERATORS_SHOWN]
    unit, unit_ns = time_scale(max((number(row, "ns_per_step") for row in rows), default=0.0))
    figure, axes = canvas(1.25 + 0.32 * max(len(rows), 2), words)
    figure.subplots_adjust(left=0.345, right=0.97)
    pieces = [_operator_pieces(row) for row in rows]
    for index, (row, lengths) in enumerate(zip(rows, pieces, strict=True)):
        _operator_bars(axes, [length / unit_ns for length in lengths], index)
        axes.text(number(row, "ns_per_step") / unit_ns, index, f"  {_operator_note(row)}", va="center", fontsize=8)
    axes.set_yticks(range(len(rows)), _ranked_labels(rows), color=INK, fontsize=8.5)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(0, 1.24 * max((number(row, "ns_per_step") / unit_ns for row in rows), default=1.0))
    axes.set_xlabel(f"GPU time in {words.whole} [{unit}]", loc="left")
    axes.tick_params(axis="y", length=0)
    key(axes, [entry for entry, lengths in zip(OPERATOR_KEY, zip(*pieces, strict=True), strict=True) if any(lengths)])
    return figure


def _ranked_labels(rows: Sequence[Row]) -> list[str]:
    """Rank and name, the rank being that of the report's table and of the roofline."""
    labels = operator_labels(rows, NAME_LIMIT)
    return [f"{label}  {number(row, 'position'):.0f}" for row, label in zip(rows, labels, strict=True)]


def _operator_pieces(row: Row) -> tuple[float, float, float]:
    """Time [ns] at the ceiling, above it, and without a cost: whole operators, or calls whose shapes are unknown."""
    total, ideal = number(row, "ns_per_step"), known(row, "ideal_per_step_ns")
    if ideal is None:
        return 0.0, 0.0, total
    rated = min(ideal, total)
    lost = max(0.0, min(known(row, "recoverable_per_step_ns") or 0.0, total - rated))
    rest = total - rated - lost
    return rated, lost, rest if rest > 1e-6 * total else 0.0  # less is rounding


def _operator_bars(axes: Axes, lengths: Sequence[float], y: int) -> None:
    start = 0.0
    for length, (_, colour, hatch) in zip(lengths, OPERATOR_KEY, strict=True):
        axes.barh(y, length, left=start, height=0.62, color=colour, hatch=hatch or None, edgecolor="white",
                  linewidth=0)  # fmt: skip
        start += length


def _operator_note(row: Row) -> str:
    lost, rate = known(row, "recoverable_per_step_ns") or 0.0, known(row, "flop_per_s")
    if row["ideal_per_step_ns"] is not None:
        return f"{units.duration(lost)} above" if lost > 0 else "beyond the ceiling"
    total = units.duration(number(row, "ns_per_step"))
    return f"{total}, {units.flop_rate(rate)}, no peak known" if rate else f"{total}, no ceiling"


@styled
def steps(table: pa.Table, words: Words) -> Figure:
    """Was the run steady: each step as a point, the median of the measured ones as a line.

    table: report_steps of one view: step, wall_ns, is_measured, median_ns. The axis spans at least a tenth around the
    median, so that noise of a percent looks like a percent.
    """
    rows = [row for row in rows_of(table) if row["wall_ns"] is not None]
    median = known(rows[0], "median_ns") if rows else None
    unit, unit_ns = time_scale(median or max((number(row, "wall_ns") for row in rows), default=0.0))
    figure, axes = canvas(2.9, words)
    figure.subplots_adjust(left=0.085, right=0.86)
    for measured, style in ((True, THIS_RUN), (False, "none")):
        chosen = [row for row in rows if bool(row["is_measured"]) is measured]
        walls = [number(row, "wall_ns") / unit_ns for row in chosen]
        axes.scatter([number(row, "step") for row in chosen], walls, s=26, facecolor=style, zorder=3,
                     edgecolor=THIS_RUN if measured else BASELINE, linewidth=1.1)  # fmt: skip
    walls = [number(row, "wall_ns") / unit_ns for row in rows]
    if median is not None:
        _median_line(axes, median / unit_ns, unit)
        walls += [median / unit_ns * 0.9, median / unit_ns * 1.1]
    pad = 0.06 * (max(walls) - min(walls)) if walls else 0
    axes.set_ylim(min(walls) - pad, max(walls) + pad)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("step [ordinal]      filled: measured, hollow: dropped")
    axes.set_ylabel(f"wall time per step [{unit}]")
    return figure


def _median_line(axes: Axes, median: float, unit: str) -> None:
    axes.axhline(median, color=THIS_RUN, linewidth=0.9)
    axes.text(1.01, median, f"median\n{units.significant(median)} {unit}", transform=axes.get_yaxis_transform(),
              va="center", color=THIS_RUN, fontsize=8.5)  # fmt: skip
