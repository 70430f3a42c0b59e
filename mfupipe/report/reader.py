"""Run queries/4_reports/*.sql and hold what they return; nothing here knows what a number means."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import duckdb
import pyarrow as pa

from mfupipe import headers
from mfupipe.errors import UnusableTrace
from mfupipe.headers import Query
from mfupipe.paths import QUERIES

FOLDER = QUERIES / "4_reports"


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
def report_query(table: str) -> Query:
    """The query behind one field of ReportTables: queries/4_reports/report_TABLE.sql."""
    return headers.parse(FOLDER / f"report_{table}.sql")


def read_table(connection: duckdb.DuckDBPyConnection, table: str) -> pa.Table:
    """One result. Raises UnusableTrace when the database lacks a table or column that the query reads."""
    query = report_query(table)
    try:
        return connection.execute(query.sql).to_arrow_table()
    except (duckdb.CatalogException, duckdb.BinderException) as error:
        reason = str(error).splitlines()[0]
        raise UnusableTrace(
            f"the database does not answer {query.name} ({reason})",
            "it was built by another version: ingest the trace again",
        ) from error


def read_tables(connection: duckdb.DuckDBPyConnection) -> ReportTables:
    """All results."""
    return ReportTables(**{table: read_table(connection, table) for table in TABLE_NAMES})
