"""queries/examples: what each answers on a real capture, and the rules that a small trace shows."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from mfupipe import headers, warehouse
from mfupipe.errors import UsageError
from tests.runs import RealRun
from tests.sql.golden import Goldens
from tests.trace_builder import BACKWARD_THREAD, Trace

RealOf = Callable[[str], RealRun]
TRAINING, INFERENCE = "h200_transformer_layer_train_emit_nvtx", "h200_resnet50_infer_bf16_modules"
GRAPH, FP32 = "h200_cuda_graph_node", "2024.6.2_a100_llm2.7B_nvtx"
NNT, NTT = "nvjet_sm90_tst_320x128_64x3_1x2_h_bz_coopB_NNT", "nvjet_sm90_tst_320x128_64x3_1x2_h_bz_coopB_NTT"

goldens = Goldens()


def answer(run: RealRun, name: str, columns: str, **parameters: object) -> list[tuple[Any, ...]]:
    """Rows of an example; fractions to two decimals."""
    rows = warehouse.query(run.connection, name, **parameters).to_pylist()
    return [tuple(_rounded(row[column]) for column in columns.split()) for row in rows]


def _rounded(value: object) -> object:
    return round(value, 2) if isinstance(value, float) else value


def of(name: str, columns: str, **literals: str) -> str:
    """SQL of a golden: columns of an example, with SQL literals for its parameters, on the trace."""
    sql = warehouse.query_text(name)
    for parameter, literal in literals.items():
        sql = sql.replace(f"${parameter}", literal)
    return f"SELECT {columns} FROM ({sql}) WHERE trace_id = $trace"


def test_every_example_answers_without_parameters_on_every_kind_of_capture(real_run: RealOf) -> None:
    names = {query.name for query in headers.queries("examples")}
    for capture in (TRAINING, INFERENCE, GRAPH, FP32, "2026.2.1_h100x2_megatron_1s"):
        for name in names:
            found = warehouse.query(real_run(capture).connection, name)
            assert found.num_rows or name in NOTHING_IN[capture], (capture, name)


NOTHING_IN = {
    TRAINING: set(),
    INFERENCE: {"backward_forward_ratio"},
    GRAPH: {"backward_forward_ratio"},
    FP32: {"backward_forward_ratio", "low_sol_shapes", "step_time_by_phase"},
    "2026.2.1_h100x2_megatron_1s": {"backward_forward_ratio", "low_sol_shapes", "step_time_by_phase"},
}
"""Inference has no backward; the last two captures state no sizes and have no steps."""


def test_worst_gemm_shapes_of_a_transformer_layer(real_run: RealOf) -> None:
    # 2 * 16384 * 16384 * 4096 FLOP at 900e12 FLOP/s are 2,443,359 ns: 4 calls, 10,373,572 - 9,773,437 lost
    assert answer(real_run(TRAINING), "worst_gemm_shapes", "operator direction shapes call_count busy_ns lost_ns") == [
        ("aten::addmm", "backward", "[[16384, 16384], [16384, 4096]]", 4, 10373572, 600135.31),
        ("aten::addmm", "forward", "[[16384], [16384, 4096], [4096, 16384], [], []]", 2, 5426194, 539475.65),
        ("aten::mm", "backward", "[[16384, 12288], [12288, 4096]]", 2, 4182298, 517259.24),
        ("aten::mm", "backward", "[[12288, 16384], [16384, 4096]]", 2, 4066140, 401101.24),
        ("aten::addmm", "backward", "[[16384, 4096], [4096, 16384]]", 2, 5256338, 369619.65),
        ("aten::mm", "forward", "[[16384, 4096], [4096, 12288]]", 2, 4024284, 359245.24),
        ("aten::addmm", "forward", "[[4096], [16384, 16384], [16384, 4096], [], []]", 2, 5203282, 316563.65),
        ("aten::addmm", "backward", "[[4096, 16384], [16384, 16384]]", 2, 5180883, 294164.65),
        ("aten::addmm", "forward", "[[4096], [16384, 4096], [4096, 4096], [], []]", 2, 1379123, 157443.41),
        ("aten::addmm", "backward", "[[16384, 4096], [4096, 4096]]", 2, 1363284, 141604.41),
        ("aten::addmm", "backward", "[[4096, 16384], [16384, 4096]]", 2, 1278005, 56325.41),
    ]


def test_a_gemm_without_a_cost_has_time_but_no_loss(real_run: RealOf) -> None:
    found = answer(real_run(INFERENCE), "worst_gemm_shapes", "operator call_count busy_ns lost_ns kernels", count=1)
    assert found == [("layer2.0.conv1:Conv2d", 4, 320476, None, ["nvjet_sm90_tst_128x256_64x4_1x2_h_bz_coopA_TNN"])]


def test_low_sol_shapes_of_a_transformer_layer(real_run: RealOf) -> None:
    columns = "operator direction shapes call_count busy_ns"
    run = real_run(TRAINING)
    assert answer(run, "low_sol_shapes", columns, below=40)[:4] == [
        ("aten::add_", "forward", "[[2048, 8, 12288], [12288], []]", 2, 1112949),
        ("aten::view", "backward", "[[2048, 8, 3, 4096], [2048, 8, 3, 4096], []]", 2, 1049272),
        ("aten::clone", "forward", "[[3, 2048, 8, 4096], [3, 2048, 8, 4096], []]", 2, 1011575),
        (
            *("aten::native_layer_norm", "backward"),
            *("[[8, 2048, 4096], [8, 2048, 4096], [], [8, 2048, 1], [8, 2048, 1], [4096], [4096], []]", 4, 918775),
        ),
    ]
    # 2 calls x 805,330,944 B in 1,112,949 ns, of some 4.5e12 B/s that the best kernel of the trace reaches
    assert answer(run, "low_sol_shapes", "bytes_per_s", below=40)[0] == (round(2 * 805330944e9 / 1112949, 2),)
    assert answer(run, "low_sol_shapes", "sol_pct", below=40)[0][0] == pytest.approx(32, abs=1)


def test_low_sol_shapes_are_those_below(real_run: RealOf) -> None:
    found = {below: answer(real_run(TRAINING), "low_sol_shapes", "sol_pct", below=below) for below in (1, 40, 1_000)}
    assert all(sol < below for below, rows in found.items() for (sol,) in rows)
    assert 0 < len(found[1]) < len(found[40]) < len(found[1_000])


@pytest.mark.parametrize(
    ("capture", "expected"),
    [
        (TRAINING, ("", 3, 2, 66516470, 33258235.0, 33258235.0, 33678970.6, 32790751, 33725719, 99.63)),
        (GRAPH, ("", 5, 4, 1067130, 266782.5, 266654.5, 267694.15, 265983, 267838, 98.96)),
    ],
)
def test_step_time_by_phase(capture: str, expected: tuple[Any, ...], real_run: RealOf) -> None:
    columns = (
        "phase step_count measured_count wall_ns mean_ns median_ns p95_ns shortest_ns longest_ns busy_pct"
        " items_per_s tokens_per_s"
    )
    assert answer(real_run(capture), "step_time_by_phase", columns) == [(*expected, None, None)]


def test_kernels_of_one_layer_of_modules(real_run: RealOf) -> None:
    columns = "layer operator name kernel_class execution_count total_ns median_ns share_pct"
    assert answer(real_run(INFERENCE), "kernels_of_one_layer", columns, layer="conv1%") == [
        ("conv1:Conv2d", "conv1:Conv2d", "Kernel", "convolution", 5, 3887524, 778202.0, 87.27),
        ("conv1:Conv2d", "conv1:Conv2d", "nhwcAddPaddingKernel", "copy", 10, 442461, 43679.5, 9.93),
        ("conv1:Conv2d", "conv1:Conv2d", "memset", None, 10, 124447, 12223.5, 2.79),
    ]


def test_kernels_of_one_layer_holds_its_backward(real_run: RealOf) -> None:
    columns = "direction operator name execution_count total_ns"
    found = answer(real_run(TRAINING), "kernels_of_one_layer", columns, layer="aten::linear")
    assert found[:3] == [
        ("backward", "aten::addmm", NTT, 6, 15298170),
        ("forward", "aten::addmm", "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_bias_TNT", 6, 9848167),
        ("backward", "aten::addmm", NNT, 6, 9701866),
    ]
    # four linear layers, three steps: one product forward, two backward
    products = [(direction, count) for direction, _, name, count, _ in found if name.startswith("nvjet")]
    assert sum(count for direction, count in products if direction == "forward") == 12
    assert sum(count for direction, count in products if direction == "backward") == 24


def test_a_pattern_that_fits_no_range_finds_nothing(real_run: RealOf) -> None:
    assert answer(real_run(TRAINING), "kernels_of_one_layer", "name", layer="aten_linear") == []


def test_host_in_longest_gaps_while_libraries_load(real_run: RealOf) -> None:
    columns = "gap_ns cause api_name path cuda_name cuda_pct previous_name next_name"
    launch = "cudaLaunchKernel_v7000"
    assert answer(real_run(FP32), "host_in_longest_gaps", columns, count=2) == [
        (190172452, "launch", launch, ["warmup"], "cuLibraryLoadData", 3.37, "elementwise_kernel", SGEMM),
        (
            138046003,
            "launch",
            launch,
            ["warmup"],
            launch,
            0.03,
            "elementwise_kernel_with_index",
            "index_elementwise_kernel",
        ),
    ]


SGEMM = "ampere_sgemm_128x64_tn"


def test_host_in_longest_gaps_when_the_host_is_far_ahead(real_run: RealOf) -> None:
    columns = "step gap_ns cause path cuda_name cuda_pct"
    assert answer(real_run(TRAINING), "host_in_longest_gaps", columns, count=1) == [
        (
            2,
            3040,
            "other",
            ["step2", "fwd", "aten::linear", "aten::matmul", "aten::mm"],
            "cudaDeviceSynchronize_v3020",
            100.0,
        )
    ]


def test_kernel_top_of_a_transformer_layer(real_run: RealOf) -> None:
    columns = "position time_pct total_ns instances average_ns median_ns minimum_ns maximum_ns name operators"
    assert answer(real_run(TRAINING), "kernel_top", columns, count=2) == [
        (1, 16.24, 15900435, 9, 1766715.0, 2018030.0, 671578, 2645288, NNT, ["aten::addmm", "aten::mm"]),
        (2, 15.63, 15298170, 6, 2549695.0, 2535226.0, 2450794, 2646825, NTT, ["aten::addmm"]),
    ]


def test_kernel_top_holds_every_kernel_as_python_sums_them(real_run: RealOf) -> None:
    run = real_run(TRAINING)
    times: dict[str | None, list[int]] = defaultdict(list)
    for execution in run.export.executions:
        if execution.kind == "kernel":
            times[execution.name].append(execution.end - execution.start)
    # the oracle knows short names only: those with one full name can be compared
    columns = "name total_ns instances median_ns minimum_ns maximum_ns deviation_ns"
    rows = answer(run, "kernel_top", columns, count=1_000)
    assert sum(row[1] for row in rows) == sum(map(sum, times.values()))
    names = [row[0] for row in rows]
    unique = [row for row in rows if names.count(row[0]) == 1]
    assert len(unique) > 10
    for name, *found in unique:
        each = times[name]
        spread = round(statistics.stdev(each), 2) if len(each) > 1 else None
        assert found == [sum(each), len(each), statistics.median(each), min(each), max(each), spread], name


def test_precision_audit_of_a_bf16_layer(real_run: RealOf) -> None:
    # matmul: 3 steps x 3 (forward, two backward) x 2 * 16384 * 4096 * (12288 + 4096 + 16384 + 16384)
    flop = 3 * 3 * 2 * 16384 * 4096 * (12288 + 4096 + 16384 + 16384)
    # attention in full, backward twice the forward: 3 steps x 3 x 4 * (8 * 32) * 2048 * 2048 * 128
    attention = 3 * 3 * 4 * 8 * 32 * 2048 * 2048 * 128
    columns = "is_wide_matrix dtype kernel_class kernel_count total_ns time_pct flop flop_pct"
    assert answer(real_run(TRAINING), "precision_audit", columns) == [
        (False, "bf16", "gemm", 36, 70864210, 72.39, flop, 92.31),
        (False, "bf16", "attention", 6, 9639947, 9.85, attention, 7.69),
        (False, "bf16", "elementwise", 78, 9161555, 9.36, 0, 0),
        (False, "bf16", "copy", 15, 4330234, 4.42, 0, 0),
        (False, "bf16", "norm", 18, 2010509, 2.05, 0, 0),
        (False, "bf16", "reduction", 15, 1154803, 1.18, 0, 0),
        (False, "fp32", "other", 6, 729179, 0.74, None, None),
    ]


def test_products_in_fp32_stand_out(real_run: RealOf) -> None:
    columns = "is_wide_matrix device_name dtype kernel_class kernel_count total_ns time_pct peak_flop_per_s"
    assert answer(real_run(FP32), "precision_audit", columns)[:2] == [
        (True, "NVIDIA A100-SXM4-80GB", "fp32", "gemm", 1156, 3114184256, 91.37, 19.5e12),
        (False, "NVIDIA A100-SXM4-80GB", "fp32", "elementwise", 4628, 237176203, 6.96, 19.5e12),
    ]


def test_launch_latency_of_graph_replays(real_run: RealOf) -> None:
    # five launches of a graph with three nodes, beside the eager pass before its capture
    columns = (
        "operator execution_count launch_count median_launch_ns median_execution_ns median_latency_ns idle_before_ns"
    )
    assert answer(real_run(GRAPH), "launch_latency", columns) == [
        ("(step)", 15, 5, 6219.0, 92735.0, 472531.0, 11073),
        ("mm", 2, 2, 19001.5, 85951.0, 790501.0, 0),
        ("softmax", 1, 1, 11760.0, 92672.0, 813100.0, 0),
    ]


def test_launch_latency_shares_out_all_idle_time(real_run: RealOf) -> None:
    for capture in (TRAINING, FP32):
        run = real_run(capture)
        shared = answer(run, "launch_latency", "idle_before_ns idle_launch_ns")
        ((idle, launch),) = run.rows("SELECT sum(gap_ns), sum(gap_ns) FILTER (WHERE cause = 'launch') FROM gaps")
        assert [sum(row[0] for row in shared), sum(row[1] for row in shared)] == [idle, launch or 0]


def test_backward_forward_ratio_of_a_transformer_layer(real_run: RealOf) -> None:
    columns = "operator forward_ns backward_ns time_ratio flop_ratio"
    assert answer(real_run(TRAINING), "backward_forward_ratio", columns) == [
        ("aten::addmm", 12008599, 23928235, 1.99, 2.0),
        ("aten::mm", 4024284, 8248438, 2.05, 2.0),
        ("aten::_scaled_dot_product_cudnn_attention", 1665137, 5319985, 3.19, 2.0),
        ("aten::native_layer_norm", 423868, 1084918, 2.56, None),
        ("aten::relu", 494747, 735577, 1.49, None),
        ("aten::add_", 1112949, 220606, 0.2, None),
    ]
    # attention: 2 x 549,755,813,888 FLOP forward at 900e12 FLOP/s, of 1,665,137 ns
    (_, _, (forward, backward), *_) = answer(
        real_run(TRAINING), "backward_forward_ratio", "forward_sol_pct backward_sol_pct"
    )
    assert (forward, backward) == (73.37, 45.93)


@pytest.mark.parametrize(
    ("capture", "expected"),
    [
        (TRAINING, ("memcpy DtoD", 9, 1207959552, 134217728, 586362, 2060091806767.83, ["aten::select"])),
        (FP32, ("memcpy HtoD", 294, 13627435008, 26214400, 3156475895, 4317294179.11, ["generate_data", "init_model"])),
    ],
)
def test_copy_bandwidth(capture: str, expected: tuple[Any, ...], real_run: RealOf) -> None:
    columns = "name count copied_bytes median_bytes total_ns bytes_per_s operators"
    assert answer(real_run(capture), "copy_bandwidth", columns)[0] == expected


def test_a_parameter_that_an_example_does_not_know_is_named(real_run: RealOf) -> None:
    with pytest.raises(UsageError, match=r"no parameter \$layr") as raised:
        warehouse.query(real_run(TRAINING).connection, "kernels_of_one_layer", layr="x")
    assert "$layer" in raised.value.hint


@pytest.mark.parametrize("query", headers.queries("examples"), ids=lambda query: query.name)
def test_the_header_states_the_parameters_of_the_statement(query: headers.Query) -> None:
    (statement,) = duckdb.extract_statements(query.sql)
    assert {stated.name for stated in query.params} == statement.named_parameters
    assert all(stated.default is not None for stated in query.params)
    assert len(query.sql.splitlines()) <= 80


def test_the_front_page_names_every_example() -> None:
    page = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
    assert [query.name for query in headers.queries("examples") if f"| `{query.name}` |" not in page] == []


@goldens.rows(
    of("kernels_of_one_layer", "layer, direction, operator, name", layer="'block.%'"),
    ("block.0", "forward", "aten::mm", "inner"),
    ("block.0.mlp", "backward", "aten::mm", "dgrad"),
    ("block.0.mlp", "forward", "aten::mm", "fprop"),
)
def the_innermost_range_that_matches_is_the_layer_also_of_the_backward(trace: Trace) -> None:
    trace.range(0, 100, "block.0")
    trace.range(10, 60, "block.0.mlp")
    trace.range(20, 50, "aten::mm, seq = 5, op_id = 1")
    trace.kernel("fprop", 1_000, 1_020, at=30)
    trace.range(70, 80, "aten::mm, seq = 6, op_id = 2")
    trace.kernel("inner", 1_020, 1_030, at=75)
    trace.range(200, 300, "MmBackward0, seq = 5, op_id = 3", thread=BACKWARD_THREAD)
    trace.kernel("dgrad", 1_030, 1_060, at=250, thread=BACKWARD_THREAD)
    trace.range(400, 500, "other")
    trace.kernel("elsewhere", 1_060, 1_070, at=450)


@goldens.rows(
    of("worst_gemm_shapes", "operator, call_count, busy_ns, kernels", count="9"), ("mostly", 2, 120, ["a_gemm_k"])
)
def an_operator_is_a_gemm_when_gemm_kernels_take_half_of_its_time(trace: Trace) -> None:
    for at, name, other in ((0, "mostly", 10), (1_000, "mostly", 10), (2_000, "partly", 51)):
        trace.range(at, at + 100, name)
        trace.kernel("a_gemm_k", at + 200, at + 250, at=at + 10)
        trace.kernel("add_one", at + 250, at + 250 + other, at=at + 20)


@goldens.rows(
    of("precision_audit", "dtype, kernel_class, kernel_count, total_ns, flop, is_wide_matrix"),
    ("fp32", "gemm", 1, 50, 1000.0, True),
    ("fp32", "reduction", 2, 30, None, False),
)
def the_flop_of_a_call_are_counted_once_at_its_longest_kernel(trace: Trace) -> None:
    trace.range(0, 100, "product|flop=1000|bytes=10|dtype=fp32")
    trace.kernel("reduce_kernel", 200, 210, at=10)
    trace.kernel("a_gemm_k", 210, 260, at=20)
    trace.kernel("reduce_kernel", 260, 280, at=30)


@goldens.rows(
    of("host_in_longest_gaps", "gap_ns, cause, cuda_name, cuda_pct, next_name", count="2"),
    (100, "launch", "cudaMalloc", 40.0, "b"),
    (50, "launch", "cudaLaunchKernel", 2.0, "c"),
)
def the_call_that_covers_most_of_a_gap_is_named_with_its_part_of_it(trace: Trace) -> None:
    trace.kernel("a", 0, 100, at=-10)
    trace.api("cudaFree", 110, 120)
    trace.api("cudaMalloc", 130, 170)
    trace.kernel("b", 200, 300, at=190)
    trace.kernel("c", 350, 360, at=340)
    trace.kernel("d", 370, 380, at=365)


@goldens.rows(
    of("launch_latency", "operator, execution_count, median_latency_ns, idle_before_ns, idle_launch_ns"),
    ("second", 1, 10.0, 90, 90),
    ("first", 1, 20.0, 0, 0),
)
def idle_time_is_that_of_the_operator_that_the_gpu_waited_for(trace: Trace) -> None:
    trace.range(-30, -10, "first")
    trace.kernel("a", 0, 10, at=-20)
    trace.range(80, 95, "second")
    trace.kernel("b", 100, 110, at=90)


test_golden = goldens.test()
