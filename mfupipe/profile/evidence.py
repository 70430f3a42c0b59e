"""Decide from what nsys left behind whether there is a capture. The return code alone says nothing: it is
the program's."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from mfupipe.errors import MfupipeError
from mfupipe.profile import messages
from mfupipe.profile.messages import Note
from mfupipe.profile.nsys import Nsys, importer_path
from mfupipe.profile.request import CaptureKind, Target

STDERR_LINES = 20
CLOSED = ("closing", "closed")  # closing: every step is in, and the program vanished while nsys wrote
# nsys makes a report in spite of these, and leaves out what came after the first event that it did not know.
LOST = re.compile(
    r".*(Importation succeeded with non-fatal errors|Unknown (runtime|driver) API function index"
    r"|Errors occurred while processing the raw events).*"
)
# Phrases of nsys and of the driver, and what each means. The first that is found decides.
TROUBLE = (
    ("disk", re.compile(r".*(No space left on device|ENOSPC|not enough (disk )?space).*", re.IGNORECASE)),
    ("permission", re.compile(r".*(ERR_NVGPUCTRPERM|CUPTI_ERROR_INSUFFICIENT_PRIVILEGES).*")),
    (
        "profiler",
        re.compile(
            r".*(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS|another (CUPTI )?(client|profiler|subscriber)"
            r"|already being profiled).*",
            re.IGNORECASE,
        ),
    ),
    ("option", re.compile(r".*(unrecogni[sz]ed option|Illegal --[\w-]+ argument).*")),
    ("missing", re.compile(r".*(Executable not found in current directory|Failed to launch).*")),
    ("newer", re.compile(r".*(newer than your current version|Version number is invalid).*")),
    (
        "importer",
        re.compile(r".*(Importer error status|Unable to retrieve the importer version|importer binary).*"),
    ),
    ("create", re.compile(r".*Failed to create '.*\.(nsys-rep|qdstrm|qdrep)'.*")),
)


@dataclass(frozen=True)
class AutoStatus:
    """What the injected file wrote: how far it came, and what it measured on the way. Times in
    nanoseconds."""

    state: str
    reason: str = ""
    error: str = ""
    rule: str = ""
    steps_seen: int = 0
    steps_captured: int = 0
    untraced_step_ns: tuple[int, ...] = ()
    torch: str | None = None
    cuda: str | None = None
    python: str | None = None
    device: str | None = None


@dataclass(frozen=True)
class StepsReport:
    """What a workload of ours wrote to MFUPIPE_STEPS_FILE; None where it does not say."""

    untraced_step_ns: tuple[int, ...] = ()
    items_per_step: float | None = None
    flop_per_step: float | None = None
    flop_convention: str | None = None
    torch: str | None = None
    cuda: str | None = None
    python: str | None = None


@dataclass(frozen=True)
class Outcome:
    """What is left after nsys ended: its exit code, the ends of its output, and where it should have
    written."""

    exit_code: int
    stdout: str
    stderr: str
    expected: Path


def judge(outcome: Outcome, nsys: Nsys, target: Target, status: AutoStatus | None) -> tuple[Path, tuple[Note, ...]]:
    """The report and what to say about it. Raises the MfupipeError that fits when there is none."""
    report = next((path for path in generated(outcome.stdout, ".nsys-rep") if _is_filled(path)), None)
    if report is None:
        raise explain(outcome, nsys, target, status)
    complete = is_complete(status, target)
    if outcome.exit_code != 0 and not complete:
        raise messages.workload_failed(outcome.exit_code, stderr_tail(outcome.stderr))
    return report, tuple(_notes(outcome, report, status))


def is_complete(status: AutoStatus | None, target: Target) -> bool:
    """True when the capture is known to have closed before the program ended."""
    if target.capture.kind is CaptureKind.AUTO:
        return status is not None and status.state in CLOSED
    return False


def explain(outcome: Outcome, nsys: Nsys, target: Target, status: AutoStatus | None) -> MfupipeError:
    """Why there is no report, from the strongest evidence to the weakest."""
    found = find_trouble(outcome.stderr) or find_trouble(outcome.stdout)
    kind, line = found or ("", "")
    error = _explain_line(kind, line, outcome, nsys, target)
    if error is not None:
        return error
    stream = next((path for path in generated(outcome.stdout, ".qdstrm") if path.exists()), None)
    if stream is not None:
        return messages.only_qdstrm(stream, importer_path(nsys), line)
    if outcome.exit_code != 0:
        return messages.workload_failed(outcome.exit_code, stderr_tail(outcome.stderr))
    if generated(outcome.stdout, ".nsys-rep"):
        return messages.nothing_generated("it lists one that is empty or absent")
    if "Generated:" not in outcome.stdout and target.capture.kind is not CaptureKind.TIME:
        return messages.nothing_generated(line)
    return never_opened(target, status)


def _explain_line(  # noqa: PLR0911 - a table of cases
    kind: str, line: str, outcome: Outcome, nsys: Nsys, target: Target
) -> MfupipeError | None:
    match kind:
        case "disk":
            return messages.disk_full(line, outcome.expected.parent)
        case "permission":
            return messages.no_permission(line)
        case "profiler":
            return messages.other_profiler(line)
        case "option":
            return messages.option_refused(line, nsys.version_text)
        case "missing":
            return messages.program_missing(target.argv[0])
        case "newer":
            return messages.report_newer(line)
        case "create":
            return messages.cannot_write(line)
        case _:
            return None


def never_opened(target: Target, status: AutoStatus | None) -> MfupipeError:
    """nsys listed nothing under "Generated:": say what the chosen trigger waited for."""
    match target.capture.kind:
        case CaptureKind.AUTO:
            return never_opened_auto(status)
        case CaptureKind.NVTX:
            return messages.never_opened_nvtx(target.capture.range_name)
        case CaptureKind.TIME:
            return messages.never_opened_time(target.capture.delay_s)
        case _:
            return messages.never_opened_api()


def never_opened_auto(status: AutoStatus | None) -> MfupipeError:
    """Translate the injected file's reason."""
    if status is None:
        reason = "the injected file never ran (no Python program, python -I, -E or -S, or a cleared PYTHONPATH)"
        return messages.never_opened_auto(reason, "keep PYTHONPATH and MFUPIPE_* in the program's environment")
    seen = f"{status.steps_seen} steps were seen"
    table = {
        "no torch": ("the program never imported torch", "profile a program that uses PyTorch"),
        "no CUDA": (
            "torch was imported and never used a GPU",
            "check CUDA_VISIBLE_DEVICES and torch.cuda.is_available()",
        ),
        "no optimizer step": (
            "an optimizer was built and never stepped on a GPU",
            "let the program train for more steps",
        ),
        "no repeated module call": (
            "no optimizer step and no repeated call of a module on a GPU was seen",
            "mark the steps by hand",
        ),
        "too few steps": (
            f"{seen}, too few for the warm-up and twice --steps",
            "run longer, or lower --warmup and --steps",
        ),
        "failed": (f"the injected file gave up ({status.error})", "please report this"),
    }
    reason, hint = table.get(
        status.reason,
        (status.reason or f"the program vanished while {status.state}; {seen}", "see its output"),
    )
    return messages.never_opened_auto(reason, hint)


