"""SM clock, power and energy of the GPUs, sampled through NVML while a program runs. No package needed:
ctypes."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

PERIOD_S = 0.02  # the driver's own readings change every 20 to 100 ms
CLOCK_SM = 1  # NVML_CLOCK_SM
MAX_GPUS = 16
LIBRARY = "libnvidia-ml.so.1"


@dataclass(frozen=True)
class Sample:
    """One reading. energy_j counts up since the driver was loaded; None where this GPU does not tell."""

    utc_ns: int
    gpu_uuid: str
    sm_clock_hz: int | None
    power_w: float | None
    energy_j: float | None


@dataclass(frozen=True)
class Gpu:
    """One GPU as NVML names it. uuid is without its "GPU-" prefix, as nsys writes it."""

    name: str
    uuid: str
    max_sm_clock_hz: int | None


@dataclass(frozen=True)
class Driver:
    """Versions of the driver and of the newest CUDA it runs ((13, 0)), and its GPUs."""

    version: str
    cuda: tuple[int, int] | None
    gpus: tuple[Gpu, ...]


class Nvml:
    """libnvidia-ml, initialised. Raises OSError when it is absent or refuses to start."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL(LIBRARY)
        status = self.library.nvmlInit_v2()
        if status != 0:
            raise OSError(f"nvmlInit returned {status}")
        count = ctypes.c_uint()
        self.library.nvmlDeviceGetCount_v2(ctypes.byref(count))
        self.devices = [self._handle(index) for index in range(min(count.value, MAX_GPUS))]

    def driver(self) -> Driver:
        """Versions and GPUs."""
        version = self._text(self.library.nvmlSystemGetDriverVersion)
        number = ctypes.c_int()
        known = self.library.nvmlSystemGetCudaDriverVersion_v2(ctypes.byref(number)) == 0
        cuda = (number.value // 1000, number.value % 1000 // 10) if known else None
        return Driver(version, cuda, tuple(self._gpu(device) for device in self.devices))

    def sample(self) -> list[Sample]:
        """One reading of every GPU."""
        return [self._sample(device) for device in self.devices]

    def close(self) -> None:
        """Let go of the library."""
        self.library.nvmlShutdown()

    def _handle(self, index: int) -> ctypes.c_void_p:
        handle = ctypes.c_void_p()
        self.library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(handle))
        return handle

    def _gpu(self, device: ctypes.c_void_p) -> Gpu:
        clock = ctypes.c_uint()
        known = self.library.nvmlDeviceGetMaxClockInfo(device, CLOCK_SM, ctypes.byref(clock)) == 0
        name = self._text(lambda *rest: self.library.nvmlDeviceGetName(device, *rest))
        return Gpu(name, self._uuid(device), clock.value * 1_000_000 if known else None)

    def _uuid(self, device: ctypes.c_void_p) -> str:
        return self._text(lambda *rest: self.library.nvmlDeviceGetUUID(device, *rest)).removeprefix("GPU-")

    def _sample(self, device: ctypes.c_void_p) -> Sample:
        clock, power, energy = ctypes.c_uint(), ctypes.c_uint(), ctypes.c_ulonglong()
        library = self.library
        has_clock = library.nvmlDeviceGetClockInfo(device, CLOCK_SM, ctypes.byref(clock)) == 0
        has_power = library.nvmlDeviceGetPowerUsage(device, ctypes.byref(power)) == 0
        has_energy = library.nvmlDeviceGetTotalEnergyConsumption(device, ctypes.byref(energy)) == 0
        return Sample(
            utc_ns=time.time_ns(),
            gpu_uuid=self._uuid(device),
            sm_clock_hz=clock.value * 1_000_000 if has_clock else None,
            power_w=power.value / 1e3 if has_power else None,
            energy_j=energy.value / 1e3 if has_energy else None,
        )

    def _text(self, call: Callable[[ctypes.Array[ctypes.c_char], ctypes.c_uint], int]) -> str:
        buffer = ctypes.create_string_buffer(96)
        return buffer.value.decode(errors="replace") if call(buffer, ctypes.c_uint(96)) == 0 else ""


def open_nvml() -> Nvml | None:
    """NVML, or None on a machine without a working NVIDIA driver."""
    try:
        return Nvml()
    except (OSError, AttributeError):
        return None


def read_driver() -> Driver | None:
    """Driver, CUDA version and GPUs; None without NVML."""
    nvml = open_nvml()
    if nvml is None:
        return None
    try:
        return nvml.driver()
    finally:
        nvml.close()


class Sampler:
    """Samples in a thread while the `with` block runs; `samples` holds the readings after it. Empty
    without NVML."""

    def __init__(self, nvml: Nvml | None) -> None:
        self.nvml = nvml
        self.samples: list[Sample] = []
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._run, name="mfupipe-nvml", daemon=True)

    def __enter__(self) -> Self:
        if self.nvml is not None:
            self.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.ended.set()
        if self.nvml is not None:
            self.thread.join()
            self.nvml.close()

    def _run(self) -> None:
        assert self.nvml is not None
        while not self.ended.wait(PERIOD_S):
            self.samples += self.nvml.sample()
