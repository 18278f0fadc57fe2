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
        self._waiting: dict[str, Later[str | None]] = {}

    def look_up(self, name: str) -> Later[str | None]:
        """Its first address; None where it has none. However many ask for a name meanwhile, the
        system is asked once."""
        if not may_be_name(name):
            return Later.of(None)
        if name in self._waiting:
            return self._waiting[name]
        if self._worker is None:
            shared = self._env.background
            self._worker = shared.apart() if isinstance(shared, ThreadBackground) else shared
        later: Later[str | None] = Later()
        self._waiting[name] = later
        ask: Callable[[], str] = partial(self._env.address_of, name)
        self._worker.submit(ask, partial(self._found, name))
        return later

    def stop(self) -> None:
        if isinstance(self._worker, ThreadBackground):
            self._worker.close(0)
        for name in list(self._waiting):
            self._found(name, None)

    def _found(self, name: str, outcome: str | BaseException | None) -> None:
        later = self._waiting.pop(name, None)
        if later is None:  # it was answered at the stop
            return
        if isinstance(outcome, BaseException) and not isinstance(outcome, OSError):
            mistake = RuntimeError("a name could not be looked up")
            mistake.__cause__ = outcome
            later.fail(mistake)
        else:
            later.resolve(outcome if isinstance(outcome, str) else None)


def address_in(text: str) -> str | None:
    """The address that a text is, without anybody being asked, in one of all ways to write it."""
    is_in_brackets = text.startswith("[") and text.endswith("]") and ":" in text
    try:
        address = ipaddress.ip_address(text[1:-1] if is_in_brackets else text)
    except ValueError:
        return _of_numbers(text) if NUMBERS.fullmatch(text) else None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def may_be_name(text: str) -> bool:
    """Whether it is worth asking: numbers alone are addresses or nothing."""
    return 0 < len(text) <= MOST_OF_NAME and "\0" not in text and not NUMBERS.fullmatch(text)


def _of_numbers(text: str) -> str | None:
    """Fewer than four numbers may be an address too; the last fills what is left."""
    if len(text) > MOST_OF_ADDRESS:
        return None
    *first, last = map(int, text.split("."))
    left = 4 - len(first)
    if left < 1 or any(each > 255 for each in first) or last >= 256**left:
        return None
    return str(ipaddress.IPv4Address(bytes(first) + last.to_bytes(left, "big")))
