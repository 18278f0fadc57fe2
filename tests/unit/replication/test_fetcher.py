"""Many partitions that are copied from one leader, round for round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafkalite.config import BrokerConfig
from kafkalite.env import Env
from kafkalite.env.background import QueuedBackground
from kafkalite.env.later import Later
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import FetchRequest, FetchResponse
from kafkalite.replication.acting import BATCHES_PER_STEP
from kafkalite.replication.fetcher import Fetcher
from kafkalite.replication.fetching import FetchSettings
from kafkalite.replication.follower import Follower
from kafkalite.replication.leader import Leadership
from kafkalite.replication.partition import Partition
from kafkalite.replication.throttle import FOLLOWER, Throttle
from tests.unit.log.making import TOPIC_ID, World, batch

ROUND_MS = 1_000


def records(first: int, count: int = 1) -> bytearray:
    """Batches of one record each."""
    made = bytearray()
    for offset in range(first, first + count):
        one = bytearray(batch([b"x"]))
        one[:8] = offset.to_bytes(8, "big")
        made += one
    return made


def no_throttle(env: Env) -> Throttle:
    return Throttle(BrokerConfig(), env.clock, FOLLOWER)


class Line:
    """A way to a leader, who answers when it is told to."""

    def __init__(self) -> None:
        self.asked: list[tuple[FetchRequest, Later[Any]]] = []
        self.last: list[int] = []  # the partitions that were asked for

    def ask(self, request: Any, versions: range) -> Later[Any]:
        answer: Later[Any] = Later()
        self.asked.append((request, answer))
        return answer

    def answer(self, say: Callable[[int, int], bytes]) -> None:
        """To the request that is open: for each partition and where it stands, in that order."""
        request, answer = self.asked.pop()
        (topic,) = request.topics
        self.last = [each.partition for each in topic.partitions]
        answers = [
            FetchResponse.Partition(
                partition_index=each.partition,
                high_watermark=0,
                log_start_offset=0,
                records=say(each.partition, each.fetch_offset),
            )
            for each in topic.partitions
        ]
        answer.resolve(
            FetchResponse(responses=[
                FetchResponse.Response(topic_id=TOPIC_ID, partitions=answers)
            ])
        )


    def diverge(self, index: int, epoch: tuple[int, int]) -> None:
        """Says of one partition where its last epoch ended here, and nothing of the others."""
        _, answer = self.asked.pop()
        part = FetchResponse.Partition(
            partition_index=index,
            diverging_epoch=FetchResponse.DivergingEpoch(epoch=epoch[0], end_offset=epoch[1]),
        )
        answer.resolve(
            FetchResponse(responses=[
                FetchResponse.Response(topic_id=TOPIC_ID, partitions=[part])
            ])
        )


class Copying:
    """A broker that follows some partitions of one leader."""

    def __init__(self, count: int) -> None:
        self.world, self.line = World(), Line()
        env = self.world.env
        self.fetcher = Fetcher(
            env, self.line, 2, lambda: 20, FetchSettings(), no_throttle(env)
        )
        self.partitions = [
            Partition("t", index, TOPIC_ID, 2, self.world.log(partition=index))
            for index in range(count)
        ]
        for partition in self.partitions:
            partition.take(Leadership(1, 0, 0, (1, 2), (1, 2)))
            self.fetcher.add(partition)
        self.turns()

    def turns(self, ms: int = 1) -> None:
        self.world.clock.advance(ms)

    def ends(self) -> list[int]:
        return [partition.log.log_end_offset for partition in self.partitions]


@pytest.fixture
def copying() -> Copying:
    return Copying(3)


def test_no_partition_waits_for_ever_behind_busy_ones(copying: Copying) -> None:
    """An answer has an end, and the leader fills it in the order in which it is asked."""
    for _ in range(3):
        is_full = False

        def say(_: int, offset: int) -> bytes:
            nonlocal is_full
            was_full, is_full = is_full, True
            return b"" if was_full else bytes(records(offset))

        copying.line.answer(say)
        copying.turns(ROUND_MS)
    assert copying.ends() == [1, 1, 1]


def test_a_log_that_moves_while_it_is_appended_to_is_followed_on(copying: Copying) -> None:
    """To another directory of its broker."""
    first = copying.partitions[0]
    many = bytes(records(0, 40 * BATCHES_PER_STEP))
    copying.line.answer(lambda index, _: many if index == 0 else b"")
    assert 0 < first.log.log_end_offset < 40 * BATCHES_PER_STEP
    other = copying.world.log("u")
    other.append_as_follower(records(0, first.log.log_end_offset))
    had = other.log_end_offset
    first.moved(other)
    copying.turns(ROUND_MS)
    (request, _), = copying.line.asked
    (topic,) = request.topics
    assert had in [each.fetch_offset for each in topic.partitions if each.partition == 0]


def test_others_are_copied_while_one_log_is_being_cut(copying: Copying) -> None:
    """Its leader tells where they part; nothing is asked for it, or put into it, before that
    lasts."""
    first = copying.partitions[0]
    copying.line.answer(lambda index, _: bytes(records(0, 5)) if index == 0 else b"")
    copying.turns()
    jobs = QueuedBackground()
    copying.world.env.background = jobs
    copying.line.diverge(0, (0, 3))
    asked = set[int]()
    for offset in range(5):
        copying.turns()
        copying.line.answer(lambda index, at: bytes(records(at)))
        asked.update(copying.line.last)
        assert copying.partitions[1].log.log_end_offset == offset + 1
    assert (asked, first.log.being_cut is None) == ({1, 2}, False)
    while len(jobs):
        jobs.run_one()
        copying.turns()
    assert first.log.log_end_offset == 3
    copying.line.last = []
    while 0 not in copying.line.last:
        copying.line.answer(lambda index, at: bytes(records(at)))
        copying.turns()
    assert first.log.log_end_offset == 4


def test_a_new_leader_is_asked_when_the_cut_for_the_one_before_is_over(copying: Copying) -> None:
    first = copying.partitions[0]
    copying.line.answer(lambda index, _: bytes(records(0, 5)) if index == 0 else b"")
    copying.turns()
    first.advance(5)
    jobs = QueuedBackground()
    copying.world.env.background = jobs
    copying.line.diverge(0, (0, 3))
    first.take(Leadership(1, 1, 1, (1, 2), (1, 2)))
    other = Line()
    env = copying.world.env
    fetcher = Fetcher(env, other, 2, lambda: 20, FetchSettings(), no_throttle(env))
    copying.fetcher.remove(first)
    fetcher.add(first)
    copying.turns()
    assert not other.asked
    jobs.run_all()
    copying.turns()
    [(request, _)] = other.asked
    assert request.topics[0].partitions[0].fetch_offset == first.log.log_end_offset == 3


def test_a_leader_that_is_gone_is_asked_again_after_a_while(copying: Copying) -> None:
    _, answer = copying.line.asked.pop()
    answer.resolve(KafkaError(Error.NETWORK_EXCEPTION))
    copying.turns(1)
    assert not copying.line.asked
    role = copying.partitions[0].role
    assert isinstance(role, Follower)
    copying.turns(role.backoff_ms)
    assert len(copying.line.asked) == 1
