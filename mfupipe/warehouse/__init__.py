"""3 BUILD: runs queries/ in dependency order over the raw Parquet of a RUN, into run.duckdb; answers queries on it."""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa

from mfupipe.errors import EnvironmentProblem, UnusableTrace, UsageError
from mfupipe.headers import PARAMETRISED, Query, build_order, queries
from mfupipe.run import DATABASE_NAME, BuildOptions, read_manifest
from mfupipe.warehouse import inputs
from mfupipe.warehouse.parameters import bound

MEMORY_LIMIT = "800MB"
SHAPE_COSTS_AFTER = "_solved_sizes"

log = logging.getLogger(__name__)


def build(run_dir: Path, options: BuildOptions) -> None:
    """Build run_dir/run.duckdb from run_dir/raw; a database that is there is replaced when the new one is whole.

    Raises UsageError for a step regex that does not compile, UnusableTrace when raw tables are missing,
    EnvironmentProblem when the disk is full or not writable.
    """
    _build_into(run_dir, options, run_dir / DATABASE_NAME)


def _build_into(run_dir: Path, options: BuildOptions, target: Path) -> None:
    with tempfile.TemporaryDirectory(prefix=".build-", dir=target.parent) as scratch:
        folder = Path(scratch)
        try:
            with duckdb.connect(str(folder / "run.duckdb"), config=_settings(folder)) as connection:
                _fill(connection, run_dir, options)
        except duckdb.IOException as error:
            raise EnvironmentProblem(
                f"cannot write the database ({error})", "free some disk space, or give another -o"
            ) from error
        except duckdb.OutOfMemoryException as error:
            raise EnvironmentProblem(
                f"not enough memory or temporary disk ({error})", "free some disk space"
            ) from error
        (folder / "run.duckdb").replace(target)


def _settings(folder: Path) -> dict[str, str | bool | int | float | list[str]]:
    return {
        "memory_limit": MEMORY_LIMIT,
        "temp_directory": str(folder / "spill"),
        "preserve_insertion_order": False,
        # IEJoin for containment, whatever sizes the optimizer expects: a merge join is quadratic on long ranges
        "merge_join_threshold": 0,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }


def _fill(connection: duckdb.DuckDBPyConnection, run_dir: Path, options: BuildOptions) -> None:
    _check_regex(connection, options)
    connection.execute("ATTACH ':memory:' AS scratch")
    connection.execute("SET search_path = 'run.main,scratch.main'")
    inputs.create_raw_views(connection, run_dir)
    inputs.create_options(connection, options, read_manifest(run_dir))
    inputs.create_peaks(connection, options)
    for query in build_order():
        began = time.perf_counter()
        _materialise(connection, query)
        if query.name == SHAPE_COSTS_AFTER:
            inputs.create_shape_costs(connection)
        log.debug("%s %.2f s", query.name, time.perf_counter() - began)
    connection.execute("DETACH scratch")


def _check_regex(connection: duckdb.DuckDBPyConnection, options: BuildOptions) -> None:
    if options.step_regex is None:
        return
    try:
        connection.execute("SELECT regexp_full_match('', $pattern)", {"pattern": options.step_regex})
    except duckdb.Error as error:
        raise UsageError(
            f"--step-range {options.step_regex!r} is not a regular expression ({error})", "RE2 syntax, matched in full"
        ) from error


def _materialise(connection: duckdb.DuckDBPyConnection, query: Query) -> None:
    kind = "VIEW" if query.stored == "view" else "TABLE"
    place = "scratch.main" if query.stored == "scratch" else "run.main"
    connection.execute(f"CREATE {kind} {place}.{query.name} AS\n{query.sql}")
    made = [(str(row[0]), str(row[1])) for row in connection.execute(f"DESCRIBE {place}.{query.name}").fetchall()]
    stated = [(column.name, column.type) for column in query.columns]
    if made != stated:
        differing = sorted(set(made) ^ set(stated)) or "order"
        raise RuntimeError(f"{query.name}.sql: the header states other columns than the query has: {differing}")
    if query.stored != "scratch":
        _comment(connection, query, kind)


def _comment(connection: duckdb.DuckDBPyConnection, query: Query, kind: str) -> None:
    title = f"{query.title} Grain: {query.grain}."
    connection.execute(f"COMMENT ON {kind} {query.name} IS {_literal(title)}")
    for column in query.columns:
        unit = "" if column.unit == "-" else f"[{column.unit}] "
        connection.execute(f"COMMENT ON COLUMN {query.name}.{column.name} IS {_literal(unit + column.text)}")


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@contextmanager
def open_run(run_dir: Path, options: BuildOptions | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open run.duckdb read-only; with options other than the RUN's own, a temporary database built with them.

    Raises UnusableTrace when the RUN has no database or a damaged one.
    """
    recorded = read_manifest(run_dir).options
    if options is None or options == recorded:
        with _connect(run_dir / DATABASE_NAME) as connection:
            yield connection
        return
    with tempfile.TemporaryDirectory(prefix="mfupipe-") as scratch:
        rebuilt = Path(scratch) / DATABASE_NAME
        _build_into(run_dir, options, rebuilt)
        with _connect(rebuilt) as connection:
            yield connection


def _connect(database: Path) -> duckdb.DuckDBPyConnection:
    if not database.is_file():
        raise UnusableTrace(f"{database} is missing", "ingest the trace again into a new RUN")
    try:
        return duckdb.connect(str(database), read_only=True, config={"autoinstall_known_extensions": False})
    except duckdb.Error as error:
        raise UnusableTrace(
            f"{database} cannot be opened ({error})", "ingest the trace again into a new RUN"
        ) from error


def query(connection: duckdb.DuckDBPyConnection, name: str, **params: object) -> pa.Table:
    """Result of queries/4_reports/NAME.sql or queries/examples/NAME.sql.

    Raises UsageError for an unknown name, and for a parameter that is unknown or neither given nor has a default.
    """
    sql = query_text(name)
    return connection.execute(sql, bound(sql, params) or None).to_arrow_table()


def query_text(name: str) -> str:
    """SQL of a report or example query. Raises UsageError for an unknown name."""
    return _parametrised(name).sql


def _parametrised(name: str) -> Query:
    known = {found.name: found for layer in PARAMETRISED for found in queries(layer)}
    if name not in known:
        raise UsageError(f"no query is called {name!r}", f"one of: {', '.join(sorted(known))}")
    return known[name]


def describe(connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """Public tables and columns: table_name, table_comment, column_name, column_type, column_comment."""
    return connection.execute(
        """
        SELECT c.table_name, coalesce(t.comment, v.comment) AS table_comment,
               c.column_name, c.data_type AS column_type, c.comment AS column_comment
        FROM duckdb_columns() AS c
        LEFT JOIN duckdb_tables() AS t ON c.table_oid = t.table_oid AND c.database_oid = t.database_oid
        LEFT JOIN duckdb_views() AS v ON c.table_oid = v.view_oid AND c.database_oid = v.database_oid
        WHERE NOT c.internal AND c.schema_name = 'main' AND NOT starts_with(c.table_name, '_')
        ORDER BY c.table_name, c.column_index
        """
    ).to_arrow_table()


__all__ = ["build", "describe", "open_run", "query", "query_text"]
