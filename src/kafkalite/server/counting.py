"""Requests, counted by API and version, with their bytes, their times and the errors they met.

Owns these numbers for one broker. `Counted` stands before whoever answers and changes nothing of
the answers; it is there only where somebody asked for the numbers. Errors are counted where an
answer is encoded, one for each code that it carries, those of partitions, too, as in Apache Kafka.
Invariant: what a peer makes up (an API, a version) makes no entry.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from kafkalite import handlers
from kafkalite.env.later import Later
from kafkalite.env.slicing import LOOKS_PER_STEP, Steps
from kafkalite.handlers.long_work import LongWork
from kafkalite.protocol import spec
from kafkalite.protocol.messages import FetchResponse, ProduceResponse
from kafkalite.server.connection_info import ConnectionInfo
from kafkalite.server.terms import Answer, Outcome, Service, Throttled, reply_in
from kafkalite.server.timing import Timed, Times, Watch

FETCH_KEY = 1
UNSERVED = "unserved"
_HEAD_BYTES = 4
_FOLLOWERS = 1 << 32  # beside API key and version: a follower asks
_route_at = struct.Struct(">I").unpack_from

Errors = Counter[int]
Encode = Callable[[Any, list[Any]], None]
EncodeInSteps = Callable[[Any, list[Any]], Steps[None]]


class RequestCount:
    """Of one version of an API."""

    __slots__ = ("left", "name", "request_bytes", "requests", "times", "version")

    def __init__(self, name: str, version: int, times: Times) -> None:
        self.name, self.version, self.times = name, version, times
        self.requests = self.request_bytes = 0
        self.left = 1  # until one is timed


class Counts:
    """All of one broker's."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self.watch = Watch(now_ns)
        self.by_route: dict[int, RequestCount] = {}
        self.times: dict[str, Times] = {}
        self.errors: dict[str, Errors] = {}

    def found(self, number: int) -> RequestCount:
        """Of an API and a version that comes for the first time, as the number that frames begin
        with."""
        key, version = number >> 16 & 0xFFFF, number & 0xFFFF
        is_served = key in spec.api_files() and version in handlers.versions(spec.api(key))
        if not is_served:
            number, name, version = -1, UNSERVED, -1
        elif key == FETCH_KEY:
            name = "FetchFollower" if number & _FOLLOWERS else "FetchConsumer"
        else:
            name = spec.api(key).name
        times = self.times.setdefault(name, Times(self.watch.now_ns()))
        return self.by_route.setdefault(number, RequestCount(name, version, times))

    def errors_of(self, api: str) -> Errors:
        return self.errors.setdefault(api, Counter())


class Counted:
    """Before a service."""

    def __init__(self, inner: Service, counts: Counts, long_work: LongWork) -> None:
        self._inner = inner
        self._inner_answer = inner.answer
        self._counts = counts
        self._by_route = counts.by_route
        self._now_ns = counts.watch.now_ns
        self._long_work = long_work

    def answer(self, frame: memoryview, connection: ConnectionInfo) -> Answer:
        size = len(frame)
        if size < _HEAD_BYTES:
            return self._inner_answer(frame, connection)
        number: int = _route_at(frame)[0]
        if connection.is_follower:
            number |= _FOLLOWERS
        count = self._by_route.get(number)
        if count is None:
            count = self._counts.found(number)
        count.requests += 1
        count.request_bytes += size
        if count.left > 1:
            count.left -= 1
            return self._inner_answer(frame, connection)
        count.left = count.times.every
        return self._timed(count.times, frame, connection)

    def _timed(self, times: Times, frame: memoryview, connection: ConnectionInfo) -> Answer:
        began_ns = self._now_ns()
        answer = self._inner.answer(frame, connection)
        done_ns = self._now_ns()
        timed = Timed(times, max(0, began_ns - connection.heard_ns), done_ns - began_ns)
        if not isinstance(answer, Later):
            self._ready(timed, connection, done_ns, answer)
            return answer
        is_work = self._long_work.is_at_work_for(connection)

        def came(outcome: Outcome) -> None:
            now_ns = self._now_ns()
            timed.came(now_ns - done_ns, is_work=is_work)
            self._ready(timed, connection, now_ns, outcome)

        answer.then(came, _never)
        return answer

    def _ready(
        self, timed: Timed, connection: ConnectionInfo, now_ns: int, outcome: Outcome | None
    ) -> None:
        timed.ready(now_ns, outcome.wait_ms if isinstance(outcome, Throttled) else 0)
        reply = None if outcome is None else reply_in(outcome)
        if isinstance(reply, list) and reply and connection.timed is None:
            connection.timed = timed
        else:  # nothing is sent, or the one before is still on its way
            timed.taken(now_ns)

    def refuse(self, head: memoryview, size: int, connection: ConnectionInfo) -> bytes:
        return self._inner.refuse(head, size, connection)

    def expired(self, reason: str, connection: ConnectionInfo) -> None:
        self._inner.expired(reason, connection)


