"""What a deletion takes from a topic, and what it does not; what a group's commits may come to."""

from __future__ import annotations

from random import Random

import pytest

from kafkalite.protocol.messages import ConsumerGroupHeartbeatResponse
from kafkalite.sim.checker import Anomalies, Final, check
from kafkalite.sim.client import Ask
from kafkalite.sim.crowd import Crowd
from kafkalite.sim.history import History, Partition, Reading
from kafkalite.sim.members import ConsumerMember, Membership
from kafkalite.sim.topics import Incarnation
from kafkalite.sim.world import World

NAME = "renewed"
BY_NAME: Partition = (NAME, 0)


class Play:
    """A topic in two lives, and what a producer sent to it."""

    def __init__(self) -> None:
        self.history = History()
        self.history.topics.promise(NAME)
        self.first = self._begin()

    def _begin(self) -> Incarnation:
        number = len(self.history.topics.lives[NAME]) + 1
        return self.history.topics.begin(NAME, bytes([number]) * 16, 1, {})

    def send(self, where: Partition, *, is_kept: bool = True) -> bytes:
        attempt = self.history.begin(is_transactional=False)
        value = self.history.send(attempt, "p", where)
        if is_kept:
            self.history.keep(attempt)
        return value

    def ask_for_deletion(self) -> None:
        self.first.asked_at = len(self.history.sent)

    def renew(self) -> Incarnation:
        self.first.gone_at = len(self.history.sent)
        return self._begin()

    def judge(self, last: Incarnation, *found: bytes) -> set[str]:
        [where] = last.partitions
        seen = list(enumerate(found))
        committed, everything = Reading(where, True, seen), Reading(where, False, seen)
        anomalies = Anomalies()
        final = Final(committed, everything, len(seen), len(seen))
        check(self.history, {where: final}, anomalies)
        return set(anomalies.found)


@pytest.mark.parametrize("is_by_name", [True, False])
def test_what_was_acknowledged_before_a_deletion_is_gone_for_good(is_by_name: bool) -> None:
    play = Play()
    [by_id] = play.first.partitions
    value = play.send(BY_NAME if is_by_name else by_id)
    play.send(("t", 0))
    play.ask_for_deletion()
    last = play.renew()
    assert play.judge(last) == set()
    assert play.judge(last, value) == {"invented"}


@pytest.mark.parametrize("is_by_name", [True, False])
def test_what_was_acknowledged_by_the_new_topic_is_there(is_by_name: bool) -> None:
    play = Play()
    play.ask_for_deletion()
    last = play.renew()
    [by_id] = last.partitions
    value = play.send(BY_NAME if is_by_name else by_id)
    assert play.judge(last) == {"lost"}
    assert play.judge(last, value) == set()
    assert play.judge(last, value, value) == {"duplicate"}


def test_what_was_sent_by_name_while_a_deletion_was_under_way_may_be_in_either() -> None:
    play = Play()
    play.ask_for_deletion()
    value = play.send(BY_NAME)
    last = play.renew()
    assert play.judge(last) == set()
    assert play.judge(last, value) == set()
    assert play.judge(last, value, value) == {"duplicate"}


def test_a_deletion_takes_nothing_from_other_topics() -> None:
    play = Play()
    value = play.send(("t", 0))
    play.ask_for_deletion()
    play.renew()
    other, everything = Reading(("t", 0), True), Reading(("t", 0), False)
    anomalies = Anomalies()
    check(play.history, {("t", 0): Final(other, everything, 0, 0)}, anomalies)
    assert anomalies.found == {"lost": [f"{value!r} in ('t', 0)"]}


def test_readers_of_a_topic_that_is_gone_have_read_the_same() -> None:
    play = Play()
    [where] = play.first.partitions
    values = [play.send(where), play.send(where)]
    for value in values:
        play.history.reading(where, is_committed_only=False).seen = [(0, value)]
    play.ask_for_deletion()
    assert play.judge(play.renew()) == {"inconsistent"}


@pytest.mark.parametrize(
    ("found", "is_legal"), [(-1, False), (1, False), (2, True), (3, True), (4, False)]
)
def test_a_group_is_at_its_last_acknowledged_commit_or_at_one_behind_it(
    found: int, is_legal: bool
) -> None:
    """The first and the second were acknowledged, the third was not answered."""
    membership = Membership("t", bytes(16), 1)
    where = ("t", 0)
    for offset in (membership.ask(where), membership.ask(where)):
        membership.acknowledge(where, offset)
    membership.ask(where)
    crowd = Crowd(World(1), membership)
    assert [kind for kind, _ in crowd.check_commits({0: found})] == ["commit lost"] * (not is_legal)


def test_a_partition_has_one_owner_who_subscribed_to_it() -> None:
    world = World(1)
    world.run_until(lambda: world.is_up, "the broker starts")
    crowd = Crowd(world, Membership("t", bytes(16), 2))
    crowd.come()
    first, second, third = [place.member for place in crowd.places]
    for member in (first, second, third):
        member.is_steady, member.subscribed = True, True
    first.owned, second.owned, third.owned = {0}, {1}, set()
    assert list(crowd.check()) == []
    second.owned = {0}
    assert {kind for kind, _ in crowd.check()} == {"not owned by one"}
    second.owned, second.subscribed = {1}, False
    assert {kind for kind, _ in crowd.check()} == {"owned without a subscription"}
    second.subscribed, third.is_steady = True, False
    assert {kind for kind, _ in crowd.check()} == {"not in the group"}


def test_a_member_that_missed_an_answer_tells_everything_and_then_no_more() -> None:
    membership = Membership("t", bytes(16), 1)
    member = ConsumerMember("m", Random(0), History(), membership, None, True)
    member.forget()
    answer = ConsumerGroupHeartbeatResponse(member_id="m-1", member_epoch=2)
    told = []
    for answers in ([answer], [None], [None], [answer], [answer]):
        script = member.live()
        ask = next(script)
        assert isinstance(ask, Ask)
        [(request, _)] = ask.requests
        told.append((request.member_epoch, request.subscribed_topic_names))
        script.send(answers)
    assert told == [(0, ["t"]), (2, None), (2, ["t"]), (2, ["t"]), (2, None)]
