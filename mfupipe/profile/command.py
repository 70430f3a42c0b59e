"""The nsys command line and the environment it runs in, with the flags that this nsys knows."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path

import mfupipe.inject
from mfupipe.profile import messages
from mfupipe.profile.nsys import Nsys
from mfupipe.profile.request import (
    Capture,
    CaptureKind,
    GraphMode,
    ProfileRequest,
    RankNaming,
    Target,
    rank_variable,
)

INJECT = Path(mfupipe.inject.__file__).resolve().parent
STATUS_NAME = "status.json"
STEPS_NAME = "steps.json"


@dataclass(frozen=True)
class Command:
    """argv of nsys, and the variables to set; `python_path` goes in front of the caller's PYTHONPATH."""

    argv: tuple[str, ...]
    variables: tuple[tuple[str, str], ...]
    python_path: tuple[Path, ...]

    def environment(self) -> dict[str, str]:
        """The caller's environment with this command's variables."""
        before = [os.environ["PYTHONPATH"]] if os.environ.get("PYTHONPATH") else []
        joined = os.pathsep.join([*map(str, self.python_path), *before])
        paths = {"PYTHONPATH": joined} if self.python_path else {}
        return {**os.environ, **dict(self.variables), **paths}


def build_command(nsys: Nsys, request: ProfileRequest, target: Target, output: Path, notes: Path) -> Command:
    """Assemble the command. output: report path without suffix; notes: directory for the status files.

    Raises EnvironmentProblem when this nsys lacks an option that was asked for.
    """
    argv = [str(nsys.path), "profile", *base_flags(nsys), *graph_flags(nsys, request.graphs)]
    argv += [*capture_flags(nsys, target.capture), "-o", str(output), *target.argv]
    auto = target.capture.kind is CaptureKind.AUTO
    variables = [("MFUPIPE_STEPS_FILE", str(notes / STEPS_NAME))]
    if auto:
        variables += auto_variables(request, notes / STATUS_NAME)
    return Command(tuple(argv), tuple(variables), ((INJECT,) if auto else ()) + target.python_path)


def auto_variables(request: ProfileRequest, status: Path) -> list[tuple[str, str]]:
    """What the injected file reads."""
    return [
        ("MFUPIPE_STATUS", str(status)),
        ("MFUPIPE_WARMUP", str(request.warmup)),
        ("MFUPIPE_STEPS", str(request.steps)),
        ("MFUPIPE_OPERATORS", str(request.operator_ranges.value)),
    ]


def base_flags(nsys: Nsys) -> list[str]:
    """CUDA and NVTX only, no CPU sampling; the environment stays out of the report where nsys can leave
    it out."""
    flags = ["-t", "cuda,nvtx", "--sample=none", "--cpuctxsw=none"]
    optional = (("--discard-environment", "true"), ("--cuda-event-trace", "false"))
    return flags + [f"{name}={value}" for name, value in optional if nsys.has(name)]


def graph_flags(nsys: Nsys, graphs: GraphMode | None) -> list[str]:
    """--cuda-graph-trace, when the user asked for a mode and this nsys has it."""
    if graphs is None:
        return []
    if not nsys.has("--cuda-graph-trace"):
        raise messages.option_unknown("--graphs", nsys.version_text, "--cuda-graph-trace")
    return [f"--cuda-graph-trace={graphs.value}"]


def capture_flags(nsys: Nsys, capture: Capture) -> list[str]:
    """The trigger. `stop` and `kill=none`: by default nsys ends the program together with the capture
    (exit code 143)."""
    match capture.kind:
        case CaptureKind.AUTO | CaptureKind.API:
            return ["--capture-range=cudaProfilerApi", *_range_end(nsys)]
        case CaptureKind.NVTX:
            name = capture.range_name if "@" in capture.range_name else f"{capture.range_name}@*"
            # Without this variable only registered strings trigger, and torch's ranges are not registered.
            free_text = ["-e", "NSYS_NVTX_PROFILER_REGISTER_ONLY=0"]
            return ["--capture-range=nvtx", f"--nvtx-capture={name}", *_range_end(nsys), *free_text]
        case CaptureKind.TIME:
            return [
                f"--delay={_seconds(capture.delay_s)}",
                f"--duration={_seconds(capture.length_s)}",
                "--kill=none",
            ]
        case CaptureKind.ALL:
            return []


def _range_end(nsys: Nsys) -> list[str]:
    return ["--capture-range-end=stop"] if nsys.has("--capture-range-end") else ["--stop-on-range-end=true"]


def _seconds(value: float) -> str:
    """nsys takes whole seconds: round up, so that a short time is not none."""
    return str(int(-(-value // 1)))


def dry_run(nsys: Nsys, request: ProfileRequest, target: Target, run_dir: Path) -> str:
    """The exact line for a job script: variables, then nsys, each word quoted for the shell; then how to
    ingest."""
    base = run_dir.absolute()
    suffix = f".rank%q{{{rank_variable()}}}" if request.ranks is RankNaming.PER_RANK else ""
    command = build_command(
        nsys, request, target, base.with_name(base.name + suffix), base.with_name(base.name + ".notes")
    )
    notes = shlex.quote(str(base.with_name(base.name + ".notes")))
    return f"mkdir -p {notes} && {shell_line(command)}\n"


def shell_line(command: Command) -> str:
    """`env A=1 PYTHONPATH=DIR${PYTHONPATH:+:$PYTHONPATH} nsys profile ...`, safe to paste into a POSIX
    shell."""
    words = [f"{name}={shlex.quote(value)}" for name, value in command.variables]
    if command.python_path:
        paths = shlex.quote(os.pathsep.join(map(str, command.python_path)))
        words.append(f'PYTHONPATH={paths}"${{PYTHONPATH:+:$PYTHONPATH}}"')
    return " ".join(["env", *words, *map(shlex.quote, command.argv)])