def counted(
    services: Mapping[str, Service], counts: Counts | None, long_work: LongWork
) -> Mapping[str, Service]:
    """The services themselves where nobody asked for numbers."""
    if counts is None:
        return services
    return {kind: Counted(each, counts, long_work) for kind, each in services.items()}


def _never(_: Exception) -> None:
    """Nobody was answered."""


# --- errors ---------------------------------------------------------------------------------------

# The error fields of a struct, and the arrays and structs in it that have some.
Plan = tuple[tuple[str, ...], tuple[tuple[str, bool, Any], ...]]


def counting(errors: Errors, cls: type[Any], encode: Encode) -> Encode:
    """The same encoder, which counts what it encodes."""
    in_short = _IN_SHORT.get(cls)
    if in_short is not None:
        return partial(in_short, errors, encode)
    return partial(_encode, errors, _plan(cls.SPEC.root), encode)


def counting_in_steps(errors: Errors, cls: type[Any], encode: EncodeInSteps) -> EncodeInSteps:
    return partial(_encode_in_steps, errors, _plan(cls.SPEC.root), encode)


def _encode(errors: Errors, plan: Plan, encode: Encode, response: Any, parts: list[Any]) -> None:
    for code in _codes(response, plan):
        errors[code] += 1
    encode(response, parts)


def _encode_produce(errors: Errors, encode: Encode, response: Any, parts: list[Any]) -> None:
    for topic in response.responses:
        for answer in topic.partition_responses:
            errors[answer.error_code] += 1
    encode(response, parts)


def _encode_fetch(errors: Errors, encode: Encode, response: Any, parts: list[Any]) -> None:
    errors[response.error_code] += 1
    for topic in response.responses:
        for answer in topic.partitions:
            errors[answer.error_code] += 1
    encode(response, parts)


# The same, written out for those that come most often.
_IN_SHORT: dict[type[Any], Callable[[Errors, Encode, Any, list[Any]], None]] = {
    ProduceResponse: _encode_produce,
    FetchResponse: _encode_fetch,
}


def _encode_in_steps(
    errors: Errors, plan: Plan, encode: EncodeInSteps, response: Any, parts: list[Any]
) -> Steps[None]:
    for number, code in enumerate(_codes(response, plan), 1):
        errors[code] += 1
        if number % LOOKS_PER_STEP == 0:
            yield
    yield from encode(response, parts)


def _plan(struct: spec.Struct) -> Plan:
    own = tuple(each.name for each in struct.fields if each.type == "error" and not each.is_array)
    inner = (
        (each.name, each.is_array, _plan(each.struct)) for each in struct.fields if each.struct
    )
    return own, tuple(each for each in inner if each[2] != ((), ()))


def _codes(value: Any, plan: Plan) -> Iterator[int]:
    own, inner = plan
    for name in own:
        yield getattr(value, name)
    for name, is_array, of_it in inner:
        part = getattr(value, name)
        for each in (part or ()) if is_array else (part,):
            if each is not None:
                yield from _codes(each, of_it)
