"""Calibrate: the measurement runs in a process of its own, its rows become CSV, and its failure is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from mfupipe.calibrate import CalibrateOptions, Ceiling, calibrate, probe, write_ceilings
from mfupipe.calibrate.probe import row
from mfupipe.errors import EnvironmentProblem


def python_that(tmp_path: Path, body: str) -> str:
    path = tmp_path / "python"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def test_rows_of_the_probe_become_ceilings(tmp_path: Path) -> None:
    body = (
        'echo warming up; echo \'[{"device_name": "G", "dtype": "bf16", "kind": "measured", "condition": "burst",'
        ' "flop_per_s": 8.9e14, "bytes_per_s": null, "source": "s"}]\''
    )
    ceilings = calibrate(CalibrateOptions(python_that(tmp_path, body)))
    assert ceilings == (Ceiling("G", "bf16", "measured", "burst", 8.9e14, None, "s"),)
    write_ceilings(tmp_path / "c.csv", ceilings)
    assert (tmp_path / "c.csv").read_text().splitlines() == [
        "device_name,dtype,kind,condition,flop_per_s,bytes_per_s,source",
        "G,bf16,measured,burst,890000000000000.0,,s",
    ]


def test_a_python_without_torch_is_told_with_its_own_words(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match="No module named 'torch'"):
        calibrate(CalibrateOptions(python_that(tmp_path, "echo \"No module named 'torch'\" >&2; exit 1")))


def test_a_python_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match="cannot be run"):
        calibrate(CalibrateOptions(str(tmp_path / "none")))


def test_a_row_names_its_condition() -> None:
    assert row("bf16", "burst", 1.0, None, "m")["condition"] == "burst"


def test_burst_is_the_best_of_all_data_and_sustained_is_of_random_data(monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = (4, 4, 4), (8, 8, 8)
    seconds = {("random", small): 2.0, ("random", large): 8.0, ("zero", small): 1.9, ("zero", large): 4.0}
    monkeypatch.setattr(probe, "SHAPES", (small, large))
    monkeypatch.setattr(probe, "product", lambda torch, dtype, fill, m, n, k: (fill, (m, n, k)))
    monkeypatch.setattr(probe, "burst_seconds", lambda torch, call: seconds[call])
    monkeypatch.setattr(probe, "sustained_seconds", lambda torch, call, length: 2 * seconds[call])
    burst, sustained = probe.matmul_rows(None, "bf16", 3.0)
    assert (burst["flop_per_s"], burst["source"]) == (2 * 8**3 / 4.0, "matmul m=8 n=8 k=8, zero data")
    assert (sustained["flop_per_s"], sustained["source"]) == (2 * 8**3 / 16.0, "matmul m=8 n=8 k=8, random data")
