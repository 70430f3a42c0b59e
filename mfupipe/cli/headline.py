"""What a terminal shows of a RUN: its finding on stdout, and its warnings on stderr."""

from __future__ import annotations

from pathlib import Path

import duckdb

from mfupipe import warehouse
from mfupipe.cli.output import result, warn
from mfupipe.report import headline

NO_GPU_WORK = "no_kernel_data"


def show_run(run_dir: Path) -> None:
    """Headline and warnings of a RUN as it was built."""
    with warehouse.open_run(run_dir) as connection:
        show(connection)


def show(connection: duckdb.DuckDBPyConnection) -> None:
    """Headline to stdout, warnings to stderr."""
    for line in headline(connection):
        result(line)
    for row in warnings(connection):
        warn(*row)


def has_gpu_work(connection: duckdb.DuckDBPyConnection) -> bool:
    """False when a trace holds no kernel, copy, memset or graph at all."""
    return all(code != NO_GPU_WORK for _, code, _, _ in warnings(connection))


def warnings(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, str, str, str]]:
    """(severity, code, message, hint), the worst first."""
    found = connection.execute(
        """
        SELECT severity, code, message, coalesce(hint, '') AS hint
        FROM warnings
        WHERE severity IN ('error', 'warning')
        ORDER BY severity, trace_id, code
        """
    ).fetchall()
    return [(str(severity), str(code), str(message), str(hint)) for severity, code, message, hint in found]
