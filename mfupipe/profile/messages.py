"""What can go wrong between a program and its capture: one error for each, with the evidence and the
remedy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mfupipe.errors import (
    EnvironmentProblem,
    MfupipeError,
    UnusableTrace,
    WorkloadFailed,
)

SIGNALS = (128, 192)  # a shell's exit codes for a program that a signal ended
OTHER_MODES = "--capture api (the program calls cudaProfilerStart), time:30+5, nvtx:NAME or all"


@dataclass(frozen=True)
class Note:
    """Something about a capture that the user should know although it can be used."""

    code: str
    message: str
    hint: str


def no_nsys(places: Iterable[str]) -> MfupipeError:
    looked = ", ".join(["PATH", *places])
    hint = (
        "install Nsight Systems (it comes with the CUDA toolkit: package nsight-systems), or give --nsys "
        "PATH; mfupipe doctor"
    )
    return EnvironmentProblem(f"no nsys found (looked in {looked})", hint)


def option_unknown(ours: str, version: str, theirs: str) -> MfupipeError:
    return EnvironmentProblem(
        f"nsys {version} does not know {theirs}, which {ours} needs",
        f"leave {ours} out, or use a newer nsys with --nsys PATH",
    )


def option_refused(line: str, version: str) -> MfupipeError:
    return EnvironmentProblem(
        f"nsys {version} refused its command line: {line}", "see --dry-run; use another nsys with --nsys PATH"
    )


def program_missing(program: str) -> MfupipeError:
    return WorkloadFailed(
        f"nsys could not start {program}: no such executable", "check the command after --, and the PATH"
    )


def other_profiler(evidence: str) -> MfupipeError:
    hint = (
        "one profiler at a time: leave the other one (nsys, ncu, torch.profiler, a monitoring agent with "
        "profiling metrics) and run again"
    )
    return EnvironmentProblem(f"another profiler is attached ({evidence})", hint)


def no_permission(line: str) -> MfupipeError:
    hint = (
        "have an administrator allow it (NVreg_RestrictProfilingToAdminUsers=0), or run as root; in a "
        "container add --cap-add=SYS_ADMIN"
    )
    return EnvironmentProblem(f"the driver refuses profiling to this user: {line}", hint)


def cannot_write(line: str) -> MfupipeError:
    return EnvironmentProblem(
        f"nsys could not write its report: {line}", "give an -o in a directory that you may write"
    )


def disk_full(line: str, where: Path) -> MfupipeError:
    hint = (
        "free space there and in the temporary directory (TMPDIR), capture fewer steps (--steps 3), or give another -o"
    )
    return EnvironmentProblem(f"the disk is full while the report was written to {where}: {line}", hint)


def only_qdstrm(path: Path, importer: Path | None, line: str) -> MfupipeError:
    where = "has no importer beside it" if importer is None else f"has an importer at {importer} that failed"
    hint = (
        "use a complete Nsight Systems with --nsys PATH (target-linux-x64 and host-linux-x64 side by side; "
        "the copy inside Nsight"
        f" Compute is not), or import it elsewhere: QdstrmImporter -i {path.name}"
    )
    return EnvironmentProblem(f"nsys left only {path} and no report: this nsys {where}{_after(line)}", hint)


def workload_failed(exit_code: int, stderr_tail: str) -> MfupipeError:
    shown = f"; the end of its stderr:\n{stderr_tail}" if stderr_tail else "; it wrote nothing to stderr"
    hint = (
        "run the same command without mfupipe; when it works there, mfupipe profile --dry-run shows the "
        "line to try by hand"
    )
    if SIGNALS[0] < exit_code < SIGNALS[1]:
        hint += "; an nsys older than the driver's CUDA can take a program down: a newer nsys, or --graphs node"
    return WorkloadFailed(
        f"the program ended with {_exit_text(exit_code)} and nothing usable was captured{shown}", hint
    )


def never_opened_auto(reason: str, hint: str) -> MfupipeError:
    return UnusableTrace(f"the capture never opened: {reason}", f"{hint}; other modes: {OTHER_MODES}")


def never_opened_api() -> MfupipeError:
    hint = (
        "call torch.cuda.profiler.start() and stop() around the steps to measure, or use --capture auto, "
        "time:30+5, nvtx:NAME or all"
    )
    return UnusableTrace("the capture never opened: the program ended without a call of cudaProfilerStart", hint)


def never_opened_nvtx(name: str) -> MfupipeError:
    hint = (
        "check the name (NAME@DOMAIN outside the default domain); Python nvtx 0.2.12 and later records "
        "nothing under nsys up to"
        " 2024.2 (mfupipe doctor); or use --capture auto, api, time:30+5 or all"
    )
    return UnusableTrace(f"the capture never opened: no NVTX range named {name!r} began", hint)


def never_opened_time(delay_s: float) -> MfupipeError:
    hint = "give a shorter delay (time:DELAY+LENGTH), or use --capture auto, api, nvtx:NAME or all"
    return UnusableTrace(f"the capture never opened: the program ended within the delay of {delay_s:g} s", hint)


def nothing_generated(line: str) -> MfupipeError:
    return UnusableTrace(
        f"nsys ended without a report{_after(line)}",
        "mfupipe doctor; mfupipe profile --dry-run shows the line to try by hand",
    )


def damaged_steps(path: Path, error: str) -> MfupipeError:
    hint = "the workload writes it as JSON: untraced_step_ns, items_per_step, flop_per_step, flop_convention"
    return UnusableTrace(f"the steps file {path.name} cannot be read ({error})", hint)


def report_newer(line: str) -> MfupipeError:
    return EnvironmentProblem(
        f"the report is newer than the nsys that should export it: {line}",
        "give the nsys that wrote it, or a newer one, with --nsys PATH",
    )


def written_elsewhere(expected: Path, actual: Path) -> Note:
    message = f"nsys could not use {expected} and wrote the report to {actual}; it was taken from there"
    return Note("report_elsewhere", message, "choose an -o whose name is free and writable")


def failed_after_capture(exit_code: int) -> Note:
    message = f"the program ended with {_exit_text(exit_code)} after the capture had closed"
    return Note("failed_after_capture", message, "the captured steps are complete; look at the program's own stderr")


def importer_lost_events(line: str) -> Note:
    message = f"nsys met events that it does not know and left out what followed ({line})"
    hint = (
        "this nsys is older than the program's CUDA: use a newer one, or a capture range (--capture auto or api), "
        "which keeps most unknown calls out"
    )
    return Note("lost_events", message, hint)


def few_steps_captured(captured: int, asked: int) -> Note:
    return Note(
        "short_capture",
        f"{captured} of {asked} steps were captured before the program ended",
        "let it run longer, or ask for fewer --steps",
    )


def no_operator_ranges(error: str) -> Note:
    hint = (
        "switch off torch.profiler or emit_nvtx in the program; without operator ranges the report shows "
        "kernels and steps only"
    )
    return Note("no_operator_ranges", f"the operators of the captured steps carry no ranges ({error})", hint)


def own_capture() -> Note:
    message = "the program opens its own capture, which was left alone: no untraced steps were timed"
    return Note("own_capture", message, "take out its cudaProfilerStart for --capture auto, or say --capture api")


def no_nvml() -> Note:
    message = "no NVML on this machine: SM clock, power and energy are unknown"
    return Note("no_nvml", message, "install the NVIDIA driver's libnvidia-ml.so.1")


def _exit_text(code: int) -> str:
    return f"signal {code - SIGNALS[0]}" if SIGNALS[0] < code < SIGNALS[1] else f"exit code {code}"


def _after(line: str) -> str:
    return f" ({line})" if line else ""
