"""Tables of the report as formatted text, shared by HTML and Markdown: a column is a head and how its cell reads."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from itertools import groupby

import pyarrow as pa

from mfupipe import units
from mfupipe.report.findings import CAUSES
from mfupipe.report.views import Row, View, rows_of

OPERATORS_SHOWN, OPERATORS_MAX = 10, 100
VERSIONS = (
    ("nsys", "version", "nsys_version"),
    ("driver", "version", "driver_version"),
    ("CUDA", "version", "cuda_version"),
    ("graphs", "how CUDA graphs were traced", "graph_trace_mode"),
)
SOL_COLUMNS = (
    ("SOL % datasheet", "datasheet", "sol_pct"),
    ("SOL % measured", "measured", "sol_measured_pct"),
)
_LIST, _NUMBERS = re.compile(r"\[([\d, ]*)\]"), re.compile(r"[\[\]\d, ]+")
NAME_LIMIT, LONG_LIMIT, SHAPE_LIMIT = 64, 160, 56


class Shown(Enum):
    """When a column is worth its room."""

    ALWAYS = "always"
    FILLED = "when a cell holds something that is known"
    VARIED = "when two rows differ"


@dataclass(frozen=True)
class Cell:
    """Formatted text; `is_name` marks text of the trace, `note` stands smaller beneath it."""

    text: str
    note: str = ""
    is_name: bool = False


@dataclass(frozen=True)
class Column:
    """Head, explanation, and the cell of a row. Numbers are aligned right; `role` names the column to the style."""

    head: str
    tip: str
    cell: Callable[[Row], Cell]
    is_number: bool = False
    shown: Shown = Shown.ALWAYS
    role: str = ""


@dataclass(frozen=True)
class Grid:
    """A formatted table; `query` is the name of the SQL behind it, `left_out` the rows that are not shown."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    query: str
    left_out: int = 0


def grid(table: pa.Table, columns: Sequence[Column], query: str, limit: int = 1_000_000) -> Grid:
    """Format the first `limit` rows of a table; columns that would say nothing are left out."""
    rows = rows_of(table.slice(0, limit))
    cells = {column: [column.cell(row) for row in rows] for column in columns}
    kept = tuple(column for column in columns if _is_worth_its_room(column.shown, cells[column]))
    lines = tuple(tuple(cells[column][index] for column in kept) for index in range(len(rows)))
    return Grid(kept, lines, query, max(0, table.num_rows - limit))


def _is_worth_its_room(shown: Shown, cells: Sequence[Cell]) -> bool:
    texts = {cell.text for cell in cells}
    if shown is Shown.FILLED:
        return bool(texts - {"", units.UNKNOWN})
    return shown is Shown.ALWAYS or len(texts) > 1


def operator_grid(view: View, limit: int) -> Grid:
    """The operators by recoverable time."""
    per = "per step" if view.has_steps else "in window"
    columns = (
        _count("#", "rank by recoverable time", "position"),
        Column("operator", "name in the workload; shapes and dtype of its calls beneath", _operator_cell, role="name"),
        _filled(_plain("direction", "forward, backward or update", "direction")),
        _count("calls", "executions of the operator, all steps and GPUs", "call_count"),
        _filled(_number("recoverable ms", "time above the ceiling", "recoverable_per_step_ns", units.milliseconds)),
        Column(
            "why", "derived from the numbers of the row", lambda row: Cell(units.plain(_text(row, "why"))), role="why"
        ),
        _number(f"ms {per}", "GPU time of one GPU, overlap shared", "ns_per_step", units.milliseconds),
        _number("share %", "of the GPU time of the phase", "share_pct", units.percent_number),
        _filled(_number("TFLOP/s", "achieved while busy", "flop_per_s", units.teras)),
        _filled(_number("TB/s", "achieved while busy", "bytes_per_s", units.teras)),
        _filled(Column("bound", "what the ideal time is made of", _bound_cell)),
        *(
            _filled(_number(head, f"ideal over busy time at the {kind} ceiling", column, units.percent_number))
            for head, kind, column in SOL_COLUMNS
        ),
    )
    return grid(view.operators, columns, "report_operators", limit)


