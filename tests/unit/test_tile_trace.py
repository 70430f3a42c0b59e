"""The benchmark's input: each copy is another stretch of the same capture, with ids of its own."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from mfupipe.paths import DEMO_CAPTURE
from tools.tile_trace import make, unpacked

COPIES = 3


@pytest.fixture(scope="module")
def tiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("tiled") / "tiled.sqlite"
    make(DEMO_CAPTURE, target, COPIES)
    return target


def rows(path: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def test_each_event_is_there_once_per_copy(tiled: Path, tmp_path: Path) -> None:
    small = unpacked(DEMO_CAPTURE, tmp_path)
    # Ranges have an end; the events that name a domain have none and stay once.
    for table in ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"):
        count = f'SELECT count(*) FROM {table} WHERE "end" IS NOT NULL'
        assert rows(tiled, count) == [(COPIES * int(str(rows(small, count)[0][0])),)]


def test_correlation_ids_stay_unique_among_kernels(tiled: Path) -> None:
    (counted,) = rows(tiled, "SELECT count(*), count(DISTINCT correlationId) FROM CUPTI_ACTIVITY_KIND_KERNEL")
    assert counted[0] == counted[1] == COPIES * 174


def test_copies_share_no_op_id_and_producers_follow(tiled: Path) -> None:
    texts = [str(text) for (text,) in rows(tiled, "SELECT text FROM NVTX_EVENTS WHERE text LIKE 'aten::linear%'")]
    numbers = [re.findall(r"op_id = (\d+).*input_op_ids = \[\((\d+),", text)[0] for text in texts]
    assert len({op_id for op_id, _ in numbers}) == len(texts)
    distances = {int(op_id) - int(producer) for op_id, producer in numbers if producer != "0"}
    assert max(distances) < 100


def test_copies_follow_each_other_in_time(tiled: Path) -> None:
    starts = [
        int(str(start)) for (start,) in rows(tiled, "SELECT start FROM NVTX_EVENTS WHERE text = 'step1' ORDER BY 1")
    ]
    assert len(starts) == COPIES and len({b - a for a, b in pairwise(starts)}) == 1
