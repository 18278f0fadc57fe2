"""Messages gone through by their specs: which fields come, and what is made of them."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.protocol import spec
from kafkalite.protocol.messages import (
    DeleteGroupsRequest,
    FetchRequest,
    MetadataRequest,
    OffsetFetchRequest,
    ProduceRequest,
    message_class,
)
from kafkalite.protocol.traversal import Resource, resources_of, to_message, to_values
from tests.unit.protocol.random_messages import every_message, random_message


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


# --- what a message names ---------------------------------------------------------------------


def produce(*topics: str) -> ProduceRequest:
    partition = ProduceRequest.PartitionData(index=0, records=b"not looked at")
    data = [ProduceRequest.TopicData(name=name, partition_data=[partition]) for name in topics]
    return ProduceRequest(transactional_id="x", topic_data=data)


def test_names_come_in_the_order_of_the_fields_with_their_kind() -> None:
    named = [("transactional", "x"), ("topic", "b"), ("topic", "a"), ("topic", "b")]
    assert list(resources_of(produce("b", "a", "b"), 12)) == named


def test_a_name_that_the_version_does_not_have_is_not_there() -> None:
    assert list(resources_of(produce("a"), 2)) == [("topic", "a")]
    assert list(resources_of(produce("a"), 13)) == [("transactional", "x")]


def test_each_element_of_an_array_is_a_name() -> None:
    request = DeleteGroupsRequest(groups_names=["g", "h"])
    assert list(resources_of(request, 2)) == [("group", "g"), ("group", "h")]


@pytest.mark.parametrize("topics", [None, []])
def test_nothing_is_named_by_null(topics: Any) -> None:
    assert list(resources_of(MetadataRequest(topics=topics), 9)) == []
    nameless = MetadataRequest(topics=[MetadataRequest.Topic(name=None)])
    assert list(resources_of(nameless, 12)) == []


def test_names_come_one_by_one() -> None:
    topics: list[Any] = [MetadataRequest.Topic(name="a"), "no topic"]
    names = resources_of(MetadataRequest(topics=topics), 9)
    assert next(names) == ("topic", "a")


def whole_way(message: Any, version: int) -> list[Resource]:
    """Every value of a message gone to, and those noted that name something."""
    named: list[Resource] = []

    def leaf(value: Any, field: spec.Field) -> None:
        if field.resource is not None:
            named.append((field.resource, value))

    to_values(message, version, leaf)
    return named


@given(chance=st.randoms(use_true_random=False), message=st.sampled_from(every_message()))
def test_nothing_that_is_named_is_passed_over(chance: random.Random, message: Any) -> None:
    version = chance.choice(message.versions)
    one = random_message(chance, message_class(message.name), version)
    assert list(resources_of(one, version)) == whole_way(one, version)
