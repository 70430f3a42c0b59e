"""Our ranges arrive under a real Nsight Systems, with domain and whole message."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import mfupipe
from mfupipe.emitters import load_interop
from mfupipe.errors import MfupipeError
from mfupipe.profile import Nsys, find_nsys

PROGRAM = f"""
import sys
sys.path.insert(0, {str(Path(mfupipe.__file__).parents[1])!r})
from mfupipe import annotate
print(annotate.require_emitter().name, file=sys.stderr)
for index in range(2):
    with annotate.step(index, flop=1.5e12):
        with annotate.operator("é|x", flop=12, bytes=34, dtype="bf16"):
            pass
"""
QUERY = """
SELECT domain.text, coalesce(range.text, string.value)
FROM NVTX_EVENTS AS range
LEFT JOIN StringIds AS string ON string.id = range.textId
LEFT JOIN NVTX_EVENTS AS domain ON domain.eventType = 75 AND domain.domainId = range.domainId
WHERE range.eventType = 59 ORDER BY range.start
"""


def _nsys() -> Nsys | None:
    try:
        return find_nsys(Path(os.environ["NSYS"]) if os.environ.get("NSYS") else None)
    except MfupipeError:
        return None


NSYS = _nsys()
pytestmark = [pytest.mark.nsys, pytest.mark.skipif(NSYS is None, reason="no nsys")]


@pytest.mark.skipif(load_interop() is None, reason="no libnvtx3interop")
def test_annotated_ranges_arrive_with_domain_and_message(tmp_path: Path) -> None:
    assert NSYS is not None
    report, database = tmp_path / "run.nsys-rep", tmp_path / "run.sqlite"
    profile = [str(NSYS.path), "profile", "-t", "nvtx", "--sample=none", "--cpuctxsw=none", "-o", str(report)]
    subprocess.run([*profile, sys.executable, "-c", PROGRAM], check=True, capture_output=True)
    export = [str(NSYS.path), "export", "--type=sqlite", "-o", str(database), str(report)]
    subprocess.run(export, check=True, capture_output=True)
    with closing(sqlite3.connect(database)) as connection:
        found = connection.execute(QUERY).fetchall()
    inner = ("mfupipe", "é%7Cx|flop=12|bytes=34|dtype=bf16")
    assert found == [
        ("mfupipe", "step|index=0|flop=1500000000000"),
        inner,
        ("mfupipe", "step|index=1|flop=1500000000000"),
        inner,
    ]
