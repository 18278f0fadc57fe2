"""What outlives the objects of a process: brokers that nobody stopped, and those of a parent.

Owns the set of those that are alive in this process.
"""

from __future__ import annotations

import asyncio
import atexit
import ctypes
from contextlib import suppress
from typing import Protocol

from kafkalite.env import unix
from kafkalite.testing.plan import BrokerFailed


class Living(Protocol):
    """What has a loop of its own, and an end."""

    loop: asyncio.AbstractEventLoop | None

    def stop(self) -> None: ...


alive: set[Living] = set()


@atexit.register
def _end_all() -> None:
    """What is in a directory is closed in good order, also when nobody said `stop`."""
    for run in list(alive):
        with suppress(BrokerFailed):
            run.stop()


def _keep_what_is_the_parents() -> None:
    """In a forked child: the loop's descriptors are shared, and its end would take the sockets that
    it watches from the parent's loop as well. Nothing but the child's own end may end it."""
    for run in alive:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(run.loop))


unix.in_forked_child(_keep_what_is_the_parents)
