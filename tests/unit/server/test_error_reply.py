"""An error for a whole request has a slot in the response of every API, or the peer is cut off."""

from typing import Any

import pytest

from kafkalite import handlers
from kafkalite.config.listeners import BROKER
from kafkalite.handlers.api_set import ApiSet
from kafkalite.protocol import codec, spec
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    DeleteTopicsRequest,
    DescribeGroupsRequest,
    FetchRequest,
    MetadataRequest,
    ProduceRequest,
    ReadShareGroupStateSummaryRequest,
    message_class,
)
from kafkalite.server.error_reply import error_reply

SERVED = [(api, version) for api in ApiSet(BROKER).apis for version in handlers.versions(api)]
# Their errors travel per partition, group or entity that the request does not list.
WITHOUT_A_SLOT: frozenset[str] = frozenset()


@pytest.mark.parametrize(
    ("api", "version"), SERVED, ids=[f"{api.name}-v{version}" for api, version in SERVED]
)
def test_every_served_api_can_tell_an_error(api: spec.Api, version: int):
    request = message_class(f"{api.name}Request")()
    reply = error_reply(request, version, Error.UNKNOWN_SERVER_ERROR, "why")
    assert (reply is None) == (api.name in WITHOUT_A_SLOT)
    if reply is not None:
        assert codec.encode(reply, version)


@pytest.mark.parametrize("version", range(7))
def test_a_group_is_named_where_its_name_belongs(version: int) -> None:
    request = DescribeGroupsRequest(groups=["readers"])
    reply = error_reply(request, version, Error.GROUP_AUTHORIZATION_FAILED)
    assert reply is not None
    [group] = reply.groups
    assert (group.group_id, group.error_message) == ("readers", None)


def filled(cls: type[Any], struct: spec.Struct, version: int) -> Any:
    """Something in each list that this version has."""
    message = cls()
    for field in struct.fields:
        if version in field.versions and field.is_array:
            inner = getattr(type_with(cls), field.type, None)
            values = [filled(inner, field.struct, version)] if field.struct and inner else []
            plain = {"string": "a", "uuid": bytes(16), "bytes": b"a"}.get(field.type, 1)
            setattr(message, field.name, values if field.struct else [plain])
    return message


def type_with(cls: type[Any]) -> type[Any]:
    """The message class, which holds the classes of all its structs."""
    return message_class(cls.__qualname__.partition(".")[0])


@pytest.mark.parametrize(
    ("api", "version"), SERVED, ids=[f"{api.name}-v{version}" for api, version in SERVED]
)
def test_every_served_api_can_tell_an_error_of_what_a_request_names(api: spec.Api, version: int):
    cls = message_class(f"{api.name}Request")
    request = filled(cls, spec.message(cls.__name__).root, version)
    codec.encode(request, version)  # which it can be
    reply = error_reply(request, version, Error.UNKNOWN_SERVER_ERROR, "why")
    assert reply is not None
    assert codec.encode(reply, version)


def test_an_error_of_produce_is_told_for_each_partition():
    request = ProduceRequest(
        topic_data=[
            ProduceRequest.TopicData(
                name=name,
                partition_data=[ProduceRequest.PartitionData(index=i) for i in range(2)],
            )
            for name in ("a", "b")
        ]
    )
    reply = error_reply(request, 9, Error.KAFKA_STORAGE_ERROR, "why")
    assert reply is not None
    told = [
        (topic.name, partition.index, partition.error_code, partition.error_message)
        for topic in reply.responses
        for partition in topic.partition_responses
    ]
    assert told == [(t, i, Error.KAFKA_STORAGE_ERROR, "why") for t in ("a", "b") for i in (0, 1)]


def test_an_error_of_old_delete_topics_is_told_for_each_name():
    request = DeleteTopicsRequest(topic_names=["a", "b"])
    reply = error_reply(request, 1, Error.NOT_CONTROLLER)
    assert reply is not None
    assert [(each.name, each.error_code) for each in reply.responses] == [
        ("a", Error.NOT_CONTROLLER),
        ("b", Error.NOT_CONTROLLER),
    ]


def test_metadata_of_all_topics_has_no_topic_to_name():
    reply = error_reply(MetadataRequest(topics=None), 9, Error.UNKNOWN_SERVER_ERROR)
    assert reply is not None
    assert reply.topics == []


def test_an_epoch_that_was_asked_for_is_no_name():
    """Nor is anything else that a refusal would seem to know."""
    asked = ReadShareGroupStateSummaryRequest.Partition(partition=3, leader_epoch=7)
    topic = ReadShareGroupStateSummaryRequest.Topic(topic_id=bytes(16), partitions=[asked])
    request = ReadShareGroupStateSummaryRequest(group_id="g", topics=[topic])
    reply = error_reply(request, 1, Error.CLUSTER_AUTHORIZATION_FAILED)
    assert reply is not None
    [told] = reply.results[0].partitions
    assert (told.partition, told.leader_epoch) == (3, 0)
    partition = FetchRequest.Partition(partition=2, high_watermark=5)
    asked_too = FetchRequest.Topic(topic="t", partitions=[partition])
    fetched = error_reply(FetchRequest(topics=[asked_too]), 6, Error.TOPIC_AUTHORIZATION_FAILED)
    assert fetched is not None
    assert fetched.responses[0].partitions[0].high_watermark != 5
