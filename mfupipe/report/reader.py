"""Run queries/4_reports/*.sql and hold what they return; nothing here knows what a number means."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

import duckdb
import pyarrow as pa

from mfupipe.errors import UnusableTrace
from mfupipe.paths import QUERIES

FOLDER = "4_reports"
_COLUMN = re.compile(r"^--   (?P<name>\w+)\s+(?P<type>[A-Z]\S*)\s+(?P<unit>\S+)\s+(?P<meaning>.+)$")


@dataclass(frozen=True)
class ColumnDoc:
    """One `columns:` line of a query's header."""

    name: str
    type: str
    unit: str
    meaning: str


@dataclass(frozen=True)
class ReportQuery:
    """A query of the report: its name, what it answers, its columns and its text."""

    name: str
    sentence: str
    columns: tuple[ColumnDoc, ...]
    sql: str


@dataclass(frozen=True)
class ReportTables:
    """The results of all report queries; each is one pyarrow.Table in the order of its query."""

    headline: pa.Table
    ledger: pa.Table
    ledger_devices: pa.Table
    operators: pa.Table
    roofs: pa.Table
    steps: pa.Table
    gaps: pa.Table
    kernels: pa.Table
    uncovered: pa.Table
    warnings: pa.Table
    traces: pa.Table


TABLE_NAMES = tuple(ReportTables.__dataclass_fields__)


@cache
def report_query(table: str) -> ReportQuery:
    """The query behind one field of ReportTables, from queries/4_reports/report_TABLE.sql."""
    sql = (QUERIES / FOLDER / f"report_{table}.sql").read_text(encoding="utf-8")
    header = [line for line in sql.splitlines() if line.startswith("--")]
    matches = (_COLUMN.match(line) for line in header)
    columns = tuple(ColumnDoc(**match.groupdict()) for match in matches if match)
    return ReportQuery(f"report_{table}", header[0].partition(": ")[2], columns, sql)


def read_table(connection: duckdb.DuckDBPyConnection, table: str) -> pa.Table:
    """One result. Raises UnusableTrace when the database lacks a table or column that the query reads."""
    try:
        return connection.execute(report_query(table).sql).to_arrow_table()
    except duckdb.CatalogException as error:
        raise _not_ours(table, error) from error
    except duckdb.BinderException as error:
        raise _not_ours(table, error) from error


def read_tables(connection: duckdb.DuckDBPyConnection) -> ReportTables:
    """All results."""
    return ReportTables(**{table: read_table(connection, table) for table in TABLE_NAMES})


def _not_ours(table: str, error: duckdb.Error) -> UnusableTrace:
    reason = str(error).splitlines()[0]
    return UnusableTrace(
        f"the database does not answer {report_query(table).name} ({reason})",
        "it was built by another version: ingest the trace again",
    )
