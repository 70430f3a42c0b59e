"""Is this machine fit to profile: nsys, a trial capture, nvtx against nsys, other profilers, counters,
GPU, peaks."""

from __future__ import annotations

import importlib.metadata
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from mfupipe.errors import MfupipeError
from mfupipe.profile import doctor_trial
from mfupipe.profile.nsys import Nsys, bundled_cupti, find_nsys, importer_path
from mfupipe.profile.nvml import Driver, Sample, open_nvml
from mfupipe.profile.runner import found_profilers

DRIVER_PARAMETERS = Path("/proc/driver/nvidia/params")
TRIAL_TIMEOUT_S = 120


class State(StrEnum):
    """ok: works. warn: something will be missing. fail: profiling will not work."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class Check:
    """One finding: what was looked at, how it stands, what was seen, and what to do about it."""

    name: str
    state: State
    evidence: str
    remedy: str = ""


@dataclass(frozen=True)
class Trial:
    """What arrived of a tiny program under nsys. NVTX ranges by emitter; cuda_rows: memsets on a GPU.
    error: why none."""

    package_ranges: int = 0
    interop_ranges: int = 0
    cuda_rows: int = 0
    error: str = ""
    program_said: str = ""


PeakLookup = Callable[[str], str]


def examine(nsys_path: Path | None, describe_peak: PeakLookup) -> tuple[Check, ...]:
    """Every check, in the order a reader needs them.

    describe_peak: device name -> one line on its peaks; raises MfupipeError for an unknown device.
    """
    nvml = open_nvml()
    driver = nvml.driver() if nvml else None
    samples = nvml.sample() if nvml else []
    if nvml:
        nvml.close()
    checks = [*nsys_checks(nsys_path, driver), other_profilers(), counters(), gpu(driver)]
    checks += [clocks(driver, samples), *peaks(driver, describe_peak)]
    return tuple(checks)


def nsys_checks(nsys_path: Path | None, driver: Driver | None) -> list[Check]:
    """The checks on nsys itself; only the first of them when there is none."""
    try:
        nsys = find_nsys(nsys_path)
    except MfupipeError as error:
        return [Check("nsys", State.FAIL, error.message, error.hint)]
    found = Check("nsys", State.OK, f"version {nsys.version_text} at {nsys.path}")
    trial = run_trial(nsys)
    return [found, importer(nsys), *trial_checks(nsys, trial, driver), cuda_version(nsys, driver)]


def importer(nsys: Nsys) -> Check:
    """Without its importer nsys leaves a .qdstrm and no report."""
    path = importer_path(nsys)
    if path is not None:
        return Check("importer", State.OK, str(path))
    remedy = "if a capture leaves only a .qdstrm, use a complete Nsight Systems with --nsys PATH"
    return Check("importer", State.WARN, f"no host-linux-*/QdstrmImporter beside {nsys.path}", remedy)


def run_trial(nsys: Nsys) -> Trial:
    """Capture a program of a few lines, which needs no GPU, and count what arrived."""
    with tempfile.TemporaryDirectory(prefix="mfupipe-doctor-") as scratch:
        report, database = Path(scratch) / "trial.nsys-rep", Path(scratch) / "trial.sqlite"
        program = [sys.executable, doctor_trial.__file__]
        flags = ["-t", "cuda,nvtx", "--sample=none", "--cpuctxsw=none", "-o", str(report.with_suffix(""))]
        said = _run([str(nsys.path), "profile", *flags, *program])
        if not report.is_file():
            return Trial(error=_last_line(said) or "no report was written", program_said=said)
        _run([str(nsys.path), "export", "--type=sqlite", "-f", "true", "-o", str(database), str(report)])
        if not database.is_file():
            return Trial(error="the report of the trial could not be exported", program_said=said)
        return _count(database, said)


def trial_checks(nsys: Nsys, trial: Trial, driver: Driver | None) -> list[Check]:
    """What the trial says about tracing at all, about Python's nvtx, and about CUDA."""
    if trial.error:
        remedy = "run `nsys profile -t cuda,nvtx true` by hand to see its own words"
        return [Check("trial capture", State.FAIL, trial.error, remedy)]
    return [ranges(trial), nvtx_package(nsys, trial), cuda_trace(trial, driver)]


