"""A connection to another broker, on a network that does what the test says: everything that is
asked is answered once, whatever becomes of the connection."""

from __future__ import annotations

from collections import Counter
from itertools import count
from random import Random
from typing import Any

import pytest

from kafkalite.env.later import Later
from kafkalite.peers.channel import ANSWERS_PER_TURN, RECONNECT_PAUSE_MS
from kafkalite.protocol import codec, headers
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.framing import frame_size
from kafkalite.protocol.messages import (
    ApiVersionsRequest,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    RequestHeader,
)
from tests.unit.peers.world import KEY, TIMEOUT_MS, FakeLink, World, found, greeting


def code_of(asked: Later[Any]) -> Error:
    assert asked.is_resolved, "nobody answered"
    assert isinstance(asked.value, KafkaError), asked.value
    return Error(asked.value.code)


def test_what_is_asked_before_the_peer_is_greeted_goes_out_in_order() -> None:
    world = World()
    asked = [world.ask(key) for key in "abc"]
    assert world.network.asked == [("10.0.0.2", 9092)]
    link = world.connected()
    assert [request.coordinator_keys for _, request in link.requests] == [["a"], ["b"], ["c"]]
    assert {header.client_id for header, _ in link.requests} == {"broker-1-to-2"}
    for key in "abc":
        link.answer(found(key), step=3)
    assert [one.value.coordinators[0].key for one in asked] == ["a", "b", "c"]
    later = world.ask("d")  # over the same connection
    link.answer(found("d"))
    assert later.value.coordinators[0].key == "d"
    assert len(world.network.asked) == 1


@pytest.mark.parametrize(("theirs", "used"), [(6, 5), (5, 5), (4, 4)])
def test_the_newest_version_that_both_know_is_used(theirs: int, used: int) -> None:
    world = World()
    world.ask()
    link = world.network.succeed()
    link.answer(greeting(theirs))
    assert link.requests[0][0].request_api_version == used


def test_what_the_peer_does_not_serve_is_refused_and_spares_the_rest() -> None:
    world = World()
    asked, other = world.ask(versions=range(4, 6)), world.ask("b", range(3, 4))
    link = world.network.succeed()
    link.answer(greeting(3))
    assert code_of(asked) == Error.UNSUPPORTED_VERSION
    assert link.requests[0][0].request_api_version == 3
    link.answer(FindCoordinatorResponse(host="h"))
    assert other.value.host == "h"


def test_a_peer_that_does_not_know_the_greeting_is_greeted_in_version_0() -> None:
    world = World()
    world.ask()
    link = world.network.succeed()
    link.answer(greeting(code=Error.UNSUPPORTED_VERSION), version=0)
    assert link.requests[0][0].request_api_version == 0
    assert isinstance(link.requests[0][1], ApiVersionsRequest)
    link.answer(greeting())
    assert link.requests[0][0].request_api_key == KEY


def test_a_refused_connection_is_told_and_not_tried_again_at_once() -> None:
    world = World()
    asked = world.ask()
    world.network.fail()
    assert code_of(asked) == Error.NETWORK_EXCEPTION
    assert code_of(world.ask()) == Error.NETWORK_EXCEPTION
    assert len(world.network.asked) == 1
    world.clock.advance(RECONNECT_PAUSE_MS)
    world.address = ("10.0.0.3", 9093)  # it has moved meanwhile
    again = world.ask()
    assert world.network.asked[1:] == [("10.0.0.3", 9093)]
    world.connected().answer(found("k"))
    assert again.value.coordinators[0].key == "k"


def test_a_broker_that_is_nowhere_is_not_asked() -> None:
    world = World()
    world.address = None
    assert code_of(world.ask()) == Error.NETWORK_EXCEPTION
    assert world.network.asked == []


def test_an_ended_connection_ends_what_was_asked_and_the_next_one_is_new() -> None:
    world = World()
    asked = [world.ask("a"), world.ask("b")]
    link = world.connected()
    link.answer(found("a"))
    link.receiver.finished()
    assert asked[0].value.coordinators[0].key == "a"
    assert code_of(asked[1]) == Error.NETWORK_EXCEPTION
    assert not link.is_open
    again = world.ask("c")
    second = world.connected()
    second.answer(found("c"))
    assert again.value.coordinators[0].key == "c"


