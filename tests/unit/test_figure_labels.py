"""No text of a roofline lies on another text, a point, a roof or a leader; measured by matplotlib's own geometry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from matplotlib.path import Path as Outline
from matplotlib.text import Annotation, Text
from matplotlib.transforms import Affine2D

from mfupipe import figures, ingest, phrases, warehouse
from mfupipe.figure_labels import GAPS, POINTS_PER_INCH, Shape
from mfupipe.figures import Words
from mfupipe.paths import DEMO_CAPTURE
from mfupipe.report.reader import read_table
from mfupipe.run import BuildOptions, Manifest, TraceEntry, write_manifest
from tests.unit import report_database as fixtures

WORDS = Words("Costed operators run at 82.7 % of the speed of light (measured ceiling)", "NVIDIA H200 · n = 2 steps")


@dataclass(frozen=True)
class Measured:
    """What one rendered figure holds, as outlines in pixels."""

    texts: list[tuple[str, Outline]]
    points: list[Outline]
    roofs: list[Outline]
    leaders: list[Outline]


def outline(text: Text, figure: Figure) -> Outline:
    """The box of a text, turned as the text is."""
    angle = text.get_rotation()
    text.set_rotation(0)
    if isinstance(text, Annotation):
        text.update_positions(figure.canvas.get_renderer())  # type: ignore[attr-defined]
    box = Text.get_window_extent(text)
    x, y = text.get_transform().transform(text.get_unitless_position())
    text.set_rotation(angle)
    corners = [(box.x0, box.y0), (box.x1, box.y0), (box.x1, box.y1), (box.x0, box.y1), (box.x0, box.y0)]
    return Affine2D().rotate_deg_around(x, y, angle).transform_path(Outline(corners))


def circles(axes: Any) -> list[Outline]:
    found: list[Outline] = []
    for collection in axes.collections:
        scale = axes.figure.dpi / POINTS_PER_INCH
        for (x, y), area in zip(collection.get_offsets(), collection.get_sizes(), strict=True):
            centre = axes.transData.transform((x, y))
            found.append(Outline.circle((float(centre[0]), float(centre[1])), area**0.5 / 2 * scale))
    return found


def measured(figure: Figure) -> Measured:
    figures.to_png(figure)  # draws, and says nothing about letters that the font lacks
    axes = figure.axes[0]
    ticks = [
        tick.label1
        for axis, limits in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim()))
        for tick in axis.get_major_ticks()
        if limits[0] <= tick.get_loc() <= limits[1]  # those beyond are made and never drawn
    ]
    ticks += [axes.xaxis.label, axes.yaxis.label]
    legends = [text for legend in figure.legends for text in legend.get_texts()]
    texts = [text for text in (*figure.texts, *axes.texts, *ticks, *legends) if text.get_text().strip()]
    numbers = [text for text in axes.texts if isinstance(text, Annotation) and text.arrow_patch is not None]
    return Measured(
        texts=[(text.get_text(), outline(text, figure)) for text in texts],
        points=circles(axes),
        roofs=[Outline(axes.transData.transform(line.get_xydata())) for line in axes.lines],
        leaders=[patch.get_transform().transform_path(patch.get_path()) for patch in map(leader, numbers)],
    )


def leader(text: Annotation):  # type: ignore[no-untyped-def]
    assert text.arrow_patch is not None
    return text.arrow_patch


def length(path: Outline) -> float:
    ends: Any = path.vertices
    (x0, y0), (x1, y1) = ends[0], ends[-1]
    return float(((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5)


def faults(figure: Figure) -> list[str]:
    """Every pair that overlaps, every text outside the sheet, every leader that is too long."""
    seen, sheet = measured(figure), figure.bbox
    found = [f"{one} / {two}" for (one, a), (two, b) in combinations(seen.texts, 2) if a.intersects_path(b)]
    for name, kind, shapes in (("point", True, seen.points), ("roof", False, seen.roofs)):
        found += [
            f"{text} on a {name}" for text, box in seen.texts for shape in shapes if shape.intersects_path(box, kind)
        ]
    for text, box in seen.texts:
        extent = box.get_extents()
        if not (sheet.x0 <= extent.x0 and extent.x1 <= sheet.x1 and sheet.y0 <= extent.y0 and extent.y1 <= sheet.y1):
            found.append(f"{text} leaves the sheet")
    pixels = figure.dpi / POINTS_PER_INCH
    found += [f"leader of {length(path) / pixels:.0f} points" for path in seen.leaders if length(path) > 45 * pixels]
    return found


def numbers_of(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts if isinstance(text, Annotation) and text.arrow_patch]


def key_of(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.texts[2:]]


@cache
def roofs() -> pa.Table:
    return read_table(fixtures.training(), "roofs")


def operators(points: Sequence[tuple[float, float, float]]) -> pa.Table:
    """A table of points: intensity, rate, time; with names that differ at the end only."""
    names = [f"aten::_scaled_dot_product_cudnn_attention_for_training_{index}" for index in range(len(points))]
    return pa.table(
        {
            "position": list(range(1, len(points) + 1)),
            "operator": names,
            "direction": ["backward"] * len(points),
            "flop_per_byte": [x for x, _, _ in points],
            "flop_per_s": [y for _, y, _ in points],
            "ns_per_step": [t for _, _, t in points],
            "bound": ["memory" if x < 200 else "compute" for x, _, _ in points],
        }
    )


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Figure:
    run_dir = tmp_path_factory.mktemp("demo")
    ingest.write_raw(DEMO_CAPTURE, run_dir / "raw" / "trace_id=0", trace_id=0)
    write_manifest(run_dir, Manifest(traces=(TraceEntry(0, "demo"),)))
    warehouse.build(run_dir, BuildOptions())
    with warehouse.open_run(run_dir) as connection:
        return figures.roofline(read_table(connection, "operators"), read_table(connection, "roofs"), WORDS)


def test_nothing_overlaps_in_the_roofline_of_the_demo(demo: Figure) -> None:
    assert faults(demo) == []
    assert len(numbers_of(demo)) == len(demo.axes[0].collections) >= 6  # nothing was left out to reach that
    assert "_scaled_dot_product_cudnn_attention backward" in key_of(demo)


@pytest.mark.parametrize(("make", "phase"), [(fixtures.training, ""), (fixtures.serving, "decode")])
def test_nothing_overlaps_in_the_rooflines_of_the_small_databases(make: object, phase: str) -> None:
    assert callable(make)
    table = read_table(make(), "operators").to_pylist()
    rows = [row for row in table if row["phase"] == phase and row["trace_id"] == 0]
    figure = figures.roofline(pa.Table.from_pylist(rows), roofs(), WORDS)
    assert faults(figure) == []
    assert set(numbers_of(figure)) == {str(row["position"]) for row in rows if row["flop_per_byte"]}


Cluster = tuple[float, float, list[tuple[float, float]]]
cluster = st.tuples(
    st.floats(-1, 4),
    st.floats(11, 15.2),
    st.lists(st.tuples(st.floats(-0.2, 0.2), st.floats(-0.2, 0.2)), min_size=1, max_size=14),
)


@settings(max_examples=30, deadline=None, derandomize=True, phases=[Phase.generate])
@given(clusters=st.lists(cluster, min_size=1, max_size=2), data=st.data())
def test_nothing_overlaps_in_dense_clusters_and_what_has_no_number_is_counted(
    clusters: list[Cluster], data: st.DataObject
) -> None:
    points = [
        (10 ** (x + dx), 10 ** (y + dy), data.draw(st.floats(1e3, 1e7)))
        for x, y, members in clusters
        for dx, dy in members
    ]
    figure = figures.roofline(operators(points), roofs(), WORDS)
    assert faults(figure) == []
    missing = len(points) - len(numbers_of(figure))
    said = [line for line in key_of(figure) if "without a number" in line]
    assert said == ([f"{missing} point{'' if missing == 1 else 's'} without a number"] if missing else [])
    named = [line for line in key_of(figure) if line in numbers_of(figure)]
    assert len(named) == len(numbers_of(figure))


def test_roofs_stay_in_sight_below_points_that_no_roof_explains() -> None:
    figure = figures.roofline(operators([(1.0, 1e16, 1e6), (1.0, 3e16, 1e5)]), roofs(), WORDS)
    axes: Any = figure.axes[0]
    assert faults(figure) == [] and axes.get_ylim()[0] < 66.9e12
    assert all(line.get_ydata()[-1] > axes.get_ylim()[0] for line in axes.lines)


def test_the_measurement_finds_a_label_on_a_roof_a_point_and_a_label(demo: Figure) -> None:
    axes: Any = demo.axes[0]
    x, y = axes.lines[0].get_xydata()[-1]
    added = [axes.text(x * 0.5, y, "misplaced"), axes.text(x * 0.5, y, "twin")]
    px, py = axes.collections[0].get_offsets()[0]
    added.append(axes.text(px, py, "hiding"))
    found = faults(demo)
    for text in added:
        text.remove()
    assert "misplaced / twin" in found and "misplaced on a roof" in found and "hiding on a point" in found
    assert faults(demo) == []


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        (((0, 0), (4, 0), (4, 2), (0, 2)), ((2, 1), (6, 1), (6, 3), (2, 3)), True),
        (((0, 0), (4, 0), (4, 2), (0, 2)), ((1, 0.5), (2, 0.5), (2, 1), (1, 1)), True),  # one inside the other
        (((0, 0), (4, 0), (4, 2), (0, 2)), ((-1, 3), (9, -1)), True),
        (((0, 0), (4, 0), (4, 2), (0, 2)), ((-1, 4), (9, 1.9)), False),  # the boxes meet, the shapes do not
    ],
)
def test_convex_shapes_meet_only_when_they_share_a_point(one: tuple, other: tuple, meet: bool) -> None:  # type: ignore[type-arg]
    assert Shape(one).meets(Shape(other)) is meet and Shape(other).meets(Shape(one)) is meet


def test_names_that_a_cut_would_make_equal_are_cut_where_they_do_not_differ() -> None:
    head, tail = "model.decoder.layers.", ".self_attention.query_key_value_projection"
    labels = phrases.operator_labels([(f"{head * 3}{index}{tail}", "backward") for index in range(12)], 40)
    assert len(set(labels)) == 12 and all(len(label) <= 40 and label.endswith(" backward") for label in labels)
    assert phrases.operator_label("aten::_scaled_dot_product_cudnn_attention", "backward", 44) == (
        "_scaled_dot_product_cudnn_attention backward"
    )
    assert GAPS[-1] < 30
