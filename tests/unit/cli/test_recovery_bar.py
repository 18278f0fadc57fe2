"""The bar of a long start."""

import asyncio
import io
from collections.abc import Callable

from kafkalite.cli._recovery_bar import RecoveryBar
from kafkalite.log.loading import Loading


class Terminal(io.StringIO):
    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


def shown(*, is_terminal: bool, turns: int) -> str:
    """What is printed when the loop turns so often before the logs are open."""
    loop = asyncio.new_event_loop()
    due: list[Callable[[], None]] = []

    def call_later(delay: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        due.append(callback)
        return asyncio.TimerHandle(0, callback, (), loop)

    loading = Loading(total=4)
    worker = loading.new_worker()
    worker.logs_opened, worker.bytes_expected = 3, 8_000_000_000
    worker.check(2_500_000_000)
    output = Terminal(is_terminal=is_terminal)
    bar = RecoveryBar(call_later, loading, output)
    for _ in range(turns):
        due.pop(0)() if due else None
    bar.end()
    loop.close()
    return output.getvalue()


def test_a_terminal_shows_how_far_a_recovery_has_come():
    assert "opened 3 of 4 logs, checked 2,500 of 8,000 MB" in shown(is_terminal=True, turns=2)


def test_a_short_start_and_a_file_show_nothing():
    assert shown(is_terminal=True, turns=0).strip() == ""
    assert shown(is_terminal=False, turns=2) == ""