def ranges(trial: Trial) -> Check:
    """At least one way of marking ranges must be recorded."""
    total = trial.package_ranges + trial.interop_ranges
    evidence = f"{total} NVTX ranges of a trial program were recorded"
    if total > 0:
        return Check("trial capture", State.OK, evidence)
    remedy = "pip install nvidia-nvtx (libnvtx3interop, used by mfupipe.annotate), or nvtx==0.2.11"
    return Check("trial capture", State.WARN, evidence, remedy)


def nvtx_package(nsys: Nsys, trial: Trial) -> Check:
    """Python nvtx from 0.2.12 on records nothing under nsys up to 2024.2, and does not say so."""
    version = _installed("nvtx")
    if version is None:
        return Check("python nvtx", State.OK, "not installed here (mfupipe.annotate does not need it)")
    evidence = f"nvtx {version} under nsys {nsys.version_text}: {trial.package_ranges} of 3 ranges recorded"
    if trial.package_ranges > 0:
        return Check("python nvtx", State.OK, evidence)
    remedy = "programs that mark with Python nvtx: pip install nvtx==0.2.11, or a newer nsys"
    return Check("python nvtx", State.WARN, evidence, remedy)


def cuda_trace(trial: Trial, driver: Driver | None) -> Check:
    """A memset on the GPU must arrive."""
    if driver is None or not driver.gpus:
        return Check("trial on the GPU", State.WARN, "no GPU here, not tried", "run mfupipe doctor on the GPU machine")
    if "no libcudart" in trial.program_said:
        return Check("trial on the GPU", State.WARN, "not tried: no libcudart found", "install the CUDA runtime")
    if trial.cuda_rows > 0:
        return Check("trial on the GPU", State.OK, f"{trial.cuda_rows} memsets of a trial program were recorded")
    remedy = "end other profilers, use an nsys as new as the driver's CUDA, or run as root"
    return Check("trial on the GPU", State.FAIL, "a memset ran and was not recorded", remedy)


def cuda_version(nsys: Nsys, driver: Driver | None) -> Check:
    """An nsys older than the driver's CUDA drops events when it meets calls that it does not know."""
    cupti = bundled_cupti(nsys)
    if cupti is None or driver is None or driver.cuda is None:
        return Check("nsys against CUDA", State.OK, "no driver here to compare with, or nsys does not show its CUPTI")
    evidence = f"nsys is of CUDA {cupti[0]}.{cupti[1]}, the driver of {driver.cuda[0]}.{driver.cuda[1]}"
    if cupti >= driver.cuda:
        return Check("nsys against CUDA", State.OK, evidence)
    remedy = "capture with --capture auto or api, never all: an old nsys drops events after calls it does not know"
    return Check("nsys against CUDA", State.WARN, evidence, remedy)


def other_profilers() -> Check:
    """Only one profiler can be attached to a process."""
    found = found_profilers()
    if not found:
        return Check("other profilers", State.OK, "none in this environment")
    return Check("other profilers", State.FAIL, ", ".join(found), "run outside the other profiler")


def counters() -> Check:
    """Hardware counters (ncu, --gpu-metrics) may be reserved for administrators; plain captures need none."""
    try:
        text = DRIVER_PARAMETERS.read_text(encoding="utf-8")
    except OSError:
        return Check("counters", State.WARN, f"{DRIVER_PARAMETERS} cannot be read: no driver, or a container", "")
    if "RmProfilingAdminOnly: 0" in text:
        return Check("counters", State.OK, "open to every user (RmProfilingAdminOnly: 0)")
    if os.geteuid() == 0:
        return Check("counters", State.OK, "for administrators only, and this is root (RmProfilingAdminOnly: 1)")
    remedy = "needed for ncu only: set NVreg_RestrictProfilingToAdminUsers=0 for the nvidia module, or run as root"
    return Check("counters", State.WARN, "for administrators only (RmProfilingAdminOnly: 1)", remedy)


