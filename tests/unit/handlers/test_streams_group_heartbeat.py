"""StreamsGroupHeartbeat: joining, topics, tasks that move, statuses and errors with their words."""

import pytest

from kafkalite.coordinators.groups.streams_topology import Status
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    DeleteGroupsRequest,
    DescribeConfigsRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
)
from tests.unit.handlers.streams_desk import (
    GROUP,
    MEMBER,
    OTHER,
    Request,
    StreamsDesk,
    beating,
    joining,
    stateful,
    statuses,
    subtopology,
    task_ids,
    tasks,
    topic,
    topology,
)

ALL = {"0": [0, 1, 2, 3]}


# -- tasks -----------------------------------------------------------------------------------------


def test_the_first_member_has_all_tasks_at_once() -> None:
    desk = StreamsDesk()
    first = desk.join()
    assert (first.error_code, first.member_epoch, first.heartbeat_interval_ms) == (0, 2, 5_000)
    assert (tasks(first.active_tasks), first.standby_tasks, first.warmup_tasks) == (ALL, [], [])
    assert first.status == []
    second = desk.beat(MEMBER, 2, task_ids(_0=[0, 1, 2, 3]))
    assert (second.member_epoch, second.active_tasks, second.status) == (2, None, [])


def test_a_second_member_gets_tasks_once_the_first_has_given_them_back() -> None:
    desk = StreamsDesk()
    desk.join()
    late = desk.join(OTHER)
    assert (late.member_epoch, tasks(late.active_tasks)) == (3, {})
    told = desk.beat(MEMBER, 2, task_ids(_0=[0, 1, 2, 3]))
    assert (told.member_epoch, tasks(told.active_tasks)) == (2, {"0": [0, 1]})
    assert tasks(desk.beat(OTHER, 3, []).active_tasks) is None  # they are not free yet
    done = desk.beat(MEMBER, 2, task_ids(_0=[0, 1]))
    assert (done.member_epoch, done.active_tasks) == (3, None)
    given = desk.beat(OTHER, 3, [])
    assert (given.member_epoch, tasks(given.active_tasks)) == (3, {"0": [2, 3]})
    assert desk.described().group_state == "Stable"


def test_the_tasks_of_who_leaves_go_to_who_stays() -> None:
    desk = StreamsDesk()
    desk.join()
    desk.join(OTHER)
    left = desk.leave()
    assert (left.error_code, left.member_epoch, left.status) == (0, -1, [])
    taken = desk.beat(OTHER, 3, [])
    assert (taken.member_epoch, tasks(taken.active_tasks)) == (4, ALL)


def test_who_says_nothing_is_gone_after_its_session() -> None:
    desk = StreamsDesk()
    desk.join()
    desk.clock.advance(45_000)
    assert desk.beat(MEMBER, 2).error_code == Error.UNKNOWN_MEMBER_ID
    assert desk.described().group_state == "Empty"


def test_who_gives_nothing_back_is_fenced_after_its_rebalance_timeout() -> None:
    desk = StreamsDesk()
    desk.join()
    desk.join(OTHER)
    told = desk.beat(MEMBER, 2, task_ids(_0=[0, 1, 2, 3]))
    assert tasks(told.active_tasks) == {"0": [0, 1]}
    for _ in range(2):
        desk.clock.advance(14_900)
        desk.beat(MEMBER, 2, task_ids(_0=[0, 1, 2, 3]))
        assert desk.beat(OTHER, 3).error_code == Error.NONE
    desk.clock.advance(300)
    assert desk.beat(MEMBER, 2).error_code == Error.UNKNOWN_MEMBER_ID


