"""Metadata: brokers and topics as a client should see them, and topics that come by being asked."""

import pytest

from kafkalite.coordinators.cluster.brokers import FenceBroker
from kafkalite.env.slicing import InSteps, finish
from kafkalite.handlers.call import Call, Encoded
from kafkalite.handlers.metadata import STEP_NAMES, metadata
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import MetadataRequest
from tests.unit.handlers.whole_broker import WholeBroker

Topic = MetadataRequest.Topic


def ask(world, *names, version=13, auto=False, **fields):
    request = MetadataRequest(
        topics=[Topic(name=name) for name in names], allow_auto_topic_creation=auto, **fields
    )
    return world.ask(request, version)


@pytest.mark.parametrize("version", range(14))
def test_names_brokers_and_leaders_in_every_version(world, version):
    world.create("t", 2)
    response = ask(world, "t", version=version)
    # Nothing is advertised, so the broker is where this client found it.
    assert [(each.host, each.port) for each in response.brokers] == [("10.0.0.1", 9092)]
    (topic,) = response.topics
    assert [each.leader_id for each in topic.partitions] == [1, 1]
    assert [each.replica_nodes for each in topic.partitions] == [[1], [1]]


def test_all_topics_by_null_and_in_version_0_by_an_empty_list(world):
    world.create("a")
    world.create("b")
    response = world.ask(MetadataRequest(topics=None), 13)
    assert [each.name for each in response.topics] == ["a", "b"]
    assert [each.name for each in ask(world, version=0).topics] == ["a", "b"]
    assert ask(world, version=1).topics == []


def test_a_missing_topic_comes_with_the_reply(world):
    (topic,) = ask(world, "new", auto=True).topics
    assert topic.error_code == Error.NONE
    assert topic.topic_id == world.metadata.image.topics["new"].topic_id
    world.context.partitions.find("new", 0).check_leader()


def test_a_missing_topic_is_unknown_at_first_where_that_is_asked_for(make_world):
    world = make_world(settings={"kafkalite.auto.create.waits": "false"})
    codes = [ask(world, "new", "a b", auto=True).topics for _ in range(2)]
    assert [[each.error_code for each in topics] for topics in codes] == [
        [Error.UNKNOWN_TOPIC_OR_PARTITION, Error.INVALID_TOPIC_EXCEPTION],
        [Error.NONE, Error.INVALID_TOPIC_EXCEPTION],
    ]


@pytest.mark.parametrize(
    ("auto", "settings"), [(False, {}), (True, {"auto.create.topics.enable": "false"})]
)
def test_a_missing_topic_is_not_made_unless_both_want_it(make_world, auto, settings):
    world = make_world(settings=settings)
    (topic,) = ask(world, "new", auto=auto).topics
    assert topic.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert world.metadata.image.topics == {}


def test_versions_before_4_always_want_it(world):
    assert ask(world, "new", version=3).topics[0].error_code == Error.NONE


def test_a_name_that_no_topic_can_have(world):
    for auto in (True, False):
        (topic,) = ask(world, "a b", auto=auto).topics
        assert topic.error_code == Error.INVALID_TOPIC_EXCEPTION


def test_internal_topics_are_made_with_their_own_settings(world):
    (topic,) = ask(world, "__consumer_offsets", auto=True).topics
    assert (topic.is_internal, len(topic.partitions)) == (True, 50)
    assert world.context.logs.get("__consumer_offsets", 0).config.is_compacted


def test_by_id(world):
    topic_id = world.create("t")
    asked = [Topic(name=None, topic_id=topic_id), Topic(name=None, topic_id=b"\1" * 16)]
    known, unknown = world.ask(MetadataRequest(topics=asked), 12).topics
    assert (known.name, known.error_code) == ("t", Error.NONE)
    assert (unknown.name, unknown.error_code) == (None, Error.UNKNOWN_TOPIC_ID)


@pytest.mark.parametrize("topic", [Topic(name=None), Topic(name="t", topic_id=b"\1" * 16)])
def test_ids_are_refused_before_version_12(world, topic):
    (answer,) = world.ask(MetadataRequest(topics=[topic]), 11).topics
    assert answer.error_code == Error.INVALID_REQUEST


