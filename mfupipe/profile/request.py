"""What the user asked to profile, and how the capture is to be opened."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from mfupipe.errors import UsageError
from mfupipe.paths import WORKLOADS

RANK_VARIABLES = ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK")


class CaptureKind(StrEnum):
    """What opens and closes the capture."""

    AUTO = "auto"
    API = "api"
    TIME = "time"
    NVTX = "nvtx"
    ALL = "all"


class GraphMode(StrEnum):
    """One row per CUDA graph launch, or one per graph node."""

    GRAPH = "graph"
    NODE = "node"


class RankNaming(StrEnum):
    """One RUN for the command, or one per rank of a launcher that starts mfupipe once per rank."""

    ONE = "one"
    PER_RANK = "per rank"


class OperatorRanges(StrEnum):
    """Ranges that `--capture auto` adds inside the capture: one per aten operator with shapes, or none."""

    ATEN = "aten"
    NONE = "none"


@dataclass(frozen=True)
class Capture:
    """A capture mode with its parameters. delay_s, length_s [seconds] belong to TIME, range_name to NVTX."""

    kind: CaptureKind
    delay_s: float = 0.0
    length_s: float = 0.0
    range_name: str = ""

    def __str__(self) -> str:
        if self.kind is CaptureKind.TIME:
            return f"time:{self.delay_s:g}+{self.length_s:g}"
        return f"nvtx:{self.range_name}" if self.kind is CaptureKind.NVTX else str(self.kind.value)


@dataclass(frozen=True)
class ProfileRequest:
    """`mfupipe profile` as asked. workload: name in workloads/ or a .py file; else `arguments` is the
    whole command.

    capture: None chooses `api` for a workload of ours (it opens the capture itself), else `auto`.
    """

    workload: str | None
    arguments: tuple[str, ...] = ()
    variant: str | None = None
    steps: int = 10
    warmup: int = 10
    capture: Capture | None = None
    graphs: GraphMode | None = None
    ranks: RankNaming = RankNaming.ONE
    operator_ranges: OperatorRanges = OperatorRanges.ATEN
    nsys: Path | None = None


@dataclass(frozen=True)
class Target:
    """The command that runs under nsys, the name the RUN goes by, and the capture mode in force."""

    argv: tuple[str, ...]
    name: str
    capture: Capture
    python_path: tuple[Path, ...] = ()


def parse_capture(text: str) -> Capture:
    """Parse auto | api | all | time:DELAY+LENGTH | nvtx:NAME. Raises UsageError."""
    if text in ("auto", "api", "all"):
        return Capture(CaptureKind(text))
    times = re.fullmatch(r"time:(\d+(?:\.\d+)?)\+(\d+(?:\.\d+)?)", text)
    if times and float(times[2]) > 0:
        return Capture(CaptureKind.TIME, delay_s=float(times[1]), length_s=float(times[2]))
    if text.startswith("nvtx:") and len(text) > len("nvtx:"):
        return Capture(CaptureKind.NVTX, range_name=text[len("nvtx:") :])
    hint = "give auto, api, all, time:DELAY+LENGTH in seconds (time:30+5) or nvtx:NAME (nvtx:step7)"
    raise UsageError(f"no such capture mode: {text!r}", hint)


def resolve_target(request: ProfileRequest) -> Target:
    """Turn a request into the command to run. Raises UsageError when there is nothing to run or no such
    workload."""
    if request.workload is None:
        return _any_command(request)
    if request.workload.endswith(".py"):
        return _script(request, Path(request.workload))
    path = WORKLOADS / f"{request.workload}.py"
    if not re.fullmatch(r"\w+", request.workload) or not path.is_file():
        known = ", ".join(sorted(known_workloads())) or "none here"
        hint = "name one of these, a .py file, or put a whole command after --"
        raise UsageError(f"no workload {request.workload!r} (known: {known})", hint)
    return _bundled(request, path)


def known_workloads() -> tuple[str, ...]:
    """Names that `mfupipe profile NAME` accepts."""
    return tuple(path.stem for path in WORKLOADS.glob("*.py") if not path.stem.startswith("_"))


def _any_command(request: ProfileRequest) -> Target:
    if not request.arguments:
        hint = "mfupipe profile -o RUN -- python train.py"
        raise UsageError("nothing to profile: no workload and no command after --", hint)
    capture = request.capture or Capture(CaptureKind.AUTO)
    return Target(request.arguments, command_name(request.arguments), capture)


def _script(request: ProfileRequest, path: Path) -> Target:
    if not path.is_file():
        raise UsageError(f"no such file: {path}", "give the path of a Python file")
    argv = (sys.executable, str(path), *request.arguments)
    return Target(argv, path.stem, request.capture or Capture(CaptureKind.AUTO))


def _bundled(request: ProfileRequest, path: Path) -> Target:
    """Workloads of ours take --variant, --steps and --warmup, and open the capture themselves."""
    options = ["--steps", str(request.steps), "--warmup", str(request.warmup)]
    if request.variant is not None:
        options += ["--variant", request.variant]
    argv = (sys.executable, str(path), *options, *request.arguments)
    capture = request.capture or Capture(CaptureKind.API)
    return Target(argv, str(request.workload), capture, (WORKLOADS.parent,))


def command_name(argv: tuple[str, ...]) -> str:
    """A name for a command: the script it runs when there is one, else its program."""
    scripts = [part for part in argv[1:] if part.endswith(".py")]
    return Path(scripts[0]).stem if scripts else Path(argv[0]).name


def process_rank() -> str | None:
    """Rank of this process by its launcher's environment, None outside a launcher."""
    return next((os.environ[name] for name in RANK_VARIABLES if os.environ.get(name, "").isdigit()), None)


def rank_variable() -> str:
    """Name of the launcher's rank variable that is set here, RANK when none is."""
    return next((name for name in RANK_VARIABLES if os.environ.get(name, "").isdigit()), RANK_VARIABLES[0])


def run_directory(run_dir: Path, ranks: RankNaming) -> Path:
    """RUN, or RUN.rankN under --per-rank. Raises UsageError when no launcher has set a rank."""
    if ranks is RankNaming.ONE:
        return run_dir
    rank = process_rank()
    if rank is None:
        hint = (
            "start mfupipe once per rank: torchrun --no-python ... mfupipe profile --per-rank -o RUN -- python train.py"
        )
        raise UsageError(f"--per-rank: none of {', '.join(RANK_VARIABLES)} is set", hint)
    return run_dir.with_name(f"{run_dir.name}.rank{rank}")
