"""Streams groups (KIP-1071), asked by hand: both brokers say the same, word for word.

Each conversation has groups, topics and members of the same names on both brokers, and what is not
the same in the answers is a failure. Applications of Kafka Streams itself are in test_streams.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kafkalite.coordinators.groups.streams_topology import Status
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    JoinGroupRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    StreamsGroupDescribeRequest,
)
from tests.compat import brokers
from tests.compat.admin_peer import GROUP, SET, Admin
from tests.compat.brokers import BROKERS, Broker
from tests.compat.waiting import PATIENCE_S, POLL_S
from tests.out_and_in.asking import Asker
from tests.unit.handlers.streams_desk import (
    Request,
    beating,
    joining,
    stateful,
    subtopology,
    task_ids,
    topic,
    topology,
)

A, B = "member-a", "member-b"
SEEN_S = 1.0


class Talk:
    """One broker, and all that it has said."""

    def __init__(self, broker: Broker, unique: Callable[[str], str]) -> None:
        self.unique, self.is_kafkalite = unique, broker.is_kafkalite
        self.admin, self.asker = Admin(broker), Asker(broker.port)
        self.said: list[Any] = []

    def close(self) -> None:
        self.admin.close()
        self.asker.close()

    def create(self, topic: str, partitions: int) -> None:
        """Apache Kafka's coordinators see a topic some time after its brokers do."""
        self.admin.create(topic, partitions)
        if not self.is_kafkalite:
            time.sleep(SEEN_S)

    def group(self, name: str, **settings: str) -> str:
        """Its coordinator is there, and nobody waits for members or for the next assignment."""
        group_id = self.unique(name)
        settings = {
            "streams_initial_rebalance_delay_ms": "0", "streams_assignment_interval_ms": "0",
            **settings,
        }  # fmt: skip
        for setting, value in settings.items():
            changed = (setting.replace("_", "."), SET, value)
            assert self.admin.alter(GROUP, group_id, changed).error_code == Error.NONE
        self.asker.find(group_id)
        return group_id

    def beat(self, group_id: str, request: Request) -> Any:
        request.group_id = group_id
        answer = self.asker.patiently(request, 0)
        self.said.append((request, answer))
        return answer

    def beat_until(self, group_id: str, request: Request, is_done: Callable[[Any], bool]) -> Any:
        """Asks again until it is so; that alone counts."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            answer = self.beat(group_id, request)
            if is_done(answer) or time.monotonic() > deadline:
                return answer
            self.said.pop()
            request.member_epoch = answer.member_epoch
            time.sleep(POLL_S)

    def ask(self, request: Any, version: int) -> Any:
        answer = self.asker.ask(request, version)
        self.said.append((request, answer))
        return answer

    def describe(self, group_id: str) -> Any:
        (group,) = self.ask(StreamsGroupDescribeRequest(group_ids=[group_id]), 0).groups
        group.members.sort(key=lambda member: member.member_id)
        return group


@pytest.fixture
def names(unique: Callable[[str], str]) -> Callable[[str], str]:
    """The same ones for both brokers."""
    made: dict[str, str] = {}
    return lambda what: made.setdefault(what, unique(what))


@pytest.fixture
def talks(run_folder: Path, names: Callable[[str], str]) -> Iterator[list[Talk]]:
    both = [Talk(brokers.shared(kind, run_folder), names) for kind in BROKERS]
    yield both
    for each in both:
        each.close()


def same(talks: list[Talk], conversation: Callable[[Talk], None]) -> None:
    """Has the conversation with both."""
    for each in talks:
        conversation(each)
    ours, theirs = (each.said for each in talks)
    for (asked, answer), (_, expected) in zip(ours, theirs, strict=True):
        assert answer == expected, asked


def test_tasks_move_from_a_member_to_the_next(talks: list[Talk]) -> None:
    def conversation(talk: Talk) -> None:
        source = talk.unique("source")
        talk.create(source, 4)
        group = talk.group("group")
        what = topology(subtopology(source_topics=[source]))
        talk.beat(group, joining(A, what))
        talk.beat(group, beating(A, 2, task_ids(_0=[0, 1, 2, 3])))
        talk.beat(group, joining(B, what, process_id="p", rack_id="r"))
        talk.beat(group, beating(A, 2, task_ids(_0=[0, 1, 2, 3])))
        talk.describe(group)
        talk.beat(group, beating(B, 3, []))
        talk.beat(group, beating(A, 2, task_ids(_0=[0, 1])))
        talk.beat(group, beating(A, 2, task_ids(_0=[0, 1])))  # as if the answer had been lost
        talk.beat(group, beating(B, 3, []))
        talk.describe(group)
        commits(talk, group, source)
        for epoch in (2, 9, 3, -1):
            talk.beat(group, beating(B, epoch))
        talk.beat(group, beating(A, 3))
        talk.describe(group)
        talk.beat(group, beating(A, 4, shutdown_application=True))
        talk.beat(group, beating(A, -1, shutdown_application=True))
        talk.describe(group)
        around(talk, group, source)

    same(talks, conversation)


def commits(talk: Talk, group_id: str, source: str) -> None:
    """By a member in its epoch, in others, and by nobody."""
    kind = OffsetCommitRequest
    for member, epoch, index, version in (
        (A, 3, 0, 9), (A, 2, 1, 9), (A, 2, 3, 9), (A, 4, 0, 9), (B, 2, 2, 9), (A, 3, 0, 8),
        ("", -1, 0, 9), ("nobody", 3, 0, 9),
    ):  # fmt: skip
        partition = kind.Partition(partition_index=index, committed_offset=5)
        request = kind(
            group_id=group_id, member_id=member, generation_id_or_member_epoch=epoch,
            topics=[kind.Topic(name=source, partitions=[partition])],
        )  # fmt: skip
        talk.ask(request, version)
    wanted = OffsetFetchRequest.GroupTopic(name=source, partition_indexes=[0])
    for member_id, epoch in ((None, -1), (A, 3), (A, 2), ("nobody", 3)):
        asked = OffsetFetchRequest.Group(
            group_id=group_id, member_id=member_id, member_epoch=epoch, topics=[wanted]
        )
        talk.ask(OffsetFetchRequest(groups=[asked]), 9)


def around(talk: Talk, group_id: str, source: str) -> None:
    """What others see of a deserted group, and its end."""
    for version in (5, 6):
        talk.ask(DescribeGroupsRequest(groups=[group_id]), version)
    listed = talk.asker.ask(ListGroupsRequest(), 5).groups
    talk.said.append(("listed", [one for one in listed if one.group_id == group_id]))
    kind = OffsetDeleteRequest
    gone = kind.Topic(name=source, partitions=[kind.Partition(partition_index=0)])
    talk.ask(kind(group_id=group_id, topics=[gone]), 0)
    delete = DeleteGroupsRequest(groups_names=[group_id])
    for _ in range(2):
        talk.ask(delete, 2)


def test_topics_decide_what_there_is_to_do(talks: list[Talk]) -> None:
    def conversation(talk: Talk) -> None:
        source, inner, kept = (talk.unique(name) for name in ("source", "inner", "kept"))
        group = talk.group("group")
        what = topology(
            subtopology("0", source_topics=[source], repartition_sink_topics=[inner]),
            subtopology("1", source_topics=[], repartition_source_topics=[topic(inner)],
                        state_changelog_topics=[topic(kept, configs={"cleanup.policy": "compact"})],
                        copartition_groups=[
                            Request.CopartitionGroup(repartition_source_topics=[0])
                        ]),
        )  # fmt: skip
        first = talk.beat(group, joining(A, what))
        assert [one.status_code for one in first.status] == [Status.MISSING_SOURCE_TOPICS]
        talk.describe(group)
        talk.create(source, 3)
        done = talk.beat_until(
            group, beating(A, first.member_epoch, []), lambda answer: not answer.status
        )
        assert {one.subtopology_id: one.partitions for one in done.active_tasks} == {
            "0": [0, 1, 2], "1": [0, 1, 2]
        }  # fmt: skip
        talk.said.pop()  # by then there were as many epochs as it took
        described = talk.describe(group)
        talk.said[-1] = ("described", (described.topology, described.group_state))

    same(talks, conversation)


def test_topics_that_do_not_do_are_told(talks: list[Talk]) -> None:
    def conversation(talk: Talk) -> None:
        three, four, other = (talk.unique(name) for name in ("three", "four", "other"))
        for name, count in ((three, 3), (four, 4), (other, 2)):
            talk.create(name, count)
        together = Request.CopartitionGroup(source_topics=[0, 1])
        fixed = Request.CopartitionGroup(source_topics=[0], repartition_source_topics=[0])
        for number, what in enumerate((
            topology(subtopology(source_topics=[three, four], copartition_groups=[together])),
            topology(stateful(changelog=other), subtopology("1", source_topics=[three])),
            topology(subtopology(source_topics=[three], copartition_groups=[fixed],
                                 repartition_source_topics=[topic("r", 7)])),
        )):  # fmt: skip
            for one in what.subtopologies:
                one.source_topics = [three if name == "t" else name for name in one.source_topics]
            talk.beat(talk.group(f"group-{number}"), joining(A, what))

    same(talks, conversation)


def test_topologies_that_cannot_run_are_refused(talks: list[Talk]) -> None:
    def conversation(talk: Talk) -> None:
        source = talk.unique("source")
        talk.create(source, 2)
        group = talk.group("group")
        for one in (
            subtopology(source_topics=["__consumer_offsets", "__transaction_state"]),
            subtopology(source_topics=["a b", "/"]),
            subtopology(source_topics=[source], state_changelog_topics=[topic("c", 3)]),
            subtopology(source_topics=[]),
            subtopology(source_topics=[], repartition_source_topics=[topic("r")]),
            subtopology(source_topics=[], repartition_sink_topics=["r"],
                        repartition_source_topics=[topic("r")]),
            subtopology(source_topics=[source], source_topic_regex=["x.*"]),
            subtopology(source_topics=[source], repartition_source_topics=[topic("r", -3)]),
            subtopology(source_topics=[source], copartition_groups=[
                Request.CopartitionGroup(source_topics=[-1])
            ]),
        ):  # fmt: skip
            talk.beat(group, joining(A, topology(one)))
        twice = subtopology(source_topics=[source])
        talk.beat(group, joining(A, topology(twice, twice)))
        talk.beat(group, joining(A, topology(twice, epoch=-1)))
        tag = Request.KeyValue(key="zone", value="a")
        talk.beat(group, joining(A, topology(twice), client_tags=[tag, tag]))

    same(talks, conversation)


def test_what_makes_no_sense_is_refused(talks: list[Talk]) -> None:
    def conversation(talk: Talk) -> None:
        source = talk.unique("source")
        talk.create(source, 2)
        group = talk.group("group")
        what = topology(subtopology(source_topics=[source]), epoch=3)
        for request in (
            joining(" ", what), joining("", what), joining(A, what, rack_id=" "),
            joining(A, what, instance_id="i"), joining(A, what, warmup_tasks=task_ids(_0=[1])),
            joining(A, what, task_offsets=[]), joining(A, what, task_end_offsets=[]),
            joining(A, what, rebalance_timeout_ms=-1), joining(A, what, active_tasks=None),
            joining(A, what, standby_tasks=task_ids(_0=[1])),
            beating(A, 1, topology=what), beating(A, 1, standby_tasks=[]), beating(A, -2),
            beating(A, -3), beating(A, 5), beating(A, -1),
        ):  # fmt: skip
            talk.beat(group, request)
        talk.beat(group, joining(A, what))
        talk.beat(group, beating(A, 2, task_ids(_1=[0])))
        talk.beat(group, beating(A, 2, task_ids(_0=[2])))
        talk.beat(group, joining(B, topology(subtopology(source_topics=[source]), epoch=2)))
        talk.beat(group, joining(B, topology(subtopology(source_topics=[source]), epoch=4)))
        talk.beat(group, joining(B, topology(subtopology("9", source_topics=[source]), epoch=3)))
        talk.beat(group, beating("nobody", 3))
        protocol = JoinGroupRequest.Protocol(name="range", metadata=b"")
        classic = JoinGroupRequest(
            group_id=group, session_timeout_ms=10_000, rebalance_timeout_ms=10_000,
            protocol_type="consumer", protocols=[protocol],
        )  # fmt: skip
        talk.ask(classic, 5)
        empty = StreamsGroupDescribeRequest(group_ids=["", talk.unique("nobody")])
        answer = talk.asker.ask(empty, 0)
        talk.said.append(("nobody", sorted(answer.groups, key=lambda one: one.group_id)))

    same(talks, conversation)


def test_where_state_is_kept_is_told(talks: list[Talk]) -> None:
    def conversation(talk: Talk) -> None:
        source = talk.unique("source")
        talk.create(source, 2)
        group = talk.group("group")
        what = topology(subtopology(source_topics=[source]))
        endpoint = Request.Endpoint(host="h", port=7)
        talk.beat(group, joining(A, what, user_endpoint=endpoint, endpoint_information_epoch=-1))
        for known in (-1, 0, 1):
            talk.beat(group, beating(A, 2, endpoint_information_epoch=known))
        talk.beat(group, joining(B, what))
        talk.beat(group, beating(A, 2, task_ids(_0=[0, 1]), endpoint_information_epoch=0))
        talk.beat(group, beating(A, 2, task_ids(_0=[0]), endpoint_information_epoch=1))
        talk.beat(group, beating(B, 3, [], endpoint_information_epoch=0))

    same(talks, conversation)


def test_copies_and_delays(talks: list[Talk]) -> None:
    def conversation(talk: Talk) -> None:
        source, kept = talk.unique("source"), talk.unique("kept")
        for name in (source, kept):
            talk.create(name, 2)
        what = topology(stateful(changelog=kept))
        what.subtopologies[0].source_topics = [source]
        group = talk.group("copied", streams_num_standby_replicas="1")
        talk.beat(group, joining(A, what))
        talk.beat(group, joining(B, what))
        talk.beat(group, beating(A, 2, task_ids(_0=[0, 1])))
        talk.beat(group, beating(A, 2, task_ids(_0=[0])))
        talk.beat(group, beating(B, 3, []))
        talk.beat(group, beating(A, 3, task_ids(_0=[0])))
        talk.describe(group)
        talk.beat(group, beating(A, -1))
        talk.beat(group, beating(B, 3, task_ids(_0=[1]), standby_tasks=task_ids(_0=[0])))
        talk.beat(group, beating(B, 3, task_ids(_0=[1])))
        talk.beat(group, beating(B, 4, task_ids(_0=[1])))
        delayed = talk.group("delayed", streams_initial_rebalance_delay_ms="600000")
        talk.beat(delayed, joining(A, what))
        talk.beat(delayed, joining(B, what))
        talk.beat(delayed, joining(A, what))
        paced = talk.group("paced", streams_assignment_interval_ms="15000")
        talk.beat(paced, joining(A, what))
        talk.beat(paced, joining(B, what))
        talk.describe(paced)

    same(talks, conversation)


def test_groups_of_all_kinds_keep_their_ids(talks: list[Talk]) -> None:
    """A deserted group makes room for a classic one, and an empty classic one for a streams one."""

    def conversation(talk: Talk) -> None:
        source = talk.unique("source")
        talk.create(source, 1)
        group = talk.group("group")
        what = topology(subtopology(source_topics=[source]))
        with closing(Asker(talk.asker.port)) as outside:
            offset = OffsetCommitRequest.Partition(partition_index=0, committed_offset=5)
            wanted = OffsetCommitRequest.Topic(name=source, partitions=[offset])
            outside.patiently(
                OffsetCommitRequest(group_id=group, topics=[wanted]), 9,
                lambda got: int(got.topics[0].partitions[0].error_code),
            )  # fmt: skip
        talk.beat(group, beating(A, 1))
        talk.beat(group, joining(A, what))
        talk.beat(group, beating(A, -1))
        protocol = JoinGroupRequest.Protocol(name="range", metadata=b"")
        classic = JoinGroupRequest(
            group_id=group, session_timeout_ms=10_000, rebalance_timeout_ms=10_000,
            protocol_type="consumer", protocols=[protocol],
        )  # fmt: skip
        talk.said.append(("room", talk.asker.ask(classic, 3).error_code))
        talk.beat(group, joining(A, what))

    same(talks, conversation)