def test_the_oldest_answer_that_is_overdue_ends_the_connection() -> None:
    world = World()
    first = world.ask("a")
    link = world.connected()
    world.clock.advance(TIMEOUT_MS - 1)
    second = world.ask("b")
    assert not first.is_resolved
    world.clock.advance(1)
    assert code_of(first) == code_of(second) == Error.REQUEST_TIMED_OUT
    assert not link.is_open
    assert world.clock.next_due_ms() is None


def test_a_connection_that_never_comes_is_given_up() -> None:
    world = World()
    asked = world.ask()
    world.clock.advance(TIMEOUT_MS)
    assert code_of(asked) == Error.REQUEST_TIMED_OUT
    assert world.network.done is None


def test_an_answer_in_time_leaves_no_timer_that_ends_what_comes_later() -> None:
    world = World()
    world.ask("a")
    link = world.connected()
    world.clock.advance(TIMEOUT_MS - 5)
    link.answer(found("a"))
    later = world.ask("b")
    world.clock.advance(10)
    assert not later.is_resolved
    link.answer(found("b"))
    assert later.value.coordinators[0].key == "b"
    world.clock.advance(TIMEOUT_MS)
    assert world.clock.next_due_ms() is None


GARBAGE = {
    "another correlation id": (b"\0\0\0\x08", b"\x7f\0\0\0\0\0\0\0"),
    "too short": (b"\0\0\0\x02", b"\0\0"),
    "a claim of too much": (b"\xff\xff\xff\xff", b""),
    "no message": (b"\0\0\0\x06", b"\0\0\0\x01\0\xff"),
    "HTTP": (b"HTTP", b"/1.1 400 Bad Request\r\n\r\n" * 100),
}


@pytest.mark.parametrize("kind", GARBAGE)
@pytest.mark.parametrize("is_greeted", [True, False])
def test_what_is_no_answer_ends_the_connection(kind: str, is_greeted: bool) -> None:
    world = World()
    asked = world.ask()
    link = world.connected() if is_greeted else world.network.succeed()
    link.bring(b"".join(GARBAGE[kind]))
    if link.is_open:  # it may still be the beginning of something
        link.receiver.finished()
    assert code_of(asked) == Error.NETWORK_EXCEPTION
    assert not link.is_open


def test_an_answer_that_nobody_asked_for_ends_the_connection() -> None:
    world = World()
    world.ask()
    link = world.connected()
    header, _ = link.requests[0]
    link.answer(found("k"))
    frame = headers.encode_response_header(KEY, 5, header.correlation_id + 1)
    link.bring(frame_size([frame]) + frame)
    assert not link.is_open


def test_a_stop_answers_all_and_nothing_is_asked_after_it() -> None:
    world = World()
    connecting = world.ask()
    world.channel.stop()
    assert code_of(connecting) == Error.NETWORK_EXCEPTION
    assert world.network.done is None
    assert code_of(world.ask()) == Error.NETWORK_EXCEPTION
    assert world.network.asked == [("10.0.0.2", 9092)]
    world = World()
    sent = world.ask()
    link = world.connected()
    world.channel.stop()
    assert code_of(sent) == Error.NETWORK_EXCEPTION
    assert not link.is_open
    assert world.clock.next_due_ms() is None


def test_who_makes_a_mistake_with_an_answer_spoils_no_other() -> None:
    world = World()
    first, second = world.ask("a"), world.ask("b")

    def fail(_: Any) -> None:
        raise ZeroDivisionError

    first.then(fail)
    link = world.connected()
    link.answer(found("a"))
    link.answer(found("b"))
    assert second.value.coordinators[0].key == "b"


def test_who_asks_again_when_the_connection_ends_is_asked_over_the_next() -> None:
    world = World()
    again: list[Later[Any]] = []
    world.ask().then(lambda _: again.append(world.ask("again")))
    link = world.connected()
    link.abort()
    assert not again[0].is_resolved
    world.connected().answer(found("again"))
    assert again[0].value.coordinators[0].key == "again"


