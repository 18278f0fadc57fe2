"""Records folded into a copy: the same as in place, and nothing of it is seen before."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kafkalite.coordinators.cluster.folding import folded, put_in_place
from kafkalite.coordinators.cluster.image import Image
from kafkalite.env.slicing import finish
from kafkalite.protocol.messages import (
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    PartitionChangeRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from tests.unit.coordinators.cluster.test_image import A, B, change, fold, histories, partition


def quota(key: str) -> ClientQuotaRecord:
    entity = [ClientQuotaRecord.Entity(entity_type="user", entity_name=None)]
    return ClientQuotaRecord(entity=entity, key=key, value=1.5)


def setting(name: str, value: str | None = "1") -> ConfigRecord:
    return ConfigRecord(resource_type=2, resource_name="a", name=name, value=value)


TOPIC = [TopicRecord(name="a", topic_id=A), partition(0), setting("x"), quota("x")]


def copied(first: list[Any], then: list[Any]) -> Image:
    """The image of the first, into a copy of which the others are folded."""
    image, _ = fold(*first)
    was = deepcopy(image)
    expected, _ = fold(*first)
    _, changes = fold(*then, image=expected)
    copy = finish(folded(image, then))
    assert image == was, "nothing is seen before all of it is"
    topics = image.topics
    put_in_place(image, copy)
    assert image == expected
    assert image.by_id == {each.topic_id: each for each in image.topics.values()}
    assert copy.changes == changes
    assert topics == was.topics, "who was looking at the topics goes on with those that were"
    fold(setting("later"), quota("later"), image=image)  # in place again
    assert image.own is None
    return image


@pytest.mark.parametrize(
    "then",
    [
        [partition(1), change(leader=2)],
        [PartitionChangeRecord(partition_id=0, topic_id=A, eligible_leader_replicas=[2, 3])],
        [change(last_known_elr=[1]), ClearElrRecord(topic_name="")],
        [RemoveTopicRecord(topic_id=A), TopicRecord(name="a", topic_id=B), partition(0, B)],
        [TopicRecord(name="b", topic_id=B), partition(0, B), RemoveTopicRecord(topic_id=B)],
        [setting("x", None), setting("y"), setting("y", "2")],
        [quota("y"), quota("z")],
    ],
)
def test_what_is_folded_into_a_copy_is_seen_when_it_is_put_in_place(then: list[Any]) -> None:
    copied(TOPIC, then)


def test_eligible_replicas_are_cleared_in_the_copy_alone() -> None:
    first = [*TOPIC, change(eligible_leader_replicas=[2])]
    image = copied(first, [ClearElrRecord(topic_name="a")])
    assert image.topics["a"].partitions[0].elr == ()


@settings(max_examples=200, deadline=None)
@given(histories(), st.integers(0, 25))
@example(([*TOPIC, RemoveTopicRecord(topic_id=A)], None), 4)
def test_any_history_comes_to_the_same(history: tuple[list[Any], Any], where: int) -> None:
    records, _ = history
    copied(records[:where], records[where:])


def test_a_step_is_a_few_records() -> None:
    image, _ = fold(TopicRecord(name="a", topic_id=A))
    many = [partition(index) for index in range(1_600)]
    steps, seen = folded(image, many), 0
    for _ in steps:
        seen += 1
        assert not image.topics["a"].partitions
    assert seen >= 100
