"""Everything the page shows, as text: built once, written as HTML and as Markdown."""

from __future__ import annotations

from dataclasses import dataclass

from mfupipe import phrases, units
from mfupipe.headers import Query
from mfupipe.report import findings, grids
from mfupipe.report.context import Condition, ReportContext
from mfupipe.report.grids import Grid
from mfupipe.report.reader import TABLE_NAMES, ReportTables, report_query
from mfupipe.report.views import Row, View, rows_of, views_of

VIEWS_SHOWN = 4
LEAST_COSTED_PCT = 50  # as report_operators rates an operator only when half of its time has a cost


@dataclass(frozen=True)
class Tile:
    """One number of the first screen with what stands beneath it."""

    label: str
    value: str
    note: str


@dataclass(frozen=True)
class Alarm:
    """An error in the data, as it stands above the headline."""

    message: str
    hint: str


@dataclass(frozen=True)
class LedgerLine:
    """A component of the bar. start and width are percent of the drawn length, which gains can make longer than 100."""

    label: str
    family: str
    meaning: str
    points: str
    time: str
    start: float
    width: float
    is_gain: bool


@dataclass(frozen=True)
class Section:
    """A view as text. `whole` is what 100 % of the ledger is; `full_at` where 100 % lies on the drawn length."""

    position: int
    name: str
    finding: str
    basis: tuple[str, ...]
    tiles: tuple[Tile, ...]
    ledger: tuple[LedgerLine, ...]
    ledger_sum: str
    full_at: float
    whole: str
    next_steps: tuple[str, ...]
    operators_title: str
    operators: Grid
    all_operators: Grid
    idle_title: str
    gaps: Grid
    steps: Grid
    ledger_devices: Grid
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Page:
    """The report as text. `also` names the views that are not shown in full."""

    title: str
    sections: tuple[Section, ...]
    also: tuple[str, ...]
    alarms: tuple[Alarm, ...]
    warning_words: str
    warnings: Grid
    kernels: Grid
    uncovered: Grid
    all_uncovered: Grid
    roofs: Grid
    all_roofs: Grid
    traces: Grid
    conditions: tuple[Condition, ...]
    queries: tuple[Query, ...]


def page_of(tables: ReportTables, context: ReportContext) -> Page:
    """The page of one run."""
    views = views_of(tables)
    return Page(
        title=units.plain(context.run_name),
        sections=tuple(_section(view) for view in views[:VIEWS_SHOWN]),
        also=tuple(f"{findings.phase_name(view)}: {findings.finding(view)}" for view in views[VIEWS_SHOWN:]),
        alarms=_alarms(rows_of(tables.warnings)),
        warning_words=_warning_words(rows_of(tables.warnings)),
        warnings=grids.warning_grid(tables.warnings),
        kernels=grids.kernel_grid(tables.kernels),
        uncovered=grids.uncovered_grid(tables.uncovered, grids.OPERATORS_SHOWN),
        all_uncovered=grids.uncovered_grid(tables.uncovered, tables.uncovered.num_rows),
        roofs=grids.roof_grid(tables.roofs.filter(tables.roofs["is_used"])),
        all_roofs=grids.roof_grid(tables.roofs),
        traces=grids.trace_grid(tables.traces),
        conditions=_conditions(context),
        queries=tuple(report_query(table) for table in TABLE_NAMES),
    )


def headline_of(page: Page) -> str:
    """The finding of the leading view, or that there is none."""
    return page.sections[0].finding if page.sections else "No GPU work in this trace: nothing to measure"


def _section(view: View) -> Section:
    lines = rows_of(view.ledger)
    length = max([100.0, *(_float(row, "end_pct") for row in lines)])
    return Section(
        position=view.position,
        name=findings.phase_name(view),
        finding=findings.finding(view),
        basis=tuple(findings.basis(view)),
        tiles=tuple(_tiles(view)),
        ledger=tuple(_ledger_line(row, length) for row in lines if row["pct"]),
        ledger_sum=units.points(_float(lines[0], "sum_pct")) if lines else units.UNKNOWN,
        full_at=100 * 100 / length,
        whole=findings.whole(view),
        next_steps=tuple(findings.next_to_look_at(view)),
        operators_title=findings.operators_title(view),
        operators=grids.operator_grid(view, grids.OPERATORS_SHOWN),
        all_operators=grids.operator_grid(view, grids.OPERATORS_MAX),
        idle_title=findings.idle_title(view),
        gaps=grids.gap_grid(view),
        steps=grids.step_grid(view),
        ledger_devices=grids.ledger_device_grid(view),
        notes=tuple(_notes(view)),
    )


def _ledger_line(row: Row, length: float) -> LedgerLine:
    start, end = sorted((_float(row, "start_pct"), _float(row, "end_pct")))
    return LedgerLine(
        label=str(row["label"]),
        family=str(row["family"]),
        meaning=str(row["meaning"]),
        points=units.points(_float(row, "pct")),
        time=phrases.short_time(_float(row, "ns_per_step")),
        start=100 * start / length,
        width=100 * (end - start) / length,
        is_gain=_float(row, "pct") < 0,
    )


