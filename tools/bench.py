"""Time and peak memory of what users wait for, on two cores and a capture of 522,000 kernels: `make bench`.

The capture is the demo's, repeated 3000 times (tools/tile_trace.py) into build/bench, which needs 2 GB there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from mfupipe.paths import DEMO_CAPTURE
from tools.tile_trace import make

COPIES = 3000
CORES = 2
FOLDER = Path("build") / "bench"


@dataclass(frozen=True)
class Task:
    """One command of mfupipe, and what it may take: seconds, and MiB of resident memory where that is limited."""

    name: str
    arguments: tuple[str, ...]
    limit_s: float
    limit_mib: float | None = None


def main() -> None:
    """Make the capture when it is not there yet, run the tasks, and print a line for each."""
    capture = FOLDER / f"demo_x{COPIES}.sqlite"
    FOLDER.mkdir(parents=True, exist_ok=True)
    if not capture.exists():
        print(f"making {capture} ...", file=sys.stderr)
        make(DEMO_CAPTURE, capture, COPIES)
    run_dir, report = FOLDER / "run", FOLDER / "report"
    for path in (run_dir, report):
        shutil.rmtree(path, ignore_errors=True)
    cores = sorted(os.sched_getaffinity(0))[:CORES]
    os.sched_setaffinity(0, cores)
    print(f"capture: {capture.stat().st_size / 1e6:,.0f} MB; cores: {len(cores)}")
    tasks = (
        Task("ingest + build", ("ingest", str(capture), "-o", str(run_dir)), 30, 1536),
        Task("report", ("report", str(run_dir), "-o", str(report)), 5),
        Task("--help", ("--help",), 0.5),
    )
    for task in tasks:
        print(line(task, *measure(task)))


def measure(task: Task) -> tuple[float, float]:
    """Run in a process of its own: (seconds, peak resident MiB)."""
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "mfupipe", *task.arguments], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"mfupipe {' '.join(task.arguments)} ended with {process.returncode}")
    return seconds, usage.ru_maxrss / 1024


def line(task: Task, seconds: float, mib: float) -> str:
    """What was measured beside what is allowed."""
    over = seconds > task.limit_s or (task.limit_mib is not None and mib > task.limit_mib)
    limit = f"{task.limit_s:g} s" + (f", {task.limit_mib:,.0f} MiB" if task.limit_mib is not None else "")
    return f"{task.name:<15} {seconds:6.2f} s  {mib:7,.0f} MiB   limit {limit}{'   OVER' if over else ''}"


if __name__ == "__main__":
    main()
