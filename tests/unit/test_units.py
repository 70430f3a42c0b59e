"""Formatting: three significant digits, units that fit, NULL is 'unknown', names from a trace are one harmless line."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfupipe import units


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1234.5, "1,234"),
        (12.34, "12.3"),
        (0.012345, "0.0123"),
        (99.96, "100"),
        (-3.456, "-3.46"),
        (7, "7.00"),
    ],
)
def test_three_significant_digits_and_no_exponent(value: float, text: str) -> None:
    assert units.significant(value) == text


@pytest.mark.parametrize(
    ("ns", "text"),
    [(33_262_113, "33.3 ms"), (999_999, "1.00 ms"), (4_100, "4.10 us"), (17, "17.0 ns"), (2.5e9, "2.50 s")],
)
def test_duration_takes_the_unit_that_fits(ns: float, text: str) -> None:
    assert units.duration(ns) == text


def test_rates_and_counts_carry_their_unit() -> None:
    assert units.flop_rate(989.4e12) == "989 TFLOP/s"
    assert units.byte_rate(4.8e12) == "4.80 TB/s"
    assert units.byte_count(600_000_000) == "600 MB"
    assert units.flop(21.4e12) == "21.4 TFLOP"
    assert units.clock(1_980_000_000) == "1,980 MHz"
    assert units.teras(844e12) == "844"
    assert units.plural(1, "step") == "1 step" and units.plural(2, "step") == "2 steps"


@pytest.mark.parametrize(
    "show",
    [
        units.significant, units.count, units.duration, units.milliseconds, units.teras, units.flop, units.flop_rate,
        units.byte_count, units.byte_rate, units.clock, units.percent, units.percent_number, units.points,
    ],
)  # fmt: skip
def test_null_and_not_finite_are_unknown_and_never_zero(show: object) -> None:
    assert callable(show)
    assert [show(value) for value in (None, math.nan, math.inf)] == ["unknown"] * 3


def test_points_that_are_not_zero_never_read_as_zero() -> None:
    assert [units.points(value) for value in (0.0, 0.01, -0.01, 21.26)] == ["0.0", "< 0.1", "> -0.1", "21.3"]


def test_a_name_is_one_line_without_controls_or_direction_marks() -> None:
    assert units.plain("a\n\tb\x00\x1b[31m\u202ec") == "a b\ufffd\ufffd[31m\ufffdc"
    assert units.plain("") == "(empty)" and units.plain(None) == "unknown"


def test_a_long_name_keeps_both_ends() -> None:
    name = units.plain("void cutlass::Kernel<" + "x" * 1_000_000 + ">(Params)", 40)
    assert len(name) == 40 and name.startswith("void cutlass::Kernel<") and name.endswith(">(Params)")


@given(st.text(max_size=400), st.integers(8, 60))
def test_any_name_fits_its_limit_and_prints_on_one_line(text: str, limit: int) -> None:
    shown = units.plain(text, limit)
    assert 0 < len(shown) <= limit and shown.splitlines() == [shown]
