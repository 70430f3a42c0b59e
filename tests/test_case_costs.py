"""The two GEMM cases with their FLOP given as an annotation, and traces whose costs nest."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest

from mfupipe import warehouse
from tests.runs import CASE_DIRECTORIES, EXPECTED, ingest_and_build
from tests.trace_builder import Trace, build_run

BF16_PEAK = 989.4e12
BANDWIDTH = 4.8e12


def annotated_copy(case: str, message: str, directory: Path) -> Path:
    """A copy of a case whose only range says `message`."""
    copy = Path(shutil.copy(CASE_DIRECTORIES[case] / "trace.sqlite", directory))
    copy.chmod(0o644)
    with closing(sqlite3.connect(copy)) as connection, connection:
        changed = connection.execute("UPDATE NVTX_EVENTS SET text = ?, textId = NULL WHERE eventType = 59", [message])
        assert changed.rowcount == 1
    return copy


def only_row(run_dir: Path, sql: str) -> tuple[Any, ...]:
    with warehouse.open_run(run_dir) as connection:
        (row,) = connection.execute(sql).fetchall()
    return tuple(row)


def gemm_row(case: str, size: int, tmp_path: Path) -> tuple[Any, ...]:
    name = f"gemm bf16 M%3D{size} N%3D{size} K%3D{size}"
    message = f"{name}|flop={2 * size**3}|bytes={3 * size * size * 2}|dtype=bf16"
    run_dir = ingest_and_build([annotated_copy(case, message, tmp_path)], tmp_path / "run")
    return only_row(run_dir, "SELECT operator, flop, flop_per_s, mfu_pct, sol_pct FROM operators")


def test_the_peak_is_the_dense_one_of_the_gpu_that_ran(tmp_path: Path) -> None:
    expected = EXPECTED["visible_device_is_another_gpu"]
    operator, flop, flop_per_s, mfu_pct, sol_pct = gemm_row("visible_device_is_another_gpu", 4096, tmp_path)
    assert operator == "gemm bf16 M=4096 N=4096 K=4096"
    assert flop == expected["flops_given_to_the_product"]
    assert flop_per_s / 1e12 == pytest.approx(expected["achieved_tflops"], abs=0.01)
    assert mfu_pct == pytest.approx(expected["mfu_pct"], abs=expected["mfu_tolerance_pct"])
    assert (
        sol_pct is None
    )  # the trace states 2.00 TB/s for this GPU and the datasheet 3.35: no memory ceiling is trusted


def test_the_device_is_the_physical_one_behind_the_visible_ordinal(tmp_path: Path) -> None:
    run_dir = ingest_and_build([CASE_DIRECTORIES["visible_device_is_another_gpu"] / "trace.sqlite"], tmp_path / "run")
    found = only_row(
        run_dir,
        "SELECT cuda_device, device_name, flop_per_s FROM gpu_executions JOIN devices USING (trace_id, device_id)"
        " JOIN ceilings USING (device_name) WHERE ceilings.dtype = 'bf16' AND ceilings.kind = 'datasheet'",
    )
    expected = EXPECTED["visible_device_is_another_gpu"]
    assert found == (0, expected["gpu"]["deviceId 0"], expected["peak_dense_bf16_flops"])


def test_an_unknown_gpu_has_a_rate_but_no_percentage(tmp_path: Path) -> None:
    _, _, flop_per_s, mfu_pct, sol_pct = gemm_row("unknown_gpu", 1024, tmp_path)
    assert flop_per_s / 1e12 == pytest.approx(EXPECTED["unknown_gpu"]["achieved_tflops"], abs=0.01)
    assert (mfu_pct, sol_pct) == (None, None)
    assert only_row(tmp_path / "run", "SELECT count(*) FROM ceilings") == (0,)
    assert only_row(tmp_path / "run", "SELECT mfu_pct, sol_pct FROM run_summary") == (None, None)


AXB = 2 * 16 * 32 * 64
"""FLOP of aten::mm with sizes [[16, 32], [32, 64]]."""


def nested_costs() -> Trace:
    """Two steps, each with costs inside costs.

    `block` (1000 FLOP declared) around `mm` (300, shapes inside), `gelu` (600) and a bare kernel; a shape range outside
    any annotation; `fused` (5000) around a shape range only; and a declaration below which nothing runs.
    """
    trace = Trace()
    trace.domain(1, "mfupipe")
    for index in range(2):
        at = index * 10_000
        trace.range(at, at + 9_000, f"step|index={index}", domain=1)
        trace.range(at + 100, at + 900, "block|flop=1000|bytes=2000|dtype=bf16", domain=1)
        trace.range(at + 200, at + 300, "mm|flop=300|bytes=600|dtype=bf16", domain=1)
        trace.range(at + 210, at + 290, f"aten::mm, seq = {index}, op_id = 1, sizes = [[16, 32], [32, 64]]")
        trace.kernel("gemm_in_mm", at + 1_000, at + 2_000, at=at + 250)
        trace.range(at + 400, at + 500, "gelu|flop=600|bytes=700|dtype=bf16", domain=1)
        trace.kernel("gelu_1", at + 2_000, at + 2_500, at=at + 410)
        trace.kernel("gelu_2", at + 2_500, at + 3_000, at=at + 420)
        trace.kernel("bare_in_block", at + 3_000, at + 4_000, at=at + 600)
        trace.range(at + 1_000, at + 1_100, f"aten::mm, seq = {index}, op_id = 2, sizes = [[16, 32], [32, 64]]")
        trace.kernel("sm90_xmma_gemm_bf16bf16_bf16f32", at + 4_000, at + 5_000, at=at + 1_050)
        trace.range(at + 1_200, at + 1_300, "fused|flop=5000|bytes=100|dtype=bf16", domain=1)
        trace.range(at + 1_210, at + 1_290, f"aten::mm, seq = {index}, op_id = 3, sizes = [[16, 32], [32, 64]]")
        trace.kernel("gemm_in_fused", at + 5_000, at + 6_000, at=at + 1_250)
        trace.range(at + 1_400, at + 1_450, "idle_declaration|flop=77777|bytes=1|dtype=bf16", domain=1)
    return trace


@pytest.fixture(scope="module")
def nested(tmp_path_factory: pytest.TempPathFactory) -> Any:
    run_dir = build_run(tmp_path_factory.mktemp("nested") / "run", [nested_costs()])
    with warehouse.open_run(run_dir) as connection:
        yield connection


def test_nested_costs_count_no_flop_twice(nested: duckdb.DuckDBPyConnection) -> None:
    found = dict(nested.execute("SELECT operator, flop FROM operators ORDER BY ALL").fetchall())
    assert found == {"mm": 600, "gelu": 1200, "block": None, "aten::mm": 2 * AXB, "fused": 10_000}
    per_step = 300 + 600 + AXB + 5000
    assert nested.execute("SELECT flop FROM steps ORDER BY step").fetchall() == [(per_step,), (per_step,)]
    ((model_flop,),) = nested.execute("SELECT model_flop FROM run_summary").fetchall()
    assert model_flop == pytest.approx(per_step, rel=1e-12)


def test_what_an_outer_range_launches_outside_its_children_has_no_cost(nested: duckdb.DuckDBPyConnection) -> None:
    found = nested.execute(
        "SELECT kernel_count, busy_ns, flop, bytes, cost_source, sol_pct FROM operators WHERE operator = 'block'"
    ).fetchall()
    assert found == [(2, 2000, None, None, None, None)]


def test_each_cost_range_with_an_execution_counts_once_and_none_other(nested: duckdb.DuckDBPyConnection) -> None:
    assert nested.execute("SELECT sum(flop) FROM operator_calls").fetchall() == [(2 * (300 + 600 + AXB + 5000),)]
    assert nested.execute(
        "SELECT DISTINCT cost_source FROM operators WHERE operator IN ('mm', 'fused', 'gelu')"
    ).fetchall() == [("annotation",)]


def test_an_outer_cost_keeps_its_own_ideal(nested: duckdb.DuckDBPyConnection) -> None:
    ((ideal_ns,),) = nested.execute(
        "SELECT ideal_ns FROM range_summary WHERE level = 'name' AND name = 'block'"
    ).fetchall()
    assert ideal_ns == pytest.approx(2 * max(1000 / BF16_PEAK, 2000 / BANDWIDTH) * 1e9, rel=1e-9)


def test_a_declared_outer_cost_that_its_children_contradict_is_a_warning(nested: duckdb.DuckDBPyConnection) -> None:
    assert nested.execute("SELECT count(*) FROM warnings WHERE code = 'declared_cost_differs'").fetchall() == [(1,)]