def gpu(driver: Driver | None) -> Check:
    """The GPUs as the driver names them."""
    if driver is None:
        return Check(
            "GPU",
            State.WARN,
            "no NVIDIA driver here (no libnvidia-ml.so.1)",
            "reports need none; profile does",
        )
    if not driver.gpus:
        return Check("GPU", State.FAIL, f"driver {driver.version} sees no GPU", "see nvidia-smi")
    cuda = ".".join(map(str, driver.cuda)) if driver.cuda else "unknown"
    names = ", ".join(item.name for item in driver.gpus)
    return Check("GPU", State.OK, f"{names}; driver {driver.version}, CUDA {cuda}")


def clocks(driver: Driver | None, samples: list[Sample]) -> Check:
    """The SM clock now, and the highest: an idle GPU clocks down, a power limit holds it back under load."""
    if driver is None or not samples:
        return Check("clocks", State.WARN, "unknown without NVML", "reports then say nothing about clocks")
    told = [
        f"{_mhz(sample.sm_clock_hz)} now, {_mhz(item.max_sm_clock_hz)} at most"
        for item, sample in zip(driver.gpus, samples, strict=False)
    ]
    return Check("clocks", State.OK, "SM " + "; ".join(told))


def peaks(driver: Driver | None, describe_peak: PeakLookup) -> list[Check]:
    """Each kind of GPU here must be in the peak table."""
    names = sorted({item.name for item in driver.gpus}) if driver else []
    return [_peak(name, describe_peak) for name in names]


def worst(checks: tuple[Check, ...]) -> State:
    """FAIL when any check failed, else WARN when any warns, else OK."""
    states = {check.state for check in checks}
    return next((state for state in (State.FAIL, State.WARN) if state in states), State.OK)


def _peak(name: str, describe_peak: PeakLookup) -> Check:
    try:
        return Check("peaks", State.OK, describe_peak(name))
    except MfupipeError as error:
        return Check("peaks", State.WARN, error.message, error.hint)


def _count(database: Path, said: str) -> Trial:
    with closing(sqlite3.connect(database)) as connection:
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
        package = _ranges_named(connection, tables, doctor_trial.PACKAGE_RANGE)
        interop = _ranges_named(connection, tables, doctor_trial.INTEROP_RANGE)
        memsets = "CUPTI_ACTIVITY_KIND_MEMSET"
        rows = connection.execute(f"SELECT count(*) FROM {memsets}").fetchone()[0] if memsets in tables else 0
    return Trial(package, interop, int(rows), "", said)


def _ranges_named(connection: sqlite3.Connection, tables: set[str], name: str) -> int:
    """Push/pop ranges (event type 59) of one text, inline or interned."""
    if "NVTX_EVENTS" not in tables:
        return 0
    query = (
        "SELECT count(*) FROM NVTX_EVENTS AS e LEFT JOIN StringIds AS s ON s.id = e.textId"
        " WHERE e.eventType = 59 AND coalesce(e.text, s.value) = ?"
    )
    return int(connection.execute(query, (name,)).fetchone()[0])


def _run(argv: list[str]) -> str:
    try:
        result = subprocess.run(
            argv, capture_output=True, text=True, timeout=TRIAL_TIMEOUT_S, errors="replace", check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return result.stdout + result.stderr


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.replace("\r", "\n").splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _installed(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _mhz(clock_hz: int | None) -> str:
    return "unknown" if clock_hz is None else f"{clock_hz // 1_000_000} MHz"
