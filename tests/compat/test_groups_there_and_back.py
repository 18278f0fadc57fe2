"""A group goes from the classic to the consumer protocol and back: generations and epochs of
everybody at every step, as Apache Kafka counts them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from kafkalite.protocol.errors import Error
from tests.compat.brokers import Broker
from tests.compat.group_peer import (
    ClassicPeer,
    ConsumerPeer,
    GroupPeer,
    assignment,
    group_on,
    read_assignment,
    subscription,
)

NONE = Error.NONE


@pytest.fixture
def group(broker: Broker, unique: Callable[[str], str]) -> Iterator[GroupPeer]:
    with group_on(broker, unique("group")) as peer:
        yield peer


@pytest.fixture
def made(group: GroupPeer, topic: str) -> str:
    return group.known_topic(topic)


class Story:
    """What is said of the group after each step."""

    def __init__(self, group: GroupPeer, topic: str) -> None:
        self.group, self.topic = group, topic
        self.told: list[str] = []

    def tell(self, what: str) -> None:
        state, kind, _ = self.group.listed()
        numbers = ""
        if kind == "consumer":
            found = self.group.describe_consumers()
            members = sorted(
                f"{'classic' if one.member_type == 0 else 'new'} in {one.member_epoch}"
                for one in found.members
            )
            numbers = f" {found.group_epoch} of {found.assignment_epoch}: {', '.join(members)}"
        self.told.append(f"{what} | {kind} {state}{numbers}")

    def joins(self, member: ClassicPeer, owned: list[int] | None = None) -> None:
        topics = {self.topic: owned} if owned is not None else None
        member.protocols = {"range": subscription([self.topic], topics)}
        answer = member.join()
        code = Error(answer.error_code).name
        self.tell(f"joins: {code} generation {answer.generation_id}")

    def syncs(self, member: ClassicPeer, assigned: list[int] | None = None) -> list[int]:
        given = {} if assigned is None else {
            member.member_id: assignment({self.topic: assigned})
        }  # fmt: skip
        code, data = member.sync(given)
        found = read_assignment(data).get(self.topic, [])
        self.tell(f"syncs: {code.name} has {len(found)}")
        return found

    def heartbeats(self, member: ClassicPeer) -> None:
        self.tell(f"heartbeats in {member.generation}: {member.heartbeat().name}")

    def beats(self, member: ConsumerPeer) -> None:
        code = member.beat()
        self.tell(f"beats: {code.name} epoch {member.epoch} has {len(member.partitions)}")


EXPECTED = [
    "joins: NONE generation 1 | classic CompletingRebalance",
    "syncs: NONE has 4 | classic Stable",
    "heartbeats in 1: NONE | classic Stable",
    "beats: NONE epoch 2 has 0 | consumer Reconciling 2 of 2: classic in 1, new in 2",
    "heartbeats in 1: REBALANCE_IN_PROGRESS | consumer Reconciling 2 of 2: classic in 1, new in 2",
    "joins: NONE generation 1 | consumer Reconciling 2 of 2: classic in 1, new in 2",
    "syncs: NONE has 2 | consumer Reconciling 2 of 2: classic in 1, new in 2",
    "joins: NONE generation 2 | consumer Reconciling 2 of 2: classic in 2, new in 2",
    "syncs: NONE has 2 | consumer Reconciling 2 of 2: classic in 2, new in 2",
    "heartbeats in 2: NONE | consumer Reconciling 2 of 2: classic in 2, new in 2",
    "beats: NONE epoch 2 has 2 | consumer Stable 2 of 2: classic in 2, new in 2",
    "beats: NONE epoch 2 has 2 | consumer Stable 2 of 2: classic in 2, new in 2",
    "heartbeats in 2: NONE | consumer Stable 2 of 2: classic in 2, new in 2",
    "beats: NONE epoch 3 has 0 | consumer Reconciling 3 of 3: classic in 2, new in 2, new in 3",
    "the third leaves | consumer Assigning 4 of 3: classic in 2, new in 2",
    "beats: NONE epoch 4 has 2 | consumer Reconciling 4 of 4: classic in 2, new in 4",
    "heartbeats in 2: REBALANCE_IN_PROGRESS | consumer Reconciling 4 of 4: classic in 2, new in 4",
    "the second leaves | classic PreparingRebalance",
    "heartbeats in 2: ILLEGAL_GENERATION | classic PreparingRebalance",
    "joins: NONE generation 5 | classic CompletingRebalance",
    "syncs: NONE has 4 | classic Stable",
    "heartbeats in 5: NONE | classic Stable",
    "beats: NONE epoch 6 has 0 | consumer Reconciling 6 of 6: classic in 5, new in 6",
    "the first leaves | consumer Assigning 7 of 6: new in 6",
    "beats: NONE epoch 7 has 4 | consumer Stable 7 of 7: new in 7",
    "beats: NONE epoch 7 has 4 | consumer Stable 7 of 7: new in 7",
]


def test_epochs_and_generations_there_and_back(group: GroupPeer, made: str) -> None:
    story = Story(group, made)
    ana = group.classic()
    story.joins(ana)
    story.syncs(ana, [0, 1, 2, 3])
    story.heartbeats(ana)
    bob = group.consumer("bob", topics=[made])
    story.beats(bob)
    story.heartbeats(ana)
    story.joins(ana, [0, 1, 2, 3])
    kept = story.syncs(ana)
    story.joins(ana, kept)
    story.syncs(ana)
    story.heartbeats(ana)
    story.beats(bob)
    story.beats(bob)
    story.heartbeats(ana)
    cat = group.consumer("cat", topics=[made])
    story.beats(cat)
    assert cat.beat(epoch=-1) == NONE
    story.tell("the third leaves")
    story.beats(bob)
    story.heartbeats(ana)
    assert bob.beat(epoch=-1) == NONE
    story.tell("the second leaves")
    story.heartbeats(ana)
    story.joins(ana, kept)
    story.syncs(ana, [0, 1, 2, 3])
    story.heartbeats(ana)
    again = group.consumer("again", topics=[made])
    story.beats(again)
    assert ana.leave() == NONE
    story.tell("the first leaves")
    story.beats(again)
    story.beats(again)
    assert story.told == EXPECTED
