"""A view: one phase of one trace, with its share of every table. Phases are never pooled."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from mfupipe.report.reader import ReportTables

Row = dict[str, object]


@dataclass(frozen=True)
class View:
    """The tables of one (trace, phase); `head` is its row of report_headline. Position 1 leads the page."""

    head: Row
    ledger: pa.Table
    ledger_devices: pa.Table
    operators: pa.Table
    roofs: pa.Table
    steps: pa.Table
    gaps: pa.Table

    @property
    def position(self) -> int:
        """1 for the phase with most wall time."""
        return int(self.number("position") or 0)

    def number(self, column: str) -> float | None:
        """A number of the headline, or None."""
        value = self.head[column]
        return float(value) if isinstance(value, int | float) else None

    def text(self, column: str) -> str:
        """A text of the headline; NULL is ''."""
        value = self.head[column]
        return "" if value is None else str(value)

    @property
    def has_steps(self) -> bool:
        """False when no step was found: then times are those of the busy window."""
        return bool(self.number("step_count"))


def views_of(tables: ReportTables) -> tuple[View, ...]:
    """All views, the one with most wall time first."""
    return tuple(_view(tables, head) for head in rows_of(tables.headline))


def rows_of(table: pa.Table) -> list[Row]:
    """The rows as dictionaries, in order."""
    rows: list[Row] = table.to_pylist()
    return rows


def _view(tables: ReportTables, head: Row) -> View:
    trace_id, phase = head["trace_id"], head["phase"]
    of_trace = pc.equal(tables.roofs["trace_id"], trace_id)

    def mine(table: pa.Table) -> pa.Table:
        return table.filter(pc.and_(pc.equal(table["trace_id"], trace_id), pc.equal(table["phase"], phase)))

    return View(
        head=head,
        ledger=mine(tables.ledger),
        ledger_devices=mine(tables.ledger_devices),
        operators=mine(tables.operators),
        roofs=tables.roofs.filter(of_trace),
        steps=mine(tables.steps),
        gaps=mine(tables.gaps),
    )
