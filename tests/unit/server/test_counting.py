"""Requests by API and version, the codes in their answers, and what each stage of them took."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafkalite.env.later import Later
from kafkalite.env.slicing import finish
from kafkalite.handlers.call import CloseConnection
from kafkalite.protocol import spec
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    DescribeConfigsResponse,
    FetchRequest,
    FetchResponse,
    HeartbeatRequest,
    MetadataRequest,
    MetadataResponse,
    ProduceResponse,
)
from kafkalite.server.connection_info import ConnectionInfo
from kafkalite.server.counting import UNSERVED, Counts, counting
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
        self.count = self.counts.of_route(spec.api(PRODUCE), 9)
        self.connection = ConnectionInfo("PLAINTEXT", ("10.0.0.1", 9092), ("10.0.0.9", 40_000))

    def _tick(self) -> int:
        self.now += 1
        return self.now

    def _answer(self) -> Any:
        self.now += 100
        return self.outcome

    def is_at_work_for(self, connection: Any) -> bool:
        return self.is_at_work

    def ask(self) -> Any:
        work: Any = self
        return self.count.timed(self.connection, work, self._answer)


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
def broker() -> Iterator[WholeBroker]:
    broker = WholeBroker(counts=Counts(lambda: 0))
    broker.create("t")
    yield broker
    broker.close()


def counts_of(broker: WholeBroker) -> Counts:
    assert broker.broker.counts is not None
    return broker.broker.counts


def requests(broker: WholeBroker) -> dict[tuple[str, int], int]:
    found = counts_of(broker).by_route
    return {key: each.requests for key, each in found.items() if each.requests}


def ask(broker: WholeBroker, key: int, version: int, size: int = 20) -> Any:
    head = key.to_bytes(2, "big") + version.to_bytes(2, "big")
    frame = memoryview(head + bytes(size - 4))
    return broker.broker.dispatcher.answer(frame, broker.connection)


def test_requests_count_by_api_and_version(broker: WholeBroker) -> None:
    before = counts_of(broker).received_bytes
    for version in (9, 9, 10):
        broker.ask(request(batch_of(broker, b"v")), version)
    assert requests(broker) == {("Produce", 9): 2, ("Produce", 10): 1}
    frame = broker.frame(request(batch_of(broker, b"v")), 9)
    assert counts_of(broker).received_bytes - before == 3 * (len(frame) + 4)


def test_fetches_of_followers_are_another_kind(broker: WholeBroker) -> None:
    fetch = FetchRequest(max_wait_ms=0)
    broker.ask(fetch, 11)
    broker.connection.is_follower = True
    broker.ask(fetch, 11)
    broker.ask(fetch, 11)
    assert requests(broker) == {("FetchConsumer", 11): 1, ("FetchFollower", 11): 2}


def test_what_a_peer_makes_up_is_one_entry(broker: WholeBroker) -> None:
    for key, version in ((9_999, 0), (PRODUCE, 30_000), (65_535, 65_535)):
        assert isinstance(ask(broker, key, version), CloseConnection)
    assert requests(broker) == {(UNSERVED, -1): 3}


def test_a_frame_without_a_head_is_answered_and_not_counted(broker: WholeBroker) -> None:
    answer = broker.broker.dispatcher.answer(memoryview(b"\0\0"), broker.connection)
    assert isinstance(answer, CloseConnection)
    assert requests(broker) == {}


def test_what_is_timed_is_counted_once_and_answered_once(broker: WholeBroker) -> None:
    for _ in range(3):
        broker.ask(request(batch_of(broker, b"v")), 9)
    assert broker.partition().log.log_end_offset == 3
    assert requests(broker) == {("Produce", 9): 3}
    assert broker.connection.timed is not None


def test_of_many_some_are_timed(broker: WholeBroker) -> None:
    silent = request(batch_of(broker, b"v"))
    silent.acks = 0  # nothing is sent, so nothing is on its way
    broker.ask(silent, 9)
    times = counts_of(broker).times["Produce"]
    times.every = 4
    for _ in range(9):
        broker.ask(silent, 9)
    assert (times.taken, requests(broker)) == (4, {("Produce", 9): 10})


def test_where_nobody_counts_routes_have_no_count() -> None:
    broker = WholeBroker()
    try:
        broker.create("t")
        broker.ask(request(batch_of(broker, b"v")), 9)
        routes = broker.broker.dispatcher._routes.values()
        assert {route.count for route in routes} == {None}
    finally:
        broker.close()


# --- times ----------------------------------------------------------------------------------------


def samples(service: Service, name: str = "Produce") -> list[tuple[int, ...]]:
    return service.counts.times[name].samples


def test_an_answer_at_once_waits_for_its_socket(service: Service) -> None:
    service.now = 10
    service.connection.heard_ns = 3
    service.ask()
    timed = service.connection.timed
    assert timed is not None
    timed.leaves(200)
    timed.taken(207)
    assert samples(service) == [(8, 101, 0, 88, 7, 0)]


@pytest.mark.parametrize("is_work", [False, True])
def test_an_answer_that_comes_later(service: Service, is_work: bool) -> None:
    service.is_at_work, service.outcome = is_work, Later()
    later: Any = service.ask()
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
    assert service.ask() is outcome
    assert service.connection.timed is None
    assert len(samples(service)) == 1


def test_new_terms_are_a_reply_too(service: Service) -> None:
    terms: Any = Terms(None)  # type: ignore[arg-type]
    service.outcome = NewTerms([b"reply"], terms)
    service.ask()
    assert service.connection.timed is not None


def test_who_came_first_has_not_waited(service: Service) -> None:
    service.now, service.outcome = 1_000, None
    service.ask()
    assert samples(service) == [(0, 101, 0, 0, 0, 0)]


def test_while_a_reply_is_on_its_way_the_next_is_not_waited_for(service: Service) -> None:
    service.ask()
    first = service.connection.timed
    service.ask()
    assert service.connection.timed is first
    assert len(samples(service)) == 1


def test_a_later_that_fails_times_nothing(service: Service) -> None:
    service.outcome = Later()
    later: Any = service.ask()
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
    counts = Counts(lambda: 0)
    encoded: list[Any] = []

    def encode(one: Any, _: list[Any]) -> Iterator[None]:
        encoded.append(one)
        yield

    steps: Any = encode
    at_once, in_steps = counting(
        counts, "Any", type(response), lambda one, _: encoded.append(one), steps
    )
    at_once(response, [])
    assert (counts.errors["Any"], encoded) == (codes, [response])
    counts.errors["Any"].clear()
    finish(in_steps(response, []))
    assert (counts.errors["Any"], encoded) == (codes, [response] * 2)


def test_parts_that_are_not_there_have_no_codes() -> None:
    counts = Counts(lambda: 0)
    encode: Any = lambda *_: None  # noqa: E731 - a stand-in
    at_once, _ = counting(counts, "Any", DescribeConfigsResponse, encode, encode)
    result = DescribeConfigsResponse.Result(error_code=7)
    at_once(DescribeConfigsResponse(results=[result]), [])
    assert counts.errors["Any"] == {7: 1}


def test_a_large_answer_is_counted_in_steps() -> None:
    counts = Counts(lambda: 0)
    response = produced(*[0] * 1_000)

    def encode(one: Any, _: list[Any]) -> Iterator[None]:
        yield

    steps: Any = encode
    _, in_steps = counting(counts, "Produce", ProduceResponse, steps, steps)
    assert len(list(in_steps(response, []))) > 3
    assert counts.errors["Produce"] == {0: 1_000}


def test_a_broker_counts_what_it_answers(broker: WholeBroker) -> None:
    broker.ask(request(batch_of(broker, b"v")), 9)
    broker.ask(request(batch_of(broker, b"v"), topic="none"), 9)
    for _ in range(2):  # the second one is kept in its bytes
        broker.ask(MetadataRequest(topics=[MetadataRequest.Topic(name="t")]), 9)
    broker.ask(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 4)
    counts = counts_of(broker)
    assert counts.errors["Produce"] == {Error.NONE: 1, Error.UNKNOWN_TOPIC_OR_PARTITION: 1}
    assert counts.errors["Metadata"] == {Error.NONE: 2}
    assert sum(counts.errors["Heartbeat"].values()) == 1