def _notes(outcome: Outcome, report: Path, status: AutoStatus | None) -> list[Note]:
    notes = []
    if report.resolve() != outcome.expected.resolve():
        notes.append(messages.written_elsewhere(outcome.expected, report))
    if outcome.exit_code != 0:
        notes.append(messages.failed_after_capture(outcome.exit_code))
    lost = LOST.search(outcome.stdout) or LOST.search(outcome.stderr)
    if lost is not None:
        notes.append(messages.importer_lost_events(lost[0].strip()))
    return notes + (_status_notes(status) if status is not None else [])


def _status_notes(status: AutoStatus) -> list[Note]:
    if status.reason == "the program opens its own capture":
        return [messages.own_capture()]
    notes = []
    if status.state not in CLOSED:
        notes.append(messages.few_steps_captured(status.steps_captured, len(status.untraced_step_ns)))
    if status.error:
        notes.append(messages.no_operator_ranges(status.error))
    return notes


def generated(stdout: str, suffix: str) -> tuple[Path, ...]:
    """Paths that nsys lists under its last "Generated:" line, of one suffix."""
    _, found, after = stdout.replace("\r", "\n").rpartition("Generated:")
    lines = (line.strip() for line in after.splitlines()) if found else iter(())
    return tuple(Path(line) for line in lines if line.startswith("/") and line.endswith(suffix))


def find_trouble(text: str) -> tuple[str, str] | None:
    """The first known phrase of trouble: (kind, the line that holds it)."""
    for kind, pattern in TROUBLE:
        match = pattern.search(text)
        if match is not None:
            return kind, match[0].strip()
    return None


def stderr_tail(text: str) -> str:
    """The last lines of stderr."""
    return "\n".join(text.strip().splitlines()[-STDERR_LINES:])


def read_status(path: Path) -> AutoStatus | None:
    """The status of the process that was followed, else of the one that came furthest; None when nothing
    was written."""
    found = [path] if path.exists() else sorted(path.parent.glob(f"{path.name}.bystander.*"))
    statuses = [status for name in found if (status := _read_one(name)) is not None]
    order = ("no torch", "no CUDA", "failed", "no optimizer step", "no repeated module call", "too few steps")
    return max(statuses, key=lambda s: order.index(s.reason) if s.reason in order else len(order), default=None)


def _read_one(path: Path) -> AutoStatus | None:
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError):
        return None
    fields = {name: raw[name] for name in AutoStatus.__dataclass_fields__ if name in raw}
    fields["untraced_step_ns"] = tuple(fields.get("untraced_step_ns", ()))
    return AutoStatus(**fields)


def read_steps(path: Path) -> StepsReport | None:
    """The steps file of a workload of ours; None when it wrote none. Raises UnusableTrace when it is
    damaged."""
    if not path.exists():
        return None
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        return StepsReport(
            untraced_step_ns=tuple(round(ns) for ns in raw.get("untraced_step_ns", ())),
            items_per_step=raw.get("items_per_step"),
            flop_per_step=raw.get("flop_per_step"),
            flop_convention=raw.get("flop_convention"),
            torch=raw.get("torch"),
            cuda=raw.get("cuda"),
            python=raw.get("python"),
        )
    except (OSError, json.JSONDecodeError, AttributeError, TypeError) as error:
        raise messages.damaged_steps(path, str(error)) from error


def _is_filled(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0
