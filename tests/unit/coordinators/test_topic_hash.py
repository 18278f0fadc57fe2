"""The metadata hash of consumer groups, against numbers that Apache Kafka 4.3.1 computed."""

from __future__ import annotations

from kafkalite.coordinators.groups.topic_hash import hash_in_steps, hash_of_topic
from kafkalite.coordinators.groups.topics import TopicView
from kafkalite.env.slicing import finish

TOPIC_ID = bytes.fromhex("112233445566778899aabbccddeeff00")
# Of the two topics below.
GROUP_OF_TWO = -9137990481999051508


def test_topic_without_racks() -> None:
    assert hash_of_topic(TopicView("orders", TOPIC_ID, 4)) == 8273348399692312369


def test_topic_of_many_partitions_with_racks_in_any_order() -> None:
    for racks in (("a", "rack-b"), ("rack-b", "a")):
        view = TopicView("orders", TOPIC_ID, 100, (racks,) * 100)
        assert hash_of_topic(view) == -3989936387144326902


def test_group_of_topics_in_any_order_of_names() -> None:
    pair = [TopicView("orders", TOPIC_ID, 4), TopicView("bills", TOPIC_ID[::-1], 1)]
    for given in (pair, pair[::-1]):
        assert finish(hash_in_steps(given)) == GROUP_OF_TWO
    assert finish(hash_in_steps([])) == 0