def gap_grid(view: View) -> Grid:
    """Idle time by cause and by the CUDA call that was open."""
    columns = (
        Column(
            "cause", "what the GPU waited for", lambda row: Cell(CAUSES.get(_text(row, "cause"), _text(row, "cause")))
        ),
        Column("CUDA call in the gap", "what the host did", lambda row: _name(row, "api_name", "none")),
        _count("gaps", "number", "gap_count"),
        _number("total ms", "all steps and GPUs", "total_ns", units.milliseconds),
        _number("share %", "of the idle time", "share_pct", units.percent_number),
        _number("median us", "", "median_ns", _microseconds),
        _number("longest us", "", "longest_ns", _microseconds),
    )
    return grid(view.gaps, columns, "report_gaps", OPERATORS_MAX)


def step_grid(view: View) -> Grid:
    """Every step."""
    columns = (
        _count("step", "ordinal", "step"),
        Column("label", "captured text", lambda row: _name(row, "step_label", "")),
        _plain("pid", "process", "pid"),
        Column("measured", "", lambda row: Cell("yes" if row["is_measured"] else "dropped")),
        _number("wall ms", "start to start on the GPU timeline", "wall_ns", units.milliseconds),
        _number("busy ms", "union of the executions", "busy_ns", units.milliseconds),
        _number("MFU %", "", "mfu_pct", units.percent_number),
        _number("MBU %", "", "mbu_pct", units.percent_number),
    )
    return grid(view.steps, columns, "report_steps", OPERATORS_MAX)


def ledger_device_grid(view: View) -> Grid:
    """The ledger of each GPU; empty when there is only one."""
    columns = (
        _plain("pid", "process", "pid"),
        _plain("GPU", "physical device", "device_id"),
        _plain("component", "", "component"),
        _number("points", "share of the step time", "pct", units.points),
        _number("ms", "over all measured steps", "ns", units.milliseconds),
    )
    return grid(view.ledger_devices, columns, "report_ledger_devices", OPERATORS_MAX)


def kernel_grid(table: pa.Table) -> Grid:
    """Kernels by time."""
    columns = (
        _varied(_plain("trace", "", "trace_id")),
        Column("kernel", "short name; full name beneath", _kernel_cell, role="name"),
        _filled(_plain("class", "", "kernel_class")),
        _plain("grid", "blocks", "grid"),
        _plain("block", "threads", "block"),
        _count("count", "executions", "count"),
        _number("total ms", "", "total_ns", units.milliseconds),
        _number("median us", "", "median_ns", _microseconds),
        _number("p95 us", "", "p95_ns", _microseconds),
    )
    return grid(table, columns, "report_kernels")


def uncovered_grid(table: pa.Table, limit: int) -> Grid:
    """What has no operator or no cost."""
    columns = (
        _varied(_plain("trace", "", "trace_id")),
        _plain("missing", "an operator for a kernel, or a cost for an operator", "missing"),
        Column("name", "kernel or operator", lambda row: _name(row, "name", ""), role="name"),
        _filled(_plain("direction", "", "direction")),
        _number("busy ms", "", "busy_ns", units.milliseconds),
        Column("reason", "", lambda row: Cell(units.plain(_text(row, "reason")))),
    )
    return grid(table, columns, "report_uncovered", limit)


def warning_grid(table: pa.Table) -> Grid:
    """Findings about the data, worst first."""
    columns = (
        _plain("severity", "", "severity"),
        Column("code", "of a closed set", lambda row: Cell(units.plain(_text(row, "code")), is_name=True)),
        _count("count", "", "count"),
        Column("finding", "", lambda row: Cell(units.plain(_text(row, "message"), 400))),
        Column("what to do", "", lambda row: Cell(units.plain(_text(row, "hint") or "nothing", 400))),
    )
    return grid(table, columns, "report_warnings")


def roof_grid(table: pa.Table) -> Grid:
    """Ceilings with their sources."""
    columns = (
        _varied(Column("GPU", "", lambda row: Cell(units.plain(_text(row, "device_name"))))),
        _plain("dtype", "bytes: memory bandwidth", "dtype"),
        _plain("kind", "", "kind"),
        _filled(_plain("condition", "", "condition")),
        Column("ceiling", "dense", _ceiling_cell, is_number=True),
        Column("source", "", lambda row: Cell(units.plain(_text(row, "source"), 240))),
    )
    return grid(table, columns, "report_roofs")