def test_copies_go_to_other_processes() -> None:
    desk = StreamsDesk({"group.streams.num.standby.replicas": "1"}, partitions=2)
    desk.create("app-store-changelog", 2)
    what = topology(stateful())
    first = desk.join(MEMBER, what)
    assert (tasks(first.active_tasks), tasks(first.standby_tasks)) == ({"0": [0, 1]}, {})
    desk.join(OTHER, what)
    desk.beat(MEMBER, 2, task_ids(_0=[0, 1]))
    assert desk.beat(MEMBER, 2, task_ids(_0=[0])).member_epoch == 3
    given = desk.beat(OTHER, 3, [])
    assert tasks(given.active_tasks) == {"0": [1]}
    assert tasks(given.standby_tasks) == {"0": [0]}
    copied = desk.beat(MEMBER, 3, task_ids(_0=[0]))  # its process had the task until now
    assert tasks(copied.standby_tasks) == {"0": [1]}


def test_members_of_one_process_have_no_copy_of_each_other_s_tasks() -> None:
    desk = StreamsDesk({"group.streams.num.standby.replicas": "1"}, partitions=2)
    desk.create("app-store-changelog", 2)
    for name in (MEMBER, OTHER):
        answer = desk.join(name, topology(stateful()), process_id="one")
        assert tasks(answer.standby_tasks) == {}


def test_a_group_that_wants_copies_gets_a_new_assignment() -> None:
    desk = StreamsDesk(partitions=2)
    desk.create("app-store-changelog", 2)
    desk.join(MEMBER, topology(stateful()))
    desk.configure(streams_num_standby_replicas="1")
    assert desk.beat(MEMBER, 2).member_epoch == 3


# -- waiting ---------------------------------------------------------------------------------------


def test_a_new_group_waits_for_more_members() -> None:
    desk = StreamsDesk({"group.streams.initial.rebalance.delay.ms": "3000"})
    delayed = {
        Status.ASSIGNMENT_DELAYED:
        "Assignment delayed due to the configured initial rebalance delay."
    }  # fmt: skip
    for name in (MEMBER, OTHER, MEMBER):
        answer = desk.join(name)
        assert (answer.member_epoch, tasks(answer.active_tasks)) == (1, {})
        assert statuses(answer) == delayed
        desk.clock.advance(900)
    desk.clock.advance(300)
    found = [desk.join(name) for name in (MEMBER, OTHER)]
    assert [tasks(each.active_tasks) for each in found] == [{"0": [0, 2]}, {"0": [1, 3]}]
    assert [statuses(each) for each in found] == [{}, {}]


def test_a_new_assignment_waits_for_its_interval() -> None:
    desk = StreamsDesk({"group.streams.assignment.interval.ms": "1000"})
    desk.join()
    delayed = desk.join(OTHER)
    assert (delayed.member_epoch, tasks(delayed.active_tasks)) == (2, {})
    assert statuses(delayed) == {
        Status.ASSIGNMENT_DELAYED: "Assignment delayed due to the configured assignment interval."
    }
    desk.clock.advance(1_000)
    assert desk.beat(OTHER, 2, []).member_epoch == 3


# -- topics ----------------------------------------------------------------------------------------


def test_missing_internal_topics_are_made() -> None:
    desk = StreamsDesk()
    first = desk.join(MEMBER, topology(stateful()))
    assert statuses(first) == {
        Status.MISSING_INTERNAL_TOPICS: "Internal topics are missing: app-store-changelog"
    }
    assert (first.member_epoch, tasks(first.active_tasks)) == (2, {})
    assert desk.described().group_state == "NotReady"
    desk.clock.advance(5_000)
    second = desk.beat(MEMBER, 2, [])
    assert (second.member_epoch, tasks(second.active_tasks), second.status) == (3, ALL, [])
    made = desk.context.metadata.image.topics["app-store-changelog"]
    assert len(made.partitions) == 4
    kind = DescribeConfigsRequest
    asked = kind.Resource(
        resource_type=2, resource_name="app-store-changelog", configuration_keys=["cleanup.policy"]
    )
    (config,) = desk.ask(kind(resources=[asked]), 4).results[0].configs
    assert config.value == "compact"


