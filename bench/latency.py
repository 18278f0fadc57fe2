"""How long a record takes from its producer to a consumer that waits for it.

Records of 100 bytes are due at a steady rate. The producer sends all that are due as one batch as
soon as fewer than five requests are unanswered, as stock producers without linger do; the consumer
keeps one long poll open. A record's latency counts from when it was due, so that a stall is paid by
every record that it holds up. `tail` is the same with one record at a time, nothing else going on.
Both ends are one thread of one process, which asks nothing of the broker but what clients do.
"""

from __future__ import annotations

import select
import struct
import time
import uuid
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache

from bench.pair import COMPILED, OURS, THEIRS, Run, Target
from bench.raw_client import (
    FETCH_VERSION,
    Produce,
    RawClient,
    decode_reply,
    delete_topic,
    fetch_request,
    frame_of,
    make_topic,
)
from bench.rows import Row
from kafkalite.protocol.messages import FetchResponse
from kafkalite.records.batch import iterate_headers
from kafkalite.records.record import BatchBuilder

SUITE = "latency"
RATES = (1_000, 10_000, 50_000)
RECORD_BYTES = 100
IN_FLIGHT = 5
COUNTS = (*range(1, 17), *(round(16 * 1.2**step) for step in range(1, 28)))  # up to 2,200
POLL_MS = 500
LONGEST_SECONDS = 60.0
FETCH_BYTES = 1 << 20
WARM_UP_SECONDS = 0.3
PERCENTILES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}
GOAL = 1.0


def measure(run: Run, targets: list[Target]) -> Iterator[Row]:
    seconds = 0.8 if run.is_quick else 4.0
    cases = {f"produce → consume at {rate // 1000}k/s": rate for rate in RATES}
    if run.wants("tail"):
        found = run.turns(targets, lambda target: tail(target, seconds / 2), "tail fetch wake-up")
        yield from _rows("tail fetch wake-up", found)
    for name, rate in cases.items():
        if run.wants(name):
            found = run.turns(targets, lambda target: steady(target, rate, seconds), name)  # noqa: B023
            yield from _rows(name, found)


def _rows(name: str, found: dict[str, list[list[float]]]) -> Iterator[Row]:
    for label, fraction in PERCENTILES.items():
        ours, theirs, compiled = (
            [_at(each, fraction) for each in found.get(side, ())]
            for side in (OURS, THEIRS, COMPILED)
        )
        yield Row(SUITE, f"{name}, {label}", "ms", ours, theirs, compiled, goal=GOAL, is_rate=False)


def _at(ordered: list[float], fraction: float) -> float:
    return 1000 * ordered[min(len(ordered) - 1, int(len(ordered) * fraction))]


class Ends:
    """A producer and a consumer of one topic, each on a connection of its own."""

    def __init__(self, target: Target) -> None:
        self.topic = f"latency-{uuid.uuid4().hex[:8]}"
        self.producer = RawClient(target.host, target.port)
        self.consumer = RawClient(target.host, target.port)
        make_topic(self.producer, self.topic)
        # Frames are made before anything is timed: one for each of some counts of records.
        self._frames = [Produce(self.topic, *_batch(count)) for count in COUNTS]
        self.next_offset = 0
        self.poll()

    def close(self) -> None:
        delete_topic(self.producer, self.topic)
        self.producer.close()
        self.consumer.close()

    def produce(self, due: int) -> int:
        """Sends a batch of as many records as are due, or somewhat fewer; says how many."""
        slot = bisect_right(COUNTS, due) - 1
        self.producer.send(*self._frames[slot].request(0))
        return COUNTS[slot]

    def acknowledged(self) -> None:
        reply = self.producer.receive()
        error_at = self._frames[0].offset_at - 2
        (error,) = struct.unpack_from(">h", reply, error_at)
        assert error == 0, error

    def poll(self) -> None:
        request = fetch_request(self.topic, 0, self.next_offset, FETCH_BYTES)
        request.max_wait_ms, request.min_bytes = POLL_MS, 1
        self.consumer.send(frame_of(request, FETCH_VERSION, 0))

    def consume(self) -> None:
        """Takes what has come, and asks for more."""
        answer = decode_reply(self.consumer.receive(), FetchResponse, FETCH_VERSION)
        (partition,) = answer.responses[0].partitions
        assert answer.error_code == partition.error_code == 0, answer
        for header in iterate_headers(partition.records or b""):
            assert header.base_offset == self.next_offset
            self.next_offset = header.next_offset
        self.poll()


@cache
def _batch(count: int) -> tuple[bytes, int]:
    builder = BatchBuilder()
    for _ in range(count):
        builder.append(int(time.time() * 1000), None, bytes(RECORD_BYTES - 16))
    return bytes(builder.build()), count


def tail(target: Target, seconds: float) -> list[float]:
    """From sending one record until the waiting consumer has it; sorted."""
    ends = Ends(target)
    took: list[float] = []
    clock = time.perf_counter
    begun = clock()
    while clock() < begun + WARM_UP_SECONDS + seconds:
        start = clock()
        goal = ends.next_offset + ends.produce(1)
        while ends.next_offset < goal:
            ends.consume()
        end = clock()
        ends.acknowledged()
        if start > begun + WARM_UP_SECONDS:
            took.append(end - start)
    ends.close()
    return sorted(took)


def steady(target: Target, rate: int, seconds: float) -> list[float]:
    """The latencies of all records that were due after the warm-up; sorted."""
    ends = Ends(target)
    try:
        arrivals = _drive(ends, rate, int(rate * (WARM_UP_SECONDS + seconds)))
    finally:
        ends.close()
    took: list[float] = []
    first = 0
    for offset, arrived in arrivals:
        took += [arrived - number / rate for number in range(first, offset)]
        first = offset
    return sorted(took[int(rate * WARM_UP_SECONDS) :])


def _drive(ends: Ends, rate: int, total: int) -> list[tuple[int, float]]:
    """Produces on time and consumes at once; up to which offset records had come, and when."""
    clock, wait = time.perf_counter, select.select
    sockets = [ends.producer.fileno(), ends.consumer.fileno()]
    arrivals: list[tuple[int, float]] = []
    produced = in_flight = 0
    start = clock()
    while ends.next_offset < total:
        now = clock() - start
        assert now < LONGEST_SECONDS, "the broker does not keep up"
        due = min(total, int(now * rate) + 1) - produced
        if due > 0 and in_flight < IN_FLIGHT:
            produced += ends.produce(due)
            in_flight += 1
            continue
        is_full = in_flight == IN_FLIGHT or produced == total
        timeout = LONGEST_SECONDS if is_full else max(0.0, produced / rate - now)
        ready = wait(sockets, (), (), timeout)[0]
        if sockets[1] in ready:
            ends.consume()
            arrivals.append((ends.next_offset, clock() - start))
        if sockets[0] in ready:
            ends.acknowledged()
            in_flight -= 1
    while in_flight:
        ends.acknowledged()
        in_flight -= 1
    return arrivals
