"""Doctor: each check states what it saw and what to do; without nsys or a GPU it still answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from mfupipe import doctor
from mfupipe.doctor import Check, State, Trial, examine, worst
from mfupipe.errors import UnusableTrace
from mfupipe.profile.nsys import Nsys
from mfupipe.profile.nvml import Driver, Gpu
from mfupipe.profile.runner import PROFILER_VARIABLES

FAKE = Path(__file__).parents[1] / "fakes" / "nsys"
NSYS = Nsys(Path("/nowhere/target-linux-x64/nsys"), (2023, 4, 4), "")
H200 = Driver("580.159", (13, 0), (Gpu("NVIDIA H200", "u", 1_980_000_000),))


@pytest.fixture(autouse=True)
def no_profiler(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROFILER_VARIABLES:
        monkeypatch.delenv(name, raising=False)


def by_name(checks: list[Check] | tuple[Check, ...], name: str) -> Check:
    return next(check for check in checks if check.name == name)


def test_without_nsys_the_other_checks_still_run(tmp_path: Path) -> None:
    checks = examine(tmp_path / "nsys", str)
    assert by_name(checks, "nsys").state is State.FAIL
    assert {"other profilers", "counters", "GPU", "clocks"} <= {check.name for check in checks}
    assert worst(checks) is State.FAIL


def test_an_nsys_that_makes_no_report_fails_with_its_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_NSYS", "permission")
    check = by_name(doctor.nsys_checks(FAKE, None), "trial capture")
    assert check.state is State.FAIL and "ERR_NVGPUCTRPERM" in check.evidence


def test_a_report_that_cannot_be_exported_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_NSYS", "report")
    assert "could not be exported" in by_name(doctor.nsys_checks(FAKE, None), "trial capture").evidence


def test_a_python_nvtx_that_records_nothing_is_a_warning_with_the_version_that_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(doctor, "_installed", lambda name: "0.2.17")
    check = doctor.nvtx_package(NSYS, Trial(package_ranges=0, interop_ranges=3))
    assert (check.state, check.evidence) == (
        State.WARN,
        "nvtx 0.2.17 under nsys 2023.4.4: 0 of 3 ranges recorded",
    )
    assert "nvtx==0.2.11" in check.remedy
    assert doctor.nvtx_package(NSYS, Trial(package_ranges=3)).state is State.OK


def test_a_trial_without_any_range_warns() -> None:
    assert doctor.ranges(Trial()).state is State.WARN
    assert doctor.ranges(Trial(interop_ranges=3)).state is State.OK


def test_the_gpu_trial_needs_a_recorded_memset() -> None:
    assert doctor.cuda_trace(Trial(), None).state is State.WARN
    assert doctor.cuda_trace(Trial(), H200).state is State.FAIL
    assert doctor.cuda_trace(Trial(cuda_rows=3), H200).state is State.OK
    assert doctor.cuda_trace(Trial(program_said="no libcudart\n"), H200).state is State.WARN


def test_an_nsys_older_than_the_driver_is_told_to_use_a_capture_range(tmp_path: Path) -> None:
    (tmp_path / "libcupti.so.12.4").touch()
    check = doctor.cuda_version(Nsys(tmp_path / "nsys", (2023, 4, 4), ""), H200)
    assert check.state is State.WARN and "CUDA 12.4, the driver of 13.0" in check.evidence
    assert "--capture auto" in check.remedy


def test_another_profiler_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_INJECTION64_PATH", "/x.so")
    assert doctor.other_profilers().evidence == "CUDA_INJECTION64_PATH is set"


@pytest.mark.parametrize(
    ("text", "uid", "state"),
    [
        ("RmProfilingAdminOnly: 0\n", 1000, State.OK),
        ("RmProfilingAdminOnly: 1\n", 0, State.OK),
        ("RmProfilingAdminOnly: 1\n", 1000, State.WARN),
    ],
)
def test_counter_permission_is_read_from_the_driver(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, uid: int, state: State
) -> None:
    parameters = tmp_path / "params"
    parameters.write_text(text)
    monkeypatch.setattr(doctor, "DRIVER_PARAMETERS", parameters)
    monkeypatch.setattr("os.geteuid", lambda: uid)
    assert doctor.counters().state is state


def test_an_unknown_gpu_is_a_warning_with_the_reason() -> None:
    def unknown(name: str) -> str:
        raise UnusableTrace(f"{name} is not in the peak table", "mfupipe gpus")

    (check,) = doctor.peaks(H200, unknown)
    assert (check.state, check.evidence) == (State.WARN, "NVIDIA H200 is not in the peak table")
    assert doctor.peaks(H200, str)[0].state is State.OK


def test_gpus_and_driver_are_named() -> None:
    assert doctor.gpu(H200).evidence == "NVIDIA H200; driver 580.159, CUDA 13.0"
    assert doctor.gpu(None).state is State.WARN