def test_why_a_topic_cannot_be_made_is_told_for_a_while() -> None:
    desk = StreamsDesk()
    changelog = topic("app-store-changelog", configs={"cleanup.policy": "nonsense"})
    desk.join(MEMBER, topology(subtopology(state_changelog_topics=[changelog])))
    desk.clock.advance(10)
    (told,) = statuses(desk.beat(MEMBER, 2, [])).values()
    assert told.startswith("Internal topics are missing: app-store-changelog; Creation failed:")
    assert "nonsense" in told


def test_a_repartition_topic_has_as_many_partitions_as_what_is_written_to_it_from() -> None:
    desk = StreamsDesk(partitions=3)
    what = topology(
        subtopology("0", repartition_sink_topics=["app-repartition"]),
        subtopology("1", source_topics=[], repartition_source_topics=[topic("app-repartition")],
                    state_changelog_topics=[topic("app-changelog")]),
    )  # fmt: skip
    desk.join(MEMBER, what)
    desk.clock.advance(10)
    told = desk.beat(MEMBER, 2, [])
    assert tasks(told.active_tasks) == {"0": [0, 1, 2], "1": [0, 1, 2]}
    topics = desk.context.metadata.image.topics
    assert [len(topics[name].partitions) for name in ("app-repartition", "app-changelog")] == [3, 3]


def test_copartitioned_topics_must_have_as_many_partitions() -> None:
    desk = StreamsDesk()
    desk.create("u", 3)
    group = Request.CopartitionGroup(source_topics=[0, 1])
    answer = desk.join(
        MEMBER, topology(subtopology(source_topics=["t", "u"], copartition_groups=[group]))
    )
    assert statuses(answer) == {
        Status.INCORRECTLY_PARTITIONED_TOPICS:
        "Following topics do not have the same number of partitions: [{t=4, u=3}]"
    }  # fmt: skip


def test_a_copartitioned_repartition_topic_gets_as_many_as_the_source() -> None:
    desk = StreamsDesk()
    group = Request.CopartitionGroup(source_topics=[0], repartition_source_topics=[0])
    what = topology(
        subtopology("0", source_topics=["u"], repartition_sink_topics=["app-repartition"]),
        subtopology("1", repartition_source_topics=[topic("app-repartition")],
                    copartition_groups=[group]),
    )  # fmt: skip
    desk.create("u", 7)
    desk.join(MEMBER, what)
    desk.clock.advance(10)
    assert len(desk.context.metadata.image.topics["app-repartition"].partitions) == 4


def test_an_internal_topic_with_other_partitions_is_told() -> None:
    desk = StreamsDesk()
    desk.create("app-store-changelog", 2)
    answer = desk.join(MEMBER, topology(stateful()))
    assert statuses(answer) == {
        Status.INCORRECTLY_PARTITIONED_TOPICS:
        "Existing topic app-store-changelog has different number of partitions:"
        " expected 4, found 2"
    }  # fmt: skip


def test_source_topics_that_are_missing_are_told_until_they_are_there() -> None:
    desk = StreamsDesk()
    names = ["e", "d", "c", "b"]
    first = desk.join(MEMBER, topology(subtopology(source_topics=names)))
    assert statuses(first) == {
        Status.MISSING_SOURCE_TOPICS: "Source topics b, c, d and 1 additional topics are missing."
    }
    for name in names:
        desk.create(name)
    second = desk.beat(MEMBER, first.member_epoch, [])
    assert (tasks(second.active_tasks), second.status) == ({"0": [0]}, [])


def test_more_partitions_are_more_tasks() -> None:
    desk = StreamsDesk(partitions=1)
    desk.create("u", 2)
    first = desk.join(MEMBER, topology(subtopology(source_topics=["t"])))
    desk.delete("t")
    gone = desk.beat(MEMBER, first.member_epoch, task_ids(_0=[0]))
    assert Status.MISSING_SOURCE_TOPICS in statuses(gone)
    desk.create("t", 3)
    back = desk.beat(MEMBER, gone.member_epoch, [])
    assert tasks(back.active_tasks) == {"0": [1, 2]}  # the other one was this process's until now
    full = desk.beat(MEMBER, back.member_epoch, task_ids(_0=[1, 2]))
    assert tasks(full.active_tasks) == {"0": [0, 1, 2]}


