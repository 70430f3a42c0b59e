"""A real Nsight Systems behind the commands: profile, ingest and report of a program that uses no GPU."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from mfupipe.cli import main
from mfupipe.errors import MfupipeError
from mfupipe.profile import doctor_trial, find_nsys

TRIAL = doctor_trial.__file__


def _nsys() -> str | None:
    try:
        return str(find_nsys(Path(os.environ["NSYS"]) if os.environ.get("NSYS") else None).path)
    except MfupipeError:
        return None


NSYS = _nsys()
pytestmark = [pytest.mark.nsys, pytest.mark.skipif(NSYS is None, reason="no nsys")]


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


def test_a_capture_without_gpu_work_is_kept_and_can_still_be_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert run("profile", "--capture", "all", "--nsys", str(NSYS), "-o", "RUN", "--", sys.executable, TRIAL) == 5
    said = capsys.readouterr()
    assert "the capture holds no GPU work (0 kernels" in said.err and "kept: " in said.err and said.out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["RUN.nsys-rep"]
    assert run("report", "RUN.nsys-rep", "--nsys", str(NSYS), "-o", "out") == 5
    assert "no_kernel_data" in capsys.readouterr().err
    assert (tmp_path / "out" / "report.html").is_file()


def test_the_dry_run_prints_a_line_that_works_when_pasted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ("--capture", "all", "--nsys", str(NSYS), "-o", "RUN", "--dry-run", "--", sys.executable, TRIAL)
    assert run("profile", *command) == 0
    assert os.system(capsys.readouterr().out) == 0
    assert (tmp_path / "RUN.nsys-rep").stat().st_size > 1000
