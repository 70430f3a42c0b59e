"""Turn a report into an SQLite export with the `nsys` of this machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from mfupipe.errors import EnvironmentProblem, MfupipeError
from mfupipe.ingest import refusals
from mfupipe.nsys_places import INSTALL_PLACES, installed_paths

REPORT_START = b"NVIDIA Tegra Profiler Report"
EXPORT_THERE = "export it where it was captured (nsys export --type=sqlite REPORT.nsys-rep) and ingest the .sqlite"
QUERY_S = 60.0
Version = tuple[int, ...]


def export(report: Path, database: Path, nsys: Path | None) -> None:
    """Write `database` from `report`. `nsys`: executable or its directory; None takes PATH, then the usual places.

    Raises EnvironmentProblem (no nsys, nsys older than the report, no space) and UnusableTrace (no report, cut off).
    """
    program = _find(report, nsys)
    arguments = ["--type=sqlite", "--lazy=true", "--quiet=true", "--force-overwrite=true", f"--output={database}"]
    result = subprocess.run(
        [program, "export", *arguments, report.absolute()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if result.returncode or not database.is_file() or not database.stat().st_size:
        raise _refusal(report, program, result.stdout.decode("utf-8", "replace"), result.returncode)


def captured_by(report: Path) -> str | None:
    """Version of the Nsight Systems that wrote the report ('2023.4.4'), from its first bytes; None when unknown."""
    with report.open("rb") as file:
        match = re.match(re.escape(REPORT_START) + rb" (\d+)@(\d+)@(\d+)", file.read(128))
    return None if match is None else ".".join(part.decode() for part in match.groups())


def _find(report: Path, given: Path | None) -> Path:
    if given is not None:
        inside = [given / "nsys", given / "bin" / "nsys", *sorted(given.glob("target-linux-*/nsys"))]
        candidates = inside if given.is_dir() else [given]
        looked = str(given)
    else:
        on_path = shutil.which("nsys")
        # An nsys reads the reports of all before it: the newest of the installed ones is the best guess.
        candidates = [Path(on_path)] if on_path else sorted(installed_paths(), key=_version, reverse=True)
        looked = ", ".join(["PATH", *INSTALL_PLACES])
    found = next((path for path in candidates if _version(path)), None)
    if found is None:
        raise _no_nsys(report, looked)
    return found.absolute()


def _version(program: Path) -> Version:
    """(2023, 4, 4); () when the program is no nsys."""
    try:
        result = subprocess.run([program, "--version"], capture_output=True, timeout=QUERY_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    match = re.search(rb"Nsight Systems version (\d+)\.(\d+)\.(\d+)", result.stdout)
    return () if match is None else tuple(int(part) for part in match.groups())


def _no_nsys(report: Path, looked: str) -> MfupipeError:
    version = captured_by(report)
    written = f" (written by Nsight Systems {version})" if version else ""
    needed = f" {version} or newer" if version else ""
    return EnvironmentProblem(
        f"{report.name}{written} has to be exported, and there is no nsys here (looked at {looked})",
        f"install Nsight Systems{needed}, or give --nsys PATH; or {EXPORT_THERE}",
    )


def _refusal(report: Path, program: Path, output: str, code: int) -> MfupipeError:
    """What the messages of nsys export mean (seen with 2022.4, 2023.4 and 2024.2)."""
    last = next((line.strip() for line in reversed(re.split(r"[\r\n]+", output)) if line.strip()), "no message")
    if "newer than your current version" in output or "Version number is invalid" in output:
        return _older(report, program)
    if "Cannot read from stream" in output:
        return refusals.not_a_database(report, f"nsys export finds no report in it ({last})")
    if "magic number mismatch" in output:
        return refusals.damaged(report, f"the report is cut off ({last})", "copy it again from where it was captured")
    if "unable to open database file" in output or "No space left" in output or "disk is full" in output:
        return refusals.cannot_write(Path(os.environ.get("TMPDIR", "/tmp")), last)  # noqa: S108  named, not used
    return EnvironmentProblem(f"{program} could not export {report.name} (exit code {code}: {last})", EXPORT_THERE)


def _older(report: Path, program: Path) -> MfupipeError:
    here = ".".join(str(part) for part in _version(program))
    version = captured_by(report) or "of a later version"
    return EnvironmentProblem(
        f"{report.name} was written by Nsight Systems {version}, a report newer than the nsys {here} at {program}",
        f"install Nsight Systems {version} or newer and give it with --nsys PATH; or {EXPORT_THERE}",
    )
