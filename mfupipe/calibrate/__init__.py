"""Measured ceilings of the GPU here: what its matrix units and its memory give on random data, in a burst
and for long."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from dataclasses import dataclass, fields
from pathlib import Path

from mfupipe.errors import EnvironmentProblem

PROBE = Path(__file__).with_name("probe.py")


@dataclass(frozen=True)
class CalibrateOptions:
    """python: an interpreter with torch; sustained_s [s]: how long each sustained measurement runs, 3 at
    least."""

    python: str = sys.executable
    sustained_s: float = 3.0


@dataclass(frozen=True)
class Ceiling:
    """One measured ceiling; flop_per_s for a dtype of arithmetic, bytes_per_s (read + written) for dtype
    'bytes'."""

    device_name: str
    dtype: str
    kind: str
    condition: str
    flop_per_s: float | None
    bytes_per_s: float | None
    source: str


def calibrate(options: CalibrateOptions) -> tuple[Ceiling, ...]:
    """Measure in a process of its own. Raises EnvironmentProblem without torch, without a GPU, or when it
    fails."""
    argv = [options.python, str(PROBE), str(max(3.0, options.sustained_s))]
    try:
        result = subprocess.run(argv, capture_output=True, text=True, check=False)
    except OSError as error:
        raise EnvironmentProblem(f"{options.python} cannot be run ({error})", "give the path of a Python") from error
    if result.returncode != 0:
        tail = "\n".join(result.stderr.strip().splitlines()[-5:])
        hint = "calibrate needs a Python with torch and a GPU that nothing else uses; mfupipe doctor"
        raise EnvironmentProblem(f"the measurement ended with exit code {result.returncode}:\n{tail}", hint)
    return tuple(Ceiling(**row) for row in json.loads(result.stdout.splitlines()[-1]))


def write_ceilings(path: Path, ceilings: tuple[Ceiling, ...]) -> None:
    """Write them as CSV, one row per (dtype, condition), numbers in full."""
    names = [field.name for field in fields(Ceiling)]
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([["" if (v := getattr(row, n)) is None else v for n in names] for row in ceilings])
