"""An error for a whole request has a slot in the response of every API, or the peer is cut off."""

import pytest

from kafkalite import handlers
from kafkalite.protocol import codec, spec
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    DeleteTopicsRequest,
    MetadataRequest,
    ProduceRequest,
    message_class,
)
from kafkalite.server.error_reply import error_reply

SERVED = [(api, version) for api in handlers.served() for version in handlers.versions(api)]
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
