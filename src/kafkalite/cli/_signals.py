"""The signals that end a command, on a loop of whatever system.

Where the loop takes none itself (Windows) the system's own handlers tell it, by a socket that wakes
it up.
"""

from __future__ import annotations

import signal
import socket
from asyncio import AbstractEventLoop
from collections.abc import Callable, Mapping

# In the environment of a process that ends when its standard input does.
SUPERVISED = "KAFKALITE_SUPERVISED"
ENDING = (signal.SIGTERM, signal.SIGINT)


def hang_ups() -> tuple[int, ...]:
    """What tells that the terminal has gone; nothing under nohup, nor where there is no such
    signal."""
    number = getattr(signal, "SIGHUP", None)
    return () if number is None or signal.getsignal(number) is signal.SIG_IGN else (number,)


def on_signals(loop: AbstractEventLoop, calls: Mapping[int, Callable[[], object]]) -> None:
    """Has these called on the loop."""
    try:
        for number, call in calls.items():
            loop.add_signal_handler(number, call)
    except NotImplementedError:
        _wake_by_signals(loop)
        for number, call in calls.items():
            signal.signal(number, lambda *_, call=call: loop.call_soon_threadsafe(call))


def _wake_by_signals(loop: AbstractEventLoop) -> None:
    """Handlers of Python's run between its instructions, and a loop that waits runs none."""
    ours, the_systems = socket.socketpair()
    for each in (ours, the_systems):
        each.setblocking(False)
    signal.set_wakeup_fd(the_systems.fileno(), warn_on_full_buffer=False)
    loop.add_reader(ours, _empty, ours, the_systems)


def _empty(ours: socket.socket, _: socket.socket) -> None:
    ours.recv(4096)
