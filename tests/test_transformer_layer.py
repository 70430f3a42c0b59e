"""The emit_nvtx capture of three training steps of one nn.TransformerEncoderLayer, against numbers derived by hand."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.oracle.busy import name_of
from tests.runs import RealRun

BATCH, SEQUENCE, WIDTH, HEADS, FEED_FORWARD = 8, 2048, 4096, 32, 16384
TOKENS = BATCH * SEQUENCE

# FLOP of one forward pass; a product of (m x k) and (k x n) needs 2 m n k.
IN_PROJECTION = 2 * TOKENS * WIDTH * 3 * WIDTH  # query, key and value at once
OUT_PROJECTION = 2 * TOKENS * WIDTH * WIDTH
LINEAR = 2 * TOKENS * WIDTH * FEED_FORWARD  # linear1; linear2 is its transpose
HEAD_WIDTH = WIDTH // HEADS
ATTENTION = 2 * (2 * BATCH * HEADS * SEQUENCE * SEQUENCE * HEAD_WIDTH)  # Q K^T, then its product with V; not halved
FORWARD = IN_PROJECTION + OUT_PROJECTION + 2 * LINEAR + ATTENTION
BACKWARD = 2 * FORWARD  # a gradient for the input and one for the weight; of attention by convention
H200_BF16 = 989.4e12
MATMUL = re.compile(r"^aten::(mm|addmm|bmm|matmul|linear|.*attention.*)$")


@pytest.fixture
def layer(real_run: Callable[[str], RealRun]) -> RealRun:
    return real_run("h200_transformer_layer_train_emit_nvtx")


def test_the_hand_derived_totals_are_these() -> None:
    assert IN_PROJECTION == 1_649_267_441_664
    assert OUT_PROJECTION == 549_755_813_888
    assert LINEAR == 2_199_023_255_552
    assert ATTENTION == 4 * BATCH * SEQUENCE * SEQUENCE * WIDTH == 549_755_813_888
    assert FORWARD + BACKWARD == 21_440_476_741_632


def test_all_busy_time_is_attributed_and_95_percent_costed(layer: RealRun) -> None:
    ((attributed, costed),) = layer.rows("SELECT attributed_pct, costed_pct FROM coverage")
    assert attributed == pytest.approx(100, abs=1e-9)
    assert 95 <= costed <= 100 + 1e-9
    assert layer.rows("SELECT * FROM unattributed") == []


def test_kernels_of_the_backward_thread_have_direction_backward_and_no_others_have(layer: RealRun) -> None:
    forward_threads = {each.thread for each in layer.export.ranges if each.message == "fwd"}
    found = set(
        layer.rows(
            "SELECT call.thread_id, execution.direction FROM gpu_executions AS execution"
            " JOIN api_calls AS call USING (trace_id, api_call_id) WHERE execution.operator NOT LIKE '(%'"
        )
    )
    assert {direction for thread, direction in found if thread not in forward_threads} == {"backward"}
    assert "backward" not in {direction for thread, direction in found if thread in forward_threads}


def test_forward_and_backward_of_an_operator_share_its_name(layer: RealRun) -> None:
    forward_threads = {each.thread for each in layer.export.ranges if each.message == "fwd"}
    called = {name_of(each.message) for each in layer.export.ranges if each.thread in forward_threads}
    backward = {name for (name,) in layer.rows("SELECT operator FROM operators WHERE direction = 'backward'")}
    assert {name for name in backward - called if "AccumulateGrad" not in name} == set()
    # Views launch nothing forward and copies backward; what has kernels in both directions is one name.
    forward = {name for (name,) in layer.rows("SELECT operator FROM operators WHERE direction = 'forward'")}
    assert backward & forward >= {"aten::addmm", "aten::relu", "aten::native_layer_norm"}


def test_a_backward_operator_is_the_last_forward_range_started_with_its_seq(layer: RealRun) -> None:
    assert set(names_by_kernel_class(layer, "sdpa")) == {
        ("forward", "aten::_scaled_dot_product_cudnn_attention"),
        ("backward", "aten::_scaled_dot_product_cudnn_attention"),
    }
    attribution = set(layer.rows("SELECT DISTINCT attribution FROM gpu_executions WHERE direction = 'backward'"))
    assert attribution <= {("sequence",), ("thread",)}
    assert ("sequence",) in attribution


def names_by_kernel_class(layer: RealRun, part: str) -> list[tuple[str, str]]:
    return layer.rows(
        "SELECT DISTINCT direction, operator FROM gpu_executions WHERE kind = 'kernel' AND contains(name, $part)",
        part=part,
    )


def flop_of_products(layer: RealRun) -> dict[tuple[int, str], float]:
    """(step, direction) -> FLOP of matrix products and attention, by the name of the range that carries the cost."""
    totals: dict[tuple[int, str], float] = {}
    for step, direction, name, flop in layer.rows(
        "SELECT calls.step, calls.direction, ranges.name, calls.flop FROM operator_calls AS calls"
        " JOIN ranges ON ranges.trace_id = calls.trace_id AND ranges.range_id = calls.cost_range_id"
    ):
        if MATMUL.match(name):
            totals[step, direction] = totals.get((step, direction), 0) + flop
    return totals


def test_flop_of_matrix_products_are_exact_in_each_step_and_direction(layer: RealRun) -> None:
    found = {key: flop for key, flop in flop_of_products(layer).items() if key[0] > 0}
    assert found == {
        (1, "forward"): FORWARD,
        (1, "backward"): BACKWARD,
        (2, "forward"): FORWARD,
        (2, "backward"): BACKWARD,
    }


def test_each_gemm_of_the_layer_has_its_own_flop(layer: RealRun) -> None:
    found = layer.rows(
        "SELECT calls.flop FROM operator_calls AS calls"
        " JOIN ranges ON ranges.trace_id = calls.trace_id AND ranges.range_id = calls.cost_range_id"
        " WHERE ranges.name IN ('aten::mm', 'aten::addmm') AND calls.step = 1"
    )
    one_pass = [IN_PROJECTION, OUT_PROJECTION, LINEAR, LINEAR]
    assert sorted(flop for (flop,) in found) == sorted(3 * one_pass)


def test_the_recompute_of_flash_attention_is_extra_and_not_model_flop(layer: RealRun) -> None:
    ((extra,),) = layer.rows("SELECT sum(extra_flop) FROM operator_calls WHERE step = 1")
    assert extra == ATTENTION / 2
    ((mfu, hfu),) = layer.rows("SELECT mfu_pct, hfu_pct FROM run_summary")
    assert hfu - mfu == pytest.approx(mfu * ATTENTION / 2 / (FORWARD + BACKWARD), rel=1e-3)


def test_mfu_and_step_time_are_those_derived_by_hand(layer: RealRun) -> None:
    ((mfu, step_ns, step_count, dtype),) = layer.rows(
        "SELECT mfu_pct, step_ns, step_count, reference_dtype FROM run_summary"
    )
    assert dtype == "bf16"
    assert step_ns / 1e6 == pytest.approx(33.26, abs=0.01)
    assert mfu == pytest.approx(65.2, abs=0.5)
    # Pointwise operators add less than a thousandth to the products.
    assert mfu == pytest.approx(100 * (FORWARD + BACKWARD) / (step_ns * 1e-9 * H200_BF16), rel=2e-3)
    assert step_count in {2, 3}


def test_model_flop_in_the_ledger_is_the_headline(layer: RealRun) -> None:
    ((ledger_pct,),) = layer.rows("SELECT pct FROM ledger WHERE component = 'model_flop'")
    ((mfu,),) = layer.rows("SELECT mfu_pct FROM run_summary")
    assert ledger_pct == pytest.approx(mfu, rel=1e-9)


def test_no_operator_beats_the_speed_of_light(layer: RealRun) -> None:
    assert layer.rows("SELECT operator, direction, sol_pct FROM operators WHERE sol_pct > 100") == []


def test_every_gemm_is_bf16_and_every_dtype_is_known(layer: RealRun) -> None:
    dtypes = layer.rows("SELECT DISTINCT dtype FROM operator_calls WHERE flop > 1e9")
    assert dtypes == [("bf16",)]
