"""Each way in which a capture fails has its own message with the remedy (fake nsys, words of the real one)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mfupipe.errors import (
    EnvironmentProblem,
    MfupipeError,
    UnusableTrace,
    WorkloadFailed,
)
from mfupipe.paths import WORKLOADS
from mfupipe.profile import (
    Capture,
    CaptureKind,
    ProfileRequest,
    ProfileResult,
    parse_capture,
    profile,
)
from mfupipe.profile.command import STATUS_NAME
from mfupipe.profile.evidence import (
    AutoStatus,
    StepsReport,
    generated,
    never_opened_auto,
    read_status,
    read_steps,
)
from mfupipe.profile.runner import PROFILER_VARIABLES, shown_argument, versions

FAKES = Path(__file__).parents[1] / "fakes"
NSYS = FAKES / "nsys"
TRAIN = """
import torch
model, optimizer = torch.nn.Module([torch.nn.Module()]), torch.optim.SGD([])
for _ in range(9):
    model(1)
    optimizer.step()
"""


@pytest.fixture(autouse=True)
def no_profiler(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROFILER_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("PYTHONPATH", raising=False)


def run(
    monkeypatch: pytest.MonkeyPatch, staging: Path, behaviour: str, code: str = "pass", capture: str = "all"
) -> ProfileResult:
    monkeypatch.setenv("FAKE_NSYS", behaviour)
    command = (sys.executable, "-c", code)
    return profile(ProfileRequest(None, command, steps=2, warmup=2, capture=parse_capture(capture), nsys=NSYS), staging)


@pytest.mark.parametrize(
    ("behaviour", "capture", "kind", "message", "hint"),
    [
        (
            "no_option",
            "all",
            EnvironmentProblem,
            "refused its command line: unrecognised option",
            "--dry-run",
        ),
        ("no_program", "all", WorkloadFailed, "no such executable", "PATH"),
        (
            "permission",
            "all",
            EnvironmentProblem,
            "refuses profiling to this user",
            "RestrictProfilingToAdminUsers=0",
        ),
        ("profiler", "all", EnvironmentProblem, "another profiler is attached", "one profiler at a time"),
        ("importer", "all", EnvironmentProblem, "left only", "host-linux-x64"),
        ("disk", "all", EnvironmentProblem, "disk is full", "free space"),
        ("unwritable", "all", EnvironmentProblem, "could not write its report", "-o in a directory"),
        ("newer", "all", EnvironmentProblem, "newer than the nsys", "--nsys PATH"),
        ("never", "api", UnusableTrace, "without a call of cudaProfilerStart", "--capture auto"),
        ("never", "nvtx:step7", UnusableTrace, "no NVTX range named 'step7' began", "nvtx 0.2.12"),
        ("silent", "time:30+5", UnusableTrace, "within the delay of 30 s", "shorter delay"),
        ("never", "auto", UnusableTrace, "never imported torch", "other modes: --capture api"),
        ("silent", "all", UnusableTrace, "ended without a report", "--dry-run"),
        ("empty", "api", UnusableTrace, "one that is empty", "doctor"),
    ],
)
def test_each_failure_has_its_own_message_and_remedy(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    behaviour: str,
    capture: str,
    kind: type[MfupipeError],
    message: str,
    hint: str,
) -> None:
    with pytest.raises(kind) as raised:
        run(monkeypatch, tmp_path, behaviour, capture=capture)
    assert message in raised.value.message
    assert hint in raised.value.hint


def test_a_failed_workload_shows_its_own_stderr(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code = "import sys; print('loss is NaN at step 3', file=sys.stderr); sys.exit(3)"
    with pytest.raises(WorkloadFailed) as raised:
        run(monkeypatch, tmp_path, "report", code)
    assert "exit code 3" in raised.value.message
    assert "loss is NaN at step 3" in raised.value.message


def test_a_killed_workload_is_named_by_its_signal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(WorkloadFailed, match="signal 9"):
        run(monkeypatch, tmp_path, "report", "import os; os.kill(os.getpid(), 9)")


def test_a_failure_after_the_capture_closed_is_a_note(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTHONPATH", str(FAKES))
    result = run(monkeypatch, tmp_path, "report", TRAIN + "raise SystemExit(5)", "auto")
    assert result.exit_code == 5
    assert [note.code for note in result.notes if note.code != "no_nvml"] == ["failed_after_capture"]


def test_a_program_that_dies_while_the_capture_is_written_keeps_its_capture(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(FAKES))
    dies = "import os, torch\ntorch._C._cudart.cudaProfilerStop = staticmethod(lambda: os.kill(os.getpid(), 9))\n"
    result = run(monkeypatch, tmp_path, "report", dies + TRAIN, "auto")
    assert result.status is not None and (result.status.state, result.status.steps_captured) == ("closing", 2)
    notes = {note.code: note.message for note in result.notes}
    assert "signal 9" in notes["failed_after_capture"] and "short_capture" not in notes


def test_a_program_that_a_signal_ended_is_told_that_an_old_nsys_can_do_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(WorkloadFailed) as raised:
        run(monkeypatch, tmp_path, "report", "import os; os.kill(os.getpid(), 11)")
    assert "signal 11" in raised.value.message and "--graphs node" in raised.value.hint


def test_events_that_the_importer_left_out_are_a_note(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    notes = {note.code: note for note in run(monkeypatch, tmp_path, "events").notes}
    assert "non-fatal errors" in notes["lost_events"].message and "newer" in notes["lost_events"].hint


def test_a_report_written_elsewhere_is_taken_from_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    staging = tmp_path / "staging"
    staging.mkdir()
    monkeypatch.setenv("FAKE_NSYS_ELSEWHERE", str(tmp_path / "nsys-report-b43c.nsys-rep"))
    result = run(monkeypatch, staging, "elsewhere")
    assert result.report.parent == staging and result.report.read_text() == "report"
    assert "report_elsewhere" in [note.code for note in result.notes]


def test_an_automatic_capture_brings_steps_status_and_manifest(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTHONPATH", str(FAKES))
    result = run(monkeypatch, tmp_path, "report", TRAIN, "auto")
    assert result.untraced_step_ns == (1_500_000, 1_500_000)
    assert result.status is not None and result.status.rule == "optimizer"
    assert result.manifest["torch_version"] == "0.0.fake"
    assert result.manifest["capture"] == "auto"
    assert result.manifest["nsys_version"] == "2023.4.4"


def test_too_few_steps_are_counted_in_the_message(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTHONPATH", str(FAKES))
    with pytest.raises(UnusableTrace, match="3 steps were seen, too few"):
        run(monkeypatch, tmp_path, "never", TRAIN.replace("range(9)", "range(3)"), "auto")


def test_another_profiler_in_the_environment_is_refused_before_the_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NSYS_PROFILING_SESSION_ID", "4711")
    with pytest.raises(EnvironmentProblem, match="NSYS_PROFILING_SESSION_ID is set"):
        run(monkeypatch, tmp_path, "report")


def test_reports_are_read_from_the_last_generated_line_only() -> None:
    text = "Generated:\n  /a/fake.nsys-rep\nloss 3\nGenerated:\r\n    /b/run 1.nsys-rep\n\t/b/run.sqlite\n"
    assert generated(text, ".nsys-rep") == (Path("/b/run 1.nsys-rep"),)
    assert generated("no such line", ".nsys-rep") == ()


def test_without_a_status_the_injected_file_is_said_not_to_have_run() -> None:
    assert "never ran" in never_opened_auto(None).message


def test_a_program_that_vanished_says_how_far_it_came() -> None:
    message = never_opened_auto(AutoStatus(state="timing", steps_seen=14)).message
    assert "vanished while timing; 14 steps" in message


def test_the_status_of_the_process_that_came_furthest_is_read(tmp_path: Path) -> None:
    (tmp_path / f"{STATUS_NAME}.bystander.1").write_text('{"state": "left", "reason": "no torch"}')
    (tmp_path / f"{STATUS_NAME}.bystander.2").write_text('{"state": "left", "reason": "no CUDA"}')
    status = read_status(tmp_path / STATUS_NAME)
    assert status is not None and status.reason == "no CUDA"


def test_a_damaged_steps_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "steps.json"
    assert read_steps(path) is None
    path.write_text("[1, 2")
    with pytest.raises(UnusableTrace, match=r"steps\.json cannot be read"):
        read_steps(path)


def test_a_steps_file_gives_times_and_work(tmp_path: Path) -> None:
    path = tmp_path / "steps.json"
    path.write_text('{"untraced_step_ns": [5.4, 6], "items_per_step": 128, "flop_per_step": 1.0e12}')
    steps = read_steps(path)
    assert steps is not None
    assert (steps.untraced_step_ns, steps.items_per_step, steps.flop_convention) == ((5, 6), 128, None)


def test_what_a_workload_of_ours_says_of_its_torch_is_in_the_manifest() -> None:
    told = StepsReport(torch="2.11.0", cuda="13.0", python="3.12.3")
    assert versions(told) == {"torch_version": "2.11.0", "cuda_version": "13.0", "python_version": "3.12.3"}
    assert set(versions(None).values()) == {None}


def test_a_workload_of_ours_is_named_by_its_place_in_the_package() -> None:
    assert shown_argument(str(WORKLOADS / "resnet50.py")) == "workloads/resnet50.py"
    assert shown_argument("/data/train.py") == "/data/train.py"


def test_capture_modes_are_parsed() -> None:
    assert parse_capture("time:1.5+3") == Capture(CaptureKind.TIME, delay_s=1.5, length_s=3)
    assert str(parse_capture("nvtx:step 7@mfupipe")) == "nvtx:step 7@mfupipe"
    for wrong in ("time:5", "time:5+0", "nvtx:", "never"):
        with pytest.raises(MfupipeError):
            parse_capture(wrong)
