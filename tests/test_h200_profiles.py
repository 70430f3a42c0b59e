"""What `mfupipe profile` captured on an H200: MFU is that of images per second, and costs cover the time."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from mfupipe import warehouse
from mfupipe.ingest import write_raw
from mfupipe.run import RAW_NAME, BuildOptions, Manifest, TraceEntry, write_manifest

PROFILES = Path(__file__).parent / "golden_profiles"
PEAK = 989.4e12
"""Dense bf16 of an H200 [FLOP/s]."""
MEASURED_BESIDE = ("untraced_steps.parquet", "nvml_samples.parquet")


@contextmanager
def opened(name: str, directory: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    raw = directory / RAW_NAME / "trace_id=0"
    write_raw(PROFILES / name / "capture.sqlite.gz", raw, trace_id=0)
    for file in MEASURED_BESIDE:
        shutil.copy(PROFILES / name / file, raw / file)
    write_manifest(directory, Manifest((TraceEntry(trace_id=0, source_file="capture.sqlite.gz"),), BuildOptions()))
    warehouse.build(directory, BuildOptions())
    with warehouse.open_run(directory) as connection:
        yield connection


@pytest.fixture(scope="module")
def transformer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    with opened("transformer_train_bf16", tmp_path_factory.mktemp("transformer")) as connection:
        yield connection


@pytest.fixture(scope="module")
def resnet50(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    with opened("resnet50_infer_bf16", tmp_path_factory.mktemp("resnet50")) as connection:
        yield connection


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    with opened("plain_train_auto", tmp_path_factory.mktemp("plain")) as connection:
        yield connection


ALL = pytest.mark.parametrize("name", ["transformer", "resnet50", "plain"])


def connection_of(name: str, request: pytest.FixtureRequest) -> duckdb.DuckDBPyConnection:
    found = request.getfixturevalue(name)
    assert isinstance(found, duckdb.DuckDBPyConnection)
    return found


def value(connection: duckdb.DuckDBPyConnection, sql: str) -> Any:
    ((found,),) = connection.execute(sql).fetchall()
    return found


def untraced_ns(name: str) -> float:
    """Mean step before the capture opened, read past the pipeline."""
    walls = pq.read_table(PROFILES / name / "untraced_steps.parquet")["wall_ns"].to_pylist()
    assert len(walls) == 10
    return float(sum(walls) / len(walls))


def codes(connection: duckdb.DuckDBPyConnection) -> set[str]:
    return {code for (code,) in connection.execute("SELECT code FROM warnings").fetchall()}


def test_mfu_of_resnet50_is_images_per_second_times_8_178_gflop(resnet50: duckdb.DuckDBPyConnection) -> None:
    images_per_s = 512 / (untraced_ns("resnet50_infer_bf16") / 1e9)
    assert images_per_s == pytest.approx(16_279, abs=1)
    expected = 100 * images_per_s * 8.178e9 / PEAK
    assert value(resnet50, "SELECT mfu_pct FROM run_summary") == pytest.approx(expected, rel=0.001)
    assert value(resnet50, "SELECT items_per_s FROM run_summary") == pytest.approx(images_per_s)


def test_every_layer_of_resnet50_is_seen_in_every_step(resnet50: duckdb.DuckDBPyConnection) -> None:
    sql = "SELECT operator, call_count / 9 FROM operators WHERE operator NOT LIKE '(%' ORDER BY operator"
    per_step = dict(resnet50.execute(sql).fetchall())
    layers = {"adaptive_avg_pool2d": 1, "add": 16, "batch_norm": 53, "conv2d": 53, "linear": 1, "max_pool2d": 1}
    assert per_step == layers | {"relu": 49}


def test_flop_of_a_transformer_step_are_those_of_an_independent_count(transformer: duckdb.DuckDBPyConnection) -> None:
    batch, heads, length, width, layers = 8, 32, 2048, 128, 4
    products = 98_646_808_854_528  # torch's FlopCounterMode, aten.mm of forward and backward
    causal = layers * 4 * batch * heads * width * (length * (length + 1) // 2)  # it counts the full square
    stated = value(transformer, "SELECT DISTINCT flop FROM steps")
    assert stated == products + 3 * causal
    assert value(transformer, "SELECT sum(flop) / count(DISTINCT step) FROM operator_calls") == stated
    expected = 100 * stated / (untraced_ns("transformer_train_bf16") / 1e9 * PEAK)
    assert value(transformer, "SELECT mfu_pct FROM run_summary") == pytest.approx(expected, rel=1e-6)


def test_gradients_that_are_added_up_take_nothing_from_the_products(transformer: duckdb.DuckDBPyConnection) -> None:
    sql = """SELECT operator, sum(costed_busy_ns) / sum(busy_ns) FROM operators
             WHERE direction = 'backward' AND operator IN ('linear', 'gradient_accumulation') GROUP BY operator"""
    assert dict(transformer.execute(sql).fetchall()) == {"linear": 1.0, "gradient_accumulation": 1.0}
    assert codes(transformer) == {"step_spread"}


def test_the_power_limit_shows_in_the_clock(transformer: duckdb.DuckDBPyConnection) -> None:
    assert value(transformer, "SELECT sm_clock_hz FROM run_summary") == pytest.approx(1.516e9, rel=0.001)
    assert value(transformer, "SELECT pct FROM ledger WHERE component = 'clock'") == pytest.approx(11.5, abs=0.1)
    assert value(transformer, "SELECT energy_j_per_step FROM run_summary") == pytest.approx(132.5, abs=0.1)


@ALL
def test_tracing_adds_less_than_five_percent(name: str, request: pytest.FixtureRequest) -> None:
    row = "SELECT abs(profiler_overhead_pct) < 5 AND untraced_n = 10 AND step_count = 9 FROM run_summary"
    assert value(connection_of(name, request), row)


@ALL
def test_the_ledger_is_whole(name: str, request: pytest.FixtureRequest) -> None:
    assert value(connection_of(name, request), "SELECT sum(pct) FROM ledger") == pytest.approx(100, abs=1e-9)


@pytest.mark.parametrize(("name", "costed_pct"), [("transformer", 99.9), ("resnet50", 99.9), ("plain", 99.9)])
def test_nearly_all_time_has_an_operator_and_a_cost(
    name: str, costed_pct: float, request: pytest.FixtureRequest
) -> None:
    connection = connection_of(name, request)
    assert value(connection, "SELECT min(attributed_pct) FROM coverage") > 99.9
    assert value(connection, "SELECT min(costed_pct) FROM coverage") > costed_pct


def test_steps_of_a_script_that_knows_no_profiler_are_its_optimizer_steps(plain: duckdb.DuckDBPyConnection) -> None:
    assert value(plain, "SELECT step_rule FROM run_summary") == "mfupipe"
    assert value(plain, "SELECT count(*) FROM ranges WHERE name = 'Optimizer.step#AdamW.step'") == 10
    assert value(plain, "SELECT count(*) FROM ranges WHERE is_unclosed") == 0
    assert codes(plain) == set()


def test_backward_of_a_plain_script_goes_to_its_forward_operators(plain: duckdb.DuckDBPyConnection) -> None:
    threads = """SELECT direction, any_value(thread_id), count(DISTINCT thread_id)
                 FROM gpu_executions JOIN api_calls USING (trace_id, api_call_id)
                 WHERE direction IN ('forward', 'backward') GROUP BY direction"""
    found = {direction: (thread, count) for direction, thread, count in plain.execute(threads).fetchall()}
    assert found["forward"][1] == found["backward"][1] == 1 and found["forward"] != found["backward"]
    flop = """SELECT sum(flop) FILTER (WHERE direction = 'backward') / sum(flop) FILTER (WHERE direction = 'forward')
              FROM operators WHERE operator = 'aten::addmm'"""
    assert value(plain, flop) == pytest.approx(2)


def test_flop_of_a_plain_convolution_network_are_those_of_its_layers(plain: duckdb.DuckDBPyConnection) -> None:
    """Three 3 x 3 convolutions whose outputs only their readers name, two linear layers; batch 1024.

    Backward twice each, the first convolution's input gradient included: its absence is not in the sizes.
    """
    convolutions = (
        2 * (1024 * 64 * 64 * 64) * (3 * 9)
        + 2 * (1024 * 128 * 32 * 32) * (64 * 9)
        + 2 * (1024 * 256 * 16 * 16) * (128 * 9)
    )
    linear = 2 * 1024 * 4096 * 4096 + 2 * 1024 * 4096 * 1000
    steps = "SELECT DISTINCT flop FROM steps"
    assert plain.execute(steps).fetchall() == [(3 * (convolutions + linear),)]
