"""Two images side by side tell those who follow what the records between them would have told."""

from __future__ import annotations

from copy import copy, deepcopy
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from kafkalite.coordinators.cluster.changes import Changes
from kafkalite.coordinators.cluster.image import Image
from kafkalite.coordinators.cluster.states import TOPIC
from kafkalite.protocol.messages import (
    ClientQuotaRecord,
    ConfigRecord,
    FeatureLevelRecord,
    RemoveTopicRecord,
    TopicRecord,
    UserScramCredentialRecord,
)
from tests.unit.coordinators.cluster.test_image import A, B, change, fold, histories, partition

ENTITY = [ClientQuotaRecord.Entity(entity_type="user", entity_name=None)]
MORE = st.sampled_from([
    ConfigRecord(resource_type=TOPIC, resource_name="a", name="x", value="1"),
    ConfigRecord(resource_type=TOPIC, resource_name="a", name="x", value=None),
    ConfigRecord(resource_type=4, resource_name="", name="x", value="2"),
    ClientQuotaRecord(entity=ENTITY, key="k", value=1.5),
    ClientQuotaRecord(entity=ENTITY, key="k", remove=True),
    FeatureLevelRecord(name="f", feature_level=1),
    FeatureLevelRecord(name="f", feature_level=0),
    UserScramCredentialRecord(name="u", mechanism=1, iterations=4096),
    UserScramCredentialRecord(name="u", mechanism=1, iterations=8192),
])


def with_new_ids(records: list[Any]) -> list[Any]:
    """No id is given twice: a topic that comes again has another one."""
    ids: dict[bytes, bytes] = {}
    changed = []
    for number, record in enumerate(records):
        topic_id = getattr(record, "topic_id", None)
        if isinstance(record, TopicRecord):
            ids[record.topic_id] = number.to_bytes(16, "big")
        if topic_id is not None:
            record = copy(record)
            record.topic_id = ids[topic_id]
        changed.append(record)
    return changed


def parts(image: Image) -> dict[str, dict[Any, Any]]:
    """What each kind of change is about."""
    return {
        "partitions": {
            (topic.topic_id, index): state
            for topic in image.by_id.values()
            for index, state in topic.partitions.items()
        },
        "configs": image.configs,
        "brokers": image.brokers,
        "features": image.features,
        "quotas": image.quotas,
        "credentials": image.scram,
    }


def matters(key: tuple[int, str], old: Image, new: Image) -> bool:
    """Settings that went with their topic are nobody's."""
    kind, name = key
    if kind != TOPIC or key in new.configs:
        return True
    return name in new.topics and new.topic_id(name) == old.topic_id(name)


def told(changes: Changes, old: Image, new: Image) -> dict[str, set[Any]]:
    """All that changes tell and that is not again as it was."""
    was, now = parts(old), parts(new)
    heard = {
        name: {key for key in getattr(changes, name) if was[name].get(key) != now[name].get(key)}
        for name in was
    }
    heard["configs"] = {key for key in heard["configs"] if matters(key, old, new)}
    heard["created"] = {key for key in changes.created if key in new.by_id}
    heard["deleted"] = {key for key in changes.deleted if key in old.by_id}
    return heard


def check(first: list[Any], then: list[Any]) -> None:
    old, _ = fold(*first)
    new, folded = fold(*then, image=deepcopy(old))
    between = Changes.between(old, new)
    assert told(between, old, new) == told(folded, old, new)
    for each in between.__slots__:
        # Nothing more, and of what is deleted everything that somebody may have open.
        assert set(getattr(between, each)) <= set(getattr(folded, each)), each
    assert {key: topic.partitions for key, topic in between.deleted.items()} == {
        key: old.by_id[key].partitions for key in between.deleted
    }
    assert all(between.created[key] is new.by_id[key] for key in between.created)


@settings(max_examples=300, deadline=None)
@given(histories(), st.integers(0, 25), st.lists(MORE, max_size=6), st.randoms())
@example(([TopicRecord(name="a", topic_id=A), partition(0)], None), 2, [], None)
def test_images_tell_what_the_records_between_them_tell(
    history: tuple[list[Any], Any], where: int, more: list[Any], chance: Any
) -> None:
    records = with_new_ids(history[0])
    mixed = list(records)
    for each in more:
        mixed.insert(chance.randint(0, len(mixed)), each)
    try:
        fold(*mixed)
    except KeyError:  # nothing to be taken away there
        mixed = list(records)
    check(mixed[:where], mixed[where:])


def test_a_topic_that_comes_again_is_gone_and_new() -> None:
    setting = ConfigRecord(resource_type=TOPIC, resource_name="a", name="x", value="1")
    first = [TopicRecord(name="a", topic_id=A), partition(0), setting]
    again = [RemoveTopicRecord(topic_id=A), TopicRecord(name="a", topic_id=B), partition(0, B)]
    check(first, again)
    check(first, [*again, setting])
    check(first, [change(leader=2), *again])


def test_a_partition_that_changed_is_told() -> None:
    check([TopicRecord(name="a", topic_id=A), partition(0), partition(1)], [change(leader=2)])


def test_what_is_as_it_was_is_not_told() -> None:
    image, _ = fold(TopicRecord(name="a", topic_id=A), partition(0))
    assert Changes.between(image, deepcopy(image)) == Changes()


def test_changes_that_come_later_are_told_with_those_before() -> None:
    image, changes = fold(TopicRecord(name="a", topic_id=A))
    _, later = fold(partition(0), image=image)
    changes.add(later)
    assert (list(changes.created), list(changes.partitions)) == ([A], [(A, 0)])