def test_authorized_operations_only_when_asked(world):
    world.create("t")
    response = ask(world, "t", version=10)
    assert response.topics[0].topic_authorized_operations == -(2**31)
    response = ask(
        world,
        "t",
        version=10,
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )
    assert response.topics[0].topic_authorized_operations == 0b1101_1111_1000
    assert response.cluster_authorized_operations == 0b1_1111_1010_0000


def test_a_fenced_broker_is_left_out_and_its_partitions_have_no_leader(three):
    three.create("t", 3, 1)
    three.controller.decide(FenceBroker(2))
    response = ask(three, "t")
    assert [each.node_id for each in response.brokers] == [1, 3]
    errors = {each.replica_nodes[0]: each for each in response.topics[0].partitions}
    assert (errors[2].error_code, errors[2].leader_id) == (Error.LEADER_NOT_AVAILABLE, -1)
    assert errors[2].offline_replicas == [2]
    assert errors[1].error_code == errors[3].error_code == Error.NONE


def test_every_broker_of_the_process_gives_the_same_picture(three):
    three.create("t", 3, 3)
    request = MetadataRequest(topics=None)
    first, second, third = (three.ask(request, 13, node_id) for node_id in (1, 2, 3))
    assert first == second == third
    assert [each.port for each in first.brokers] == [9092, 9093, 9094]


def test_brokers_that_did_not_start_again_are_not_named():
    broker = WholeBroker()
    broker.add_peer(2)
    assert [each.node_id for each in broker.ask(MetadataRequest(topics=[]), 12).brokers] == [1, 2]
    broker.close()
    again = broker.started_again()
    assert [each.node_id for each in again.ask(MetadataRequest(topics=[]), 12).brokers] == [1]
    again.close()


def test_a_kept_reply_knows_what_has_come_since(world):
    everything = MetadataRequest(topics=None)
    world.create("a")
    before = world.ask(everything, 12)
    assert world.ask(everything, 12) == before
    world.create("b", 2)
    after = world.ask(everything, 12)
    assert [(each.name, len(each.partitions)) for each in after.topics] == [("a", 1), ("b", 2)]
    world.controller.decide(FenceBroker(1))
    assert [each.leader_id for each in world.ask(everything, 12).topics[0].partitions] == [-1]


def is_kept(world, call, principal):
    world.connection.principal = principal
    return isinstance(metadata(world.context, call, MetadataRequest(topics=None)), Encoded)


@pytest.mark.parametrize(("steps_before", "kept_for_first"), [(0, False), (1, True), (2, True)])
def test_a_reply_is_kept_for_nobody_but_whom_it_was_made_for(world, steps_before, kept_for_first):
    for number in range(3 * STEP_NAMES):
        world.create(f"topic-{number}")
    call = Call(3, 12, 1, "a-client", world.connection)
    world.connection.principal = "User:first"
    answer = metadata(world.context, call, MetadataRequest(topics=None))
    assert isinstance(answer, InSteps)
    for _ in range(steps_before):
        next(answer.steps)
    world.connection.principal = "User:second"
    assert isinstance(finish(answer.steps), Encoded)
    assert not is_kept(world, call, "User:second")
    assert is_kept(world, call, "User:first") == kept_for_first


def test_a_kept_reply_is_given_only_to_the_same_question(world):
    world.create("a")
    world.create("b")
    asked = [
        (names, version, fields)
        for names in (["a"], ["b"], ["a", "b"])
        for version in (8, 10, 12)
        for fields in ({}, {"include_topic_authorized_operations": True})
    ]
    first = [ask(world, *names, version=version, **fields) for names, version, fields in asked]
    again = [ask(world, *names, version=version, **fields) for names, version, fields in asked]
    assert first == again
    for (names, _, fields), response in zip(asked, first, strict=True):
        assert [each.name for each in response.topics] == names
        operations = {each.topic_authorized_operations >= 0 for each in response.topics}
        assert operations == {bool(fields)}
