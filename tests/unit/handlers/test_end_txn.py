"""EndTxn: what becomes visible, how epochs rise, and what a repeated or late request is told."""

from __future__ import annotations

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import EndTxnRequest
from tests.unit.handlers.whole_broker import WholeBroker
from tests.unit.handlers.writer import Writer, writer


def end(broker: WholeBroker, who: Writer, version: int, *, commit: bool = True) -> Error:
    request = EndTxnRequest(
        transactional_id=who.id,
        producer_id=who.producer_id,
        producer_epoch=who.epoch,
        committed=commit,
    )
    return Error(broker.ask(request, version).error_code)


@pytest.mark.parametrize("commit", [True, False])
def test_the_end_makes_the_partition_stable(broker: WholeBroker, commit: bool) -> None:
    who = writer(broker)
    who.write(b"a", b"b")
    partition = broker.partition()
    assert (partition.last_stable_offset, partition.high_watermark) == (0, 2)
    assert who.end(commit=commit) is Error.NONE
    assert (partition.last_stable_offset, partition.high_watermark) == (3, 3)
    assert bool(partition.log.aborted_transactions(0, 3)) is not commit


def test_every_partition_gets_its_marker(broker: WholeBroker) -> None:
    broker.create("many", partitions=3)
    who = writer(broker)
    for index in range(3):
        who.write(b"v", topic="many", index=index)
    who.end()
    assert [broker.partition("many", index).last_stable_offset for index in range(3)] == [2, 2, 2]


def test_the_epoch_rises_with_each_end_since_version_5(broker: WholeBroker) -> None:
    who = writer(broker)
    before = who.producer_id, who.epoch
    who.transact(b"a", commit=True)
    assert (who.producer_id, who.epoch) == (before[0], before[1] + 1)
    who.transact(b"b", commit=False)
    assert (who.producer_id, who.epoch) == (before[0], before[1] + 2)


def test_the_epoch_stays_before_version_5(broker: WholeBroker) -> None:
    who = writer(broker, version=1)
    epoch = who.epoch
    who.transact(b"a", commit=True)
    assert who.epoch == epoch
    assert who.add() is Error.NONE


def test_a_repeated_request_is_answered_as_the_first(broker: WholeBroker) -> None:
    who = writer(broker)
    old = Writer(broker, who.id, producer_id=who.producer_id, epoch=who.epoch)
    who.transact(b"a", commit=True)
    assert old.end(commit=True) is Error.NONE
    assert (old.producer_id, old.epoch) == (who.producer_id, who.epoch)
    assert broker.partition().high_watermark == 2, "no second marker"


def test_a_late_request_does_not_end_the_next_transaction(broker: WholeBroker) -> None:
    who = writer(broker)
    late = Writer(broker, who.id, producer_id=who.producer_id, epoch=who.epoch)
    who.transact(b"a", commit=True)
    who.write(b"b")
    assert late.end(commit=False) is Error.PRODUCER_FENCED
    assert broker.partition().last_stable_offset == 2
    assert who.end(commit=True) is Error.NONE


def test_a_commit_cannot_follow_an_abort(broker: WholeBroker) -> None:
    who = writer(broker, version=1)
    who.transact(b"a", commit=False)
    assert end(broker, who, 4, commit=True) is Error.INVALID_TXN_STATE
    assert end(broker, who, 4, commit=False) is Error.NONE


def test_nothing_to_end(broker: WholeBroker) -> None:
    who = writer(broker, version=1)
    assert end(broker, who, 4) is Error.INVALID_TXN_STATE
    assert end(broker, who, 5, commit=True) is Error.INVALID_TXN_STATE
    assert end(broker, who, 5, commit=False) is Error.NONE, "since version 2 an abort is allowed"


@pytest.mark.parametrize(
    ("version", "code"),
    [(1, Error.INVALID_PRODUCER_EPOCH), (2, Error.PRODUCER_FENCED), (5, Error.PRODUCER_FENCED)],
)
def test_a_producer_that_was_replaced(broker: WholeBroker, version: int, code: Error) -> None:
    old = writer(broker)
    writer(broker)
    assert end(broker, old, version) is code


def test_who_is_not_known(broker: WholeBroker) -> None:
    who = writer(broker)
    who.producer_id += 1
    assert end(broker, who, 4) is Error.INVALID_PRODUCER_ID_MAPPING
    assert end(broker, Writer(broker, "nobody"), 4) is Error.INVALID_PRODUCER_ID_MAPPING
    assert end(broker, Writer(broker, ""), 4) is Error.INVALID_REQUEST


def test_who_asks_before_there_is_a_coordinator(broker: WholeBroker) -> None:
    assert end(broker, Writer(broker, "w", producer_id=1, epoch=0), 4) is Error.NOT_COORDINATOR
