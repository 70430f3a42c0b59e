"""What profile adds to a RUN: untraced steps, NVML samples, and the facts for the manifest."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from mfupipe.profile.nvml import Sample

UNTRACED_SCHEMA = pa.schema([("index", pa.int64()), ("wall_ns", pa.int64())])
NVML_SCHEMA = pa.schema(
    [
        ("utc_ns", pa.int64()),
        ("gpu_uuid", pa.string()),
        ("sm_clock_hz", pa.int64()),
        ("power_w", pa.float64()),
        ("energy_j", pa.float64()),
    ]
)


def write_untraced_steps(raw_trace: Path, step_ns: tuple[int, ...]) -> None:
    """Write untraced_steps.parquet, one row per step; nothing when no step was timed."""
    if step_ns:
        columns = {"index": list(range(len(step_ns))), "wall_ns": list(step_ns)}
        pq.write_table(pa.table(columns, schema=UNTRACED_SCHEMA), raw_trace / "untraced_steps.parquet")


def write_nvml_samples(raw_trace: Path, samples: tuple[Sample, ...]) -> None:
    """Write nvml_samples.parquet, one row per reading and GPU; nothing without NVML."""
    if samples:
        columns = {name: [getattr(sample, name) for sample in samples] for name in NVML_SCHEMA.names}
        pq.write_table(pa.table(columns, schema=NVML_SCHEMA), raw_trace / "nvml_samples.parquet")


def git_facts(directory: Path) -> tuple[str | None, bool | None]:
    """(commit, whether tracked files differ from it) of the working directory; (None, None) outside a
    repository."""
    commit = _git(directory, "rev-parse", "HEAD")
    if commit is None:
        return None, None
    changes = _git(directory, "status", "--porcelain", "--untracked-files=no")
    return commit, None if changes is None else bool(changes)


def _git(directory: Path, *arguments: str) -> str | None:
    try:
        result = subprocess.run(
            ["git", *arguments], cwd=directory, capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout.strip() if result.returncode == 0 else None
