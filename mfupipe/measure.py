"""Times steps untraced, then captures as many: what every workload of ours does around its `step` function.

The protocol with `mfupipe profile`: the untraced times, the model FLOP and the items of a step are written to the file
named by MFUPIPE_STEPS_FILE, then cudaProfilerStart opens the capture, and cudaProfilerStop closes it.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from mfupipe import annotate
from mfupipe.errors import EnvironmentProblem, MfupipeError, UsageError

torch: Any = importlib.import_module("torch")

STEPS_FILE = "MFUPIPE_STEPS_FILE"


@dataclass(frozen=True)
class StepWork:
    """What one step is. flop: of the model (FMA = 2; products, convolutions and attention; no recomputation).

    items: samples; tokens: where there are some. phase: train, prefill, decode, infer. flop_convention: what it counts.
    bytes: that must move whatever the program does (weights, cached keys and values), where they are the bound.
    """

    flop: int
    items: int
    phase: str
    flop_convention: str
    tokens: int | None = None
    bytes: int | None = None


@dataclass(frozen=True)
class Workload:
    """A step to measure. annotate: adds operator ranges, called once when the untraced steps are over."""

    step: Callable[[], object]
    work: StepWork
    annotate: Callable[[], object]
    device: str = "cuda"


@dataclass(frozen=True)
class Choices:
    """What a workload offers; the first of each is its default."""

    variants: tuple[str, ...]
    modes: tuple[str, ...]
    sizes: tuple[str, ...] = ("full", "tiny")


@dataclass(frozen=True)
class Options:
    """What the user asked of a workload. batch: None is the workload's own. steps: timed, and then captured as many."""

    variant: str
    mode: str
    size: str
    device: str
    batch: int | None
    warmup: int
    steps: int


@dataclass(frozen=True)
class Measured:
    """untraced_step_ns [ns]: one per step, by CUDA events where the device has them."""

    untraced_step_ns: tuple[int, ...]
    items_per_step: int
    flop_per_step: int
    flop_convention: str

    def headline(self) -> str:
        """One line: median step, items per second, and achieved model FLOP per second."""
        seconds = statistics.median(self.untraced_step_ns) / 1e9
        rate, achieved = self.items_per_step / seconds, self.flop_per_step / seconds / 1e12
        spread = 100 * (max(self.untraced_step_ns) - min(self.untraced_step_ns)) / 1e9 / seconds
        steps = f"{1e3 * seconds:.3f} ms per step (n={len(self.untraced_step_ns)}, spread {spread:.1f}%)"
        return f"{steps}, {rate:.1f} items/s, {achieved:.3f} TFLOP/s ({self.flop_convention})"


def main(build: Callable[[Options], Workload], choices: Choices, argv: list[str] | None = None) -> int:
    """The whole program of a workload: read the options, build, measure, print. Returns the exit code."""
    options = read_options(choices, argv)
    try:
        require_device(options.device)
        measured = measure(build(options), options)
    except MfupipeError as error:
        print(f"error: {error.message}\n  try: {error.hint}", file=sys.stderr)  # noqa: T201 - a program's own words
        return error.exit_code
    print(f"{options.variant} {options.mode}: {measured.headline()}")  # noqa: T201 - a program's own words
    return 0


def require_device(device: str) -> None:
    """Raise EnvironmentProblem when torch has no such device here."""
    if device == "cuda" and not torch.cuda.is_available():
        raise EnvironmentProblem("torch sees no GPU here", "give --device cpu --size tiny, or see mfupipe doctor")


def read_options(choices: Choices, argv: list[str] | None) -> Options:
    """Parse the command line; argparse exits with 2 on a wrong one."""
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    for name, offered in (("variant", choices.variants), ("mode", choices.modes), ("size", choices.sizes)):
        parser.add_argument(f"--{name}", choices=offered, default=offered[0])
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--batch", type=int, help="samples per step")
    parser.add_argument("--warmup", type=int, default=10)
    parser.add_argument("--steps", type=int, default=10, help="steps timed untraced, and then captured as many")
    return Options(**vars(parser.parse_args(argv)))


def measure(workload: Workload, options: Options) -> Measured:
    """Warm up, time, write the steps file, annotate, capture. Raises UsageError, EnvironmentProblem."""
    if options.steps < 1 or options.warmup < 0:
        what = f"{options.steps} steps after {options.warmup} of warm-up"
        raise UsageError(what, "give --steps 1 or more and --warmup 0 or more")
    repeat(workload.step, options.warmup)
    measured = Measured(
        time_steps(workload, options.steps),
        workload.work.items,
        workload.work.flop,
        workload.work.flop_convention,
    )
    write_steps(measured)
    workload.annotate()
    workload.step()  # fills the caches of annotation, outside the capture
    capture(workload, options.steps)
    return measured


def repeat(step: Callable[[], object], times: int) -> None:
    """Call a step again and again."""
    for _ in range(times):
        step()


def time_steps(workload: Workload, steps: int) -> tuple[int, ...]:
    """Time of each step [ns], start to start, no synchronisation between them on a GPU."""
    if workload.device != "cuda":
        return tuple(_time_on_host(workload.step) for _ in range(steps))
    events = [torch.cuda.Event(enable_timing=True) for _ in range(steps + 1)]
    torch.cuda.synchronize()
    events[0].record()
    for event in events[1:]:
        workload.step()
        event.record()
    torch.cuda.synchronize()
    return tuple(round(1e6 * a.elapsed_time(b)) for a, b in pairwise(events))


def _time_on_host(step: Callable[[], object]) -> int:
    start = time.perf_counter_ns()
    step()
    return time.perf_counter_ns() - start


def write_steps(measured: Measured) -> None:
    """Write the steps file when `mfupipe profile` asks for one."""
    path = os.environ.get(STEPS_FILE)
    if path:
        versions = {"torch": str(torch.__version__), "cuda": torch.version.cuda, "python": platform.python_version()}
        Path(path).write_text(json.dumps({**asdict(measured), **versions}), encoding="utf-8")


def capture(workload: Workload, steps: int) -> None:
    """Run the steps between cudaProfilerStart and Stop, each in its range. Raises EnvironmentProblem when they fail."""
    known: annotate.StepFields = {
        "flop": workload.work.flop,
        "bytes": workload.work.bytes,
        "items": workload.work.items,
        "tokens": workload.work.tokens,
        "phase": workload.work.phase,
    }
    _profiler(workload.device, "cudaProfilerStart")
    for index in range(steps):
        with annotate.step(index, **known):
            workload.step()
    _profiler(workload.device, "cudaProfilerStop")


def _profiler(device: str, call: str) -> None:
    if device != "cuda":
        return
    torch.cuda.synchronize()
    status = int(getattr(torch.cuda.cudart(), call)())
    if status != 0:
        raise EnvironmentProblem(f"{call} returned {status}", "see mfupipe doctor: is another profiler attached?")
