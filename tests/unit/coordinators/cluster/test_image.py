"""The fold: what each record does, and that a snapshot of an image is the image."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkalite.coordinators.cluster.changes import Changes
from kafkalite.coordinators.cluster.folding import folded
from kafkalite.coordinators.cluster.image import Image, ImageConflict, changed_partition
from kafkalite.coordinators.cluster.image_records import records_of
from kafkalite.coordinators.cluster.records import decode_record, encode_record
from kafkalite.coordinators.cluster.states import PartitionState
from kafkalite.env.slicing import finish
from kafkalite.protocol.messages import (
    AccessControlEntryRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
)

A, B = b"\xaa" * 16, b"\xbb" * 16


def fold(*records, image=None):
    image, changes = image or Image(), Changes()
    for record in records:
        image.apply(record, changes)
    return image, changes


def partition(index=0, topic_id=A, replicas=(1, 2, 3), **fields):
    return PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=list(replicas),
        isr=list(replicas),
        leader=replicas[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=[bytes([each]) * 16 for each in replicas],
        **fields,
    )


def change(**fields):
    return PartitionChangeRecord(partition_id=0, topic_id=A, **fields)


def broker(broker_id=1, epoch=5, **fields):
    return RegisterBrokerRecord(broker_id=broker_id, broker_epoch=epoch, **fields)


def test_topics_come_and_go_with_their_settings():
    image, changes = fold(
        TopicRecord(name="a.b", topic_id=A),
        ConfigRecord(resource_type=2, resource_name="a.b", name="retention.ms", value="5"),
        partition(0),
        partition(1),
    )
    assert image.topic_name(A) == "a.b"
    assert image.topic_id("a.b") == A
    assert image.has_partition("a.b", 1)
    assert image.config(2, "a.b") == {"retention.ms": "5"}
    assert image.unified == {"a_b": {"a.b": None}}
    assert list(changes.created) == [A]
    assert list(changes.partitions) == [(A, 0), (A, 1)]
    _, changes = fold(RemoveTopicRecord(topic_id=A), image=image)
    assert image == Image()
    assert [topic.name for topic in changes.deleted.values()] == ["a.b"]


def test_how_much_each_broker_leads_is_known_without_a_count():
    def led(*records):
        fold(*records, image=image)
        return image.led

    image, _ = fold(TopicRecord(name="t", topic_id=A), partition(0), partition(1))
    fold(TopicRecord(name="u", topic_id=B), image=image)
    assert image.led == {1: 2}
    assert led(partition(0, B, (2, 1))) == {1: 2, 2: 1}
    assert led(change(isr=[1, 2])) == {1: 2, 2: 1}
    assert led(change(leader=2)) == {1: 1, 2: 2}
    assert led(change(leader=2)) == {1: 1, 2: 2}
    assert led(change(leader=-1)) == {1: 1, 2: 1}
    assert led(change(leader=3)) == {1: 1, 2: 1, 3: 1}
    assert led(RemoveTopicRecord(topic_id=A)) == {2: 1}


def test_a_leader_that_is_said_begins_an_epoch_also_when_it_is_the_same():
    image, _ = fold(TopicRecord(name="t", topic_id=A), partition())

    def epochs(record):
        fold(record, image=image)
        state = image.partition("t", 0)
        return state.leader, state.leader_epoch, state.partition_epoch

    assert epochs(change(isr=[1, 2])) == (1, 0, 1)
    assert epochs(change(leader=2)) == (2, 1, 2)
    assert epochs(change(leader=2)) == (2, 2, 3)
    assert epochs(change(leader=-1)) == (-1, 3, 4)


def test_replicas_that_stay_keep_their_directories():
    state = PartitionState(A, 0, (1, 2), (1, 2), 1, 0, 0, (A, B))
    changed = changed_partition(state, change(replicas=[3, 2]))
    assert changed.directories == (bytes(16), B)
    named = changed_partition(state, change(replicas=[3, 2], directories=[A, A]))
    assert named.directories == (A, A)


def test_eligible_replicas_are_cleared_for_one_topic_or_for_all():
    image, _ = fold(
        TopicRecord(name="t", topic_id=A),
        partition(eligible_leader_replicas=[3], last_known_elr=[2]),
        TopicRecord(name="u", topic_id=B),
        partition(topic_id=B, eligible_leader_replicas=[3]),
    )
    _, changes = fold(ClearElrRecord(topic_name="t"), image=image)
    assert (image.partition("t", 0).elr, image.partition("t", 0).last_known_elr) == ((), ())
    assert list(changes.partitions) == [(A, 0)]
    assert image.partition("u", 0).elr == (3,)
    fold(ClearElrRecord(topic_name=""), image=image)
    assert image.partition("u", 0).elr == ()
    assert image.partition("u", 0).partition_epoch == 1


def test_brokers_are_registered_fenced_and_forgotten():
    image, _ = fold(broker(fenced=True, log_dirs=[A]))
    assert image.live_brokers() == []
    fold(UnfenceBrokerRecord(id=1, epoch=5), image=image)
    assert image.live_brokers() == [1]
    fold(FenceBrokerRecord(id=1, epoch=5), image=image)
    assert image.brokers[1].is_fenced
    fold(
        BrokerRegistrationChangeRecord(
            broker_id=1, broker_epoch=5, fenced=-1, in_controlled_shutdown=1, cordoned_log_dirs=[A]
        ),
        image=image,
    )
    state = image.brokers[1]
    assert (state.is_fenced, state.in_controlled_shutdown, state.is_active) == (False, True, False)
    assert (state.log_dirs, state.cordoned_log_dirs) == ((A,), (A,))
    fold(UnregisterBrokerRecord(broker_id=1, broker_epoch=5), image=image)
    assert image == Image()


def test_a_setting_quota_feature_or_credential_that_is_removed_leaves_nothing():
    user = [ClientQuotaRecord.Entity(entity_type="user", entity_name=None)]
    image, _ = fold(
        ConfigRecord(resource_type=4, resource_name="", name="a", value="1"),
        FeatureLevelRecord(name="group.version", feature_level=1),
        ClientQuotaRecord(entity=user, key="k", value=1.0),
        UserScramCredentialRecord(name="u", mechanism=1),
        DelegationTokenRecord(token_id="t"),
        AccessControlEntryRecord(id=A),
    )
    assert image != Image()
    fold(
        ConfigRecord(resource_type=4, resource_name="", name="a", value=None),
        FeatureLevelRecord(name="group.version", feature_level=0),
        ClientQuotaRecord(entity=user, key="k", remove=True),
        RemoveUserScramCredentialRecord(name="u", mechanism=1),
        RemoveDelegationTokenRecord(token_id="t"),
        RemoveAccessControlEntryRecord(id=A),
        image=image,
    )
    assert image == Image()


@pytest.mark.parametrize(
    "record",
    [
        RemoveTopicRecord(topic_id=B),
        TopicRecord(name="t", topic_id=B),
        TopicRecord(name="u", topic_id=A),
        partition(topic_id=B),
        PartitionChangeRecord(partition_id=9, topic_id=A),
        ClearElrRecord(topic_name="nix"),
        FenceBrokerRecord(id=1, epoch=6),
        UnregisterBrokerRecord(broker_id=2, broker_epoch=5),
        ProducerIdsRecord(next_producer_id=999),
        RemoveUserScramCredentialRecord(name="nix", mechanism=1),
        RemoveAccessControlEntryRecord(id=B),
    ],
    ids=lambda record: type(record).__name__,
)
def test_a_record_that_does_not_fit_is_no_state_of_ours(record):
    image, _ = fold(
        TopicRecord(name="t", topic_id=A), broker(), ProducerIdsRecord(next_producer_id=1000)
    )
    with pytest.raises(ImageConflict):
        fold(record, image=image)


NAMES = st.sampled_from(["a", "b.c", "b_c", "d"])
SMALL = st.integers(1, 3)
IDS = {name: name.encode().ljust(16, b"\1") for name in ("a", "b.c", "b_c", "d")}


@st.composite
def histories(draw):
    """Records in an order that a controller could have written."""
    records, image = [], Image()
    for _ in range(draw(st.integers(0, 25))):
        record = draw(st.sampled_from(STEPS))(draw, image)
        if record is not None:
            image.apply(record, Changes())
            records.append(record)
    return records, image


def _topic(draw, image):
    name = draw(NAMES)
    return None if name in image.topics else TopicRecord(name=name, topic_id=IDS[name])


def _partition(draw, image):
    topic = image.topics.get(draw(NAMES))
    if topic is None:
        return None
    replicas = draw(st.lists(SMALL, min_size=1, max_size=3, unique=True))
    return partition(len(topic.partitions), topic.topic_id, replicas)


def _change(draw, image):
    states = [each for topic in image.topics.values() for each in topic.partitions.values()]
    if not states:
        return None
    state = draw(st.sampled_from(states))
    return PartitionChangeRecord(
        partition_id=state.index,
        topic_id=state.topic_id,
        leader=draw(st.sampled_from([-2, -1, *state.replicas])),
        replicas=draw(st.none() | st.lists(SMALL, min_size=1, unique=True)),
        isr=draw(st.none() | st.lists(st.sampled_from(state.replicas), unique=True)),
        eligible_leader_replicas=draw(st.none() | st.just(list(state.replicas))),
        last_known_elr=draw(st.none() | st.just([state.replicas[0]])),
        leader_recovery_state=draw(st.sampled_from([-1, 0, 1])),
        removing_replicas=draw(st.none() | st.just([])),
    )


def _remove(draw, image):
    topic = image.topics.get(draw(NAMES))
    return None if topic is None else RemoveTopicRecord(topic_id=topic.topic_id)


def _broker(draw, image):
    endpoint = RegisterBrokerRecord.EndPoint(name="P", host="h", port=1, security_protocol=0)
    return broker(
        draw(SMALL),
        draw(st.integers(0, 9)),
        rack=draw(st.none() | NAMES),
        fenced=draw(st.booleans()),
        end_points=[endpoint],
        log_dirs=[A],
        cordoned_log_dirs=draw(st.none() | st.just([A])),
    )


def _config(draw, image):
    value = draw(st.none() | st.sampled_from(["1", ""]))
    kind, name = draw(st.sampled_from([(2, "a"), (4, ""), (4, "1"), (32, "g")]))
    return ConfigRecord(
        resource_type=kind, resource_name=name, name=draw(NAMES), value=value
    )


def _quota(draw, image):
    entity = [
        ClientQuotaRecord.Entity(entity_type=kind, entity_name=draw(st.none() | NAMES))
        for kind in draw(st.lists(st.sampled_from(["user", "client-id"]), min_size=1, unique=True))
    ]
    return ClientQuotaRecord(
        entity=entity, key=draw(NAMES), value=1.5, remove=draw(st.booleans())
    )


STEPS = [
    _topic,
    _partition,
    _change,
    _remove,
    _broker,
    _config,
    _quota,
    lambda draw, image: FeatureLevelRecord(name=draw(NAMES), feature_level=draw(st.integers(0, 2))),
    lambda draw, image: ProducerIdsRecord(next_producer_id=image.next_producer_id + 1000),
    lambda draw, image: UserScramCredentialRecord(name=draw(NAMES), mechanism=1, salt=b"s"),
    lambda draw, image: RegisterControllerRecord(controller_id=draw(SMALL)),
    lambda draw, image: AccessControlEntryRecord(id=A, resource_name=draw(NAMES)),
]


def led_by_a_look(image):
    """What each broker leads, by a look at all partitions."""
    found = Counter(
        state.leader for topic in image.topics.values() for state in topic.partitions.values()
    )
    del found[-1]
    return found


@settings(max_examples=150, deadline=None)
@given(histories())
def test_what_each_broker_leads_is_what_a_look_at_all_would_find(history):
    records, image = history
    assert image.led == led_by_a_look(image)
    loaded, _ = fold(*records_of(image))
    assert loaded.led == image.led
    copied = finish(folded(Image(), records)).image
    assert copied.led == image.led
    before = dict(image.led)
    gone: list[object] = [RemoveTopicRecord(topic_id=each) for each in image.by_id]
    assert finish(folded(image, gone)).image.led == {}
    assert image.led == before, "the image has its own count until the copy takes its place"


@settings(max_examples=150, deadline=None)
@given(histories())
def test_a_snapshot_of_an_image_is_the_image(history):
    records, image = history
    for name, level in (("metadata.version", 30), ("eligible.leader.replicas.version", 1)):
        feature = FeatureLevelRecord(name=name, feature_level=level)
        records.append(feature)
        image.apply(feature, Changes())
    replayed, _ = fold(*(decode_record(encode_record(each, 30)) for each in records))
    assert replayed == image
    written, _ = fold(*(decode_record(encode_record(each, 30)) for each in records_of(image)))
    assert written == image
