"""Metadata records as bytes: the frame, the version for each level, and what is refused."""

import pytest

from kafkalite.coordinators.cluster.image import FOLDS
from kafkalite.coordinators.cluster.records import (
    TYPES,
    UnknownMetadata,
    as_record,
    decode_record,
    encode_record,
    written_version,
)
from kafkalite.protocol import spec
from kafkalite.protocol.errors import MalformedFrame
from kafkalite.protocol.messages import (
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    RegisterBrokerRecord,
    TopicRecord,
    message_class,
)

LEVELS = range(7, 31)
# From which level of metadata.version on Apache Kafka 4.3.1 writes which version of a record.
STEPS = {
    "RegisterBrokerRecord": {7: 1, 8: 2, 17: 3, 30: 4},
    "PartitionRecord": {7: 0, 17: 1, 23: 2},
    "PartitionChangeRecord": {7: 0, 17: 1, 23: 2},
}


def test_the_bytes_that_apache_kafka_wrote():
    """A feature level from the log of a controller of release 4.3.1."""
    value = bytes.fromhex("010c00116d657461646174612e76657273696f6e001e00")
    record = FeatureLevelRecord(name="metadata.version", feature_level=30)
    assert decode_record(value) == record
    assert encode_record(record, 7) == value


@pytest.mark.parametrize("number", TYPES)
def test_every_type_is_written_read_and_folded(number):
    name, newest = TYPES[number]
    cls = message_class(name)
    assert number == cls.TYPE
    assert newest == cls.SPEC.versions.stop - 1
    record = cls()
    assert decode_record(encode_record(record, 30)) == record
    assert name in FOLDS


@pytest.mark.parametrize("number", TYPES)
def test_every_type_is_written_as_its_level_has_it(number):
    name, _ = TYPES[number]
    steps = STEPS.get(name, {7: 0})
    for level in LEVELS:
        expected = steps[max(step for step in steps if step <= level)]
        value = encode_record(message_class(name)(), level)
        assert (value[0], value[1], value[2]) == (1, number, expected)


@pytest.mark.parametrize(
    ("fields", "level", "version"),
    [
        ({"fenced": 1}, 30, 0),
        ({"in_controlled_shutdown": 1}, 30, 1),
        ({"log_dirs": [b"\1" * 16]}, 30, 2),
        ({"cordoned_log_dirs": []}, 30, 3),
        ({"log_dirs": [b"\1" * 16]}, 16, 0),
        ({"cordoned_log_dirs": [], "log_dirs": [b"\1" * 16]}, 29, 2),
    ],
)
def test_a_changed_registration_is_written_in_the_oldest_version_that_has_it(
    fields, level, version
):
    record = BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, **fields)
    assert written_version(record, level) == version


@pytest.mark.parametrize("level", LEVELS)
def test_what_is_folded_is_what_was_written(level):
    record = RegisterBrokerRecord(
        broker_id=1, log_dirs=[b"\1" * 16], cordoned_log_dirs=[], in_controlled_shutdown=True
    )
    written = as_record(record, level)
    assert written.value is not None
    folded = written.decoded or decode_record(written.value)
    assert folded == decode_record(written.value)
    assert (folded.log_dirs != []) == (level >= 17)
    assert (folded.cordoned_log_dirs is not None) == (level >= 30)


def test_every_type_of_the_specs_is_known():
    folder = spec.directory() / "records" / "cluster_metadata"
    assert len(list(folder.glob("*.spec"))) == len(TYPES)


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (b"", MalformedFrame),
        (b"\x01\x02", MalformedFrame),
        (b"\x02\x02\x00", UnknownMetadata),
        (b"\x01\x1d\x00", UnknownMetadata),
        (b"\x01\x06\x00", UnknownMetadata),
        (b"\x01\x02\x01", UnknownMetadata),
        (b"\x01\x02\x00\x02", MalformedFrame),
        (b"\x01\x82\x01\x00", UnknownMetadata),
    ],
)
def test_what_cannot_be_folded_is_refused(value, error):
    with pytest.raises(error):
        decode_record(value)


def test_every_prefix_is_refused():
    value = encode_record(TopicRecord(name="t", topic_id=b"\1" * 16), 30)
    for end in range(len(value)):
        with pytest.raises((MalformedFrame, UnknownMetadata)):
            decode_record(value[:end])
