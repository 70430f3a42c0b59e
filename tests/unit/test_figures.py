"""Figures: what is handed to the axes (labels, values, units, places), not pixels; one PNG that reads back."""

from __future__ import annotations

import subprocess
import sys

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from mfupipe import figures
from mfupipe.figures import Words
from mfupipe.report.reader import read_table
from tests.unit import report_database as fixtures

WORDS = Words("15.4 points lost to memory-bound operators", "NVIDIA H200 · n = 2 steps")


def table(connection: duckdb.DuckDBPyConnection, name: str, phase: str = "") -> pa.Table:
    found = read_table(connection, name)
    return found.filter(pc.and_(pc.equal(found["phase"], phase), pc.equal(found["trace_id"], 0)))


def axes_of(figure: Figure) -> Axes:
    return figure.axes[0]


def texts_of(figure: Figure) -> list[str]:
    return [text.get_text() for text in (*figure.texts, *axes_of(figure).texts)]


def roofline(connection: duckdb.DuckDBPyConnection, phase: str = "") -> Figure:
    return figures.roofline(table(connection, "operators", phase), read_table(connection, "roofs"), WORDS)


def all_figures(connection: duckdb.DuckDBPyConnection, phase: str = "") -> list[Figure]:
    return [
        figures.ledger(table(connection, "ledger", phase), WORDS),
        figures.operators(table(connection, "operators", phase), WORDS),
        figures.steps(table(connection, "steps", phase), WORDS),
        roofline(connection, phase),
    ]


def test_every_figure_carries_its_finding_its_basis_and_units() -> None:
    for figure in all_figures(fixtures.training()):
        assert {WORDS.title, WORDS.footer} <= set(texts_of(figure))
        axes = axes_of(figure)
        assert "[" in axes.get_xlabel() + axes.get_ylabel()


def test_ledger_draws_one_bar_to_one_hundred_and_each_component_in_its_place() -> None:
    axes = axes_of(figures.ledger(table(fixtures.training(), "ledger"), WORDS))
    top = [patch for patch in axes.patches if patch.get_y() < 0]  # type: ignore[attr-defined]
    widths = [patch.get_width() for patch in top]  # type: ignore[attr-defined]
    assert sum(widths) == pytest.approx(100.42)  # what is gained is drawn below, not clipped
    assert min(patch.get_x() for patch in axes.patches) == 0  # type: ignore[attr-defined]
    assert min(patch.get_width() for patch in axes.patches) == pytest.approx(-0.3)  # type: ignore[attr-defined]


def test_ledger_states_points_time_and_the_sum_of_every_component() -> None:
    figure = figures.ledger(table(fixtures.training(), "ledger"), WORDS)
    assert {"memory-bound operators", "15.4", "5.12 ms", "clock  (gain)", "-0.3", "-99.8 us"} <= set(texts_of(figure))
    assert "precision" not in texts_of(figure)  # a component of zero has no row
    assert axes_of(figure).get_xlabel() == "share of one step [%], signed, sum 100.0"


def test_operator_bars_begin_at_zero_and_split_at_the_ceiling() -> None:
    figure = figures.operators(table(fixtures.training(), "operators"), WORDS)
    assert axes_of(figure).get_xlim()[0] == 0
    assert {"  1.94 ms above", "  1.00 ms, no ceiling"} <= set(texts_of(figure))
    labels = [label.get_text() for label in axes_of(figure).get_yticklabels()]
    assert labels[2] == "aten::addmm backward  3"


def test_only_what_is_drawn_has_a_place_in_the_key() -> None:
    def key_of(figure: Figure) -> list[str]:
        return [text.get_text() for legend in figure.legends for text in legend.get_texts()]

    known, unknown = fixtures.training(), fixtures.unknown_gpu()
    assert key_of(figures.operators(table(known, "operators"), WORDS)) == [
        "at the ceiling",
        "above the ceiling",
        "no ceiling",
    ]
    figure = figures.operators(table(unknown, "operators"), WORDS)
    assert key_of(figure) == ["no ceiling"] and "  27.0 ms, 556 TFLOP/s, no peak known" in texts_of(figure)


def test_a_time_axis_has_the_unit_that_fits() -> None:
    connection = fixtures.training()
    connection.execute("UPDATE steps SET wall_ns = wall_ns // 1000")
    connection.execute("UPDATE run_summary SET step_median_ns = step_median_ns / 1000")
    figure = figures.steps(table(connection, "steps"), WORDS)
    assert axes_of(figure).get_ylabel() == "wall time per step [us]" and "median\n33.3 us" in texts_of(figure)


def test_a_long_title_is_broken_into_lines_and_nothing_of_it_is_cut() -> None:
    title = "No step found; GPU busy 83.5 % of a window of 7.86 s: 43.3 points in operators without cost, 40.1 lost to"
    figure = figures.ledger(table(fixtures.training(), "ledger"), Words(f"{title} exposed copies", "x · " * 90))
    assert figure.texts[0].get_text().replace("\n", " ") == f"{title} exposed copies"
    renderer = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
    for text in figure.texts:
        box = text.get_window_extent(renderer)
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1


def test_steps_show_every_step_and_the_median_with_its_value() -> None:
    figure = figures.steps(table(fixtures.training(), "steps"), WORDS)
    shown = [np.asarray(collection.get_offsets()).tolist() for collection in axes_of(figure).collections]
    assert shown == [[[1, 33.1], [2, 33.424]], [[0, 41.0]]]
    assert "median\n33.3 ms" in texts_of(figure)
    low, high = axes_of(figure).get_ylim()
    assert low < 0.9 * 33.262 and high > 41


def test_each_roof_carries_value_unit_and_kind() -> None:
    texts = [text.replace("\n", " ") for text in texts_of(roofline(fixtures.training()))]
    assert "bf16: 989 datasheet (solid), 900 burst (dashed), 750 sustained (dotted) TFLOP/s" in texts
    assert "memory: 4.80 datasheet (solid), 4.40 burst (dashed), 4.10 sustained (dotted) TB/s" in texts
    assert not any(text.startswith("tf32") for text in texts)  # no operator runs in it


def test_roofline_without_a_point_or_a_roof_is_not_drawn() -> None:
    known, unknown = fixtures.training(), fixtures.unknown_gpu()
    assert figures.has_roofline(table(known, "operators"), read_table(known, "roofs"))
    assert not figures.has_roofline(table(unknown, "operators"), read_table(unknown, "roofs"))
    assert not figures.has_roofline(table(known, "operators").slice(0, 0), read_table(known, "roofs"))


def test_hostile_names_are_drawn_as_text_and_raise_no_warning() -> None:
    for figure in all_figures(fixtures.serving(), "decode"):
        assert figures.to_png(figure).startswith(b"\x89PNG")
        assert not any("\x1b" in text or "\u202e" in text for text in texts_of(figure))


def test_same_table_gives_the_same_bytes_at_twice_960_pixels() -> None:
    first, second = (figures.to_png(figures.ledger(table(fixtures.training(), "ledger"), WORDS)) for _ in range(2))
    assert first == second
    assert int.from_bytes(first[16:20], "big") == 1920


def test_pyplot_is_never_imported() -> None:
    code = "import sys, mfupipe.figures; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
