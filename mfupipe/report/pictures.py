"""The figures of the views that are shown in full, as PNG."""

from __future__ import annotations

import pyarrow as pa
from matplotlib.figure import Figure

from mfupipe import figures, units
from mfupipe.figures import Words
from mfupipe.report import findings
from mfupipe.report.context import ReportContext
from mfupipe.report.page import VIEWS_SHOWN
from mfupipe.report.reader import ReportTables
from mfupipe.report.views import View, views_of

FIGURE_NAMES = ("ledger", "operators", "roofline", "steps")


def pictures_of(tables: ReportTables, context: ReportContext) -> dict[str, bytes]:
    """File name -> PNG; the leading view has plain names, the others `NAME_2.png`. Nothing to draw: no file."""
    found: dict[str, bytes] = {}
    for view in views_of(tables)[:VIEWS_SHOWN]:
        suffix = "" if view.position == 1 else f"_{view.position}"
        footer = _footer(view, tables.traces, context)
        for name, figure in _figures(view, footer).items():
            found[f"{name}{suffix}.png"] = figures.to_png(figure)
    return found


def _figures(view: View, footer: str) -> dict[str, Figure]:
    whole = findings.whole(view)

    def words(title: str) -> Words:
        return Words(title, footer, whole)

    drawn = {}
    if view.ledger.num_rows:
        drawn["ledger"] = figures.ledger(view.ledger, words(findings.finding(view)))
    if view.operators.num_rows:
        drawn["operators"] = figures.operators(view.operators, words(findings.operators_title(view)))
    if figures.has_roofline(view.operators, view.roofs):
        drawn["roofline"] = figures.roofline(view.operators, view.roofs, words(findings.roofline_title(view)))
    if view.steps.num_rows:
        drawn["steps"] = figures.steps(view.steps, words(findings.steps_title(view)))
    return drawn


def _footer(view: View, traces: pa.Table, context: ReportContext) -> str:
    versions = [row for row in traces.to_pylist() if row["trace_id"] == view.head["trace_id"]][:1]
    nsys = [f"nsys {row['nsys_version']}" for row in versions if row["nsys_version"]]
    device, peak, *_ = findings.basis(view)
    steps = f"n = {units.plural(view.number('step_count'), 'step')}" if view.has_steps else "no steps"
    name = units.plain(context.run_name, 40)
    parts = [name, findings.phase_name(view), device, steps, peak, *nsys, f"mfupipe {context.mfupipe_version}"]
    return " · ".join(units.plain(part) for part in parts)