@pytest.mark.parametrize("is_greeted", [True, False])
def test_a_send_that_ends_the_connection_leaves_nobody_without_an_answer(is_greeted: bool) -> None:
    """Whoever asks again at once is asked over the next one, while the first is still at it."""
    world = World()
    again: list[Later[Any]] = []
    first = world.ask("a")
    first.then(lambda _: again.append(world.ask("c")))
    second = world.ask("b")
    link = world.network.succeed()
    if is_greeted:
        link.answer(greeting())
        link.is_cut = True
        world.ask("d")
    else:
        link.is_cut = True
        link.answer(greeting())
    assert code_of(first) == code_of(second) == Error.NETWORK_EXCEPTION
    assert not again[0].is_resolved
    world.connected().answer(found("c"))
    assert again[0].value.coordinators[0].key == "c"


def test_what_cannot_be_written_is_answered_and_spares_the_rest() -> None:
    world = World()
    first = world.ask("a")
    wrong_request = FindCoordinatorRequest(coordinator_keys=[17])  # type: ignore[list-item]
    wrong = world.channel.ask(wrong_request, range(4, 6))
    last = world.ask("b")
    link = world.connected()
    assert code_of(wrong) == Error.UNKNOWN_SERVER_ERROR
    link.answer(found("a"))
    link.answer(found("b"))
    assert [one.value.coordinators[0].key for one in (first, last)] == ["a", "b"]


@pytest.mark.parametrize("seconds", [0, 1])
def test_a_connection_that_ends_before_its_greeting_is_not_made_anew_at_once(seconds: int) -> None:
    world = World()
    world.ask()
    link = world.network.succeed()
    world.clock.advance(seconds * 1_000)
    link.abort()  # as who has too many connections does
    assert code_of(world.ask()) == Error.NETWORK_EXCEPTION
    assert len(world.network.asked) == 1
    world.clock.advance(RECONNECT_PAUSE_MS)
    world.ask()
    assert len(world.network.asked) == 2


def answered(asked: tuple[RequestHeader, Any]) -> bytes:
    """The frame of the answer to a request."""
    header, request = asked
    head = headers.encode_response_header(KEY, 5, header.correlation_id)
    frame = head + codec.encode(found(request.coordinator_keys[0]), 5)
    return frame_size([frame]) + frame


def test_of_many_answers_a_part_is_taken_per_turn() -> None:
    world = World()
    numbers = [str(number) for number in range(3 * ANSWERS_PER_TURN + 1)]
    asked = [world.ask(number) for number in numbers]
    link = world.connected()
    link.bring(b"".join(map(answered, link.requests)))
    told = []
    while world.network.turns:
        told.append(sum(one.is_resolved for one in asked))
        assert link.is_paused
        world.network.turns.pop()()
    assert told == [ANSWERS_PER_TURN, 2 * ANSWERS_PER_TURN, 3 * ANSWERS_PER_TURN]
    assert not link.is_paused
    assert [one.value.coordinators[0].key for one in asked] == numbers


def test_answers_that_wait_for_a_turn_are_nothing_to_the_next_connection() -> None:
    world = World()
    asked = [world.ask(str(number)) for number in range(2 * ANSWERS_PER_TURN)]
    link = world.connected()
    link.bring(b"".join(map(answered, link.requests)))
    link.abort()
    assert code_of(asked[-1]) == Error.NETWORK_EXCEPTION
    again = world.ask("again")
    second = world.connected()
    for turn in world.network.turns:
        turn()
    second.answer(found("again"))
    assert again.value.coordinators[0].key == "again"


