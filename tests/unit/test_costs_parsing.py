"""The text of sizes comes out of a trace: whatever it is, the answer is a cost or an unknown with a reason."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfupipe.costs import costed_operators, shape_cost
from mfupipe.costs.shape import MAX_COUNT, ShapeMismatch, broadcast, parse_sizes

SHAPE = st.lists(st.integers(0, 10**6), max_size=6)
SIZES = st.lists(SHAPE, max_size=12)
OPERATOR = st.sampled_from(costed_operators())


def test_sizes_are_read_in_order() -> None:
    assert parse_sizes("[[16384, 4096], [4096], []]") == ((16384, 4096), (4096,), ())


def test_a_nested_tensor_list_is_flattened() -> None:
    assert parse_sizes("[[[2, 3], [4]], [], [5]]") == ((2, 3), (4,), (), (5,))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[",
        "]",
        "[[]",
        "[1]",
        "[[1.5]]",
        "[[1], 2]",
        "[[-1]]",
        "[[1e3]]",
        "[[True]]",
        "[[null]]",
        "__import__('os')",
        "[[1]] ; DROP TABLE ranges",
        "[[٣]]",
        "[[" + "9" * 19 + "]]",
        "[" * 5000 + "]" * 5000,
        "[[" + ", ".join(["2"] * 65) + "]]",
        "[[1]]" + " " * (1 << 20),
    ],
    ids=lambda text: text[:20],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ShapeMismatch):
        parse_sizes(text)
    cost = shape_cost("aten::mm", text)
    assert (cost.flop, cost.elements) == (None, None)
    assert cost.reason


@given(OPERATOR, st.text(max_size=60))
def test_hostile_text_never_raises(operator: str, text: str) -> None:
    cost = shape_cost(operator, text)
    assert cost.reason or cost.elements is not None


@given(OPERATOR, SIZES)
def test_every_cost_is_whole_counts_that_fit_or_a_reason(operator: str, sizes: list[list[int]]) -> None:
    cost = shape_cost(operator, str(sizes))
    for count in (cost.flop, cost.extra_flop, cost.elements, cost.index_bytes):
        assert count is None or (isinstance(count, int) and 0 <= count <= MAX_COUNT)
    assert cost.reason or None not in (cost.flop, cost.elements)
    assert cost.flop_min is None or cost.flop is None or cost.flop_min <= cost.flop


@given(SIZES)
def test_reading_what_python_writes_gives_it_back(sizes: list[list[int]]) -> None:
    assert parse_sizes(str(sizes)) == tuple(tuple(shape) for shape in sizes)


@given(st.text(max_size=200))
def test_a_hostile_operator_name_is_cut_short_in_the_reason(name: str) -> None:
    reason = shape_cost(name, "[[1]]").reason
    assert reason is None or len(reason) < 120


def test_long_hostile_sizes_are_answered_quickly() -> None:
    text = "[[" + ", ".join(["999999999999999999"] * 50000) + "]]"
    start = time.perf_counter()
    assert shape_cost("aten::relu", text).reason
    assert time.perf_counter() - start < 2


@given(SHAPE, SHAPE)
def test_broadcasting_is_symmetric(left: list[int], right: list[int]) -> None:
    def result(*shapes: list[int]) -> tuple[int, ...] | str:
        try:
            return broadcast(tuple(shape) for shape in shapes)
        except ShapeMismatch:
            return "refused"

    assert result(left, right) == result(right, left)
