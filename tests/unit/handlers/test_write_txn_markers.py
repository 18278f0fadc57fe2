"""WriteTxnMarkers: what a coordinator may end at a leader, and that twice is once."""

from __future__ import annotations

from typing import Any

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import WriteTxnMarkersRequest
from tests.unit.handlers.whole_broker import WholeBroker
from tests.unit.handlers.writer import Writer, writer

Marker, Topic = WriteTxnMarkersRequest.Marker, WriteTxnMarkersRequest.Topic
Codes = dict[tuple[int, str, int], int]


def marker(
    who: Writer,
    *partitions: tuple[str, int],
    commit: bool = True,
    epoch: int | None = None,
    coordinator_epoch: int = 0,
    transaction_version: int = 0,
) -> Any:
    topics: dict[str, list[int]] = {}
    for topic, index in partitions or (("t", 0),):
        topics.setdefault(topic, []).append(index)
    return Marker(
        producer_id=who.producer_id,
        producer_epoch=who.epoch if epoch is None else epoch,
        transaction_result=commit,
        topics=[Topic(name=name, partition_indexes=found) for name, found in topics.items()],
        coordinator_epoch=coordinator_epoch,
        transaction_version=transaction_version,
    )


def write(broker: WholeBroker, *markers: Any, version: int = 2) -> Codes:
    """Error codes by producer id, topic and partition."""
    answer = broker.ask(WriteTxnMarkersRequest(markers=list(markers)), version)
    return {
        (one.producer_id, topic.name, partition.partition_index): partition.error_code
        for one in answer.markers
        for topic in one.topics
        for partition in topic.partitions
    }


def code(broker: WholeBroker, one: Any, version: int = 2) -> Error:
    (found,) = write(broker, one, version=version).values()
    return Error(found)


@pytest.fixture
def who(broker: WholeBroker) -> Writer:
    """A producer with an open transaction in topic "t"."""
    made = writer(broker, version=1)
    made.add()
    assert made.write(b"a").error_code == 0
    return made


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_ends_the_transaction(
    broker: WholeBroker, who: Writer, version: int, commit: bool
) -> None:
    assert code(broker, marker(who, commit=commit), version) is Error.NONE
    partition = broker.partition()
    assert partition.last_stable_offset == partition.high_watermark == 2
    assert bool(partition.log.aborted_transactions(0, 2)) is not commit


def test_markers_of_several_producers(broker: WholeBroker, who: Writer) -> None:
    other = writer(broker, "other")
    other.write(b"b")
    codes = write(broker, marker(who, commit=False), marker(other, commit=True))
    assert set(codes) == {(who.producer_id, "t", 0), (other.producer_id, "t", 0)}
    assert set(codes.values()) == {0}
    aborted = broker.partition().log.aborted_transactions(0, 4)
    assert [one[0] for one in aborted] == [who.producer_id]


def test_each_partition_has_its_own_answer(broker: WholeBroker, who: Writer) -> None:
    codes = write(broker, marker(who, ("t", 0), ("t", 9), ("no", 0)))
    by_place = {place[1:]: found for place, found in codes.items()}
    unknown = Error.UNKNOWN_TOPIC_OR_PARTITION
    assert by_place == {("t", 0): 0, ("t", 9): unknown, ("no", 0): unknown}


def test_a_marker_that_is_there_is_written_again(broker: WholeBroker, who: Writer) -> None:
    again = marker(who, epoch=who.epoch + 1, transaction_version=2)
    assert code(broker, again) is Error.NONE
    end_offset = broker.partition().log.log_end_offset
    assert code(broker, again) is Error.NONE
    assert broker.partition().last_stable_offset == end_offset + 1


def test_an_epoch_that_is_over_ends_nothing(broker: WholeBroker) -> None:
    who = writer(broker, version=1)
    assert who.init() is Error.NONE
    assert (who.epoch, who.add(), who.write(b"a").error_code) == (1, Error.NONE, 0)
    assert code(broker, marker(who, epoch=who.epoch - 1)) is Error.INVALID_PRODUCER_EPOCH
    assert broker.partition().last_stable_offset == 0


def test_a_late_marker_does_not_end_the_next_transaction(
    broker: WholeBroker, who: Writer
) -> None:
    """Since version 2 a marker has the epoch after that of its transaction (KIP-1228)."""
    late = marker(who, commit=False, transaction_version=2)
    assert code(broker, late) is Error.INVALID_PRODUCER_EPOCH
    assert broker.partition().last_stable_offset == 0


def test_a_coordinator_that_was_replaced_ends_nothing(broker: WholeBroker, who: Writer) -> None:
    assert code(broker, marker(who, coordinator_epoch=5)) is Error.NONE
    late = marker(who, coordinator_epoch=4)
    assert code(broker, late) is Error.TRANSACTION_COORDINATOR_FENCED


def test_who_does_not_lead_writes_nothing(broker: WholeBroker, who: Writer) -> None:
    broker.stop_leading()
    assert code(broker, marker(who)) is Error.NOT_LEADER_OR_FOLLOWER


def test_nothing_to_end(broker: WholeBroker) -> None:
    assert write(broker) == {}