def trace_grid(table: pa.Table) -> Grid:
    """Captures and GPUs."""
    columns = (
        _plain("trace", "", "trace_id"),
        Column("file", "", lambda row: _name(row, "source_file", "unknown")),
        _filled(_plain("rank", "", "rank")),
        *(Column(head, tip, partial(_or_unknown, column)) for head, tip, column in VERSIONS),
        _number("captured", "length of the capture", "duration_ns", units.duration),
        Column("GPU", "", lambda row: Cell(units.plain(_text(row, "device_name") or None))),
        _number("SMs", "", "sm_count", units.count),
        _number("max clock", "", "clock_hz", units.clock),
        Column("peaks", "row of the peak table", lambda row: Cell(units.plain(_text(row, "peak_key") or None))),
    )
    return grid(table, columns, "report_traces", OPERATORS_MAX)


def _operator_cell(row: Row) -> Cell:
    shapes = _shapes(_text(row, "shapes")) or _several(row, "shape_count", "shape")
    dtype = _text(row, "dtype") or _several(row, "dtype_count", "dtype")
    note = " · ".join(units.plain(part, SHAPE_LIMIT) for part in (dtype, shapes) if part)
    return Cell(units.plain(_text(row, "operator"), NAME_LIMIT), note, is_name=True)


def _shapes(text: str) -> str:
    """'2 of 16384x4096, 4096': the shapes of the tensors, those of scalars and of absent arguments left out."""
    if not _NUMBERS.fullmatch(text):
        return text
    tensors = [re.sub(r",\s*", "x", inner.strip()) for inner in _LIST.findall(text) if inner.strip()]
    runs = [(shape, len(list(alike))) for shape, alike in groupby(tensors)]
    return ", ".join(f"{count} of {shape}" if count > 1 else shape for shape, count in runs)


def _bound_cell(row: Row) -> Cell:
    return Cell(_text(row, "bound") or (units.UNKNOWN if row["sol_pct"] is None else "differs"))


def _several(row: Row, column: str, noun: str) -> str:
    value = row[column]
    return units.plural(value, noun) if isinstance(value, int) and value > 1 else ""


def _kernel_cell(row: Row) -> Cell:
    short, full = _text(row, "name"), _text(row, "demangled_name")
    note = units.plain(full, LONG_LIMIT) if full and full != short else ""
    return Cell(units.plain(short or None, NAME_LIMIT), note, is_name=True)


def _ceiling_cell(row: Row) -> Cell:
    flop, nbytes = _float(row, "flop_per_s"), _float(row, "bytes_per_s")
    return Cell(units.byte_rate(nbytes) if flop is None else units.flop_rate(flop))


def _name(row: Row, column: str, absent: str) -> Cell:
    value = _text(row, column)
    return Cell(units.plain(value, NAME_LIMIT), is_name=True) if value else Cell(absent)


def _or_unknown(column: str, row: Row) -> Cell:
    return Cell(units.plain(_text(row, column) or None, NAME_LIMIT))


def _plain(head: str, tip: str, column: str) -> Column:
    return Column(
        head, tip, lambda row: Cell(units.plain(_text(row, column), NAME_LIMIT) if _text(row, column) else "")
    )


def _number(head: str, tip: str, column: str, show: Callable[[float | None], str]) -> Column:
    return Column(head, tip, lambda row: Cell(show(_float(row, column))), is_number=True)


def _filled(column: Column) -> Column:
    return replace(column, shown=Shown.FILLED)


def _varied(column: Column) -> Column:
    return replace(column, shown=Shown.VARIED)


def _count(head: str, tip: str, column: str) -> Column:
    return _number(head, tip, column, units.count)


def _microseconds(ns: float | None) -> str:
    return units.significant(None if ns is None else ns / units.MICROSECOND)


def _text(row: Row, column: str) -> str:
    return "" if row[column] is None else str(row[column])


def _float(row: Row, column: str) -> float | None:
    value = row[column]
    return float(value) if isinstance(value, int | float) else None
