"""Connections to others: from a name to a connected socket, without anybody waiting for it.

Owns a socket until it is connected. The addresses of a name are tried in turn, those of IPv4 first,
as Java does. A name that is no address is looked up on a thread of its own, since the system has
no other way to ask; it may take many seconds and holds up nobody. However often somebody wants to
know meanwhile, there is one thread for one name.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from kafkalite.env.dataclasses import dataclass

_UNDER_WAY = (errno.EINPROGRESS, errno.EWOULDBLOCK)
Found = tuple[Any, ...]  # as getaddrinfo gives it


@dataclass(slots=True, frozen=True)
class Connected:
    """A socket, and whom it leads to."""

    socket: socket.socket
    address: Any


class LookUps:
    """The names that are being looked up, and who waits for which."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: dict[tuple[str, int], list[SocketAttempt]] = {}

    def ask(self, host: str, port: int, attempt: SocketAttempt) -> None:
        """Tells the attempt what was found, in a later turn of the loop."""
        place = (host, port)
        if place in self._waiting:
            self._waiting[place].append(attempt)
            return
        self._waiting[place] = [attempt]
        thread = threading.Thread(target=self._ask_system, args=place, name="look-up", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            failure = OSError(errno.EAGAIN, f"{host} cannot be looked up: {error}")
            self._loop.call_soon(self._found, place, failure)

    def forget(self, host: str, port: int, attempt: SocketAttempt) -> None:
        with suppress(KeyError, ValueError):
            self._waiting[host, port].remove(attempt)

    def _ask_system(self, host: str, port: int) -> None:
        try:
            found: list[Found] | OSError = _look_up(host, port)
        except OSError as error:
            found = error
        with suppress(RuntimeError):  # the loop has ended meanwhile
            self._loop.call_soon_threadsafe(self._found, (host, port), found)

    def _found(self, place: tuple[str, int], found: list[Found] | OSError) -> None:
        for attempt in self._waiting.pop(place):
            attempt.looked_up(found)


class SocketAttempt:
    """One connection on its way."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        look_ups: LookUps,
        host: str,
        port: int,
        done: Callable[[Connected | OSError], None],
    ) -> None:
        self._loop = loop
        self._look_ups = look_ups
        self._place = (host, port)
        self._done: Callable[[Connected | OSError], None] | None = done
        self._left: list[Found] = []
        self._trying: Connected | None = None
        self._failure = OSError(errno.EADDRNOTAVAIL, f"{host} has no address")
        try:
            found = _look_up(host, port, socket.AI_NUMERICHOST)
        except OSError:
            look_ups.ask(host, port, self)
        else:
            loop.call_soon(self.looked_up, found)

    def cancel(self) -> None:
        self._done = None
        self._look_ups.forget(*self._place, self)
        self._drop()

    def looked_up(self, found: list[Found] | OSError) -> None:
        """These are the addresses to try, or there are none."""
        if isinstance(found, OSError):
            self._end(found)
            return
        self._left = list(found)
        self._try_next()

    def _try_next(self) -> None:
        while self._left and self._done is not None:
            family, *_, address = self._left.pop(0)
            try:
                code = self._begin(family, address)
            except OSError as error:
                self._drop()
                self._failure = error
                continue
            if code == 0 or code in _UNDER_WAY:
                return
            self._drop()
            self._failure = OSError(code, os.strerror(code))
        self._end(self._failure)

    def _begin(self, family: int, address: Any) -> int:
        trying = socket.socket(family, socket.SOCK_STREAM)
        self._trying = Connected(trying, address)
        trying.setblocking(False)
        trying.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        code = trying.connect_ex(address)
        if code == 0 or code in _UNDER_WAY:
            self._loop.add_writer(trying.fileno(), self._writable)
        return code

    def _writable(self) -> None:
        trying = self._trying
        assert trying is not None
        code = trying.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            self._drop()
            self._failure = OSError(code, os.strerror(code))
            self._try_next()
            return
        self._loop.remove_writer(trying.socket.fileno())
        self._trying = None
        self._end(trying)

    def _drop(self) -> None:
        trying, self._trying = self._trying, None
        if trying is not None:
            self._loop.remove_writer(trying.socket.fileno())
            trying.socket.close()

    def _end(self, outcome: Connected | OSError) -> None:
        done, self._done = self._done, None
        if done is not None:
            done(outcome)
        elif isinstance(outcome, Connected):
            outcome.socket.close()


def _look_up(host: str, port: int, flags: int = 0) -> list[Found]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    except UnicodeError as error:
        raise OSError(f"no name has such a part: {host}") from error
    return sorted(found, key=lambda each: each[0] != socket.AF_INET)


def address_of(name: str) -> str:
    """What a name stands for; raises OSError. Takes as long as the system does."""
    [(*_, address), *_] = _look_up(name, 0)
    return str(address[0])
