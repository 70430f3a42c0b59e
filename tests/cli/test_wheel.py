"""What is installed is whole: the wheel carries queries, workloads and the demo, and reports away from the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built and unpacked as pip would."""
    folder = tmp_path_factory.mktemp("wheel")
    argv = ["pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run([sys.executable, "-m", *argv], check=True, capture_output=True)
    (wheel,) = folder.glob("mfupipe-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def python(installed: Path, cwd: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    argv = [sys.executable, *arguments]
    return subprocess.run(argv, check=True, capture_output=True, text=True, cwd=cwd, env=environment).stdout


def test_the_wheel_carries_every_query_and_workload(installed: Path) -> None:
    for folder in ("queries", "workloads"):
        here = {
            path.relative_to(ROOT / folder) for path in (ROOT / folder).rglob("*") if path.suffix in (".sql", ".py")
        }
        there = installed / "mfupipe" / "bundled" / folder
        assert here and {path for path in here if not (there / path).is_file()} == set()


def test_paths_point_into_the_installed_package(installed: Path, tmp_path: Path) -> None:
    code = "from mfupipe import paths; print(paths.QUERIES); print(paths.WORKLOADS); print(paths.DEMO_CAPTURE)"
    places = [Path(line) for line in python(installed, tmp_path, "-c", code).splitlines()]
    assert all(place.exists() and place.is_relative_to(installed / "mfupipe") for place in places)


def test_the_installed_package_makes_the_demo(installed: Path, tmp_path: Path) -> None:
    assert "written: out/report.html" in python(installed, tmp_path, "-m", "mfupipe", "demo", "-o", "out")
    assert (tmp_path / "out" / "report.html").stat().st_size > 10_000


def test_nothing_but_the_package_is_installed(installed: Path) -> None:
    assert {path.name.partition("-")[0] for path in installed.iterdir()} == {"mfupipe"}
