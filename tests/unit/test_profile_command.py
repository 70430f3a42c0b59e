"""The nsys line: flags that this nsys knows, and a dry run that works when pasted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mfupipe.errors import EnvironmentProblem, UsageError
from mfupipe.profile import (
    GraphMode,
    ProfileRequest,
    RankNaming,
    dry_run,
    find_nsys,
    parse_capture,
    resolve_target,
    run_directory,
)
from mfupipe.profile import request as request_module
from mfupipe.profile.command import build_command
from mfupipe.profile.nsys import Nsys, bundled_cupti, probe
from mfupipe.profile.request import RANK_VARIABLES

FAKE = Path(__file__).parents[1] / "fakes" / "nsys"
OLD = Nsys(Path("/old/nsys"), (2020, 4, 3), "--capture-range= --stop-on-range-end=")


def words(request: ProfileRequest, nsys: Nsys | None = None) -> tuple[str, ...]:
    found = nsys or find_nsys(FAKE)
    return build_command(found, request, resolve_target(request), Path("/run/out"), Path("/notes")).argv


@pytest.mark.parametrize(
    ("capture", "flags"),
    [
        ("api", ["--capture-range=cudaProfilerApi", "--capture-range-end=stop"]),
        ("auto", ["--capture-range=cudaProfilerApi", "--capture-range-end=stop"]),
        (
            "nvtx:step7",
            ["--capture-range=nvtx", "--nvtx-capture=step7@*", "NSYS_NVTX_PROFILER_REGISTER_ONLY=0"],
        ),
        ("nvtx:step7@mine", ["--nvtx-capture=step7@mine"]),
        ("time:2+0.5", ["--delay=2", "--duration=1", "--kill=none"]),
    ],
)
def test_each_capture_mode_has_its_flags(capture: str, flags: list[str]) -> None:
    argv = words(ProfileRequest(None, ("python", "train.py"), capture=parse_capture(capture)))
    assert set(flags) <= set(argv)
    assert argv[-4:] == ("-o", "/run/out", "python", "train.py")


def test_flags_follow_what_this_nsys_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    request = ProfileRequest(None, ("python",), capture=parse_capture("api"), graphs=GraphMode.NODE)
    assert "--cuda-graph-trace=node" in words(request)
    assert "--discard-environment=true" not in words(request)
    monkeypatch.setenv("FAKE_NSYS_NEW", "1")
    assert {"--discard-environment=true", "--cuda-event-trace=false"} <= set(words(request))


def test_an_old_nsys_gets_its_old_flags_and_refuses_graphs() -> None:
    assert "--stop-on-range-end=true" in words(ProfileRequest(None, ("python",)), OLD)
    with pytest.raises(EnvironmentProblem, match=r"nsys 2020\.4\.3 does not know --cuda-graph-trace"):
        words(ProfileRequest(None, ("python",), graphs=GraphMode.GRAPH), OLD)


def test_the_automatic_capture_puts_its_file_before_the_users_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/mine")
    request = ProfileRequest(None, ("python",), steps=7, warmup=2)
    command = build_command(find_nsys(FAKE), request, resolve_target(request), Path("/o"), Path("/notes"))
    environment = command.environment()
    assert environment["PYTHONPATH"].endswith("/mfupipe/inject:/mine")
    assert (environment["MFUPIPE_STEPS"], environment["MFUPIPE_WARMUP"]) == ("7", "2")
    assert environment["MFUPIPE_STATUS"] == "/notes/status.json"


def test_a_dry_run_works_when_pasted_into_a_shell(tmp_path: Path) -> None:
    code = "import os; print(os.environ['MFUPIPE_STEPS'], os.environ['PYTHONPATH'].split(':')[-1])"
    request = ProfileRequest(None, (sys.executable, "-c", code), steps=7)
    line = dry_run(find_nsys(FAKE), request, resolve_target(request), tmp_path / "a run's dir")
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": "/mine"}
    result = subprocess.run(["sh", "-c", line], env=environment, capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[0] == "7 /mine"
    assert (tmp_path / "a run's dir.nsys-rep").is_file()


def test_a_dry_run_per_rank_leaves_the_rank_to_nsys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in RANK_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    request = ProfileRequest(None, ("python",), ranks=RankNaming.PER_RANK)
    line = dry_run(find_nsys(FAKE), request, resolve_target(request), Path("/runs/gpt"))
    assert "-o '/runs/gpt.rank%q{RANK}'" in line
    assert "/runs/gpt.notes/status.json" in line


def test_each_rank_has_its_own_run(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in RANK_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UsageError, match="none of RANK"):
        run_directory(Path("/runs/gpt"), RankNaming.PER_RANK)
    monkeypatch.setenv("SLURM_PROCID", "3")
    assert run_directory(Path("/runs/gpt"), RankNaming.PER_RANK) == Path("/runs/gpt.rank3")
    assert run_directory(Path("/runs/gpt"), RankNaming.ONE) == Path("/runs/gpt")


def test_no_nsys_says_where_it_was_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr("mfupipe.profile.nsys.installed_paths", tuple)
    with pytest.raises(EnvironmentProblem) as raised:
        find_nsys(None)
    assert "/opt/nvidia/nsight-systems" in raised.value.message and "--nsys PATH" in raised.value.hint


def test_nsys_is_found_on_the_path_and_inside_a_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{FAKE.parent}:/usr/bin:/bin")
    assert find_nsys(None).version == (2023, 4, 4)
    assert find_nsys(FAKE.parent).path == FAKE


def test_the_newest_of_the_installed_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"/a": Nsys(Path("/a"), (2024, 10, 1), ""), "/b": Nsys(Path("/b"), (2024, 2, 3), "")}
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr("mfupipe.profile.nsys.installed_paths", lambda: tuple(map(Path, found)))
    monkeypatch.setattr("mfupipe.profile.nsys.probe", lambda path: found[str(path)])
    assert find_nsys(None).version_text == "2024.10.1"


def test_what_is_not_nsys_is_refused() -> None:
    assert probe(Path("/bin/true")) is None
    with pytest.raises(EnvironmentProblem, match="not a working nsys"):
        find_nsys(Path("/bin/true"))


def test_the_cuda_version_of_an_nsys_is_read_off_its_cupti(tmp_path: Path) -> None:
    for name in ("libcupti.so.11.8", "libcupti.so.12.4", "libcupti.so.12.4.1x"):
        (tmp_path / name).touch()
    assert bundled_cupti(Nsys(tmp_path / "nsys", (2023, 4, 4), "")) == (12, 4)


def test_workloads_scripts_and_commands_are_told_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "resnet50.py").touch()
    monkeypatch.setattr(request_module, "WORKLOADS", tmp_path)
    ours = resolve_target(ProfileRequest("resnet50", ("--batch", "4"), variant="bf16", steps=5, warmup=3))
    assert ours.argv[1:] == (
        str(tmp_path / "resnet50.py"), "--steps", "5", "--warmup", "3", "--variant", "bf16", "--batch", "4",
    )  # fmt: skip
    assert str(ours.capture) == "api"
    script = resolve_target(ProfileRequest(str(tmp_path / "resnet50.py"), ("x",)))
    assert (script.name, str(script.capture)) == ("resnet50", "auto")
    command = resolve_target(ProfileRequest(None, ("torchrun", "--nproc", "2", "dir/train.py")))
    assert (command.name, str(command.capture)) == ("train", "auto")


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (ProfileRequest(None), "nothing to profile"),
        (ProfileRequest("missing.py"), r"no such file: missing\.py"),
        (ProfileRequest("../x"), "no workload"),
    ],
)
def test_what_cannot_be_run_is_refused(request_: ProfileRequest, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        resolve_target(request_)
