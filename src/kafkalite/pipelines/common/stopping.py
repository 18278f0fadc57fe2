"""A request to stop, from a signal: the batch under way ends, then the query.

Owns the handlers of SIGTERM and SIGINT while a command runs. A second signal does what it always
did. The first is answered at once, by a line.
"""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class StopRequest:
    """Whether somebody asked to stop, and how often that was looked at since."""

    def __init__(self) -> None:
        self.requested = False
        self._looks = 0

    def request(self) -> None:
        self.requested = True

    def waited_more_than(self, looks: int) -> bool:
        self._looks += 1
        return self._looks > looks


HEARD = "{name}: ends after the batch under way; another signal ends it at once"


@contextmanager
def stop_on_signals(say: Callable[[str], None] = lambda text: None) -> Iterator[StopRequest]:
    """A request that the first SIGTERM or SIGINT makes."""
    stop = StopRequest()
    before: dict[int, Any] = {}

    def handle(number: int, frame: FrameType | None) -> None:
        stop.request()
        say(HEARD.format(name=signal.Signals(number).name))
        for each in before:
            signal.signal(each, before[each])

    for each in (signal.SIGTERM, signal.SIGINT):
        before[each] = signal.signal(each, handle)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
