"""Sentences: the headline as a finding, its basis, titles of figures, where to look next. Numbers come from SQL."""

from __future__ import annotations

from mfupipe import phrases, units
from mfupipe.report.views import Row, View, rows_of

NAMED_LOSSES = 2
SMALLEST_NAMED_PCT = 0.1
MOST_OVERHEAD_PCT = 5.0
CAUSES = {"launch": "waiting for a launch", "sync": "after the host waited", "other": "between queued work"}


def finding(view: View) -> str:
    """The headline: '33.3 ms per step, MFU 65.2 %: 15.4 points lost to memory-bound operators, 9.9 to ..'."""
    lead, lost = view.text("lead"), losses(view)
    step = f"{units.duration(view.number('step_ns'))} per step"
    if lead == "mfu":
        return _joined(f"{step}, {_utilisation(view, 'mfu')}", lost)
    if lead == "mbu":
        mfu = "" if view.number("mfu_pct") is None else f" ({_utilisation(view, 'mfu')})"
        return _joined(f"{step}, {_utilisation(view, 'mbu')}{mfu}", lost)
    if lead == "no_peak":
        rate = view.number("model_flop_per_s")
        achieved = f", {units.flop_rate(rate)} achieved" if rate else ""
        return f"{step}{achieved}; no peak is known for {device(view)}, so no MFU"
    if lead == "no_flop":
        return _joined(f"{step}, MFU unknown: no FLOP known", lost)
    if lead == "no_step":
        window = units.duration(view.number("window_ns"))
        return _joined(
            f"No step found; GPU busy {units.percent(view.number('busy_pct'))} of a window of {window}", lost
        )
    return "No GPU work in this trace"


def losses(view: View) -> str:
    """The largest losses: '15.4 points lost to memory-bound operators, 9.9 to launch gaps'; '' when there is none.

    Where bytes bind, memory-bound operators are the work itself and no loss. Where tracing lengthened the step, most
    of its gaps are the profiler's: they are in the ledger, not in the headline.
    """
    skipped = {"memory_bound"} if view.text("lead") == "mbu" else set()
    ranked = [row for row in rows_of(view.ledger) if row["loss_rank"] is not None and row["component"] not in skipped]
    if (view.number("profiler_overhead_pct") or 0.0) > MOST_OVERHEAD_PCT:
        ranked = [row for row in ranked if row["family"] != "idle"]
    ranked = [row for row in ranked if _float(row, "pct") >= SMALLEST_NAMED_PCT]
    named = sorted(ranked, key=lambda row: _float(row, "loss_rank"))[:NAMED_LOSSES]
    texts = [f"{units.points(_float(row, 'pct'))} points {_verb(row)} {row['label']}" for row in named]
    said = " points lost" if texts and " lost to " in texts[0] else " points"
    return ", ".join(texts[:1] + [text.replace(said, "", 1).replace(" points", "", 1) for text in texts[1:]])


def basis(view: View) -> list[str]:
    """What the headline rests on, as short phrases: device, peak, convention, n, spread, step rule, clock."""
    said = [device(view), _peak(view)]
    if view.text("flop_convention"):
        said.append(f"FLOP: {units.plain(view.text('flop_convention'))}")
    if view.text("cost_source"):
        said.append(f"costs from {units.plain(view.text('cost_source'))}")
    if view.has_steps:
        spread = view.number("step_spread_pct")
        known_spread = "spread unknown" if spread is None else f"spread {units.percent(spread)}"
        said += [f"n = {units.plural(view.number('step_count'), 'step')}, {known_spread}", _timing(view)]
    if view.text("ceiling_kind") and view.number("reference_flop_per_s") is not None and _rated(view):
        said.append(f"ranked against the {units.plain(view.text('ceiling_kind'))} ceiling")
    said.append(step_rule(view))
    clock = view.number("sm_clock_hz")
    said.append("clock not measured" if clock is None else f"SM clock {units.clock(clock)}")
    return said


def step_rule(view: View) -> str:
    """How steps were found, with the captured texts of the first and the last."""
    labels = [str(row["step_label"]) for row in rows_of(view.steps) if row["step_label"]]
    return phrases.step_rule(view.text("step_rule"), *(labels[0], labels[-1]) if labels else ("", ""))


def device(view: View) -> str:
    """'NVIDIA H200' or '2 x NVIDIA H200'."""
    name, gpus = units.plain(view.text("device_name") or None, 60), view.number("gpu_count")
    name = "unknown GPU" if name == units.UNKNOWN else name
    return f"{units.count(gpus)} x {name}" if gpus is not None and gpus > 1 else name


def whole(view: View) -> str:
    """What 100 % of the ledger is."""
    return "one step" if view.has_steps else "the busy window"


def phase_name(view: View) -> str:
    """'phase decode, trace 0' as far as there is something to tell apart."""
    phase = units.plain(view.text("phase"), 40) if view.text("phase") else ""
    workload = units.plain(view.text("workload"), 40) if view.text("workload") else ""
    return ", ".join([*([f"phase {phase}"] if phase else []), *([workload] if workload else []),
                      f"trace {view.text('trace_id')}"])  # fmt: skip