# -- topologies ------------------------------------------------------------------------------------


def test_an_older_topology_is_stale_and_another_one_is_refused() -> None:
    desk = StreamsDesk()
    desk.join(MEMBER, topology(epoch=3))
    stale = desk.join(OTHER, topology(epoch=2))
    assert statuses(stale) == {
        Status.STALE_TOPOLOGY:
        "The member's topology epoch 2 is behind the group's topology epoch 3."
    }  # fmt: skip
    refused = desk.join("third", topology(epoch=4))
    assert (refused.error_code, refused.error_message) == (
        Error.INVALID_REQUEST, "Topology updates are not supported yet."
    )  # fmt: skip


@pytest.mark.parametrize(
    ("what", "code", "message"),
    [
        (topology(subtopology(source_topics=["__consumer_offsets"])), 130,
         "Use of Kafka internal topics __consumer_offsets in a Kafka Streams topology is"
         " prohibited."),
        (topology(subtopology(source_topics=["a b", "/"])), 130,
         "Topic names a b,/ are not valid topic names."),
        (topology(subtopology(state_changelog_topics=[topic("c", 3)])), 130,
         "Changelog topic c must have an undefined partition count, but it is set to 3."),
        (topology(subtopology(source_topics=[])), 130,
         "No source topics found for subtopology 0"),
        (topology(subtopology(source_topics=[], repartition_source_topics=[topic("r")])), 130,
         "Failed to compute number of partitions for all repartition topics, because"
         " a repartition source topic is never used as a sink topic."),
        (topology(subtopology(source_topics=[], repartition_sink_topics=["r"],
                              repartition_source_topics=[topic("r")])), 130,
         "Failed to compute number of partitions for all repartition topics."
         " There may be loops in the topology that cannot be resolved."),
        (topology(subtopology(source_topic_regex=["x.*"])), Error.INVALID_REQUEST,
         "Regular expressions for source topics are not supported yet."),
        (topology(subtopology(), subtopology()), Error.UNKNOWN_SERVER_ERROR, None),
        (topology(epoch=-1), Error.UNKNOWN_SERVER_ERROR, None),
        (topology(subtopology(copartition_groups=[Request.CopartitionGroup(source_topics=[-1])])),
         Error.UNKNOWN_SERVER_ERROR, None),
        (topology(subtopology(repartition_source_topics=[topic("r", -3)])),
         Error.UNKNOWN_SERVER_ERROR, None),
    ],
)  # fmt: skip
def test_a_topology_that_cannot_run_is_refused(what, code, message) -> None:
    answer = StreamsDesk().join(MEMBER, what)
    assert (answer.error_code, answer.error_message) == (code, message)