class Life:
    """Whatever may happen to a channel, in whatever order."""

    def __init__(self, seed: int) -> None:
        self.random, self.world = Random(seed), World()
        self.asked: dict[str, Later[Any]] = {}
        self.answers: Counter[str] = Counter()
        self.links: list[FakeLink] = []
        self._keys = (f"k{number}" for number in count())

    def ask(self) -> None:
        key = next(self._keys)  # before others ask, whom a failure tells at once
        self.asked[key] = self.world.ask(key)
        self.asked[key].then(lambda _: self.answers.update([key]))

    def ask_again(self) -> None:
        """In the very moment in which something else is answered."""
        if self.asked and len(self.asked) < 500:
            self.random.choice(list(self.asked.values())).then(lambda _: self.ask())

    def connect(self) -> None:
        network = self.world.network
        if network.done is None:
            return
        if self.random.random() < 0.3:
            network.fail()
        else:
            self.links.append(network.succeed())

    def answer(self) -> None:
        link = self.links[-1] if self.links else None
        if link is not None and link.is_open and link.requests:
            header, request = link.requests[0]
            is_greeting = header.request_api_key != KEY
            response = greeting() if is_greeting else found(request.coordinator_keys[0])
            link.answer(response, step=self.random.choice((1, 7, 1 << 20)))

    def end(self) -> None:
        if self.links and self.links[-1].is_open:
            self.random.choice((self.links[-1].abort, self.links[-1].receiver.finished))()

    def cut(self) -> None:
        if self.links:
            self.links[-1].is_cut = True

    def wait(self) -> None:
        self.world.clock.advance(self.random.choice((1, RECONNECT_PAUSE_MS, TIMEOUT_MS // 3)))


@pytest.mark.parametrize("seed", range(60))
def test_every_question_is_answered_once(seed: int) -> None:
    """Whatever comes in whatever order; the answer is one's own, or an error."""
    life = Life(seed)
    acts = [life.cut, life.end, life.wait, life.ask_again]
    acts += [life.connect] * 2 + [life.ask] * 3 + [life.answer] * 4
    for _ in range(300):
        life.random.choice(acts)()
    assert all(link.is_open is False for link in life.links[:-1]), "two connections at a time"
    life.world.channel.stop()
    assert set(life.answers.values()) <= {1}
    assert life.answers.keys() == life.asked.keys()
    for key, one in life.asked.items():
        assert isinstance(one.value, KafkaError) or one.value.coordinators[0].key == key
    assert life.world.clock.next_due_ms() is None


def large(count: int = 20_000) -> FindCoordinatorResponse:
    """Of so many that they are not read in one turn."""
    one = FindCoordinatorResponse.Coordinator(key="k")
    return FindCoordinatorResponse(coordinators=[one] * count)


def test_a_large_answer_is_read_between_everything_else_and_in_its_order() -> None:
    world = World()
    asked = [world.ask(key) for key in "ab"]
    link = world.connected()
    link.answer(large())
    assert link.is_paused
    assert not asked[0].is_resolved
    link.answer(found("b"))
    assert not asked[1].is_resolved
    world.clock.advance(60)
    assert len(asked[0].value.coordinators) == 20_000
    turn(world)
    assert asked[1].value.coordinators[0].key == "b"
    assert not link.is_paused


def test_a_large_answer_that_is_none_ends_the_connection() -> None:
    world = World()
    asked = world.ask()
    link = world.connected()
    header, _ = link.requests.pop(0)
    head = headers.encode_response_header(KEY, 5, header.correlation_id)
    body = codec.encode(large(), 5)
    link.bring(frame_size([head, body, b"more"]) + head + body + b"more")
    world.clock.advance(60)
    assert code_of(asked) == Error.NETWORK_EXCEPTION
    assert not link.is_open


def test_a_connection_that_ends_while_a_large_answer_is_read_ends_the_question() -> None:
    world = World()
    asked = world.ask()
    link = world.connected()
    link.answer(large())
    link.receiver.finished()
    assert code_of(asked) == Error.NETWORK_EXCEPTION
    world.clock.advance(60)
    world.clock.advance(RECONNECT_PAUSE_MS)
    again = world.ask()
    world.connected().answer(found("k"))
    assert again.value.coordinators[0].key == "k"


def turn(world: World) -> None:
    turns, world.network.turns = world.network.turns, []
    for each in turns:
        each()
