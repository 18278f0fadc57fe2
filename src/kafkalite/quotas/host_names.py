"""What names of hosts stand for, where quotas of addresses are set for names.

Owns the worker that asks the system: one of its own, since that may take many seconds, and one name
at a time. What Java takes for an address without asking is told apart from names.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from functools import partial

from kafkalite.env import Env
from kafkalite.env.background import Background, ThreadBackground
from kafkalite.env.later import Later

MOST_OF_NAME = 255
MOST_OF_ADDRESS = 15  # characters, of what Java takes for one
NUMBERS = re.compile(r"[0-9]+(\.[0-9]+)*")


class HostNames:
    """Of one broker."""

    def __init__(self, env: Env) -> None:
        self._env = env
        self._worker: Background | None = None
        self._waiting: dict[Later[str | None], None] = {}

    def look_up(self, name: str) -> Later[str | None]:
        """Its first address; None where it has none."""
        if not may_be_name(name):
            return Later.of(None)
        if self._worker is None:
            shared = self._env.background
            self._worker = shared.apart() if isinstance(shared, ThreadBackground) else shared
        later: Later[str | None] = Later()
        self._waiting[later] = None
        ask: Callable[[], str] = partial(self._env.address_of, name)
        self._worker.submit(ask, partial(self._found, later))
        return later

    def stop(self) -> None:
        if isinstance(self._worker, ThreadBackground):
            self._worker.close(0)
        for later in list(self._waiting):
            self._found(later, None)

    def _found(self, later: Later[str | None], outcome: str | BaseException | None) -> None:
        if later not in self._waiting:  # it was answered at the stop
            return
        del self._waiting[later]
        if isinstance(outcome, BaseException) and not isinstance(outcome, OSError):
            mistake = RuntimeError("a name could not be looked up")
            mistake.__cause__ = outcome
            later.fail(mistake)
        else:
            later.resolve(outcome if isinstance(outcome, str) else None)


def is_address(text: str) -> bool:
    """Whether nobody need be asked for it."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return NUMBERS.fullmatch(text) is not None and _is_short_address(text)
    return True


def may_be_name(text: str) -> bool:
    """Whether it is worth asking: numbers alone are addresses or nothing."""
    return 0 < len(text) <= MOST_OF_NAME and (
        NUMBERS.fullmatch(text) is None or _is_short_address(text)
    )


def _is_short_address(text: str) -> bool:
    """Fewer than four numbers may be an address too; the last fills what is left."""
    if len(text) > MOST_OF_ADDRESS:
        return False
    *first, last = map(int, text.split("."))
    return len(first) < 4 and all(each < 256 for each in first) and last < 256 ** (4 - len(first))
