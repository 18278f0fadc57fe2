"""Messages gone through by their specs: which fields come, and what is made of them."""

from typing import Any

from kafkalite.protocol import spec
from kafkalite.protocol.messages import FetchRequest, MetadataRequest, OffsetFetchRequest
from kafkalite.protocol.visiting import to_message, to_values


def as_it_is(value: Any, field: spec.Field) -> Any:
    return value


def shouted(value: Any, field: spec.Field) -> Any:
    return value.upper() if field.type == "string" else value


def test_only_the_fields_of_the_version_are_visited() -> None:
    request = FetchRequest(max_wait_ms=5, session_id=7, rack_id="r")
    assert "session_id" not in to_values(request, 6, as_it_is)
    assert to_values(request, 11, as_it_is)["rack_id"] == "r"
    tagged = to_values(request, 15, as_it_is)
    assert (tagged["replica_state"], tagged["cluster_id"]) == (
        {"replica_id": -1, "replica_epoch": -1},
        None,
    )


def test_structs_become_dictionaries_and_elements_are_visited_one_by_one() -> None:
    topic = OffsetFetchRequest.Topic(name="a", partition_indexes=[1, 2])
    values = to_values(OffsetFetchRequest(group_id="g", topics=[topic]), 1, shouted)
    assert values == {"group_id": "G", "topics": [{"name": "A", "partition_indexes": [1, 2]}]}


def test_null_stays_null() -> None:
    assert to_values(MetadataRequest(topics=None), 1, shouted) == {"topics": None}


def test_an_array_may_be_put_in_order() -> None:
    topic = OffsetFetchRequest.Topic(name="a", partition_indexes=[3, 1, 2])
    values = to_values(OffsetFetchRequest(group_id="g", topics=[topic]), 1, as_it_is, sorted)
    assert values["topics"][0]["partition_indexes"] == [1, 2, 3]


def test_a_message_is_made_of_another_or_of_its_values() -> None:
    topic = OffsetFetchRequest.Topic(name="a", partition_indexes=[1])
    request = OffsetFetchRequest(group_id="g", topics=[topic])
    copy = to_message(OffsetFetchRequest, 1, request, as_it_is)
    assert copy == request
    assert copy.topics[0] is not topic
    values = to_values(request, 1, as_it_is)
    assert to_message(OffsetFetchRequest, 1, values, as_it_is, dict.__getitem__) == request
