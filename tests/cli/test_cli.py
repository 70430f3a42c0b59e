"""The command line without a trace: help, exit codes, what goes to which stream, and bad arguments."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from mfupipe.cli import main
from mfupipe.cli.main import app
from mfupipe.errors import (
    EnvironmentProblem,
    GateTripped,
    MfupipeError,
    UnusableTrace,
    UsageError,
    WorkloadFailed,
)

COMMANDS = ("profile", "ingest", "report", "sql", "doctor", "gpus", "calibrate", "demo")


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test writes into the checkout or reads this machine's calibration."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("COLUMNS", "120")


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


def test_help_takes_less_than_half_a_second() -> None:
    took = []
    for _ in range(3):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "mfupipe", "--help"], check=True, capture_output=True)
        took.append(time.perf_counter() - began)
    assert min(took) < 0.5


def test_help_loads_neither_duckdb_nor_pyarrow_nor_matplotlib() -> None:
    code = (
        "import sys; from mfupipe.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print([name for name in ('duckdb', 'pyarrow', 'pandas', 'matplotlib', 'torch') if name in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert said.splitlines()[-1] == "[]"


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--help") == 0
    shown = capsys.readouterr().out
    assert all(f"│ {command} " in shown for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(command, "--help") == 0
    assert f"mfupipe {command}" in capsys.readouterr().out


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--version") == 0
    assert capsys.readouterr().out == "0.1.0\n"


@pytest.mark.parametrize(
    "arguments", [("nonsense",), ("report",), ("report", "--nonsense"), ("profile", "--steps", "0")]
)
def test_a_command_line_that_cannot_be_parsed_exits_with_2(arguments: tuple[str, ...]) -> None:
    assert run(*arguments) == 2


@pytest.mark.parametrize(
    ("error", "code"),
    [(UsageError, 2), (EnvironmentProblem, 3), (WorkloadFailed, 4), (UnusableTrace, 5), (GateTripped, 6)],
)
def test_each_kind_of_error_has_its_exit_code_and_says_what_to_do(
    error: type[MfupipeError], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("mfupipe.devices.all_devices", raising(error("what happened", "what to do")))
    assert run("gpus") == code
    said = capsys.readouterr()
    assert said.out == "" and said.err == "mfupipe: what happened\n  try: what to do\n"


def raising(error: Exception) -> object:
    def fail() -> None:
        raise error

    return fail


def test_a_bug_exits_with_1_and_shows_its_traceback_only_with_debug(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("mfupipe.devices.all_devices", raising(KeyError("lost")))
    assert run("gpus") == 1
    said = capsys.readouterr().err
    assert "a bug of mfupipe: KeyError: 'lost'" in said and "--debug" in said and "Traceback" not in said
    for arguments in (("--debug", "gpus"), ("gpus", "--debug")):
        assert run(*arguments) == 1
        assert "Traceback" in capsys.readouterr().err


def test_ctrl_c_ends_without_a_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("mfupipe.devices.all_devices", raising(KeyboardInterrupt()))  # type: ignore[arg-type]
    assert run("gpus") in (1, 130)
    assert "Traceback" not in capsys.readouterr().err


def test_what_an_error_quotes_cannot_steer_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = UnusableTrace("bad \x1b]0;title\x07 name \u202e", "look")
    error.add_note("kept \x1b[31m")
    monkeypatch.setattr("mfupipe.devices.all_devices", raising(error))
    run("gpus")
    assert (
        capsys.readouterr().err
        == "mfupipe: bad \ufffd]0;title\ufffd name \ufffd\n  note: kept \ufffd[31m\n  try: look\n"
    )


def test_gpus_lists_every_device_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("gpus") == 0
    said = capsys.readouterr()
    assert "NVIDIA H200  " in said.out and "989.4" in said.out and said.err == ""


def test_gpus_of_one_name_shows_both_kinds_of_ceilings_with_their_sources(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("gpus", "H200") == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["bf16", "TFLOP/s", "989.4", "900", "662"] in lines and ["bytes", "TB/s", "4.8", "4.53", "4.36"] in lines
    assert any("datasheet" in line and "NVIDIA" in line for line in lines)
    assert any(line[:4] == ["bf16", "burst:", "measured", "on"] for line in lines)


def test_gpus_of_an_unknown_name_suggests_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("gpus", "NVIDIA A10G") == 2
    said = capsys.readouterr()
    assert said.out == "" and "try: mfupipe gpus 'NVIDIA A10'" in said.err


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--peak", "bf16", "--peak 'bf16'"),
        ("--peak", "bf17=1e12", "'bf17' is not one of"),
        ("--step-flop", "-1", "--step-flop -1 is no positive number"),
        ("--step-items", "nan", "--step-items nan is no positive number"),
        ("--step-range", "step(", "--step-range 'step('"),
        ("--reference-dtype", "bf17", "--reference-dtype 'bf17'"),
    ],
)
def test_a_bad_option_is_refused_before_anything_is_read(
    option: str, value: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("report", "no-such-file.sqlite", option, value) == 2
    assert message in capsys.readouterr().err


def test_a_trace_that_is_not_there_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("report", "no-such-file.sqlite") == 2
    assert "no such RUN or trace: no-such-file.sqlite" in capsys.readouterr().err


def test_a_directory_that_holds_something_else_is_never_written_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("text")
    assert run("demo", "-o", "mine") == 2
    assert run("report", "x.sqlite", "-o", "mine") == 2
    assert "mine exists and is not written over" in capsys.readouterr().err
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "text"


def test_the_app_registers_no_command_that_does_not_exist_yet() -> None:
    registered = [str(getattr(info.callback, "__name__", "")) for info in app.registered_commands]
    assert sorted(registered) == sorted(COMMANDS)
