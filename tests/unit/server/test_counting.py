"""Requests by API and version, the codes in their answers, and what each stage of them took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from kafkalite.env.later import Later
from kafkalite.env.slicing import finish
from kafkalite.handlers.call import CloseConnection
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    FetchResponse,
    HeartbeatRequest,
    MetadataRequest,
    MetadataResponse,
    ProduceResponse,
)
from kafkalite.server.connection_info import ConnectionInfo
from kafkalite.server.counting import (
    UNSERVED,
    Counted,
    Counts,
    counted,
    counting,
    counting_in_steps,
)
from kafkalite.server.terms import NewTerms, Terms, Throttled
from tests.unit.handlers.producing import batch_of, request
from tests.unit.handlers.whole_broker import WholeBroker

PRODUCE, FETCH = 0, 1


class Service:
    """Answers as a test has it; each look at the clock is a nanosecond."""

    def __init__(self) -> None:
        self.now = 0
        self.outcome: Any = [b"reply"]
        self.is_at_work = False
        self.counts = Counts(self._tick)
        work: Any = self
        self.counted = Counted(self, self.counts, work)
        self.connection = ConnectionInfo("PLAINTEXT", ("10.0.0.1", 9092), ("10.0.0.9", 40_000))
        self.refused = b"no"
        self.ended: list[str] = []

    def _tick(self) -> int:
        self.now += 1
        return self.now

    def answer(self, frame: memoryview, connection: Any) -> Any:
        self.now += 100
        return self.outcome

    def is_at_work_for(self, connection: Any) -> bool:
        return self.is_at_work

    def refuse(self, head: memoryview, size: int, connection: Any) -> bytes:
        return self.refused

    def expired(self, reason: str, connection: Any) -> None:
        self.ended.append(reason)

    def ask(self, key: int, version: int, size: int = 20) -> Any:
        head = key.to_bytes(2, "big") + version.to_bytes(2, "big")
        return self.counted.answer(memoryview(head + bytes(size - 4)), self.connection)


@pytest.fixture
def service() -> Service:
    return Service()


def requests(counts: Counts) -> dict[tuple[str, int], int]:
    return {(each.name, each.version): each.requests for each in counts.by_route.values()}


def test_requests_count_by_api_and_version(service: Service) -> None:
    for version in (9, 9, 10):
        assert service.ask(PRODUCE, version, 30) == [b"reply"]
    assert requests(service.counts) == {("Produce", 9): 2, ("Produce", 10): 1}
    assert sum(each.request_bytes for each in service.counts.by_route.values()) == 90


def test_fetches_of_followers_are_another_kind(service: Service) -> None:
    service.ask(FETCH, 13)
    service.connection.is_follower = True
    service.ask(FETCH, 13)
    assert requests(service.counts) == {("FetchConsumer", 13): 1, ("FetchFollower", 13): 1}


def test_what_a_peer_makes_up_is_one_entry(service: Service) -> None:
    for key, version in ((9_999, 0), (PRODUCE, 30_000), (65_535, 65_535)):
        service.ask(key, version)
    assert requests(service.counts) == {(UNSERVED, -1): 3}


def test_a_frame_without_a_head_is_answered_and_not_counted(service: Service) -> None:
    assert service.counted.answer(memoryview(b"\0\0"), service.connection) == [b"reply"]
    assert requests(service.counts) == {}


def test_other_words_go_through(service: Service) -> None:
    assert service.counted.refuse(memoryview(b""), 1, service.connection) == b"no"
    service.counted.expired("slow", service.connection)
    assert service.ended == ["slow"]


def test_nobody_stands_between_where_nobody_counts(service: Service) -> None:
    work: Any = service
    services = {"broker": service}
    assert counted(services, None, work) is services
    assert isinstance(counted(services, service.counts, work)["broker"], Counted)


# --- times ----------------------------------------------------------------------------------------


def samples(service: Service, name: str = "Produce") -> list[tuple[int, ...]]:
    return service.counts.times[name].samples


def test_an_answer_at_once_waits_for_its_socket(service: Service) -> None:
    service.now = 10
    service.connection.heard_ns = 3
    service.ask(PRODUCE, 9)
    timed = service.connection.timed
    assert timed is not None
    timed.leaves(200)
    timed.taken(207)
    assert samples(service) == [(9, 101, 0, 87, 7, 0)]


@pytest.mark.parametrize("is_work", [False, True])
def test_an_answer_that_comes_later(service: Service, is_work: bool) -> None:
    service.is_at_work, service.outcome = is_work, Later()
    later: Any = service.ask(PRODUCE, 9)
    service.now += 1_000
    later.resolve(Throttled([b"reply"], 5))
    timed = service.connection.timed
    assert timed is not None
    timed.taken(service.now)
    ((_, local, remote, _, _, throttle),) = samples(service)
    assert (local > 1_000, remote > 1_000, throttle) == (is_work, not is_work, 5_000_000)


@pytest.mark.parametrize(
    "outcome", [None, CloseConnection("gone"), [], Throttled(None, 3)], ids=str
)
def test_where_nothing_is_sent_nothing_is_waited_for(service: Service, outcome: Any) -> None:
    service.outcome = outcome
    assert service.ask(PRODUCE, 9) is outcome
    assert service.connection.timed is None
    assert len(samples(service)) == 1


def test_new_terms_are_a_reply_too(service: Service) -> None:
    service.outcome = NewTerms([b"reply"], Terms(service))
    service.ask(PRODUCE, 9)
    assert service.connection.timed is not None


def test_while_a_reply_is_on_its_way_the_next_is_not_waited_for(service: Service) -> None:
    service.ask(PRODUCE, 9)
    first = service.connection.timed
    service.ask(PRODUCE, 9)
    assert service.connection.timed is first
    assert len(samples(service)) == 1


def test_of_many_some_are_timed(service: Service) -> None:
    service.outcome = None
    service.ask(PRODUCE, 9)
    service.counts.times["Produce"].every = 4
    for _ in range(9):
        service.ask(PRODUCE, 9)
    assert len(samples(service)) == 4
    assert requests(service.counts) == {("Produce", 9): 10}


def test_a_later_that_fails_times_nothing(service: Service) -> None:
    service.outcome = Later()
    later: Any = service.ask(PRODUCE, 9)
    later.fail(ValueError("mistake"))
    assert samples(service) == []


# --- errors ---------------------------------------------------------------------------------------


def produced(*codes: int) -> ProduceResponse:
    answers = [ProduceResponse.PartitionResponse(index=0, error_code=code) for code in codes]
    return ProduceResponse(responses=[ProduceResponse.Response(partition_responses=answers)])


def fetched(*codes: int) -> FetchResponse:
    answers = [FetchResponse.Partition(partition_index=0, error_code=code) for code in codes]
    return FetchResponse(responses=[FetchResponse.Response(partitions=answers)])


def described(*codes: int) -> MetadataResponse:
    partitions = [MetadataResponse.Partition(error_code=codes[1])]
    topic = MetadataResponse.Topic(error_code=codes[0], partitions=partitions)
    return MetadataResponse(topics=[topic])


@pytest.mark.parametrize(
    ("response", "codes"),
    [
        (produced(0, 3, 3), {0: 1, 3: 2}),
        (fetched(0, 1), {0: 2, 1: 1}),  # that of the answer itself, too
        (described(5, 9), {0: 1, 5: 1, 9: 1}),
    ],
    ids=["produce", "fetch", "metadata"],
)
def test_each_code_of_an_answer_counts(response: Any, codes: dict[int, int]) -> None:
    at_once: Counter[int] = Counter()
    encoded: list[Any] = []
    counting(at_once, type(response), lambda one, _: encoded.append(one))(response, [])
    assert (at_once, encoded) == (codes, [response])

    in_steps: Counter[int] = Counter()

    def encode(one: Any, _: list[Any]) -> Iterator[None]:
        encoded.append(one)
        yield

    steps: Any = encode
    finish(counting_in_steps(in_steps, type(response), steps)(response, []))
    assert (in_steps, len(encoded)) == (codes, 2)


def test_a_large_answer_is_counted_in_steps() -> None:
    errors: Counter[int] = Counter()
    response = produced(*[0] * 1_000)

    def encode(one: Any, _: list[Any]) -> Iterator[None]:
        yield

    steps: Any = encode
    assert len(list(counting_in_steps(errors, ProduceResponse, steps)(response, []))) > 3
    assert errors == {0: 1_000}


def test_a_broker_counts_what_it_answers() -> None:
    counts = Counts(lambda: 0)
    broker = WholeBroker(counts=counts)
    try:
        broker.create("t")
        broker.ask(request(batch_of(broker, b"v")), 9)
        broker.ask(request(batch_of(broker, b"v"), topic="none"), 9)
        for _ in range(2):  # the second one is kept in its bytes
            broker.ask(MetadataRequest(topics=[MetadataRequest.Topic(name="t")]), 9)
        broker.ask(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 4)
    finally:
        broker.close()
    assert counts.errors["Produce"] == {Error.NONE: 1, Error.UNKNOWN_TOPIC_OR_PARTITION: 1}
    assert counts.errors["Metadata"] == {Error.NONE: 2}
    assert sum(counts.errors["Heartbeat"].values()) == 1
