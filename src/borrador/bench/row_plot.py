"""A picture of T(m) against the roofline."""

from __future__ import annotations

from pathlib import Path

from borrador.bench.row_cost import RowCosts
from borrador.errors import BorradorError, UsageError


def require_plot_file(path: Path) -> None:
    """Check what can be checked before a measurement of half a minute.

    Raises:
        UsageError: the file is no SVG by its name, or its folder is missing.
        BorradorError: the plotting library is not installed.
    """
    if path.suffix.lower() != ".svg":
        raise UsageError(f"--plot writes an SVG file, got {path.name!r}", "Give a name that ends in .svg.")
    if not path.parent.is_dir():
        raise UsageError(
            f"--plot needs an existing folder, and {str(path.parent)!r} is not one", "Make the folder first."
        )
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise BorradorError(
            "--plot needs matplotlib, which is not installed", 'Install it: pip install "borrador[plot]".'
        ) from error


def draw_rows(costs: RowCosts, title: str, path: Path) -> None:
    """Write an SVG: measured milliseconds by rows, and below them what memory and integer units allow.

    Raises:
        BorradorError: the file cannot be written.
    """
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    rows = list(costs.seconds)
    rcParams["svg.fonttype"] = "none"  # text stays text: searchable, and small
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.add_subplot(xlabel="rows in one pass (m)", ylabel="milliseconds", title=f"T(m) of {title}")
    axes.plot(rows, [costs.seconds[m] * 1e3 for m in rows], "o-", label="measured T(m)")
    axes.plot(rows, [costs.memory_limit * 1e3] * len(rows), "--", label="weights / memory bandwidth")
    axes.plot(rows, [costs.integer_limit(m) * 1e3 for m in rows], ":", label="products / integer peak")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend()
    try:
        figure.savefig(path, format="svg")
    except OSError as error:
        raise BorradorError(f"{path} cannot be written: {error.strerror}", "Choose another file.") from error
