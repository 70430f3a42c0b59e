"""`mfupipe profile` as typed: what stands after --, the dry run, and what is left when something fails."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from mfupipe.cli import main
from mfupipe.profile.runner import PROFILER_VARIABLES

FAKE = Path(__file__).parents[1] / "fakes" / "nsys"


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (*PROFILER_VARIABLES, "RANK"):
        monkeypatch.delenv(name, raising=False)


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


def test_what_follows_the_dashes_is_the_program(capsys: pytest.CaptureFixture[str]) -> None:
    command = ("python", "train.py", "--steps", "3", "-o", "x", "--debug")
    assert run("profile", "-o", "RUN", "--capture", "all", "--nsys", str(FAKE), "--dry-run", "--", *command) == 0
    words = shlex.split(capsys.readouterr().out)
    assert words[-len(command) :] == list(command)
    assert "profile" in words and str(FAKE) in words


def test_a_dry_run_writes_nothing_and_says_how_to_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("profile", "-o", "RUN", "--nsys", str(FAKE), "--dry-run", "--", "./program") == 0
    assert "then: mfupipe ingest RUN*.nsys-rep -o RUN" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "nothing to profile"),
        (("no_such_workload",), "no workload 'no_such_workload'"),
        (("no_such.py",), "no such file: no_such.py"),
        (("--capture", "sometimes", "--", "true"), "no such capture mode: 'sometimes'"),
        (("--graphs", "all", "--", "true"), "no such graph mode: 'all'"),
        (("--per-rank", "-o", "RUN", "--", "true"), "--per-rank: none of RANK"),
    ],
)
def test_a_request_that_cannot_be_run_exits_with_2(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("profile", "--nsys", str(FAKE), *arguments) == 2
    assert message in capsys.readouterr().err


def test_without_nsys_the_exit_code_is_that_of_the_environment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("profile", "-o", "RUN", "--nsys", str(tmp_path / "nsys"), "--", "true") == 3
    assert "is not a working nsys" in capsys.readouterr().err


def test_a_program_that_fails_exits_with_4_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_NSYS", "never")
    program = [sys.executable, "-c", "import sys; print('boom', file=sys.stderr); sys.exit(3)"]
    assert run("profile", "-o", "RUN", "--capture", "all", "--nsys", str(FAKE), "--", *program) == 4
    assert "exit code 3" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_capture_that_cannot_be_read_is_kept_beside_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_NSYS", "report")
    assert run("profile", "-o", "RUN", "--capture", "all", "--nsys", str(FAKE), "--", "true") in (3, 5)
    (kept,) = tmp_path.iterdir()
    assert kept.name.startswith("RUN.") and kept.read_text() == "report"
    assert f"note: the capture is kept: {kept.name}" in capsys.readouterr().err


def test_the_default_run_is_named_after_the_program(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("profile", "--nsys", str(FAKE), "--capture", "all", "--dry-run", "--", "python", "train.py") == 0
    assert "-o train-run" in capsys.readouterr().err
