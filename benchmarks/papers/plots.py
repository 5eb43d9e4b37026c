"""The plots of docs/papers.md, on a white ground, so that they can be read on any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.papers.draft_sections import accepted_share
from benchmarks.papers.predictions import Line

from borrador.bench.theory import Loop

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BLUE, _ORANGE, _GREY = "#0b5fa5", "#c2410c", "#6b7280"
_CURVES = (("theorem 3.8", "--", _GREY), ("with T(m)", "-", _BLUE), ("measured", "o", _ORANGE))


def draw_walltime(by_temperature: Mapping[float, Sequence[Line]], path: Path) -> None:
    """Walltime factor by draft length: the theorem, with T(m), measured."""
    figure, panels = _panels(len(by_temperature), sharey=True)
    for axes, (temperature, lines) in zip(panels, by_temperature.items(), strict=True):
        for index, (label, style, colour) in enumerate(_CURVES):
            factors = [line.factor[index] for line in lines]
            axes.plot([line.gamma for line in lines], factors, style, color=colour, label=label)
        axes.axhline(1.0, color=_GREY, linewidth=0.8, linestyle=":")
        axes.set(title=f"T = {temperature:g}", xlabel="draft length γ", ylim=(0, None))
    panels[0].set_ylabel("times as fast as plain decoding")
    panels[0].legend(frameon=False)
    _save(figure, path)


def draw_loops(lines: Sequence[Line], plain: Loop, path: Path) -> None:
    """Loop time, acceptance and time of a token by the number of tokens drafted."""
    figure, panels = _panels(3)
    gammas = [line.gamma for line in lines]
    loops = [plain, *(line.loop for line in lines)]
    _curve(panels[0], [0, *gammas], [loop.seconds * 1e3 for loop in loops], "ms a loop")
    _curve(panels[1], gammas, [accepted_share(line) for line in lines], "accepted / drafted")
    _curve(panels[2], [0, *gammas], [loop.token_s * 1e3 for loop in loops], "ms a token")
    _save(figure, path)


def _curve(axes: Axes, gammas: Sequence[int], values: Sequence[float], title: str) -> None:
    axes.plot(gammas, values, "o-", color=_BLUE)
    axes.set(title=title, xlabel="drafted tokens K", ylim=(0, None))


def _panels(count: int, **options: Any) -> tuple[Figure, Sequence[Axes]]:
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    rcParams["svg.fonttype"] = "none"  # text stays text: searchable, and small
    rcParams["svg.hashsalt"] = "papers"  # the same plot is the same file
    figure = Figure(figsize=(3.4 * count, 3.2), layout="constrained", facecolor="white")
    panels = figure.subplots(1, count, squeeze=False, **options)[0]
    for axes in panels:
        axes.grid(alpha=0.3)
    return figure, panels


def _save(figure: Figure, path: Path) -> None:
    figure.savefig(path, format="svg", metadata={"Date": None})
