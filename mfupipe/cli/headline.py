"""What a terminal shows of a RUN: one line per phase, and the warnings on stderr."""

from __future__ import annotations

from pathlib import Path

import duckdb

from mfupipe import units, warehouse
from mfupipe.cli.output import result, warn

NO_GPU_WORK = "no_kernel_data"


def show_run(run_dir: Path) -> None:
    """Headline and warnings of a RUN as it was built."""
    with warehouse.open_run(run_dir) as connection:
        show(connection)


def show(connection: duckdb.DuckDBPyConnection) -> None:
    """Headline to stdout, warnings to stderr."""
    for row in warehouse.query(connection, "report_headline").to_pylist():
        result(line(row))
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


def line(row: dict[str, object]) -> str:
    """One phase: step time and MFU with their basis, or why there is no MFU."""
    names = [units.plain(str(row[key])) for key in ("workload", "variant", "phase") if row[key]]
    return f"{' '.join(names) or 'trace {}'.format(row['trace_id'])}: {_finding(row)}"


def _finding(row: dict[str, object]) -> str:
    match row["lead"]:
        case "no_gpu_work":
            return "no GPU work in this trace"
        case "no_step":
            window, busy = units.duration(_number(row, "window_ns")), units.percent(_number(row, "busy_pct"))
            return f"no step found, so no MFU; GPU busy {busy} of {window}"
        case "no_peak":
            return f"{_step(row)}; no peak known for {units.plain(_text(row, 'device_name'))}, so no MFU"
        case "no_flop":
            return f"{_step(row)}; no FLOP known, so no MFU"
        case lead:
            mbu = f"MBU {units.percent(_number(row, 'mbu_pct'))}, " if lead == "mbu" else ""
            return f"{_step(row)}, {mbu}{_utilisation(row)}"


def _step(row: dict[str, object]) -> str:
    steps = units.plural(_number(row, "step_count"), "step")
    spread = units.percent(_number(row, "step_spread_pct"))
    return f"{units.duration(_number(row, 'step_ns'))} per step ({steps}, spread {spread}, found by {row['step_rule']})"


def _utilisation(row: dict[str, object]) -> str:
    """MFU with its peak."""
    gpus = f"{units.count(_number(row, 'gpu_count'))} x {units.plain(_text(row, 'device_name'))}"
    peak = (
        f"{units.flop_rate(_number(row, 'reference_flop_per_s'))} {row['reference_dtype']} dense datasheet peak, {gpus}"
    )
    return f"MFU {units.percent(_number(row, 'mfu_pct'))} of {peak}"


def _number(row: dict[str, object], key: str) -> float | None:
    value = row[key]
    return float(value) if isinstance(value, int | float) else None


def _text(row: dict[str, object], key: str) -> str | None:
    value = row[key]
    return None if value is None else str(value)
