"""The bar that shows how far a broker has come with opening its logs.

Shown on a terminal only, and only when it takes longer than a moment: after a stop that was not
clean every record that may have been lost is looked at.
"""

from __future__ import annotations

from asyncio import TimerHandle
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from kafkalite.log.loading import Loading

if TYPE_CHECKING:
    from rich.progress import Progress

_INTERVAL_S = 0.25

CallLater = Callable[[float, Callable[[], None]], TimerHandle]  # of an event loop


class RecoveryBar:
    """Follows a `Loading` until it is told to end."""

    def __init__(self, call_later: CallLater, loading: Loading, terminal: TextIO) -> None:
        self._call_later = call_later
        self._loading = loading
        self._terminal = terminal
        self._bar: Progress | None = None
        self._timer: TimerHandle | None = None
        if terminal.isatty():
            self._timer = call_later(_INTERVAL_S, self._show)

    def _show(self) -> None:
        bar = self._bar = self._bar or _begun(self._terminal)
        loading = self._loading
        done, total = loading.bytes_checked, loading.bytes_expected
        if not total:
            done, total = loading.done, loading.total
        bar.update(bar.task_ids[0], description=str(loading), completed=done, total=total)
        bar.refresh()
        self._timer = self._call_later(_INTERVAL_S, self._show)

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def _begun(terminal: TextIO) -> Progress:
    """Without a thread of its own: the loop turns while workers open the logs."""
    from rich.console import Console  # slow to import, and few starts are long
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(file=terminal), transient=True, auto_refresh=False)
    bar.add_task("")
    bar.start()
    return bar
