from __future__ import annotations

import pytest
from tests.bench.page.reading import Element, read_page

from borrador.bench.page.axes import Scale, round_ticks
from borrador.bench.page.charts import Bar, Measured, Series, Words, draw_bars, draw_intervals, draw_lines

WORDS = Words(name="chart", title="Title", description="Description")


def places(chart: Element, tag: str, name: str) -> list[float]:
    return [float(mark.attributes[name]) for mark in chart.all(tag) if "title" in {inner.tag for inner in _inner(mark)}]


def _inner(mark: Element) -> list[Element]:
    return [child for child in mark.children if isinstance(child, Element)]


def test_a_scale_runs_in_both_directions() -> None:
    assert Scale(low=0, high=10, start=100, end=200).place(2.5) == 125
    assert Scale(low=0, high=10, start=200, end=100).place(2.5) == 175
    assert Scale(low=3, high=3, start=0, end=10).place(3) == 5


@pytest.mark.parametrize(
    ("low", "high", "most", "ticks"),
    [
        (0, 1, 6, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0.9, 3.1, 5, [1, 2, 3]),
        (1, 32, 8, [5, 10, 15, 20, 25, 30]),
        (0, 0.03, 4, [0, 0.01, 0.02, 0.03]),
        (7, 7, 5, [7]),
    ],
)
def test_ticks_are_round_and_few(low: float, high: float, most: int, ticks: list[float]) -> None:
    assert round_ticks(low, high, most) == ticks


def test_values_and_intervals_lie_on_one_scale() -> None:
    rows = [
        Measured(label="a", value=1.0, interval=None, text="1.00x"),
        Measured(label="b", value=2.0, interval=(1.5, 3.0), text="2.00x"),
        Measured(label="c", value=None, interval=None, text="-"),
    ]
    chart = read_page(str(draw_intervals(rows, 1.0, WORDS, "{:g}x".format)))
    one, two = places(chart, "circle", "cx")
    (whisker,) = chart.all("line", **{"class": "whisker s0"})
    (reference,) = chart.all("line", **{"class": "reference"})
    assert float(reference.attributes["x1"]) == one
    assert float(whisker.attributes["x1"]) == pytest.approx((one + two) / 2, abs=0.1)
    assert float(whisker.attributes["x2"]) == pytest.approx(2 * two - one, abs=0.2)


def test_lines_start_at_zero_and_rise_with_their_values() -> None:
    series = [
        Series(label="a", points=[(1, 0.0), (2, 1.0), (3, 0.5)]),
        Series(label="b", points=[(1, 1.0)], dots=False),
    ]
    chart = read_page(str(draw_lines(series, WORDS, ("across", "up"), "{:.0%}".format, 1.0)))
    low, high, middle = places(chart, "circle", "cy")
    assert middle == pytest.approx((low + high) / 2, abs=0.1)
    assert high < low
    first, second = chart.all("polyline")
    assert first.attributes["points"].split()[0] == f"{places(chart, 'circle', 'cx')[0]},{low}"
    assert second.attributes["points"].split(",")[1] == str(high)


def test_parts_of_bars_are_as_long_as_what_they_stand_for() -> None:
    bars = [Bar(label="whole", parts=(3.0, 1.0), text="4"), Bar(label="half", parts=(1.0, 1.0), text="2")]
    chart = read_page(str(draw_bars(bars, ("one", "two"), WORDS, "{:g}".format)))
    assert places(chart, "rect", "width") == [300, 100, 100, 100]
    assert places(chart, "rect", "x") == [0, 300, 0, 100]


def test_labels_are_text_whatever_they_hold() -> None:
    label = "<b>&</b>"
    chart = read_page(str(draw_bars([Bar(label=label, parts=(1.0,), text="1")], (label,), WORDS, "{:g}".format)))
    assert chart.all("b") == []
    assert label in chart.text


def test_charts_of_nothing_are_drawn() -> None:
    assert draw_intervals([], 1.0, WORDS, "{:g}".format)
    assert draw_lines([Series(label="a", points=[])], WORDS, ("x", "y"), "{:g}".format)
    assert draw_bars([Bar(label="a", parts=(0.0, 0.0), text="0")], ("x", "y"), WORDS, "{:g}".format)