def operators_title(view: View) -> str:
    """The finding of the operator table: what the first rows could win back, or else where the time is."""
    first = next(iter(_recoverable(view)), None)
    if first is not None:
        value = units.duration(_float(first, "recoverable_per_step_ns"))
        return f"{operator_name(first, 56)} has most time above its ceiling: {value} of {whole(view)}"
    rows = rows_of(view.operators)
    if not rows:
        return "No operator ran on the GPU"
    longest = max(rows, key=lambda row: _float(row, "ns_per_step"))
    time, share = units.duration(_float(longest, "ns_per_step")), units.percent(_float(longest, "share_pct"))
    return (
        f"{operator_name(longest, 48)} takes {time} of {whole(view)}, {share} of the operators' time; {_unrated(view)}"
    )


def idle_title(view: View) -> str:
    """The finding of the gaps: how much of the time nothing ran, and the most of it by cause and call."""
    busy, first = view.number("busy_pct"), next(iter(rows_of(view.gaps)), None)
    idle = units.UNKNOWN if busy is None else units.percent(100 - busy)
    if first is None:
        return f"GPU idle {idle} of {whole(view)}"
    call = f" during {units.plain(str(first['api_name']), 40)}" if first["api_name"] else ""
    cause = CAUSES.get(str(first["cause"]), units.plain(str(first["cause"]), 40))
    return f"GPU idle {idle} of {whole(view)}; {units.percent(_float(first, 'share_pct'))} of that {cause}{call}"


def roofline_title(view: View) -> str:
    """The finding of the roofline: which side of the ridge holds the time."""
    sol = view.number("sol_measured_pct")
    kind = "measured" if sol is not None else "datasheet"
    sol = view.number("sol_pct") if sol is None else sol
    if sol is None:
        return "No speed of light is known"
    return f"Costed operators run at {units.percent(sol)} of the speed of light ({kind} ceiling)"


def steps_title(view: View) -> str:
    """The finding of the step times: how steady the run was."""
    spread, median = view.number("step_spread_pct"), units.duration(view.number("step_median_ns"))
    varies = "Step time" if spread is None else f"Step time varies by {units.percent(spread)}"
    return f"{varies}: median {median}, n = {units.plural(view.number('step_count'), 'measured step')}"


def next_to_look_at(view: View, limit: int = 3) -> list[str]:
    """The operators with most recoverable time and why: 'aten::mm backward: 3.1 ms recoverable, compute bound ..'."""
    return [
        f"{operator_name(row, 60)}: {units.duration(_float(row, 'recoverable_per_step_ns'))} recoverable, "
        f"{units.plain(str(row['why']))}"
        for row in _recoverable(view)[:limit]
    ]


def _recoverable(view: View) -> list[Row]:
    return [row for row in rows_of(view.operators) if _float(row, "recoverable_pct") >= SMALLEST_NAMED_PCT]


def _rated(view: View) -> bool:
    return any(row["ideal_per_step_ns"] is not None for row in rows_of(view.operators))


def _unrated(view: View) -> str:
    """Why there is nothing to recover."""
    if _rated(view):
        return "all rated operators are at their ceiling"
    if not view.number("costed_pct"):
        return "no operator has a cost, so none is rated"
    has_rates = any(row["bytes_per_s"] or row["flop_per_s"] for row in rows_of(view.operators))
    no_peak = has_rates and view.number("reference_flop_per_s") is None
    return "no peak is known to rate any" if no_peak else "too little has a cost to rate any"


def operator_name(row: Row, limit: int) -> str:
    """'aten::mm backward': the direction is said unless it is forward or none."""
    return phrases.operator_label(str(row["operator"]), str(row["direction"] or ""), limit)


def _joined(head: str, lost: str) -> str:
    return f"{head}: {lost}" if lost and ": " not in head else f"{head}; {lost}" if lost else head


def _peak(view: View) -> str:
    peak, bandwidth = view.number("reference_flop_per_s"), view.number("bandwidth_bytes_per_s")
    if peak is None and bandwidth is None:
        return "no peak known"
    dtype = units.plain(view.text("reference_dtype") or None, 20)
    return f"{dtype} dense datasheet peak {units.flop_rate(peak)}, bandwidth {units.byte_rate(bandwidth)}"


def _verb(row: Row) -> str:
    """Time in operators without a cost is not lost: nobody knows."""
    return "in" if row["family"] == "unknown" else "lost to"


def _utilisation(view: View, kind: str) -> str:
    least = "at least " if view.head["is_lower_bound"] else ""
    return f"{kind.upper()} {least}{units.percent(view.number(f'{kind}_pct'))}"


def _timing(view: View) -> str:
    if view.number("untraced_step_ns") is None:
        return "timed under the profiler"
    overhead = view.number("profiler_overhead_pct")
    slower = "" if overhead is None else f", tracing adds {units.percent(overhead)}"
    return f"timed without the profiler (n = {units.count(view.number('untraced_n'))}{slower})"


def _float(row: Row, column: str) -> float:
    value = row[column]
    return float(value) if isinstance(value, int | float) else 0.0
