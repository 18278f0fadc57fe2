"""What a broker of Apache Kafka may do at any time, and a correct client stands.

Owns the table of kinds: which requests each may meet, what becomes of them, and why that is legal.
Chooses nothing. Invariant: no client is told what Apache Kafka could not say at that point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kafkalite.protocol.errors import Error
from kafkalite.server.error_reply import error_reply
from kafkalite.server.terms import Outcome
from kafkalite.testing import fetched, meanwhile, produced
from kafkalite.testing.chosen import Deed, World
from kafkalite.testing.faults import Act
from kafkalite.testing.understanding import Request, reply_of, response_in
from kafkalite.testing.where import PARTITION, names_in

DELAY_MS, THROTTLE_MS = 100, 50
ALL_IN_SYNC = -1  # the acks of who waits for all replicas

PRODUCE, FETCH, LIST_OFFSETS = "Produce", "Fetch", "ListOffsets"
JOIN, SYNC, HEARTBEAT, CONSUMER = "JoinGroup", "SyncGroup", "Heartbeat", "ConsumerGroupHeartbeat"
COMMIT, OFFSETS = "OffsetCommit", "OffsetFetch"
INIT, END, TXN_COMMIT = "InitProducerId", "EndTxn", "TxnOffsetCommit"
ADD_PARTITIONS, ADD_OFFSETS = "AddPartitionsToTxn", "AddOffsetsToTxn"

OF_TRANSACTIONS = frozenset({INIT, END, ADD_PARTITIONS, ADD_OFFSETS})
CHANGING = frozenset({PRODUCE, COMMIT, TXN_COMMIT}) | OF_TRANSACTIONS
READING = frozenset({FETCH, LIST_OFFSETS, OFFSETS, HEARTBEAT, CONSUMER})
LOADED = frozenset({JOIN, CONSUMER, COMMIT, OFFSETS}) | OF_TRANSACTIONS
COORDINATED = LOADED | {SYNC, HEARTBEAT, TXN_COMMIT}
EVERYTHING = CHANGING | READING | COORDINATED
CONCERNED = EVERYTHING | {"LeaveGroup"}


@dataclass(slots=True)
class Told:
    """What clients were told since the exploration began, as far as a kind depends on it."""

    ended: set[str] = field(default_factory=set)  # transactional ids whose markers may be late
    joined: dict[str, Any] = field(default_factory=dict)  # by client id: what it joined with

    def note(self, asked: Request, outcome: Outcome) -> None:
        if asked.api not in _NOTED:
            return
        response = response_in(asked, outcome)
        if response is not None and getattr(response, "error_code", Error.NONE) == Error.NONE:
            _NOTED[asked.api](self, asked)

    def _has_ended(self, asked: Request) -> None:
        self.ended.add(_transactional_id(asked))

    def _goes_on(self, asked: Request) -> None:
        self.ended.discard(_transactional_id(asked))

    def _has_joined(self, asked: Request) -> None:
        self.joined[asked.client_id or ""] = asked.message

    def _has_left(self, asked: Request) -> None:
        self.joined.pop(asked.client_id or "", None)

    def _lives(self, asked: Request) -> None:
        if asked.message.member_epoch == 0:
            self._has_joined(asked)
        elif asked.message.member_epoch < 0:
            self._has_left(asked)


_NOTED: dict[str, Callable[[Told, Request], None]] = {
    END: Told._has_ended,
    INIT: Told._goes_on,
    ADD_PARTITIONS: Told._goes_on,
    ADD_OFFSETS: Told._goes_on,
    JOIN: Told._has_joined,
    CONSUMER: Told._lives,
    "LeaveGroup": Told._has_left,
}


@dataclass(slots=True)
class Point:
    """One request at which something may be chosen."""

    asked: Request
    world: World
    told: Told
    served: list[fetched.Served]  # of a fetch: what it would be given
    told_count: int = 0  # of a fetch: the partitions that it would be told of

    def partitions(self) -> list[tuple[str, int]]:
        """What it names, as far as the cluster has it."""
        asked = self.asked
        names = names_in(asked.message, asked.version, self.world.known)
        return sorted({name for kind, name in names if kind == PARTITION and name[0] is not None})


@dataclass(slots=True, frozen=True)
class Kind:
    """One thing that a broker may do."""

    apis: frozenset[str]
    deed: Callable[[Point], Deed]
    fits: Callable[[Point], bool] = lambda _: True


def point_of(asked: Request, world: World, told: Told) -> Point:
    is_fetch = asked.api == FETCH and asked.version >= fetched.BATCHES_SINCE
    response = response_in(asked, asked.outcome) if is_fetch and asked.outcome else None
    if response is None:
        return Point(asked, world, told, [])
    count = sum(len(topic.partitions) for topic in response.responses)
    return Point(asked, world, told, list(fetched.served(asked, response, world)), count)


def kinds_at(point: Point, names: tuple[str, ...]) -> list[str]:
    """Those of these kinds that are legal here."""
    api = point.asked.api
    if not point.asked.is_answered or (api == FETCH and not point.served):
        return []
    return [name for name in names if api in KINDS[name].apis and KINDS[name].fits(point)]


# --- what fits ------------------------------------------------------------------------------------


def _has_followers(point: Point) -> bool:
    """And waits for them."""
    return _waits_for(point, lambda replicas, _: replicas > 1)


def _may_lack_replicas(point: Point) -> bool:
    """The leader is in sync with itself, so it alone is enough where one is."""
    return _waits_for(point, lambda replicas, least: min(replicas, least) > 1)


def _waits_for(point: Point, holds: Callable[[int, int], bool]) -> bool:
    """Whether a Produce waits for replicas, and this holds for those of all its partitions: how
    many there are, and how many have to be in sync."""
    broker, partitions = point.world.broker(), point.partitions()
    if broker is None or not partitions or point.asked.message.acks != ALL_IN_SYNC:
        return False
    states = (broker.metadata.image.partition(*each) for each in partitions)
    return all(
        state is not None
        and holds(len(state.replicas), broker.known.config_of(topic).min_insync_replicas)
        for (topic, _), state in zip(partitions, states, strict=True)
    )


def _has_several_batches(point: Point) -> bool:
    return fetched.has_several_batches(point.served)


def _is_told_again(point: Point) -> bool:
    """What a session has told it takes as known; records alone come again whatever it holds."""
    is_entire = point.asked.message.session_epoch in fetched.ENTIRE_SESSION
    return is_entire or point.told_count == len(point.served)


def _may_have_moved(point: Point) -> bool:
    return point.asked.api == FETCH or bool(point.partitions())


def _has_a_coordinator(point: Point) -> bool:
    return point.asked.api != INIT or point.asked.message.transactional_id is not None


def _is_a_member(point: Point) -> bool:
    """Of a group that has members still: nobody joins one that is gone."""
    joined = point.told.joined.get(point.asked.client_id or "")
    return joined is not None and (
        meanwhile.coordinator_of(point.world, joined.group_id) is not None
    )


def _markers_may_be_late(point: Point) -> bool:
    return _transactional_id(point.asked) in point.told.ended


def _transactional_id(asked: Request) -> str:
    message = asked.message
    if asked.api == ADD_PARTITIONS:
        return str(message.v3_and_below_transactional_id)
    return message.transactional_id or ""


# --- what is done ---------------------------------------------------------------------------------


def _delayed(_: Point) -> Deed:
    return Deed(act=Act.DELAY, duration_ms=DELAY_MS)


def _throttled(_: Point) -> Deed:
    return Deed(act=Act.THROTTLE, duration_ms=THROTTLE_MS)


def _disconnected(_: Point) -> Deed:
    return Deed(act=Act.DISCONNECT)


def _lost(_: Point) -> Deed:
    return Deed(act=Act.LOSE_REPLY)


def _short(_: Point) -> Deed:
    return Deed(act=Act.CHANGE, alter=fetched.shortened)


def _empty(_: Point) -> Deed:
    return Deed(act=Act.THROTTLE, duration_ms=THROTTLE_MS, alter=fetched.emptied)


def _rebalanced(point: Point) -> Deed:
    joined = point.told.joined[point.asked.client_id or ""]
    return Deed(act=Act.CHANGE, before=partial(meanwhile.rebalance, point.world, joined))


def _moved(point: Point) -> Deed:
    world = point.world
    if point.asked.api == FETCH:
        name, partition = point.served[0]
        anew = partial(meanwhile.lead_anew, world, [(name, partition.partition_index)])

        def moved(asked: Request, outcome: Outcome) -> Outcome:
            return fetched.moved(asked, outcome, world)

        return Deed(act=Act.CHANGE, alter=moved, before=anew)
    refused = _refused(Error.NOT_LEADER_OR_FOLLOWER)(point)
    anew = partial(meanwhile.lead_anew, world, point.partitions())
    return Deed(act=refused.act, alter=refused.alter, before=anew)


def _refused(error: Error) -> Callable[[Point], Deed]:
    def deed(point: Point) -> Deed:
        def refusal(asked: Request, _: Outcome) -> Outcome:
            if asked.api == PRODUCE:
                return produced.unappended(asked, error, point.world)
            return reply_of(asked, error_reply(asked.message, asked.version, error))

        return Deed(act=Act.TELL, alter=refusal)

    return deed


def _refused_after_append(error: Error) -> Callable[[Point], Deed]:
    def refusal(asked: Request, outcome: Outcome) -> Outcome:
        return produced.appended(asked, outcome, error)

    return lambda _: Deed(act=Act.CHANGE, alter=refusal)


_PRODUCE, _FETCH = frozenset({PRODUCE}), frozenset({FETCH})

# Why each is legal stands in docs/testing.md.
KINDS: dict[str, Kind] = {
    "short-fetch": Kind(_FETCH, _short, _has_several_batches),
    "empty-fetch": Kind(_FETCH, _empty, _is_told_again),
    "delay": Kind(EVERYTHING, _delayed),
    "throttle": Kind(EVERYTHING, _throttled),
    "disconnect": Kind(CHANGING | READING, _disconnected),
    "lost-acknowledgement": Kind(CHANGING, _lost),
    "moved-leader": Kind(_PRODUCE | _FETCH | {LIST_OFFSETS}, _moved, _may_have_moved),
    "not-enough-replicas": Kind(
        _PRODUCE, _refused(Error.NOT_ENOUGH_REPLICAS), _may_lack_replicas
    ),
    "not-enough-replicas-after-append": Kind(
        _PRODUCE, _refused_after_append(Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND), _may_lack_replicas
    ),
    "timed-out-after-append": Kind(
        _PRODUCE, _refused_after_append(Error.REQUEST_TIMED_OUT), _has_followers
    ),
    "coordinator-loading": Kind(
        LOADED, _refused(Error.COORDINATOR_LOAD_IN_PROGRESS), _has_a_coordinator
    ),
    "not-coordinator": Kind(COORDINATED, _refused(Error.NOT_COORDINATOR), _has_a_coordinator),
    "rebalance": Kind(_FETCH | {COMMIT, HEARTBEAT, CONSUMER}, _rebalanced, _is_a_member),
    "late-markers": Kind(
        frozenset({INIT, ADD_PARTITIONS, ADD_OFFSETS}),
        _refused(Error.CONCURRENT_TRANSACTIONS),
        _markers_may_be_late,
    ),
}
