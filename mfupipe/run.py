"""The RUN directory: its manifest, and the rule that a RUN is published whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from mfupipe.errors import EnvironmentProblem, UnusableTrace, UsageError

MANIFEST_NAME = "manifest.json"
DATABASE_NAME = "run.duckdb"
RAW_NAME = "raw"
FORMAT_VERSION = 1


@dataclass(frozen=True)
class TraceEntry:
    """One trace of a RUN: only allow-listed facts, never an environment or a captured command line."""

    trace_id: int
    source_file: str
    source_sha256: str | None = None
    workload: str | None = None
    variant: str | None = None
    rank: int | None = None
    flop_convention: str | None = None


@dataclass(frozen=True)
class BuildOptions:
    """What the user may say about a trace that the trace cannot say itself.

    step_regex: full match on range names, group 1 is the phase. step_flop [FLOP per step] and step_items: stated model
    work. peaks: dtype -> FLOP/s, with 'bytes' -> bytes/s, replacing the datasheet row. reference_dtype: denominator of
    MFU. ceiling: 'measured' or 'datasheet', the one that ranks operators.
    """

    step_regex: str | None = None
    step_flop: float | None = None
    step_items: float | None = None
    flop_convention: str | None = None
    peaks: dict[str, float] = field(default_factory=dict)
    reference_dtype: str | None = None
    ceiling: str = "measured"


@dataclass(frozen=True)
class Manifest:
    """Contents of manifest.json. `profile` is what `mfupipe profile` recorded about the program it ran, else None."""

    traces: tuple[TraceEntry, ...]
    options: BuildOptions = BuildOptions()
    profile: dict[str, object] | None = None
    mfupipe_version: str = ""
    format_version: int = FORMAT_VERSION


def write_manifest(run_dir: Path, manifest: Manifest) -> None:
    """Write manifest.json in one step (write beside, then rename)."""
    beside = run_dir / f".{MANIFEST_NAME}.{os.getpid()}"
    beside.write_text(json.dumps(asdict(manifest), indent=1, sort_keys=True) + "\n", encoding="utf-8")
    beside.replace(run_dir / MANIFEST_NAME)


def read_manifest(run_dir: Path) -> Manifest:
    """Read manifest.json. Raises UnusableTrace when it is absent or not of this format."""
    path = run_dir / MANIFEST_NAME
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        return Manifest(
            traces=tuple(TraceEntry(**entry) for entry in raw["traces"]),
            options=BuildOptions(**raw["options"]),
            profile=raw["profile"],
            mfupipe_version=raw["mfupipe_version"],
            format_version=raw["format_version"],
        )
    except FileNotFoundError:
        missing = f"{run_dir} is not a RUN: it has no {MANIFEST_NAME}"
        raise UnusableTrace(missing, "mfupipe ingest TRACE -o RUN") from None
    except (json.JSONDecodeError, KeyError, TypeError, OSError) as error:
        raise UnusableTrace(f"{path} cannot be read ({error})", "ingest the trace again into a new RUN") from error


def is_run(path: Path) -> bool:
    """True when the directory holds a manifest; False also for text that is no possible path, as long SQL is."""
    try:
        return (path / MANIFEST_NAME).is_file()
    except (OSError, ValueError):
        return False


@contextmanager
def new_run(run_dir: Path) -> Iterator[Path]:
    """Yield a staging directory beside `run_dir`, renamed to it when the block ends well and removed when it does not.

    Raises UsageError when `run_dir` exists, EnvironmentProblem when its parent cannot be written.
    """
    if run_dir.exists():
        raise UsageError(f"{run_dir} exists, and a RUN is never overwritten", "give another -o, or remove it first")
    try:
        run_dir.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=f".{run_dir.name}.", dir=run_dir.parent))
    except OSError as error:
        raise EnvironmentProblem(f"cannot write beside {run_dir} ({error.strerror})", "give a writable -o") from error
    try:
        yield staging
        staging.chmod(0o755)
        _publish(staging, run_dir)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise


def _publish(staging: Path, run_dir: Path) -> None:
    try:
        staging.rename(run_dir)
    except OSError as error:
        raise UsageError(f"{run_dir} appeared while it was being made ({error.strerror})", "give another -o") from error
