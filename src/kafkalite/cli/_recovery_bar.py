"""The bar that shows how far a broker has come with opening its logs.

Shown on a terminal only, and only when it takes longer than a moment: after a stop that was not
clean every record that may have been lost is looked at.
"""

from __future__ import annotations

from asyncio import TimerHandle
from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from kafkalite.log.loading import Loading

_INTERVAL_S = 0.25

CallLater = Callable[[float, Callable[[], None]], TimerHandle]  # of an event loop


class RecoveryBar:
    """Follows a `Loading` until it is told to end."""

    def __init__(self, call_later: CallLater, loading: Loading, console: Console) -> None:
        self._call_later = call_later
        self._loading = loading
        # Without a thread of its own: the loop turns while workers open the logs.
        self._bar = Progress(
            TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn(),
            console=console, transient=True, auto_refresh=False,
        )  # fmt: skip
        self._task = self._bar.add_task("")
        self._timer: TimerHandle | None = None
        if console.is_terminal:
            self._timer = call_later(_INTERVAL_S, self._show)

    def _show(self) -> None:
        loading = self._loading
        done, total = loading.bytes_checked, loading.bytes_expected
        if not total:
            done, total = loading.done, loading.total
        self._bar.start()
        self._bar.update(self._task, description=str(loading), completed=done, total=total)
        self._bar.refresh()
        self._timer = self._call_later(_INTERVAL_S, self._show)

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._bar.stop()
