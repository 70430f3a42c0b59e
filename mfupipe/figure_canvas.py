"""What all figures share: the style, the sheet with title and footer, the key, and cells of a row."""

from __future__ import annotations

import io
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

from mfupipe import phrases, units
from mfupipe.figure_labels import renderer_of

BASELINE, THIS_RUN, LOSS, NO_COST, INK, FAINT = "#9A9A9A", "#0072B2", "#D55E00", "#DDDDDD", "#222222", "#6B6B6B"
WIDTH_IN, DPI = 9.6, 200
TITLE_LINES, FOOTER_LINES, TITLE_LINE_IN, FOOTER_LINE_IN = 3, 2, 0.19, 0.13
SIDE = 0.012

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


def styled(draw: Callable[_P, Figure]) -> Callable[_P, Figure]:
    """The house style around one figure, without touching matplotlib's global state."""

    @wraps(draw)
    def drawn(*args: _P.args, **kwargs: _P.kwargs) -> Figure:
        with mpl.rc_context(_STYLE), warnings.catch_warnings():  # type: ignore[arg-type]
            # Names may hold any script of the world; the box that stands for a missing glyph is no fault.
            warnings.filterwarnings("ignore", message="Glyph .* missing")
            return draw(*args, **kwargs)

    return drawn


def to_png(figure: Figure) -> bytes:
    """PNG at twice 960 px; the same figure gives the same bytes."""
    stream = io.BytesIO()
    with mpl.rc_context(_STYLE), warnings.catch_warnings():  # type: ignore[arg-type]
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        FigureCanvasAgg(figure)
        figure.savefig(stream, format="png", dpi=DPI, metadata={"Software": None})
    return stream.getvalue()


def canvas(height_in: float, words: Words) -> tuple[Figure, Axes]:
    """A sheet with the title above and the footer below one pair of axes; both are broken into lines that fit."""
    figure = Figure(figsize=(WIDTH_IN, height_in), dpi=DPI)
    title = figure.text(SIDE, 1, "", weight="bold", size=11, va="top")
    footer = figure.text(SIDE, 0, "", color=FAINT, size=7, va="bottom")
    upper = TITLE_LINE_IN * (_fill(title, words.title, TITLE_LINES) - 1)
    lower = FOOTER_LINE_IN * (_fill(footer, words.footer, FOOTER_LINES) - 1)
    height_in += upper + lower
    figure.set_figheight(height_in)
    title.set_y(1 - 0.09 / height_in)
    footer.set_y(0.07 / height_in)
    axes = figure.subplots()
    figure.subplots_adjust(top=1 - (0.42 + upper) / height_in, bottom=(0.80 + lower) / height_in)
    return figure, axes


def fits(text: Text, content: str, width: float) -> bool:
    """Put `content` into a text; True when it is at most so many pixels wide."""
    text.set_text(content)
    figure = text.get_figure(root=True)
    assert figure is not None
    return bool(text.get_window_extent(renderer_of(figure)).width <= width)


def _fill(text: Text, content: str, limit: int) -> int:
    """Break a text between words so that it fits the sheet; the number of lines, at most `limit`."""
    width = (1 - 2 * SIDE) * WIDTH_IN * DPI
    lines = [""]
    for word in content.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if fits(text, longer, width):
            lines[-1] = longer
        else:
            lines += [word] if lines[-1] else []
            # A single word, or a script of wide letters, may still be too long.
            room = len(word)
            while room > 1 and not fits(text, units.shortened(word, room), width):
                room -= 1
            lines[-1] = units.shortened(word, room)
    if len(lines) > limit:
        lines = [*lines[: limit - 1], units.shortened(lines[limit - 1], max(2, len(lines[limit - 1]) - 2)) + "…"]
    text.set_text("\n".join(lines))
    return len(lines)


def key(axes: Axes, entries: Sequence[tuple[str, str, str]], right: float = 0.97) -> None:
    """A legend of (label, colour, hatch) under the axis, beside its name: no corner inside is always free of data.

    right: where it ends, as a share of the sheet.
    """
    for label, colour, hatch in entries:
        axes.bar([float("nan")], [float("nan")], color=colour, hatch=hatch, label=label, edgecolor="white")
    figure = axes.get_figure(root=True)
    assert figure is not None
    handles, labels = axes.get_legend_handles_labels()
    corner = (right, axes.get_position().y0 - 0.5 / figure.get_figheight())
    figure.legend(handles, labels, loc="lower right", bbox_to_anchor=corner, ncols=max(1, len(entries)), frameon=False,
                  fontsize=8, handlelength=1.0)  # fmt: skip


def time_scale(longest_ns: float) -> tuple[str, float]:
    """The unit of a time axis and its length in ns: the largest that leaves the longest value above one."""
    scales = (("s", units.SECOND), ("ms", units.MILLISECOND), ("us", units.MICROSECOND))
    return next((scale for scale in scales if longest_ns >= scale[1]), scales[-1])


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


def text_of(row: Row, column: str) -> str:
    """A cell of text; NULL is the empty string."""
    return "" if row[column] is None else str(row[column])


def operator_labels(rows: Sequence[Row], limit: int) -> list[str]:
    """Names of operators that differ from one another as far as their room allows."""
    return phrases.operator_labels([(text_of(row, "operator"), text_of(row, "direction")) for row in rows], limit)