# -- what is wrong is said -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "code", "message"),
    [
        (joining(" "), Error.INVALID_REQUEST, "MemberId can't be empty."),
        (joining(rack_id=" "), Error.INVALID_REQUEST, "RackId can't be empty."),
        (joining(instance_id="i"), Error.INVALID_REQUEST,
         "Static membership is not yet supported."),
        (joining(warmup_tasks=task_ids(_0=[1])), Error.INVALID_REQUEST,
         "WarmupTasks are not supported yet."),
        (joining(task_offsets=[]), Error.INVALID_REQUEST, "TaskOffsets are not supported yet."),
        (joining(rebalance_timeout_ms=-1), Error.INVALID_REQUEST,
         "RebalanceTimeoutMs must be provided in first request."),
        (joining(active_tasks=None), Error.INVALID_REQUEST,
         "ActiveTasks must be empty when (re-)joining."),
        (joining(active_tasks=task_ids(_0=[1])), Error.INVALID_REQUEST,
         "ActiveTasks must be empty when (re-)joining."),
        (beating(MEMBER, 1, topology=topology()), Error.INVALID_REQUEST,
         "Topology can only be provided when (re-)joining."),
        (beating(MEMBER, 1, standby_tasks=[]), Error.INVALID_REQUEST,
         "If one task-type is non-null, all must be non-null."),
        (beating(MEMBER, -2), Error.INVALID_REQUEST, "InstanceId can't be null."),
        (beating(MEMBER, -3), Error.INVALID_REQUEST,
         "MemberEpoch is -3, but must be greater than or equal to -2."),
        (beating(MEMBER, 5), Error.GROUP_ID_NOT_FOUND, f"Streams group {GROUP} not found."),
        (beating(MEMBER, -1), Error.GROUP_ID_NOT_FOUND, f"Group {GROUP} not found."),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(request_, code, message) -> None:
    answer = StreamsDesk().ask(request_, 0)
    assert (answer.error_code, answer.error_message) == (code, message)


def test_tasks_that_are_not_there_are_refused() -> None:
    desk = StreamsDesk()
    desk.join()
    for said, why in (
        (task_ids(_1=[0]), "Subtopology 1 does not exist in the topology."),
        (task_ids(_0=[4]),
         "Task 4 for subtopology 0 is invalid. Number of tasks for this subtopology: 4"),
    ):  # fmt: skip
        answer = desk.beat(MEMBER, 2, said)
        assert (answer.error_code, answer.error_message) == (Error.INVALID_REQUEST, why)


def test_a_wrong_epoch_fences_but_that_of_an_answer_that_was_lost() -> None:
    desk = StreamsDesk()
    desk.join()
    desk.join(OTHER)
    desk.leave(OTHER)
    desk.beat(MEMBER, 2, task_ids(_0=[0, 1, 2, 3]))
    assert desk.beat(MEMBER, 2, task_ids(_0=[0, 1])).error_code == Error.NONE
    for wrong in (1, 9):
        answer = desk.beat(MEMBER, wrong, [])
        assert answer.error_code == Error.FENCED_MEMBER_EPOCH
        assert answer.error_message.endswith("must abandon all its partitions and rejoin.")
    assert desk.beat(OTHER, 4).error_code == Error.UNKNOWN_MEMBER_ID


def test_a_group_is_full_at_its_limit() -> None:
    desk = StreamsDesk({"group.streams.max.size": "1"})
    desk.join()
    refused = desk.join(OTHER)
    assert (refused.error_code, refused.error_message) == (
        Error.GROUP_MAX_SIZE_REACHED,
        "The streams group has reached its maximum capacity of 1 members.",
    )


def test_who_wants_all_to_end_is_named_to_all() -> None:
    desk = StreamsDesk()
    desk.join()
    desk.join(OTHER)
    ends = desk.beat(MEMBER, 2, shutdown_application=True)
    why = (
        f"Streams group member {MEMBER} encountered a fatal error and requested a shutdown for the"
        " entire application."
    )
    assert statuses(ends)[Status.SHUTDOWN_APPLICATION] == why
    desk.leave()
    assert statuses(desk.beat(OTHER, 3, []))[Status.SHUTDOWN_APPLICATION] == why
    desk.leave(OTHER)
    assert statuses(desk.join()) == {}


def test_members_are_told_where_state_is_to_be_asked_for() -> None:
    desk = StreamsDesk()
    desk.join(user_endpoint=Request.Endpoint(host="h", port=7))
    answer = desk.beat(MEMBER, 2, endpoint_information_epoch=-1)
    (one,) = answer.partitions_by_user_endpoint
    assert (one.user_endpoint.host, one.user_endpoint.port) == ("h", 7)
    assert [(each.topic, each.partitions) for each in one.active_partitions] == [
        ("t", [0, 1, 2, 3])
    ]
    known = answer.endpoint_information_epoch
    again = desk.beat(MEMBER, 2, endpoint_information_epoch=known)
    assert again.partitions_by_user_endpoint is None


def test_without_the_feature_or_the_protocol_nobody_joins() -> None:
    desk = StreamsDesk()
    desk.context.metadata.image.features["streams.version"] = 0
    assert desk.join().error_code == Error.UNSUPPORTED_VERSION
    desk = StreamsDesk({"group.coordinator.rebalance.protocols": "classic,consumer"})
    assert desk.join().error_code == Error.UNSUPPORTED_VERSION
    assert desk.described().error_code == Error.UNSUPPORTED_VERSION


# -- the group's life ------------------------------------------------------------------------------


def test_a_group_is_there_after_a_restart() -> None:
    desk = StreamsDesk()
    desk.join(MEMBER, client_tags=[Request.KeyValue(key="zone", value="a")])
    desk.join(OTHER)
    desk.beat(MEMBER, 2, task_ids(_0=[0, 1, 2, 3]))
    before = desk.described()
    desk.close()
    again = desk.started_again()
    assert again.described() == before
    assert again.beat(MEMBER, 2, task_ids(_0=[0, 1])).member_epoch == 3
    assert tasks(again.beat(OTHER, 3, []).active_tasks) == {"0": [2, 3]}


def commit(desk: StreamsDesk, epoch: int, member: str = MEMBER, index: int = 0) -> int:
    kind = OffsetCommitRequest
    partition = kind.Partition(partition_index=index, committed_offset=5)
    request = kind(
        group_id=GROUP, member_id=member, generation_id_or_member_epoch=epoch,
        topics=[kind.Topic(name="t", partitions=[partition])],
    )  # fmt: skip
    (answer,) = desk.ask(request, 9).topics
    return int(answer.partitions[0].error_code)


def test_offsets_are_committed_by_who_has_the_task() -> None:
    desk = StreamsDesk()
    desk.join()
    assert commit(desk, 2) == Error.NONE
    assert commit(desk, 3) == Error.STALE_MEMBER_EPOCH
    assert commit(desk, 2, OTHER) == Error.UNKNOWN_MEMBER_ID
    desk.join(OTHER)
    desk.beat(MEMBER, 2, task_ids(_0=[0, 1, 2, 3]))
    desk.beat(MEMBER, 2, task_ids(_0=[0, 1]))
    desk.beat(OTHER, 3, [])
    assert commit(desk, 2) == Error.NONE  # it has had this task since then
    assert commit(desk, 2, index=3) == Error.STALE_MEMBER_EPOCH
    wanted = OffsetFetchRequest.GroupTopic(name="t", partition_indexes=[0])
    for member, epoch, code in ((MEMBER, 3, 0), (MEMBER, 2, Error.STALE_MEMBER_EPOCH),
                                ("x", 3, Error.UNKNOWN_MEMBER_ID), (None, -1, 0)):  # fmt: skip
        group = OffsetFetchRequest.Group(
            group_id=GROUP, member_id=member, member_epoch=epoch, topics=[wanted]
        )
        (answer,) = desk.ask(OffsetFetchRequest(groups=[group]), 9).groups
        assert answer.error_code == code, (member, epoch)


def test_it_is_listed_and_deleted_when_it_is_empty() -> None:
    desk = StreamsDesk()
    desk.join()
    (listed,) = desk.ask(ListGroupsRequest(), 5).groups
    assert (listed.group_type, listed.protocol_type, listed.group_state) == (
        "streams", "streams", "Stable"
    )  # fmt: skip
    delete = DeleteGroupsRequest(groups_names=[GROUP])
    assert desk.ask(delete, 2).results[0].error_code == Error.NON_EMPTY_GROUP
    desk.leave()
    assert desk.ask(delete, 2).results[0].error_code == Error.NONE
    assert desk.ask(ListGroupsRequest(), 5).groups == []
