"""Charts as SVG: elements with classes, whose colours are the page's. Everything that is put into them is escaped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from borrador.bench.page.axes import Scale, round_ticks

WIDTH = 400
MOST_SERIES = 6
_LEFT, _RIGHT, _TOP, _PLOT_HEIGHT = 40, 12, 12, 190
_PLOT_TOP = 28
_LINE = 20
_LABEL_CHARACTERS = 15
_LABEL_WIDTH = 108
_VALUE_WIDTH = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """What a chart is called, and what it shows for who cannot see it. `name` is its id on the page."""

    name: str
    title: str
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A value with its interval, and how it is written; without a value where nothing was measured."""

    label: str
    value: float | None
    interval: tuple[float, float] | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A line: points from left to right."""

    label: str
    points: Sequence[tuple[float, float]]
    dots: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """Parts that follow one another, and how the whole is written."""

    label: str
    parts: Sequence[float]
    text: str


def draw_intervals(rows: Sequence[Measured], reference: float, words: Words, form: Callable[[float], str]) -> Markup:
    """A dot for each value on a line for its interval, with a line across all of them at the reference."""
    bottom = _TOP + len(rows) * 26
    known = [bound for row in rows for bound in _extent(row)]
    low, high = min([reference, *known]), max([reference, *known])
    margin = (high - low or 1) * 0.06
    x = Scale(low=low - margin, high=high + margin, start=_LABEL_WIDTH, end=WIDTH - _VALUE_WIDTH)
    grid = [_line(x.place(tick), _TOP - 4, x.place(tick), bottom, "grid") for tick in round_ticks(x.low, x.high, 5)]
    ticks = [_text(x.place(tick), bottom + 16, form(tick), "tick middle") for tick in round_ticks(x.low, x.high, 5)]
    across = _line(x.place(reference), _TOP - 8, x.place(reference), bottom, "reference")
    marks = [mark for index, row in enumerate(rows) for mark in _interval_row(row, x, _TOP + 12 + index * 26)]
    return _svg(words, bottom + 26, [*grid, across, *ticks, *marks])


def draw_lines(
    series: Sequence[Series], words: Words, labels: tuple[str, str], form: Callable[[float], str], highest: float = 0.0
) -> Markup:
    """Lines over whole numbers, from zero up.

    Args:
        series: at most `MOST_SERIES`.
        words: of the chart.
        labels: of both axes.
        form: how values on the upright axis are written.
        highest: of the upright axis at least.
    """
    points = [point for each in series for point in each.points]
    right = max((x for x, _ in points), default=1)
    top = max([highest, *(y for _, y in points)], default=1) or 1
    bottom = _PLOT_TOP + _PLOT_HEIGHT
    x = Scale(low=min((x for x, _ in points), default=0), high=right, start=_LEFT + 8, end=WIDTH - _RIGHT - 8)
    y = Scale(low=0, high=top * (1.0 if highest else 1.05), start=bottom, end=_PLOT_TOP)
    across = [
        mark
        for tick in round_ticks(0, y.high)
        for mark in (
            _line(_LEFT, y.place(tick), WIDTH - _RIGHT, y.place(tick), "grid"),
            _text(_LEFT - 6, y.place(tick) + 4, form(tick), "tick end"),
        )
    ]
    along = [_text(x.place(tick), bottom + 16, f"{tick:g}", "tick middle") for tick in _whole_ticks(x.low, x.high)]
    named = [_text((_LEFT + WIDTH) / 2, bottom + 33, labels[0], "axis middle"), _text(0, 12, labels[1], "axis")]
    lines = [mark for index, each in enumerate(series) for mark in _series(each, index, x, y, labels, form)]
    keys = _legend([each.label for each in series], bottom + 54, "line")
    height = bottom + 48 + _LINE * len(series)
    return _svg(words, height, [*across, *along, *named, *lines, *keys])


def draw_bars(bars: Sequence[Bar], parts: Sequence[str], words: Words, form: Callable[[float], str]) -> Markup:
    """Bars of parts; all bars share one scale from zero."""
    x = Scale(low=0, high=max((sum(bar.parts) for bar in bars), default=0) or 1, start=0, end=WIDTH)
    marks: list[Markup] = []
    for index, bar in enumerate(bars):
        top = _TOP + index * 52
        marks.append(_text(0, top + 8, f"{bar.label}: {bar.text}", "label"))
        marks += _segments(bar, parts, x, top + 14, form)
    bottom = _TOP + len(bars) * 52
    return _svg(words, bottom + 6 + _LINE * len(parts), [*marks, *_legend(parts, bottom + 12, "area")])


def _extent(row: Measured) -> tuple[float, ...]:
    return (*(() if row.value is None else (row.value,)), *(row.interval or ()))


def _interval_row(row: Measured, x: Scale, y: float) -> list[Markup]:
    label = row.label if len(row.label) <= _LABEL_CHARACTERS else row.label[: _LABEL_CHARACTERS - 1] + "…"
    marks = [_text(0, y + 4, label, "label"), _text(WIDTH, y + 4, row.text, "label end")]
    if row.interval is not None:
        marks.append(_line(x.place(row.interval[0]), y, x.place(row.interval[1]), y, "whisker s0"))
    if row.value is not None:
        marks.append(_dot(x.place(row.value), y, 4.5, "s0", f"{row.label}: {row.text}"))
    return marks


def _series(
    series: Series, index: int, x: Scale, y: Scale, labels: tuple[str, str], form: Callable[[float], str]
) -> list[Markup]:
    places = [(x.place(left), y.place(up)) for left, up in series.points]
    marks = [Markup('<polyline class="line s{}" points="{}"/>').format(index, _points(places))]
    if series.dots:
        told = (f"{series.label}, {labels[0]} {left:g}: {form(up)}" for left, up in series.points)
        marks += [_dot(*place, 3, f"s{index}", words) for place, words in zip(places, told, strict=True)]
    return marks


def _segments(bar: Bar, names: Sequence[str], x: Scale, top: float, form: Callable[[float], str]) -> list[Markup]:
    marks: list[Markup] = []
    done = 0.0
    for index, (name, part) in enumerate(zip(names, bar.parts, strict=True)):
        left, right = x.place(done), x.place(done + part)
        told = f"{bar.label}, {name}: {form(part)}"
        shape = Markup('<rect class="area s{}" x="{}" y="{}" width="{}" height="22"><title>{}</title></rect>')
        marks.append(shape.format(index, left, top, round(right - left, 1), told))
        done += part
    return marks


def _legend(labels: Sequence[str], top: float, kind: str) -> list[Markup]:
    marks: list[Markup] = []
    for index, label in enumerate(labels):
        y = top + index * _LINE
        if kind == "line":
            marks.append(_line(4, y, 32, y, f"line s{index}"))
        else:
            marks.append(Markup('<rect class="area s{}" x="4" y="{}" width="14" height="12"/>').format(index, y - 6))
        marks.append(_text(40 if kind == "line" else 26, y + 4, label, "label"))
    return marks


def _whole_ticks(low: float, high: float) -> list[float]:
    ticks = [tick for tick in round_ticks(low, high, 8) if tick == int(tick)]
    beside = [tick for tick in ticks if tick - low >= (high - low) / 12]
    return ticks if low in ticks or low != int(low) else [low, *beside]


def _points(places: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x},{y}" for x, y in places)


def _svg(words: Words, height: float, marks: Iterable[Markup]) -> Markup:
    head = Markup(
        '<svg role="img" viewBox="0 0 {width} {height}" aria-labelledby="{name}-title {name}-description">'
        '<title id="{name}-title">{title}</title><desc id="{name}-description">{description}</desc>'
    ).format(width=WIDTH, height=height, name=words.name, title=words.title, description=words.description)
    return head + Markup().join(marks) + Markup("</svg>")


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    return Markup('<line class="{}" x1="{}" y1="{}" x2="{}" y2="{}"/>').format(kind, x1, y1, x2, y2)


def _text(x: float, y: float, text: str, kind: str) -> Markup:
    return Markup('<text class="{}" x="{}" y="{}">{}</text>').format(kind, x, y, text)


def _dot(x: float, y: float, radius: float, kind: str, told: str) -> Markup:
    return Markup('<circle class="dot {}" cx="{}" cy="{}" r="{}"><title>{}</title></circle>').format(
        kind, x, y, radius, told
    )
