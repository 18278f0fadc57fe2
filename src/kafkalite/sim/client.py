"""Clients of a simulation: scripts that ask a broker and wait, on links that may fail them.

A script is a generator: it yields what it waits for, `Ask` or `Sleep`, and is sent what came of it.
Owns correlation ids, the wait for answers and its end. A client that is killed leaves on its link
whatever it had sent. Decides nothing about what is asked or asked again.
"""

from __future__ import annotations

import struct
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol, TypeAlias

from kafkalite.env.clock import ManualClock, ManualTimer
from kafkalite.protocol import codec, headers
from kafkalite.protocol.messages import message_class
from kafkalite.sim.network import ClientLink, SimNetwork

ANSWER_TIMEOUT_MS = 1_500
_CLIENT_ID = b"sim"
_HEAD = struct.Struct(">ihhih")
_CORRELATION_ID = struct.Struct(">i")


@dataclass(slots=True)
class Ask:
    """Requests to send back to back, each with its version; sent back: a list of responses, None
    for each that did not come."""

    requests: Sequence[tuple[Any, int]]


@dataclass(slots=True)
class Sleep:
    """Time to let pass."""

    duration_ms: int


Command: TypeAlias = Ask | Sleep
Script: TypeAlias = Generator[Command, Any, Any]


class Surroundings(Protocol):
    """What a client needs of its world."""

    clock: ManualClock
    random: Random
    network: SimNetwork


class Client:
    """One client, which runs one script."""

    def __init__(self, world: Surroundings, *, may_be_late: bool = True) -> None:
        self._world = world
        self._may_be_late = may_be_late
        self._script: Script | None = None
        self._link: ClientLink | None = None
        self._correlation_id = 0
        self._waiting: dict[int, tuple[int, type[Any], int]] = {}
        self._answers: list[Any] = []
        self._timer: ManualTimer | None = None

    @property
    def is_running(self) -> bool:
        return self._script is not None

    @property
    def link(self) -> object:
        """The connection that it has now."""
        return self._link

    def start(self, script: Script) -> None:
        self._script = script
        self._timer = self._world.clock.call_later(0, lambda: self._go_on(None))

    def kill(self) -> None:
        """The client dies; what it sent may live on."""
        if self._script is not None:
            self._script.close()
            self._script = None
        self._leave()

    def cut(self) -> None:
        """Its link breaks, and it hears of it."""
        if self._link is not None:
            self._leave()
            if self._waiting or self._answers:
                self._answered()

    # --- the script -----------------------------------------------------------------------

    def _go_on(self, value: Any) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._script is None:
            return
        try:
            command = self._script.send(value)
        except StopIteration:
            self._script = None
            self._leave()
            return
        if isinstance(command, Sleep):
            self._arm(command.duration_ms)
        else:
            self._ask(command)

    def _arm(self, delay_ms: int) -> None:
        self._timer = self._world.clock.call_later(delay_ms, lambda: self._go_on(None))

    def _ask(self, command: Ask) -> None:
        self._answers = [None] * len(command.requests)
        if self._link is None:
            link = self._link = ClientLink(
                self._world.network, self._on_frame, lambda: self._on_cut(link)
            )
        for index, (request, version) in enumerate(command.requests):
            self._correlation_id += 1
            response = message_class(f"{type(request).SPEC.api.name}Response")
            self._waiting[self._correlation_id] = index, response, version
            self._link.send(frame_of(request, version, self._correlation_id))
        self._timer = self._world.clock.call_later(ANSWER_TIMEOUT_MS, self._timed_out)

    # --- answers --------------------------------------------------------------------------

    def _on_frame(self, frame: memoryview) -> None:
        correlation_id: int = _CORRELATION_ID.unpack_from(frame)[0]
        found = self._waiting.pop(correlation_id, None)
        if found is None:
            return
        index, response, version = found
        start = 4 + headers.response_header_version(response.API_KEY, version)
        self._answers[index] = codec.decode(response, version, frame, start)
        if not self._waiting:
            self._answered()

    def _timed_out(self) -> None:
        self._leave()
        self._answered()

    def _on_cut(self, link: ClientLink) -> None:
        if link is self._link:
            self._link = None
            if self._waiting:
                self._answered()

    def _answered(self) -> None:
        answers, self._answers = self._answers, []
        self._waiting.clear()
        self._go_on(answers)

    def _leave(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.give_up(is_late=self._may_be_late and self._world.random.random() < 0.5)


def frame_of(request: Any, version: int, correlation_id: int) -> bytes:
    """A request as it goes over the wire."""
    key = request.API_KEY
    body = codec.encode(request, version)
    tags = b"\0" if headers.request_header_version(key, version) == 2 else b""
    size = _HEAD.size - 4 + len(_CLIENT_ID) + len(tags) + len(body)
    head = _HEAD.pack(size, key, version, correlation_id, len(_CLIENT_ID))
    return head + _CLIENT_ID + tags + body
