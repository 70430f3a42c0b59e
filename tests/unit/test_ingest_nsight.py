"""Reports are exported by the machine's nsys; each of its refusals is told apart."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mfupipe.errors import EnvironmentProblem, MfupipeError, UnusableTrace
from mfupipe.ingest import SourceFormat, nsight, write_raw
from tests.unit.ingest_export import small, write_sqlite

REPORT = b"NVIDIA Tegra Profiler Report 2026@2@1@210-2621v0\n\x0b"


def report(directory: Path, name: str = "a.nsys-rep") -> Path:
    path = directory / name
    path.write_bytes(REPORT)
    return path


def stand_in(directory: Path, body: str, version: str = "2023.4.4.54-1v0") -> Path:
    """An nsys that answers --version, and does `body` ($OUT is the path that was asked for) otherwise."""
    path = directory / "nsys"
    path.write_text(
        "#!/bin/sh\n"
        f'if [ "$1" = --version ]; then echo "NVIDIA Nsight Systems version {version}"; exit 0; fi\n'
        'for word in "$@"; do case "$word" in --output=*) OUT="${word#--output=}";; esac; done\n'
        f"{body}\n"
    )
    path.chmod(0o755)
    return path


def refused(source: Path, nsys: Path | None, tmp_path: Path) -> MfupipeError:
    with pytest.raises(MfupipeError) as caught:
        write_raw(source, tmp_path / "raw", trace_id=0, nsys=nsys)
    assert not (tmp_path / "raw").exists()
    return caught.value


def no_nsys_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr("mfupipe.nsys_places.INSTALL_PLACES", (str(tmp_path / "opt" / "*" / "nsys"),))


@pytest.mark.parametrize("name", ["a.nsys-rep", "a.qdrep", "renamed"])
def test_a_report_is_exported_and_ingested(name: str, tmp_path: Path) -> None:
    database = write_sqlite(tmp_path / "whole.sqlite", small())
    info = write_raw(
        report(tmp_path, name), tmp_path / "raw", trace_id=0, nsys=stand_in(tmp_path, f'cp "{database}" "$OUT"')
    )
    assert (info.source_format, info.source_file, info.kernel_count) == (SourceFormat.REPORT, name, 1)


def test_the_nsys_on_the_path_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_nsys_here(monkeypatch, tmp_path)
    database = write_sqlite(tmp_path / "whole.sqlite", small())
    (tmp_path / "empty").mkdir()
    stand_in(tmp_path / "empty", f'/bin/cp "{database}" "$OUT"')
    assert write_raw(report(tmp_path), tmp_path / "raw", trace_id=0).kernel_count == 1


def test_the_newest_installed_nsys_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_nsys_here(monkeypatch, tmp_path)
    database = write_sqlite(tmp_path / "whole.sqlite", small())
    for version in ("2023.4.4", "2025.1.1", "2024.2.3"):
        directory = tmp_path / "opt" / version
        directory.mkdir(parents=True)
        works = version == "2025.1.1"
        stand_in(directory, f'/bin/cp "{database}" "$OUT"' if works else "echo wrong one; exit 1", f"{version}.7")
    assert write_raw(report(tmp_path), tmp_path / "raw", trace_id=0).kernel_count == 1


def test_without_nsys_the_version_that_is_needed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_nsys_here(monkeypatch, tmp_path)
    error = refused(report(tmp_path), None, tmp_path)
    assert isinstance(error, EnvironmentProblem) and error.exit_code == 3
    assert "written by Nsight Systems 2026.2.1" in error.message and "PATH" in error.message
    assert "2026.2.1 or newer" in error.hint and "nsys export --type=sqlite" in error.hint


def test_a_given_nsys_that_is_none_is_named(tmp_path: Path) -> None:
    error = refused(report(tmp_path), Path("/bin/true"), tmp_path)
    assert isinstance(error, EnvironmentProblem) and "/bin/true" in error.message


@pytest.mark.parametrize(
    ("message", "kind", "words"),
    [
        (
            "Report was created in Nsight Systems version (2026.2.1), newer than your current version (2023.4.4)",
            EnvironmentProblem,
            "2026.2.1, a report newer than the nsys 2023.4.4",
        ),
        ("Version number is invalid: 2026@2@1@210-2621v0", EnvironmentProblem, "a report newer than the nsys"),
        ("Exportation error: Cannot read from stream.", UnusableTrace, "not a database"),
        ("Exportation error: Section Table Reference magic number mismatch.", UnusableTrace, "damaged file"),
        ("Exportation error: unable to open database file", EnvironmentProblem, "cannot write to"),
        ("write: No space left on device", EnvironmentProblem, "cannot write to"),
        ("something new", EnvironmentProblem, "exit code 1: something new"),
    ],
)
def test_each_refusal_of_nsys_export_is_explained(
    message: str, kind: type[MfupipeError], words: str, tmp_path: Path
) -> None:
    nsys = stand_in(tmp_path, f'printf "Processing: [1%%]\\r%s\\n" "{message}"; exit 1')
    error = refused(report(tmp_path), nsys, tmp_path)
    assert type(error) is kind and words in error.message
    assert "\r" not in error.message


def test_an_export_that_says_yes_and_writes_nothing_is_no_success(tmp_path: Path) -> None:
    error = refused(report(tmp_path), stand_in(tmp_path, "exit 0"), tmp_path)
    assert isinstance(error, EnvironmentProblem) and "could not export" in error.message


@pytest.mark.parametrize("content", [b"", bytes(5000)])
def test_an_empty_report_is_a_damaged_file(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.nsys-rep"
    path.write_bytes(content)
    assert "damaged file" in refused(path, None, tmp_path).message


def real_nsys() -> Path | None:
    given = Path(os.environ["NSYS"]) if os.environ.get("NSYS") else None
    try:
        return nsight._find(Path(__file__), given)
    except MfupipeError:
        return None


NSYS = real_nsys()
needs_nsys = pytest.mark.skipif(NSYS is None, reason="no nsys on this machine (NSYS=PATH names one)")


@pytest.fixture(scope="module")
def real_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("report")
    program = "import time; time.sleep(0.1)"
    options = ["-t", "nvtx", "-s", "none", "--cpuctxsw=none", "-o", "real"]
    subprocess.run([str(NSYS), "profile", *options, sys.executable, "-c", program], cwd=directory, check=False)
    return directory / "real.nsys-rep"


@pytest.mark.nsys
@needs_nsys
def test_a_real_report_is_ingested(real_report: Path, tmp_path: Path) -> None:
    info = write_raw(real_report, tmp_path / "raw", trace_id=0, nsys=NSYS)
    assert info.source_format is SourceFormat.REPORT
    assert info.nsys_version is not None and info.nsys_version.startswith(str(nsight.captured_by(real_report)))
    assert (info.kernel_count, info.findings) == (0, ())


@pytest.mark.nsys
@needs_nsys
@pytest.mark.parametrize("options", [["--type=parquetdir"], ["--type=sqlite", "--lazy=false"]])
def test_every_export_of_a_real_report_can_be_read(options: list[str], real_report: Path, tmp_path: Path) -> None:
    target = tmp_path / "exported"
    subprocess.run([str(NSYS), "export", "--quiet=true", *options, "-o", str(target), str(real_report)], check=True)
    info = write_raw(target, tmp_path / "raw", trace_id=0)
    assert info.nsys_version is not None and info.findings == ()


@pytest.mark.nsys
@needs_nsys
@pytest.mark.parametrize(("size", "words"), [(1000, "cut off"), (0, "empty")])
def test_a_real_report_that_is_cut_is_a_damaged_file(size: int, words: str, real_report: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.nsys-rep"
    path.write_bytes(real_report.read_bytes()[:size])
    error = refused(path, NSYS, tmp_path)
    assert "damaged file" in error.message and words in error.message
