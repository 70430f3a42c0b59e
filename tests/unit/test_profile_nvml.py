"""NVML readings: units, UUIDs as nsys writes them, and NULL where a GPU does not tell."""

from __future__ import annotations

import ctypes
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from mfupipe.profile.nvml import LIBRARY, Sample, Sampler, open_nvml, read_driver
from mfupipe.profile.records import git_facts, write_nvml_samples, write_untraced_steps


class FakeNvml:
    """libnvidia-ml for one GPU that does not tell its energy."""

    def __init__(self) -> None:
        self.initialised = 0

    def nvmlInit_v2(self) -> int:
        self.initialised += 1
        return 0

    def nvmlShutdown(self) -> int:
        self.initialised -= 1
        return 0

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:
        count._obj.value = 1
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index: Any, handle: Any) -> int:
        return 0

    def nvmlSystemGetCudaDriverVersion_v2(self, number: Any) -> int:
        number._obj.value = 13020
        return 0

    def nvmlDeviceGetMaxClockInfo(self, device: Any, kind: int, clock: Any) -> int:
        clock._obj.value = 1980
        return 0

    def nvmlDeviceGetClockInfo(self, device: Any, kind: int, clock: Any) -> int:
        clock._obj.value = 1755
        return 0

    def nvmlDeviceGetPowerUsage(self, device: Any, power: Any) -> int:
        power._obj.value = 695_500
        return 0

    def nvmlDeviceGetTotalEnergyConsumption(self, device: Any, energy: Any) -> int:
        return 3  # NVML_ERROR_NOT_SUPPORTED

    def nvmlSystemGetDriverVersion(self, buffer: Any, size: Any) -> int:
        buffer.value = b"580.159.04"
        return 0

    def nvmlDeviceGetName(self, device: Any, buffer: Any, size: Any) -> int:
        buffer.value = b"NVIDIA H200"
        return 0

    def nvmlDeviceGetUUID(self, device: Any, buffer: Any, size: Any) -> int:
        buffer.value = b"GPU-62373ed9-e9ce-f135-cab4-b0010906bc28"
        return 0


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    fake = FakeNvml()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: fake if name == LIBRARY else None)
    return fake


def test_a_driver_is_read_with_its_gpus(library: FakeNvml) -> None:
    driver = read_driver()
    assert driver is not None
    assert (driver.version, driver.cuda) == ("580.159.04", (13, 2))
    assert (driver.gpus[0].name, driver.gpus[0].max_sm_clock_hz) == ("NVIDIA H200", 1_980_000_000)
    assert library.initialised == 0


def test_samples_are_in_hertz_watts_and_utc(library: FakeNvml) -> None:
    before = time.time_ns()
    with Sampler(open_nvml()) as sampler:
        time.sleep(0.13)
    sample = sampler.samples[0]
    assert len(sampler.samples) >= 2 and before < sample.utc_ns < time.time_ns()
    assert sample.gpu_uuid == "62373ed9-e9ce-f135-cab4-b0010906bc28"
    assert (sample.sm_clock_hz, sample.power_w, sample.energy_j) == (1_755_000_000, 695.5, None)


def test_without_nvml_there_are_no_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    with Sampler(open_nvml()) as sampler:
        pass
    assert sampler.samples == [] and read_driver() is None


def test_records_are_written_with_their_types_and_only_when_there_are_any(tmp_path: Path) -> None:
    write_untraced_steps(tmp_path, ())
    write_nvml_samples(tmp_path, ())
    assert list(tmp_path.iterdir()) == []
    write_untraced_steps(tmp_path, (11, 12))
    write_nvml_samples(tmp_path, (Sample(5, "u", None, 1.5, None),))
    steps = pq.read_table(tmp_path / "untraced_steps.parquet")
    assert steps.to_pylist() == [{"index": 0, "wall_ns": 11}, {"index": 1, "wall_ns": 12}]
    samples = pq.read_table(tmp_path / "nvml_samples.parquet")
    assert [str(field.type) for field in samples.schema] == ["int64", "string", "int64", "double", "double"]
    assert samples.to_pylist()[0]["power_w"] == 1.5 and samples.to_pylist()[0]["sm_clock_hz"] is None


def test_git_facts_are_null_outside_a_repository(tmp_path: Path) -> None:
    assert git_facts(tmp_path) == (None, None)
