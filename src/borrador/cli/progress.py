"""Progress of a fetch: a bar on a terminal, one line elsewhere, nothing where it is unwanted; and of steps."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)


class FetchProgress:
    """Called with bytes done, bytes in all, and what is being done. Use it as a context manager."""

    def __init__(self, console: Console, *, quiet: bool) -> None:
        self._console = console
        self._quiet = quiet
        self._bar: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> FetchProgress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, done_bytes: int, total_bytes: int, label: str) -> None:
        if self._quiet:
            return
        if label not in self._tasks:
            self._tasks[label] = self._begin(total_bytes, label)
        if self._bar is not None:
            self._bar.update(self._tasks[label], completed=done_bytes, total=total_bytes or None)

    def _begin(self, total_bytes: int, label: str) -> TaskID:
        if not self._console.is_terminal:
            self._console.print(f"{label} ({total_bytes / 1e6:.0f} MB)" if total_bytes else label)
            return TaskID(0)
        if self._bar is None:
            columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
            self._bar = Progress(*columns, console=self._console, transient=True)
            self._bar.start()
        return self._bar.add_task(label, total=total_bytes or None)


class StepProgress:
    """A bar over steps that take long, on a terminal; elsewhere nothing. Use it as a context manager.

    It is drawn between steps only: nothing runs beside what is measured.

    Args:
        console: on standard error.
        total: how many steps there are.
        quiet: show nothing.
    """

    def __init__(self, console: Console, total: int, *, quiet: bool) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        hidden = quiet or not console.is_terminal
        self._progress = Progress(*columns, console=console, auto_refresh=False, transient=True, disable=hidden)
        self._task = self._progress.add_task("", total=total)

    def __enter__(self) -> StepProgress:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def say(self, label: str) -> None:
        """What is being done, between steps."""
        self._progress.update(self._task, description=label, refresh=True)

    def step(self, label: str) -> None:
        """One more step is done."""
        self._progress.update(self._task, description=label, advance=1, refresh=True)
