"""Stage 4, REPORT: from the tables of run.duckdb to report.html, report.md, report.json and figures."""

from __future__ import annotations

import duckdb

from mfupipe.report import markdown
from mfupipe.report.context import Condition, ReportContext, ReportFiles
from mfupipe.report.page import headline_of, page_of
from mfupipe.report.reader import read_tables
from mfupipe.report.writer import write_report

__all__ = ["Condition", "ReportContext", "ReportFiles", "headline", "markdown_summary", "write_report"]


def headline(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Plain lines for a terminal: the finding, its basis, where to look next, what is wrong with the data."""
    page = page_of(read_tables(connection), ReportContext("run", ""))
    lines = [headline_of(page)]
    for section in page.sections[:1]:
        lines += [f"  basis: {', '.join(section.basis)}"]
        lines += [f"  {tile.label}: {tile.value} ({tile.note})" for tile in section.tiles[1:]]
        lines += [f"  look at {line}" for line in section.next_steps]
    lines += [f"  also {section.name}: {section.finding}" for section in page.sections[1:]]
    return [*lines, *([f"  data: {page.warning_words}"] if page.warning_words else [])]


def markdown_summary(connection: duckdb.DuckDBPyConnection, context: ReportContext) -> str:
    """The first twelve lines of report.md."""
    return markdown.summary(page_of(read_tables(connection), context))
