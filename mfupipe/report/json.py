"""report.json: everything that is drawn, as raw values with their units, for other programs."""

from __future__ import annotations

import json
import math

import pyarrow as pa

from mfupipe.report import findings
from mfupipe.report.context import ReportContext
from mfupipe.report.reader import TABLE_NAMES, ReportTables, report_query
from mfupipe.report.views import View, views_of

FORMAT_VERSION = 1


def json_text(tables: ReportTables, context: ReportContext) -> str:
    """The report as JSON; NULL and numbers that are not finite are null."""
    document = {
        "format_version": FORMAT_VERSION,
        "mfupipe_version": context.mfupipe_version,
        "run_name": context.run_name,
        "command": context.command,
        "conditions": [{"name": fact.name, "value": fact.value} for fact in context.conditions],
        "views": [_view(view) for view in views_of(tables)],
        "tables": {table: _table(table, getattr(tables, table)) for table in TABLE_NAMES},
    }
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def _view(view: View) -> dict[str, object]:
    return {
        "trace_id": view.head["trace_id"],
        "phase": view.head["phase"],
        "lead": view.head["lead"],
        "finding": findings.finding(view),
        "basis": findings.basis(view),
        "next": findings.next_to_look_at(view),
    }


def _table(name: str, table: pa.Table) -> dict[str, object]:
    query = report_query(name)
    columns = [
        {"name": column.name, "type": column.type, "unit": column.unit, "meaning": column.text}
        for column in query.columns
    ]
    rows = [[_finite(value) for value in row.values()] for row in table.to_pylist()]
    return {"query": query.name, "columns": columns, "rows": rows}


def _finite(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value