def _tiles(view: View) -> list[Tile]:
    tiles = [_time_tile(view), *_model_tiles(view), _sol_tile(view)]
    tiles.append(Tile("GPU busy", units.percent(view.number("busy_pct")), f"of {findings.whole(view)}"))
    costed = units.percent(view.number("costed_pct"))
    tiles.append(Tile("Attributed", units.percent(view.number("attributed_pct")), f"of busy time; {costed} has a cost"))
    if view.number("items_per_s") is not None:
        tiles.append(Tile("Items per second", units.significant(view.number("items_per_s")), "as the steps declare"))
    if view.number("energy_j_per_step") is not None:
        tiles.append(Tile("Energy per step", f"{units.significant(view.number('energy_j_per_step'))} J", "by NVML"))
    return tiles


def _time_tile(view: View) -> Tile:
    if not view.has_steps:
        return Tile("Busy window", units.duration(view.number("window_ns")), "first to last execution; no step found")
    median, p95 = units.duration(view.number("step_median_ns")), units.duration(view.number("step_p95_ns"))
    return Tile("Step time", units.duration(view.number("step_ns")), f"median {median}, p95 {p95}")


def _model_tiles(view: View) -> list[Tile]:
    mfu, hfu, mbu = (units.percent(view.number(f"{name}_pct")) for name in ("mfu", "hfu", "mbu"))
    if view.text("lead") == "no_peak":
        rate = view.number("model_flop_per_s")
        return [Tile("Achieved", units.flop_rate(rate or None), "no peak known: no MFU")]
    if not view.has_steps:
        return []
    if view.text("lead") == "no_flop":
        return [Tile("MFU", units.UNKNOWN, "no FLOP known")]
    if view.text("lead") == "mbu":
        return [Tile("MBU", mbu, "bytes bind here"), Tile("MFU", mfu, f"HFU {hfu}")]
    return [Tile("MFU", mfu, f"HFU {hfu}, MBU {mbu}")]


def _sol_tile(view: View) -> Tile:
    measured, datasheet = view.number("sol_measured_pct"), view.number("sol_pct")
    if measured is None and datasheet is None:
        return Tile("Speed of light", units.UNKNOWN, "no cost or no ceiling known")
    if (view.number("costed_pct") or 0.0) < LEAST_COSTED_PCT:
        costed = units.percent(view.number("costed_pct"))
        return Tile("Speed of light", units.UNKNOWN, f"only {costed} of busy time has a cost")
    # A ratio over a part of the work must say how small the part is.
    part = f"; of {units.percent(view.number('costed_pct'))} of busy time" if view.head["is_lower_bound"] else ""
    if measured is None:
        return Tile("Speed of light", units.percent(datasheet), f"datasheet ceiling{part}")
    note = f"measured ceiling; {units.percent(datasheet)} datasheet{part}"
    return Tile("Speed of light", units.percent(measured), note)


def _notes(view: View) -> list[str]:
    notes = []
    if view.text("lead") == "mbu":
        notes.append("MBU leads: all bytes at full bandwidth take longer than all FLOP at the peaks of their dtypes.")
    if not view.has_steps:
        notes.append(
            "No step was found, so there is no MFU; times are those of the busy window, from the first to the last "
            "execution. Name the steps with --step-range REGEX, or annotate them: mfupipe.annotate.step()."
        )
    if view.text("lead") == "no_flop":
        notes.append("No operator with a known cost has FLOP: give shapes or declare costs, or state --step-flop.")
    if view.head["is_lower_bound"] and view.text("lead") in ("mfu", "mbu"):
        costed = units.percent(view.number("costed_pct"))
        notes.append(f"Only {costed} of the busy time has a cost: MFU is at least this.")
    if view.text("lead") == "no_peak":
        notes.append("No peak is known for this GPU: rates are shown, percentages of a peak are not.")
    return notes


def _alarms(rows: list[Row]) -> tuple[Alarm, ...]:
    """Errors, each once, however many traces have it."""
    found = (
        Alarm(units.plain(str(row["message"]), 400), units.plain(str(row["hint"] or ""), 400) if row["hint"] else "")
        for row in rows
        if row["severity"] == "error"
    )
    return tuple(dict.fromkeys(found))


def _warning_words(rows: list[Row]) -> str:
    """'1 error, 2 warnings: few_steps, ..', worst first; '' when there are only remarks."""
    serious = [row for row in rows if row["severity"] in ("error", "warning")]
    errors = sum(row["severity"] == "error" for row in serious)
    parts = [units.plural(errors, "error")] if errors else []
    parts += [units.plural(len(serious) - errors, "warning")] if len(serious) > errors else []
    codes = dict.fromkeys(units.plain(str(row["code"]), 40) for row in serious)
    return f"{', '.join(parts)}: {', '.join(codes)}" if serious else ""


def _conditions(context: ReportContext) -> tuple[Condition, ...]:
    own = (Condition("mfupipe", context.mfupipe_version),)
    made = (Condition("command", context.command),) if context.command else ()
    return tuple(
        Condition(units.plain(fact.name), units.plain(fact.value, 400)) for fact in (*own, *made, *context.conditions)
    )


def _float(row: Row, column: str) -> float:
    value = row[column]
    return float(value) if isinstance(value, int | float) else 0.0
