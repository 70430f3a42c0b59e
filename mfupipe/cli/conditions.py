"""What a report says about how its RUN was made, out of the manifest."""

from __future__ import annotations

import shlex
from pathlib import Path

import mfupipe
from mfupipe.report import Condition, ReportContext
from mfupipe.run import Manifest

# Key of the manifest's `profile` -> words of the report, in the order to show.
WORDS = {
    "git_commit": "git commit",
    "git_dirty": "uncommitted changes",
    "torch_version": "torch",
    "cuda_version": "CUDA of torch",
    "python_version": "Python",
    "driver_version": "driver",
    "cuda_driver_version": "CUDA of the driver",
    "nsys_version": "nsys",
    "capture": "capture mode",
    "graphs": "CUDA graphs",
    "steps": "steps asked for",
    "warmup": "warm-up steps",
    "repeat": "captures",
}


def report_context(source: Path, manifest: Manifest) -> ReportContext:
    """Name, command and conditions of a RUN or of the trace it was made of."""
    return ReportContext(
        run_name=run_name(source, manifest),
        mfupipe_version=mfupipe.__version__,
        command=_command(source, manifest),
        conditions=conditions(manifest),
    )


def run_name(source: Path, manifest: Manifest) -> str:
    """Workload and variant where they are the same in all traces, else the name of the file or directory."""
    labels = {(entry.workload, entry.variant) for entry in manifest.traces}
    named = [part for part in next(iter(labels), ()) if part] if len(labels) == 1 else []
    return " ".join(named) or source.resolve().name


def conditions(manifest: Manifest) -> tuple[Condition, ...]:
    """What profile recorded about the program it ran; none for a capture that someone else made."""
    recorded = manifest.profile or {}
    known = {key: recorded[key] for key in WORDS if recorded.get(key) is not None}
    return tuple(Condition(WORDS[key], _text(value)) for key, value in known.items())


def _command(source: Path, manifest: Manifest) -> str:
    """The program that was profiled, else how to make this report again."""
    recorded = (manifest.profile or {}).get("command")
    return shlex.join(map(str, recorded) if isinstance(recorded, list) else ["mfupipe", "report", source.name])


def _text(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
