"""Requests, counted by API and version, with their bytes, their times and the errors they met.

Owns these numbers for one broker. The dispatcher adds to them by its routes, which have none where
nobody asked for numbers. Errors are counted where an answer is encoded, one for each code that it
carries, those of partitions, too, as in Apache Kafka. Invariant: what a peer makes up (an API, a
version) makes no entry.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from kafkalite.env.later import Later
from kafkalite.env.slicing import LOOKS_PER_STEP, Steps
from kafkalite.handlers.call import Client
from kafkalite.handlers.long_work import LongWork
from kafkalite.protocol import spec
from kafkalite.server.connection_info import ConnectionInfo
from kafkalite.server.terms import Answer, Outcome, Throttled, reply_in
from kafkalite.server.timing import Timed, Times, Watch

FETCH_KEY = 1
UNSERVED = "unserved"
SIZE_BYTES = 4

Errors = Counter[int]
Encode = Callable[[Any, list[Any]], None]
EncodeInSteps = Callable[[Any, list[Any]], Steps[None]]
Key = tuple[str, int]  # name and version


class RequestCount:
    """Of one version of an API."""

    __slots__ = (
        "_now_ns", "name", "of_followers", "request_bytes", "requests", "timed_at", "times",
        "version",
    )  # fmt: skip

    def __init__(
        self, name: str, version: int, times: Times, now_ns: Callable[[], int]
    ) -> None:
        self.name, self.version, self.times, self._now_ns = name, version, times, now_ns
        self.requests = self.request_bytes = 0
        self.timed_at = 1  # the number of the next that is
        self.of_followers: RequestCount | None = None  # where those are told apart

    def timed(
        self, connection: Client, long_work: LongWork, answer: Callable[[], Answer]
    ) -> Answer:
        """The answer of one request, of those that are timed."""
        assert isinstance(connection, ConnectionInfo)
        self.timed_at = self.requests + self.times.every
        began_ns = self._now_ns()
        answered = answer()
        done_ns = self._now_ns()
        heard_ns = connection.heard_ns or began_ns
        timed = Timed(self.times, max(0, began_ns - heard_ns), done_ns - began_ns)
        if not isinstance(answered, Later):
            _ready(timed, connection, done_ns, answered)
            return answered
        is_work = long_work.is_at_work_for(connection)

        def came(outcome: Outcome) -> None:
            now_ns = self._now_ns()
            timed.came(now_ns - done_ns, is_work=is_work)
            _ready(timed, connection, now_ns, outcome)

        answered.then(came, _never)
        return answered


def _ready(
    timed: Timed, connection: ConnectionInfo, now_ns: int, outcome: Outcome | None
) -> None:
    timed.ready(now_ns, outcome.wait_ms if isinstance(outcome, Throttled) else 0)
    reply = None if outcome is None else reply_in(outcome)
    if isinstance(reply, list) and reply and connection.timed is None:
        connection.timed = timed
    else:  # nothing is sent, or the one before is still on its way
        timed.taken(now_ns)


def _never(_: Exception) -> None:
    """Nobody was answered."""


class Counts:
    """All of one broker's."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self.watch = Watch(now_ns)
        self.by_route: dict[Key, RequestCount] = {}
        self.times: dict[str, Times] = {}
        self.errors: dict[str, Errors] = {}

    def of_route(self, api: spec.Api, version: int) -> RequestCount:
        """Of what is served; fetches of followers are told apart."""
        if api.key != FETCH_KEY:
            return self._of(api.name, version)
        count = self._of("FetchConsumer", version)
        count.of_followers = self._of("FetchFollower", version)
        return count

    def unserved(self, size: int) -> None:
        count = self._of(UNSERVED, -1)
        count.requests += 1
        count.request_bytes += size

    def _of(self, name: str, version: int) -> RequestCount:
        now_ns = self.watch.now_ns
        times = self.times.setdefault(name, Times(now_ns()))
        count = RequestCount(name, version, times, now_ns)
        return self.by_route.setdefault((name, version), count)

    def errors_of(self, api: str) -> Errors:
        return self.errors.setdefault(api, Counter())

    @property
    def received_bytes(self) -> int:
        """Of requests that were answered, with their sizes."""
        counts = self.by_route.values()
        return sum(each.request_bytes + SIZE_BYTES * each.requests for each in counts)


# --- errors ---------------------------------------------------------------------------------------

# The error fields of a struct, and the arrays and structs in it that have some.
Plan = tuple[tuple[str, ...], tuple[tuple[str, bool, Any], ...]]


def counting(
    counts: Counts | None, api: str, cls: type[Any], encode: Encode, in_steps: EncodeInSteps
) -> tuple[Encode, EncodeInSteps]:
    """The same encoders, which count what they encode, where anything is counted."""
    if counts is None:
        return encode, in_steps
    errors, plan = counts.errors_of(api), _plan(cls.SPEC.root)
    return _written_out(errors, plan, encode), partial(_encode_in_steps, errors, plan, in_steps)


def _written_out(errors: Errors, plan: Plan, encode: Encode) -> Encode:
    """One function of straight lines: it stands before each answer that is encoded."""
    lines = ["def count_and_encode(response, parts):", *_lines(plan, "response", 1)]
    known: dict[str, Any] = {"errors": errors, "encode": encode}
    exec("\n".join([*lines, "    encode(response, parts)"]), known)
    written: Encode = known["count_and_encode"]
    return written


def _lines(plan: Plan, name: str, depth: int) -> Iterator[str]:
    own, inner = plan
    margin = "    " * depth
    for field in own:
        yield f"{margin}errors[{name}.{field}] += 1"
    for field, is_array, of_it in inner:
        each = f"each{depth}"
        if is_array:
            yield f"{margin}for {each} in {name}.{field} or ():"
        else:
            yield f"{margin}{each} = {name}.{field}"
            yield f"{margin}if {each} is not None:"
        yield from _lines(of_it, each, depth + 1)


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
