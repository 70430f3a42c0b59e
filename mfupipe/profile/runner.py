"""Run a program under nsys, and hand back its report with everything learned on the way."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from mfupipe.errors import EnvironmentProblem
from mfupipe.paths import WORKLOADS
from mfupipe.profile import messages
from mfupipe.profile.command import STATUS_NAME, STEPS_NAME, Command, build_command
from mfupipe.profile.evidence import (
    AutoStatus,
    Outcome,
    StepsReport,
    judge,
    read_status,
    read_steps,
)
from mfupipe.profile.messages import Note
from mfupipe.profile.nsys import Nsys, find_nsys
from mfupipe.profile.nvml import Driver, Sample, Sampler, open_nvml, read_driver
from mfupipe.profile.records import git_facts, write_nvml_samples, write_untraced_steps
from mfupipe.profile.request import ProfileRequest, Target, resolve_target

KEPT_OUTPUT = 1 << 18
# Variables through which a profiler enters a process; set means that one is already there.
PROFILER_VARIABLES = (
    "NSYS_PROFILING_SESSION_ID",
    "CUDA_INJECTION64_PATH",
    "NVTX_INJECTION64_PATH",
    "QUADD_INJECTION_PROXY",
)


@dataclass(frozen=True)
class ProfileResult:
    """A capture. report: the .nsys-rep, inside the staging directory; untraced_step_ns [ns]: steps timed
    before it opened."""

    report: Path
    nsys: Nsys
    target: Target
    exit_code: int
    untraced_step_ns: tuple[int, ...]
    status: AutoStatus | None
    steps: StepsReport | None
    samples: tuple[Sample, ...]
    driver: Driver | None
    notes: tuple[Note, ...]
    manifest: dict[str, object]

    def write_records(self, raw_trace: Path) -> None:
        """Write untraced_steps.parquet and nvml_samples.parquet into raw/trace_id=N."""
        write_untraced_steps(raw_trace, self.untraced_step_ns)
        write_nvml_samples(raw_trace, self.samples)


def profile(request: ProfileRequest, staging: Path) -> ProfileResult:
    """Run the request under nsys and put the report into `staging`.

    Raises EnvironmentProblem (3), WorkloadFailed (4) or UnusableTrace (5), each with its evidence and remedy.
    """
    nsys, target = find_nsys(request.nsys), resolve_target(request)
    refuse_other_profilers()
    with tempfile.TemporaryDirectory(prefix="mfupipe-") as scratch:
        notes = Path(scratch)
        output = staging / file_name(target.name, request.variant)
        command = build_command(nsys, request, target, output, notes)
        driver = read_driver()
        with Sampler(open_nvml()) as sampler:
            exit_code, stdout, stderr = run_command(command)
        status, steps = read_status(notes / STATUS_NAME), read_steps(notes / STEPS_NAME)
    outcome = Outcome(exit_code, stdout, stderr, output.with_name(output.name + ".nsys-rep"))
    report, found = judge(outcome, nsys, target, status)
    report = take(report, outcome.expected)
    untraced = status.untraced_step_ns if status is not None else steps.untraced_step_ns if steps is not None else ()
    return ProfileResult(
        report=report,
        nsys=nsys,
        target=target,
        exit_code=exit_code,
        untraced_step_ns=untraced,
        status=status,
        steps=steps,
        samples=tuple(sampler.samples),
        driver=driver,
        notes=found if driver is not None else (*found, messages.no_nvml()),
        manifest=manifest_facts(request, target, nsys, driver, status, exit_code) | versions(status or steps),
    )


def refuse_other_profilers() -> None:
    """Raise EnvironmentProblem when this environment is already that of a profiled process."""
    found = found_profilers()
    if found:
        raise messages.other_profiler(", ".join(found))


def found_profilers() -> list[str]:
    """Signs in this environment of a profiler that is attached already."""
    found = [f"{name} is set" for name in PROFILER_VARIABLES if os.environ.get(name)]
    if "libToolsInjection" in os.environ.get("LD_PRELOAD", ""):
        found.append("LD_PRELOAD holds a tools injection library")
    return found


def run_command(command: Command) -> tuple[int, str, str]:
    """Run nsys; the program's output goes to our stderr as it comes. (exit code, end of stdout, end of
    stderr)."""
    process = subprocess.Popen(command.argv, env=command.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    kept = (bytearray(), bytearray())
    streams = (process.stdout, process.stderr)
    threads = [threading.Thread(target=_forward, args=pair, daemon=True) for pair in zip(streams, kept, strict=True)]
    for thread in threads:
        thread.start()
    try:
        code = process.wait()
    except KeyboardInterrupt:
        _end(process)
        raise
    for thread in threads:
        thread.join(timeout=10)  # a daemon of the program may hold the pipe open
    stdout, stderr = (bytes(part).decode(errors="replace") for part in kept)
    return (128 - code if code < 0 else code), stdout, stderr


def take(report: Path, wanted: Path) -> Path:
    """Move the report where it was wanted. Raises EnvironmentProblem when it cannot be written there."""
    if report.resolve() == wanted.resolve():
        return wanted
    try:
        shutil.copyfile(report, wanted)  # another file system, as a rule: /tmp
        report.unlink()
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise messages.disk_full(str(error), wanted.parent) from error
        raise EnvironmentProblem(
            f"the report {report} could not be moved to {wanted} ({error})", "give another -o"
        ) from error
    return wanted


def file_name(workload: str, variant: str | None) -> str:
    """A file name for a report: workload and variant, without what a shell or a file system minds."""
    return re.sub(r"[^\w.-]+", "_", f"{workload}_{variant}" if variant else workload)[:80]


def manifest_facts(
    request: ProfileRequest,
    target: Target,
    nsys: Nsys,
    driver: Driver | None,
    status: AutoStatus | None,
    exit_code: int,
) -> dict[str, object]:
    """What manifest.json says about the program that ran: its command, never its environment."""
    commit, dirty = git_facts(Path.cwd())
    program, *arguments = target.argv
    return {
        "command": [Path(program).name, *map(shown_argument, arguments)],
        "workload": target.name,
        "variant": request.variant,
        "steps": request.steps,
        "warmup": request.warmup,
        "capture": str(target.capture),
        "graphs": request.graphs.value if request.graphs else None,
        "nsys_version": nsys.version_text,
        "exit_code": exit_code,
        "devices": [gpu.name for gpu in driver.gpus] if driver else None,
        "driver_version": driver.version if driver else None,
        "cuda_driver_version": ".".join(map(str, driver.cuda)) if driver and driver.cuda else None,
        "step_rule": status.rule if status else None,
        "git_commit": commit,
        "git_dirty": dirty,
    }


def versions(told: AutoStatus | StepsReport | None) -> dict[str, object]:
    """What the program said that it ran on."""
    return {
        "torch_version": told.torch if told else None,
        "cuda_version": told.cuda if told else None,
        "python_version": told.python if told else None,
    }


def shown_argument(argument: str) -> str:
    """An argument as the page shows it: a workload of ours by its place in the package, the rest as given."""
    path = Path(argument)
    inside = path.is_absolute() and path.is_relative_to(WORKLOADS)
    return str(Path(WORKLOADS.name) / path.relative_to(WORKLOADS)) if inside else argument


def _forward(source: IO[bytes], kept: bytearray) -> None:
    """Copy a stream to stderr as it comes, and keep its end."""
    while chunk := os.read(source.fileno(), 1 << 16):
        sys.stderr.write(chunk.decode(errors="replace"))
        sys.stderr.flush()
        kept += chunk
        del kept[:-KEPT_OUTPUT]


def _end(process: subprocess.Popen[bytes]) -> None:
    """After Ctrl-C nsys, which got it too, closes its files; give it time before ending it."""
    try:
        process.wait(timeout=30)
    except subprocess.TimeoutExpired:
        process.terminate()
