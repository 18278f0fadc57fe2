"""Streams groups asked in awkward ways: both brokers say the same, word for word."""

from __future__ import annotations

from kafkalite.coordinators.groups.streams_topology import Status
from kafkalite.protocol.errors import Error
from tests.compat.test_streams_groups import A, B, Talk, names, same, talks
from tests.unit.handlers.streams_desk import (
    Request,
    beating,
    joining,
    subtopology,
    task_ids,
    tasks,
    topic,
    topology,
)

__all__ = ["names", "talks"]
C = "member-c"


def test_who_is_nobody_wants_all_to_end(talks: list[Talk]) -> None:
    def conversation(talk: Talk) -> None:
        source = talk.unique("source")
        talk.create(source, 2)
        group = talk.group("group")
        what = topology(subtopology(source_topics=[source]))
        talk.beat(group, joining(A, what))
        talk.beat(group, beating("nobody", -1, shutdown_application=True))
        talk.beat(group, beating("nobody", 2, shutdown_application=True))
        talk.beat(group, beating(A, 2))
        talk.beat(group, beating(A, 9, shutdown_application=True))
        talk.beat(group, beating(A, 2))

    same(talks, conversation)


def test_who_is_there_joins_again(talks: list[Talk]) -> None:
    def conversation(talk: Talk) -> None:
        source = talk.unique("source")
        talk.create(source, 2)
        group = talk.group("group")
        what = topology(subtopology(source_topics=[source]))
        talk.beat(group, joining(A, what))
        talk.beat(group, joining(A, what))
        talk.beat(group, joining(A, what, process_id="another"))
        talk.beat(group, beating(A, 3, task_ids(_0=[0, 1])))
        talk.describe(group)

    same(talks, conversation)


def test_who_has_missed_its_tasks(talks: list[Talk]) -> None:
    """Apache Kafka says nothing more of them; ours tells them once more."""
    for talk, is_ours in zip(talks, (True, False), strict=True):
        source = talk.unique("source")
        talk.create(source, 2)
        group = talk.group("group")
        talk.beat(group, joining(A, topology(subtopology(source_topics=[source]))))
        for said in ([], task_ids(_0=[1])):
            answer = talk.beat(group, beating(A, 2, said))
            assert (answer.error_code, answer.member_epoch) == (0, 2)
            assert tasks(answer.active_tasks) == ({"0": [0, 1]} if is_ours else None)
        answer = talk.beat(group, beating(A, 2, task_ids(_0=[0, 1])))
        assert tasks(answer.active_tasks) is None


def test_tasks_said_twice(talks: list[Talk]) -> None:
    def conversation(talk: Talk) -> None:
        source = talk.unique("source")
        talk.create(source, 2)
        group = talk.group("group")
        what = topology(subtopology(source_topics=[source]))
        talk.beat(group, joining(A, what))
        talk.beat(group, joining(B, what))
        twice = [*task_ids(_0=[0, 1]), *task_ids(_0=[])]
        talk.beat(group, beating(A, 2, task_ids(_0=[0, 1])))
        talk.beat(group, beating(A, 2, twice))
        talk.beat(group, beating(A, 2, task_ids(_0=[0, 0])))
        talk.beat(group, beating(A, 2, [], standby_tasks=task_ids(_0=[1])))
        talk.describe(group)

    same(talks, conversation)


def test_an_endpoint_while_source_topics_are_missing(talks: list[Talk]) -> None:
    """Apache Kafka fails on it, and the application with it; ours says which topics are missing."""
    endpoint = Request.Endpoint(host="h", port=7)
    for talk, is_ours in zip(talks, (True, False), strict=True):
        what = topology(subtopology(source_topics=[talk.unique("source")]))
        asked = joining(A, what, user_endpoint=endpoint, endpoint_information_epoch=-1)
        answer = talk.beat(talk.group("group"), asked)
        if is_ours:
            assert [one.status_code for one in answer.status] == [Status.MISSING_SOURCE_TOPICS]
        else:
            assert answer.error_code == Error.UNKNOWN_SERVER_ERROR


def test_another_topology_once_all_have_gone(talks: list[Talk]) -> None:
    def conversation(talk: Talk) -> None:
        source = talk.unique("source")
        talk.create(source, 2)
        group = talk.group("group")
        what = topology(subtopology(source_topics=[source]), epoch=3)
        other = topology(subtopology("x", source_topics=[source]), epoch=4)
        older = topology(subtopology("y", source_topics=[source]), epoch=1)
        talk.beat(group, joining(A, what))
        talk.beat(group, beating(A, -1))
        talk.describe(group)
        talk.beat(group, joining(A, other))
        talk.beat(group, joining(A, older))
        talk.beat(group, joining(A, what, process_id=None, client_tags=None))
        talk.beat(group, beating(A, 5, client_tags=[Request.KeyValue(key="a", value="b")]))
        talk.describe(group)

    same(talks, conversation)


def test_empty_fields(talks: list[Talk]) -> None:
    def conversation(talk: Talk) -> None:
        source = talk.unique("source")
        talk.create(source, 2)
        group = talk.group("group")
        what = topology(subtopology("", source_topics=[source]))
        talk.beat(group, joining(A, Request.Topology(epoch=0, subtopologies=[])))
        talk.beat(group, joining(A, what, rebalance_timeout_ms=0, process_id=""))
        talk.beat(group, joining(B, what, rebalance_timeout_ms=-7))
        talk.beat(group, joining(C, what, user_endpoint=Request.Endpoint(host="", port=0)))
        talk.beat(group, joining(C, what, rack_id=""))
        talk.describe(group)
        sourced = topology(subtopology(source_topics=[source, source],
                                       repartition_source_topics=[topic(source)]))
        talk.beat(talk.group("g2"), joining(A, sourced))
        both = topology(subtopology("a", source_topics=[source]),
                        subtopology("b", source_topics=[source]))
        g3 = talk.group("g3")
        talk.beat(g3, joining(A, both))
        talk.describe(g3)

    same(talks, conversation)
