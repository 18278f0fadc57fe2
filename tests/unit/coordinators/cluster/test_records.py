"""Metadata records as bytes: the frame, and what is refused."""

import pytest

from kafkalite.coordinators.cluster.image import FOLDS
from kafkalite.coordinators.cluster.records import (
    TYPES,
    UnknownMetadata,
    decode_record,
    encode_record,
)
from kafkalite.protocol import spec
from kafkalite.protocol.errors import MalformedFrame
from kafkalite.protocol.messages import FeatureLevelRecord, TopicRecord, message_class


def test_the_bytes_that_apache_kafka_wrote():
    """A feature level from the log of a controller of release 4.3.1."""
    value = bytes.fromhex("010c00116d657461646174612e76657273696f6e001e00")
    record = FeatureLevelRecord(name="metadata.version", feature_level=30)
    assert decode_record(value) == record
    assert encode_record(record) == value


@pytest.mark.parametrize("number", TYPES)
def test_every_type_is_written_read_and_folded(number):
    name, written, newest = TYPES[number]
    cls = message_class(name)
    assert number == cls.TYPE
    assert newest == cls.SPEC.versions.stop - 1 >= written
    record = cls()
    assert decode_record(encode_record(record)) == record
    assert name in FOLDS


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
    value = encode_record(TopicRecord(name="t", topic_id=b"\1" * 16))
    for end in range(len(value)):
        with pytest.raises((MalformedFrame, UnknownMetadata)):
            decode_record(value[:end])
