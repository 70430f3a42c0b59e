"""A real Nsight Systems on programs that need no GPU: capture modes, failures, and the exported ranges.

NSYS names the executable or its directory; else it is looked for as profile does.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from mfupipe.doctor import State, nsys_checks
from mfupipe.errors import (
    MfupipeError,
    UnusableTrace,
    WorkloadFailed,
)
from mfupipe.profile import (
    Nsys,
    ProfileRequest,
    ProfileResult,
    doctor_trial,
    find_nsys,
    parse_capture,
    profile,
)

PROGRAM = f"""
import sys, time
sys.path.insert(0, {str(Path(doctor_trial.__file__).parent)!r})
import doctor_trial
library = doctor_trial.load("libnvtx3interop.so*")
for index in range(5):
    library.nvtxRangePushA(b"step|index=%d" % index)
    time.sleep(0.02)
    library.nvtxRangePop()
"""


def _nsys() -> Nsys | None:
    try:
        return find_nsys(Path(os.environ["NSYS"]) if os.environ.get("NSYS") else None)
    except MfupipeError:
        return None


NSYS = _nsys()
pytestmark = [
    pytest.mark.nsys,
    pytest.mark.skipif(NSYS is None, reason="no nsys"),
]
needs_nvtx = pytest.mark.skipif(doctor_trial.load("libnvtx3interop.so*") is None, reason="no libnvtx3interop")


def run(staging: Path, capture: str, code: str = PROGRAM) -> ProfileResult:
    assert NSYS is not None
    command = (sys.executable, "-c", code)
    return profile(ProfileRequest(None, command, capture=parse_capture(capture), nsys=NSYS.path), staging)


def steps(result: ProfileResult) -> list[str]:
    """Texts of the push/pop ranges in the report."""
    database = result.report.with_suffix(".sqlite")
    argv = [str(result.nsys.path), "export", "--type=sqlite", "-o", str(database), str(result.report)]
    subprocess.run(argv, check=True, capture_output=True)
    query = (
        "SELECT coalesce(e.text, s.value) FROM NVTX_EVENTS AS e LEFT JOIN StringIds AS s ON s.id = e.textId"
        " WHERE e.eventType = 59 ORDER BY e.start"
    )
    with closing(sqlite3.connect(database)) as connection:
        return [row[0] for row in connection.execute(query)]


@needs_nvtx
@pytest.mark.parametrize(
    ("capture", "found"),
    [("all", [0, 1, 2, 3, 4]), ("time:0+5", [0, 1, 2, 3, 4]), ("nvtx:step|index=2", [2])],
)
def test_the_ranges_of_each_capture_mode_arrive(tmp_path: Path, capture: str, found: list[int]) -> None:
    assert steps(run(tmp_path, capture)) == [f"step|index={index}" for index in found]


@pytest.mark.parametrize(
    ("capture", "message"),
    [
        ("api", "without a call of cudaProfilerStart"),
        ("auto", "never imported torch"),
        ("nvtx:nothing", "no NVTX range named 'nothing'"),
        ("time:60+1", "within the delay of 60 s"),
    ],
)
def test_a_capture_that_never_opened_says_what_it_waited_for(tmp_path: Path, capture: str, message: str) -> None:
    with pytest.raises(UnusableTrace, match=message):
        run(tmp_path, capture, "pass")


def test_a_failed_program_shows_its_stderr(tmp_path: Path) -> None:
    with pytest.raises(WorkloadFailed, match=r"exit code 3(.|\n)*boom"):
        run(tmp_path, "all", "import sys; print('boom', file=sys.stderr); sys.exit(3)")


def test_a_program_that_is_not_there_is_told(tmp_path: Path) -> None:
    assert NSYS is not None
    request = ProfileRequest(None, ("no-such-program",), nsys=NSYS.path)
    with pytest.raises(WorkloadFailed, match="could not start no-such-program"):
        profile(request, tmp_path)


def test_a_report_whose_name_is_taken_is_found_where_nsys_put_it(tmp_path: Path) -> None:
    taken = tmp_path / f"{Path(sys.executable).name}.nsys-rep"
    taken.write_text("a name that is taken")
    result = run(tmp_path, "all", "pass")
    assert "report_elsewhere" in [note.code for note in result.notes]
    assert result.report == taken and result.report.stat().st_size > 1000


@needs_nvtx
def test_doctor_finds_an_nsys_that_traces() -> None:
    assert NSYS is not None
    states = {check.name: check.state for check in nsys_checks(NSYS.path, None)}
    assert states["nsys"] is State.OK and states["trial capture"] is State.OK
