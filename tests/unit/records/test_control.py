"""Markers and other control records: their bytes, and keys that are not theirs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.records import batch
from kafkalite.records.control import (
    ControlType,
    EndTransactionMarker,
    build_control_batch,
    build_marker_batch,
    encode_key,
    read_batch_marker,
    read_marker,
    read_type,
)
from kafkalite.records.errors import InvalidRecords
from kafkalite.records.record import Record, iterate_records


@given(st.sampled_from([ControlType.ABORT, ControlType.COMMIT]), st.integers(0, 2**31 - 1))
def test_a_marker_survives_its_batch(kind: ControlType, epoch: int) -> None:
    marker = EndTransactionMarker(kind, epoch)
    built = build_marker_batch(
        marker, producer_id=7, producer_epoch=3, timestamp=99, base_offset=12
    )
    header = batch.read_header(built)
    batch.verify(built, header)
    assert (header.is_control, header.is_transactional) == (True, True)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 3, -1)
    assert (header.base_offset, header.last_offset, header.record_count) == (12, 12, 1)
    assert read_batch_marker(built, header) == marker
    assert marker.is_commit == (kind == ControlType.COMMIT)


def test_the_bytes_of_a_marker() -> None:
    marker = EndTransactionMarker(ControlType.COMMIT, 5)
    built = build_marker_batch(marker, producer_id=7, producer_epoch=3, timestamp=99)
    (record,) = iterate_records(built, batch.read_header(built))
    assert record == Record(0, 99, bytes.fromhex("00000001"), bytes.fromhex("000000000005"))


def test_a_control_batch_of_kraft() -> None:
    built = build_control_batch(
        [(ControlType.LEADER_CHANGE, b"value")], timestamp=5, partition_leader_epoch=2
    )
    header = batch.read_header(built)
    (record,) = iterate_records(built, header)
    assert (header.is_control, header.is_transactional) == (True, False)
    assert read_type(record.key) == ControlType.LEADER_CHANGE
    assert read_batch_marker(built, header) is None
    assert record.value == b"value"


def test_a_type_of_the_future_is_unknown_not_an_error() -> None:
    assert read_type(bytes.fromhex("00090063") + b"more") == ControlType.UNKNOWN
    assert read_type(bytes.fromhex("0000ffff")) == ControlType.UNKNOWN


@pytest.mark.parametrize("key", [None, b"", b"\0\0\0", bytes.fromhex("ffff0000")])
def test_a_key_that_is_none(key: bytes | None) -> None:
    with pytest.raises(InvalidRecords):
        read_type(key)


@pytest.mark.parametrize("value", [None, b"", bytes(5), bytes.fromhex("ffff00000000")])
def test_a_marker_without_its_value(value: bytes | None) -> None:
    with pytest.raises(InvalidRecords):
        read_marker(Record(0, 0, encode_key(ControlType.ABORT), value))
