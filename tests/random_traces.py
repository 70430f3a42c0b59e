"""Random interval sets as traces: executions of three classes that overlap, nest, touch or are empty; with costs."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from tests.oracle.grid import Activity, Window
from tests.trace_builder import DEVICE_TO_HOST, Trace

STEP_SPAN = 100
"""Executions of step i start in [i * STEP_SPAN, (i + 1) * STEP_SPAN) and may end later."""


@dataclass(frozen=True)
class Run:
    """One execution of a random trace. `flop` and `bytes` are its declared cost, None without."""

    execution_class: str
    step: int
    offset: int
    length: int
    stream: int = 7
    flop: int | None = None
    bytes: int | None = None

    @property
    def start(self) -> int:
        """From 1 on: (0, 0) is what nsys writes for an execution without timestamps."""
        return 1 + self.step * STEP_SPAN + self.offset

    @property
    def end(self) -> int:
        return self.start + self.length


@dataclass(frozen=True)
class IntervalSet:
    """Executions of one device; with steps, each step has a compute execution."""

    runs: tuple[Run, ...]
    step_count: int

    def in_order(self) -> list[Run]:
        """Executions by launch."""
        return sorted(self.runs, key=lambda run: run.step)

    def windows(self) -> list[Window]:
        """What the ledger covers: all measured steps, else the first to the last execution."""
        last = max(run.end for run in self.runs)
        if not self.step_count:
            return [(min(run.start for run in self.runs), last)]
        borders = [self._border(step) for step in range(self.step_count)]
        first = 1 if self.step_count >= 3 else 0
        end = max(run.end for run in self.runs if run.step == self.step_count - 1)
        return [(borders[first], end)]

    def activities(self) -> list[Activity]:
        """The same as the oracle's grid reads it, named by their order of launch."""
        return [Activity(index, run.execution_class, run.start, run.end) for index, run in enumerate(self.in_order())]

    def with_hidden_communication(self) -> IntervalSet:
        """The same and a communication below each compute execution."""
        hidden = [
            replace(run, execution_class="communication", stream=9, flop=None, bytes=None)
            for run in self.runs
            if run.execution_class == "compute"
        ]
        return replace(self, runs=(*self.runs, *hidden))

    def _border(self, step: int) -> int:
        return min(run.start for run in self.runs if run.step == step and run.execution_class == "compute")


LAUNCH_FIRST = -1_000_000
LAUNCH_SPACE = 20
"""Launches lie before the executions, in order, LAUNCH_SPACE ns apart, each in a range of its own."""


def to_trace(intervals: IntervalSet) -> Trace:
    """Raw tables of an interval set; the row order of the kernels is the order of launch."""
    trace = Trace()
    trace.domain(1, "mfupipe")
    ordered = intervals.in_order()
    launches = {index: LAUNCH_FIRST + LAUNCH_SPACE * index for index in range(len(ordered))}
    for step in range(intervals.step_count):
        mine = [launches[index] for index, run in enumerate(ordered) if run.step == step]
        trace.range(min(mine) - 8, max(mine) + 8, f"step|index={step}", domain=1)
    for index, run in enumerate(ordered):
        trace.range(launches[index] - 4, launches[index] + 4, _message(run, index), domain=1)
        _add(trace, run, launches[index])
    return trace


def _message(run: Run, index: int) -> str:
    """A name that no other launch has (a name that repeats may be taken for a step), and the cost."""
    letters = chr(ord("a") + index // 26) + chr(ord("a") + index % 26)
    cost = "" if run.flop is None else f"|flop={run.flop}|dtype=bf16" + f"|bytes={run.bytes}" * (run.bytes is not None)
    return f"operator_{letters}{cost}"


def _add(trace: Trace, run: Run, at: int) -> None:
    if run.execution_class == "copy":
        trace.memcpy(run.start, run.end, at=at, copy_kind=DEVICE_TO_HOST, stream=run.stream)
    else:
        name = "some_kernel" if run.execution_class == "compute" else "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
        trace.kernel(name, run.start, run.end, at=at, stream=run.stream)


CLASSES = ("compute", "compute", "compute", "communication", "copy")


@st.composite
def interval_sets(draw: st.DrawFn) -> IntervalSet:
    """Up to 12 executions in up to 4 steps, or without steps."""
    step_count = draw(st.integers(0, 4))
    steps = range(max(step_count, 1))
    runs = [
        Run(
            execution_class=draw(st.sampled_from(CLASSES)),
            step=draw(st.sampled_from(steps)),
            offset=draw(st.integers(0, STEP_SPAN - 1)),
            length=draw(st.integers(0, 60)),
            stream=draw(st.sampled_from((7, 8))),
            flop=draw(st.none() | st.integers(0, 40_000_000)),
            bytes=draw(st.none() | st.integers(1, 200_000)),
        )
        for _ in range(draw(st.integers(0, 8)))
    ]
    runs += [Run("compute", step, draw(st.integers(0, STEP_SPAN - 1)), draw(st.integers(1, 60))) for step in steps]
    return IntervalSet(tuple(_with_sound_cost(run) for run in runs), step_count)


def seeded_interval_set(seed: int) -> IntervalSet:
    """The same kind of set without Hypothesis: larger, for many traces in one build."""
    source = random.Random(seed)
    step_count = source.choice((0, 0, 1, 2, 3, 5))
    steps = range(max(step_count, 1))
    runs = [
        Run(
            execution_class=source.choice(CLASSES),
            step=source.choice(steps),
            offset=source.randrange(STEP_SPAN),
            length=source.choice((0, 1, 5, 20, 60)),
            stream=source.choice((7, 8, 9)),
            flop=source.choice((None, source.randrange(1, 40_000_000))),
            bytes=source.choice((None, source.randrange(1, 200_000))),
        )
        for _ in range(source.randrange(25))
    ]
    runs += [Run("compute", step, source.randrange(STEP_SPAN), source.randrange(1, 60)) for step in steps]
    return IntervalSet(tuple(_with_sound_cost(run) for run in runs), step_count)


def _with_sound_cost(run: Run) -> Run:
    """Only compute with a duration has a cost here, and no bytes without FLOP."""
    if run.execution_class != "compute" or run.length == 0 or run.flop is None:
        return replace(run, flop=None, bytes=None)
    return run
