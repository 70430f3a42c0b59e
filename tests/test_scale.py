"""Work grows with the trace, not with its square: the plan of the containment join, and a tiled capture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from mfupipe import headers, paths, warehouse
from mfupipe.run import RAW_NAME, Manifest, TraceEntry, write_manifest
from tests.runs import RealRun

COPIES = 4
EVENTS = ("nvtx_ranges", "api_calls", "kernels", "memcpys", "memsets", "graph_traces")
Links = Counter[tuple[Any, ...]]
LAYER = "h200_transformer_layer_train_emit_nvtx"
LINKS = """
    SELECT name, operator, direction, attribution, len(range_ids), count(*)
    FROM gpu_executions GROUP BY ALL
"""


def tile(small: Path, big: Path, copies: int) -> None:
    """Raw tables of `small`, repeated in time; ids of calls grow so that joins stay unique, seq and op_id repeat."""
    calls = pq.read_table(small / "api_calls.parquet").to_pylist()
    kernels = pq.read_table(small / "kernels.parquet").to_pylist()
    span = max(row["end_ns"] for row in [*calls, *kernels]) - min(row["start_ns"] for row in calls) + 1_000
    ids = max(row["correlation_id"] for row in calls) + 1
    big.mkdir(parents=True)
    for path in small.glob("*.parquet"):
        table = pq.read_table(path)
        rows = table.to_pylist()
        if path.stem in EVENTS:
            rows = [shifted(row, copy, span, ids, len(rows)) for copy in range(copies) for row in rows]
        elif path.stem == "trace":
            rows = [{**row, "duration_ns": row["duration_ns"] + copies * span} for row in rows]
        pq.write_table(table.from_pylist(rows, schema=table.schema), big / path.name)


def shifted(row: dict[str, Any], copy: int, span: int, ids: int, row_count: int) -> dict[str, Any]:
    """A row in its copy: later, with a row id and a correlation id of its own."""
    moved = {**row, "row_id": row["row_id"] + copy * row_count}
    for column, step in (("start_ns", span), ("end_ns", span), ("correlation_id", ids)):
        if moved.get(column) is not None:
            moved[column] += copy * step
    return moved


@pytest.fixture(scope="module")
def links(real_run: Callable[[str], RealRun], tmp_path_factory: pytest.TempPathFactory) -> tuple[Links, Links]:
    """Executions by what they were linked to: in the capture, and in COPIES of it."""
    small = real_run(LAYER)
    run_dir = tmp_path_factory.mktemp("tiled") / "run"
    tile(small.run_dir / RAW_NAME / "trace_id=0", run_dir / RAW_NAME / "trace_id=0", COPIES)
    manifest = Manifest(traces=(TraceEntry(trace_id=0, source_file="tiled.sqlite"),))
    write_manifest(run_dir, manifest)
    warehouse.build(run_dir, manifest.options)
    with warehouse.open_run(run_dir) as connection:
        tiled = Counter({row[:-1]: row[-1] for row in connection.execute(LINKS).fetchall()})
    return Counter({row[:-1]: row[-1] for row in small.rows(LINKS)}), tiled


def test_a_tiled_trace_has_each_link_of_the_small_one_once_per_copy(links: tuple[Links, Links]) -> None:
    small, tiled = links
    assert tiled == Counter({key: COPIES * count for key, count in small.items()})


def test_the_containment_join_is_planned_as_an_interval_join() -> None:
    """An equality beside the two inequalities would be hashed and filtered: quadratic in the ranges of a thread."""
    query = headers.parse(paths.QUERIES / "2_attribution" / "_anchor_ranges.sql")
    with duckdb.connect() as connection:
        for table in query.reads:
            source = headers.parse(next(paths.QUERIES.rglob(f"{table}.sql")))
            values = ", ".join(f"(i % 1000)::{column.type} AS {column.name}" for column in source.columns)
            connection.execute(f"CREATE TABLE {table} AS SELECT {values} FROM range(20_000) AS numbers(i)")
        plan = "\n".join(row[1] for row in connection.execute(f"EXPLAIN {query.sql}").fetchall())
    assert "IE_JOIN" in plan
    assert "NESTED_LOOP_JOIN" not in plan
    assert "BLOCKWISE_NL_JOIN" not in plan
