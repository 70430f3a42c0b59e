"""What the terminal sees: results on stdout; progress, warnings, errors on stderr; no control character of a trace."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mfupipe.ingest import Progress

Cell = object
HARMLESS = "\n\t"
WIDE = 10_000
SIX_DIGITS, PETA = 1e5, 1e16


def problem(message: str, hint: str, notes: Iterable[str] = ()) -> None:
    """An error: what and evidence, then what to do."""
    _to_stderr(f"mfupipe: {message}")
    for note in notes:
        _to_stderr(f"  note: {note}")
    if hint:
        _to_stderr(f"  try: {hint}")


def warn(severity: str, code: str, message: str, hint: str) -> None:
    """A finding that does not stop the work."""
    _to_stderr(f"{severity} {code}: {message}")
    if hint:
        _to_stderr(f"  try: {hint}")


def progress(text: str) -> None:
    """One line about what is going on."""
    _to_stderr(text)


@contextmanager
def stage(text: str) -> Iterator[Progress]:
    """Show on stderr what is being done: a bar with the time in a terminal, else one line. Yields the bar's handle."""
    if not sys.stderr.isatty():
        _to_stderr(f"{text} ...")
        yield _unseen
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(visible(text), total=None)

        def moved(step: str, done: int, total: int) -> None:
            bars.update(task, description=f"{visible(text)}: {step}", completed=done, total=total)

        yield moved


def _unseen(step: str, done: int, total: int) -> None:
    """Where no bar is."""


def result(text: str) -> None:
    """Text of a result."""
    sys.stdout.write(visible(text) + "\n")


def table(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    """A table for the eyes: numbers to the right with six digits at most, NULL for unknown."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    listed = [tuple(row) for row in rows]
    shown = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for index, column in enumerate(columns):
        numbers = any(_is_number(row[index]) for row in listed)
        shown.add_column(
            Text(one_line(column)), justify="right" if numbers else "left", no_wrap=not sys.stdout.isatty()
        )
    for row in listed:
        shown.add_row(*(Text(_shown(cell)) for cell in row))
    buffer = io.StringIO()
    width = None if sys.stdout.isatty() else WIDE
    Console(file=buffer, width=width or Console().width, highlight=False, color_system=None).print(shown)
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in buffer.getvalue().splitlines()))


def as_csv(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    """CSV in full precision; NULL is empty."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_plain_value(cell) for cell in row] for row in rows)
    sys.stdout.write(visible(buffer.getvalue()) if sys.stdout.isatty() else buffer.getvalue())


def as_json(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    """A JSON array of objects in full precision; numbers that are not finite are null."""
    objects = [dict(zip(columns, map(_plain_value, row), strict=True)) for row in rows]
    json.dump(objects, sys.stdout, indent=1, default=str)
    sys.stdout.write("\n")


def visible(text: str) -> str:
    """Text without what steers a terminal: controls, direction marks and lone surrogates become U+FFFD."""
    return "".join(c if c in HARMLESS or unicodedata.category(c) not in ("Cc", "Cf", "Cs") else "\ufffd" for c in text)


def one_line(text: str) -> str:
    """`visible`, and line ends and tabs as blanks."""
    return visible(" ".join(text.split()))


def _to_stderr(text: str) -> None:
    sys.stderr.write(visible(text) + "\n")
    sys.stderr.flush()


def _is_number(cell: Cell) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool)


def _shown(cell: Cell) -> str:
    if cell is None:
        return "NULL"
    return _float(cell) if isinstance(cell, float) else one_line(str(cell))


def _float(value: float) -> str:
    """Six digits, without an exponent up to a peta."""
    return f"{value:,.0f}" if SIX_DIGITS <= abs(value) < PETA else f"{value:.6g}"


def _plain_value(cell: Cell) -> Cell:
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell
