"""Asks share coordinators, whichever broker has them, for the states of shared partitions.

Owns the way to the coordinator of each partition, and how often one asks again: a coordinator that
is loading or has moved is asked again after a pause, five times. The topic that they keep their
states in is made when it is first needed. Invariant: every question is answered, with an error if
need be.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol, TypeAlias

from kafkalite.coordinators.shares.batches import NO_OFFSET, StateBatch
from kafkalite.coordinators.shares.front import (
    STATE_TOPIC,
    Entry,
    Shares,
    StateRequest,
    StateResponse,
    Told,
    batches_of,
    name_of,
)
from kafkalite.coordinators.shares.records import NO_COUNT, ShareKey
from kafkalite.env.clock import Clock
from kafkalite.env.later import Later
from kafkalite.env.slicing import Steps
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    DeleteShareGroupStateRequest,
    InitializeShareGroupStateRequest,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    WriteShareGroupStateRequest,
)

log = logging.getLogger(__name__)

FIRST_PAUSE_MS, MOST_PAUSE_MS = 100, 3_200
ATTEMPTS = 6
ASKED_PER_STEP = 4  # each is a request of its own
_AGAIN = (
    Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE, Error.COORDINATOR_LOAD_IN_PROGRESS,
    Error.NETWORK_EXCEPTION,
)  # fmt: skip

Answer: TypeAlias = Told | KafkaError  # what a response says of one partition
Partitions = dict[bytes, tuple[int, ...]]
Outcomes = dict[tuple[bytes, int], KafkaError | None]


class Known(NamedTuple):
    """What was known of a partition when its leader began to share it."""

    state_epoch: int
    start_offset: int
    batches: tuple[StateBatch, ...]


class Summary(NamedTuple):
    leader_epoch: int = 0
    start_offset: int = NO_OFFSET
    complete_count: int = NO_COUNT


class Peer(Protocol):
    """A broker, as it is asked for states."""

    def answer(self, request: StateRequest) -> Later[Any]:
        """Its response, or a KafkaError."""
        ...


class Persister:
    def __init__(
        self,
        clock: Clock,
        shares: Shares,
        *,
        leader_of: Callable[[str, int], int | None],
        peer_of: Callable[[int], Peer | None],
        create_topic: Callable[[str], Later[KafkaError | None]],
    ) -> None:
        self._clock, self._shares = clock, shares
        self._leader_of, self._peer_of, self._create_topic = leader_of, peer_of, create_topic
        self._waiting: dict[_Question, None] = {}
        self._is_stopped = False

    def stop(self) -> None:
        """Nobody is asked again."""
        self._is_stopped = True
        waiting, self._waiting = self._waiting, {}
        for question in waiting:
            question.give_up()

    # --- what is asked ----------------------------------------------------------------------------

    def initialize(
        self, group_id: str, starts: dict[tuple[bytes, int], int], state_epoch: int
    ) -> Later[Outcomes]:
        kind = InitializeShareGroupStateRequest
        return self._each(
            (
                ShareKey(group_id, topic_id, index),
                kind,
                kind.Partition(partition=index, state_epoch=state_epoch, start_offset=start),
            )
            for (topic_id, index), start in starts.items()
        ).map(_outcomes)

    def delete(self, group_id: str, partitions: Partitions) -> Later[Outcomes]:
        kind = DeleteShareGroupStateRequest
        return self._each(
            (ShareKey(group_id, topic_id, index), kind, kind.Partition(partition=index))
            for topic_id, indexes in partitions.items()
            for index in indexes
        ).map(_outcomes)

    def summarize(
        self, group_id: str, partitions: Partitions
    ) -> Later[dict[tuple[bytes, int], Summary | KafkaError]]:
        kind = ReadShareGroupStateSummaryRequest

        def told(
            answers: list[tuple[ShareKey, Answer]],
        ) -> dict[tuple[bytes, int], Summary | KafkaError]:
            return {(key.topic_id, key.partition): _summary(answer) for key, answer in answers}

        return self._each(
            (
                ShareKey(group_id, topic_id, index),
                kind,
                kind.Partition(partition=index, leader_epoch=-1),
            )
            for topic_id, indexes in partitions.items()
            for index in indexes
        ).map(told)

    def read(self, key: ShareKey, leader_epoch: int) -> Later[Known | KafkaError]:
        kind = ReadShareGroupStateRequest
        entry = kind.Partition(partition=key.partition, leader_epoch=leader_epoch)

        def known(answer: Answer) -> Known | KafkaError:
            if isinstance(answer, KafkaError):
                return answer
            assert isinstance(answer, ReadShareGroupStateResponse.Partition), answer
            batches = tuple(batches_of(answer.state_batches))
            return Known(answer.state_epoch, answer.start_offset, batches)

        return self._ask(key, kind, entry).map(known)

    def write(
        self,
        key: ShareKey,
        *,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        complete_count: int,
        batches: Iterable[StateBatch],
    ) -> Later[KafkaError | None]:
        kind = WriteShareGroupStateRequest
        entry = kind.Partition(
            partition=key.partition,
            state_epoch=state_epoch,
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=complete_count,
            state_batches=[
                kind.StateBatch(
                    first_offset=one.first,
                    last_offset=one.last,
                    delivery_state=one.state,
                    delivery_count=one.deliveries,
                )
                for one in batches
            ],
        )
        return self._ask(key, kind, entry).map(_outcome)

    # --- how it is asked --------------------------------------------------------------------------

    def _each(
        self, asked: Iterable[tuple[ShareKey, type[StateRequest], Entry]]
    ) -> Later[list[tuple[ShareKey, Answer]]]:
        """A slice per turn: of very many partitions each is a question of its own."""
        keys: list[ShareKey] = []
        laters: list[Later[Answer]] = []

        def asking() -> Steps[Later[list[Answer]]]:
            for key, kind, entry in asked:
                if keys and len(keys) % ASKED_PER_STEP == 0:
                    yield
                keys.append(key)
                laters.append(self._ask(key, kind, entry))
            return Later.all(laters)

        told = self._shares.env.slices.soon(asking()).then_ask(lambda answers: answers)
        return told.map(lambda answers: list(zip(keys, answers, strict=True)))

    def _ask(self, key: ShareKey, kind: type[StateRequest], entry: Entry) -> Later[Answer]:
        question = _Question(self, key, _request(key, kind, entry))
        question.ask()
        return question.later

    def once(self, key: ShareKey, request: StateRequest) -> Later[Answer]:
        """Asked of whoever has this partition's state now."""
        if self._shares.partition_count():
            return self._ask_leader(key, request)

        def made(refused: KafkaError | None) -> Later[Answer]:
            if refused is None or refused.code == Error.TOPIC_ALREADY_EXISTS:
                return self._ask_leader(key, request)
            return Later.of(refused)

        return self._create_topic(STATE_TOPIC).then_ask(made)

    def _ask_leader(self, key: ShareKey, request: StateRequest) -> Later[Answer]:
        if self._shares.partition_count() == 0:
            return Later.of(KafkaError(Error.NOT_COORDINATOR))
        leader = self._leader_of(STATE_TOPIC, self._shares.partition_for(name_of(key)))
        peer = None if leader is None else self._peer_of(leader)
        if peer is None:
            return Later.of(KafkaError(Error.COORDINATOR_NOT_AVAILABLE))
        return peer.answer(request).map(_part)

    def again(self, question: _Question, pause_ms: int) -> None:
        if self._is_stopped:
            question.give_up()
            return
        self._waiting[question] = None

        def ask() -> None:
            if question in self._waiting:
                del self._waiting[question]
                question.ask()

        self._clock.call_later(pause_ms, ask)


class _Question:
    """One, until it is answered."""

    def __init__(self, persister: Persister, key: ShareKey, request: StateRequest) -> None:
        self._persister, self._key, self._request = persister, key, request
        self._left = ATTEMPTS
        self._pause_ms = FIRST_PAUSE_MS
        self.later: Later[Answer] = Later()

    def ask(self) -> None:
        self._left -= 1
        self._persister.once(self._key, self._request).then(self._answered, self._mistaken)

    def give_up(self) -> None:
        self.later.resolve(KafkaError(Error.COORDINATOR_NOT_AVAILABLE))

    def _answered(self, answer: Answer) -> None:
        if isinstance(answer, KafkaError) and answer.code in _AGAIN and self._left:
            pause_ms, self._pause_ms = self._pause_ms, min(2 * self._pause_ms, MOST_PAUSE_MS)
            self._persister.again(self, pause_ms)
        else:
            self.later.resolve(answer)

    def _mistaken(self, error: Exception) -> None:
        log.error("the state of %s could not be asked for", self._key, exc_info=error)
        self.later.resolve(KafkaError(Error.UNKNOWN_SERVER_ERROR))


def _request(key: ShareKey, kind: type[Any], entry: Entry) -> StateRequest:
    """One that asks about one partition."""
    topic = kind.Topic(topic_id=key.topic_id, partitions=[entry])
    request: StateRequest = kind(group_id=key.group_id, topics=[topic])
    return request


def _part(response: StateResponse | KafkaError) -> Answer:
    """What a response says of the one partition that was asked about."""
    if isinstance(response, KafkaError):
        return response
    told = next((one for result in response.results for one in result.partitions), None)
    if told is None:
        return KafkaError(Error.UNKNOWN_SERVER_ERROR)
    if told.error_code == Error.NONE:
        return told
    return KafkaError(Error(told.error_code), told.error_message)


def _outcome(answer: Answer) -> KafkaError | None:
    return answer if isinstance(answer, KafkaError) else None


def _outcomes(answers: list[tuple[ShareKey, Answer]]) -> Outcomes:
    return {(key.topic_id, key.partition): _outcome(answer) for key, answer in answers}


def _summary(answer: Answer) -> Summary | KafkaError:
    if isinstance(answer, KafkaError):
        return answer
    assert isinstance(answer, ReadShareGroupStateSummaryResponse.Partition), answer
    return Summary(answer.leader_epoch, answer.start_offset, answer.delivery_complete_count)
