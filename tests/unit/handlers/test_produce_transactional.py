"""Produce within transactions: what must be known of a transaction before its first append."""

from __future__ import annotations

from typing import Any

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import ProduceRequest
from tests.unit.handlers.whole_broker import WholeBroker, records
from tests.unit.handlers.writer import Writer, writer


def send(
    broker: WholeBroker, transactional_id: str | None, *batches: Any, version: int = 12
) -> Any:
    """The answers for the partitions of topic "pair", one batch each."""
    partitions = [
        ProduceRequest.PartitionData(index=index, records=batch)
        for index, batch in enumerate(batches)
    ]
    request = ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=1_000,
        topic_data=[ProduceRequest.TopicData(name="pair", partition_data=partitions)],
    )
    answers = broker.ask(request, version).responses[0].partition_responses
    return [(Error(one.error_code), one.base_offset) for one in answers]


@pytest.fixture
def pair(broker: WholeBroker) -> WholeBroker:
    """A broker that has a topic "pair" of two partitions."""
    broker.create("pair", partitions=2)
    return broker


# --- the request as a whole -----------------------------------------------------------------------


def test_without_a_transactional_id_everything_is_refused(pair: WholeBroker) -> None:
    who = writer(pair)
    plain = records([b"v"], timestamp=pair.now_ms)
    refused = (Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, -1)
    assert send(pair, None, who.batch(b"a"), plain) == [refused, refused]
    assert pair.partition("pair", 1).log.log_end_offset == 0


def test_one_request_is_of_one_producer(pair: WholeBroker) -> None:
    one, other = writer(pair, "one"), writer(pair, "other")
    refused = (Error.INVALID_PRODUCER_ID_MAPPING, -1)
    assert send(pair, "one", one.batch(b"a"), other.batch(b"b")) == [refused, refused]


def test_a_batch_outside_the_transaction_spoils_nothing_elsewhere(pair: WholeBroker) -> None:
    who = writer(pair)
    plain = records([b"v"], timestamp=pair.now_ms)
    assert send(pair, "w", who.batch(b"a"), plain) == [(Error.NONE, 0), (Error.NONE, 0)]
    assert pair.partition("pair", 0).last_stable_offset == 0
    assert pair.partition("pair", 1).last_stable_offset == 1


# --- partitions join by being written to (version 12) ---------------------------------------------


def test_writing_adds_the_partitions(pair: WholeBroker) -> None:
    who = writer(pair)
    assert send(pair, "w", who.batch(b"a"), who.batch(b"b")) == [(Error.NONE, 0), (Error.NONE, 0)]
    assert who.end() is Error.NONE
    assert [pair.partition("pair", index).last_stable_offset for index in (0, 1)] == [2, 2]


def test_a_stranger_may_not_add(pair: WholeBroker) -> None:
    stranger = Writer(pair, producer_id=77, epoch=0)
    writer(pair)
    refused = (Error.INVALID_PRODUCER_ID_MAPPING, -1)
    assert send(pair, "w", stranger.batch(b"a")) == [refused]
    assert pair.partition("pair", 0).log.log_end_offset == 0


def test_a_zombie_is_told_of_its_epoch(pair: WholeBroker) -> None:
    zombie = writer(pair)
    writer(pair)
    assert send(pair, "w", zombie.batch(b"a")) == [(Error.INVALID_PRODUCER_EPOCH, -1)]


def test_a_write_after_the_end_needs_the_next_epoch(pair: WholeBroker) -> None:
    who = writer(pair)
    late = Writer(pair, who.id, producer_id=who.producer_id, epoch=who.epoch)
    send(pair, "w", who.batch(b"a"))
    who.end()
    late.sequences["t", 0] = 1
    assert send(pair, "w", late.batch(b"late")) == [(Error.INVALID_PRODUCER_EPOCH, -1)]
    assert pair.partition("pair", 0).log.log_end_offset == 2
    assert send(pair, "w", who.batch(b"b")) == [(Error.NONE, 2)]


def test_a_repeated_batch_is_recognised(pair: WholeBroker) -> None:
    who = writer(pair)
    for _ in range(2):
        assert send(pair, "w", who.batch(b"a")) == [(Error.NONE, 0)]
    assert pair.partition("pair", 0).log.log_end_offset == 1


def test_a_gap_is_refused_and_the_transaction_goes_on(pair: WholeBroker) -> None:
    who = writer(pair)
    send(pair, "w", who.batch(b"a"))
    who.sequences["t", 0] = 2
    assert send(pair, "w", who.batch(b"c")) == [(Error.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)]
    who.sequences["t", 0] = 1
    assert send(pair, "w", who.batch(b"b")) == [(Error.NONE, 1)]


def test_an_open_transaction_takes_no_batch_from_outside_it(pair: WholeBroker) -> None:
    who = writer(pair)
    send(pair, "w", who.batch(b"a"))
    plain = records(
        [b"v"], timestamp=pair.now_ms, producer_id=who.producer_id, producer_epoch=who.epoch,
        base_sequence=1,
    )  # fmt: skip
    assert send(pair, None, plain) == [(Error.INVALID_TXN_STATE, -1)]


# --- partitions are added first (until version 11) ------------------------------------------------


@pytest.mark.parametrize(
    ("version", "code"), [(10, Error.INVALID_TXN_STATE), (11, Error.TRANSACTION_ABORTABLE)]
)
def test_a_partition_that_was_not_added_is_refused_alone(
    pair: WholeBroker, version: int, code: Error
) -> None:
    who = writer(pair, version=1)
    who.add("pair", 0)
    answers = send(pair, "w", who.batch(b"a"), who.batch(b"b"), version=version)
    assert answers == [(Error.NONE, 0), (code, -1)]


def test_without_verification_nothing_is_asked() -> None:
    broker = WholeBroker({"transaction.partition.verification.enable": "false"})
    broker.create("pair")
    who = writer(broker, version=1)
    assert send(broker, "w", who.batch(b"a"), version=11) == [(Error.NONE, 0)]
    refused = (Error.INVALID_PRODUCER_ID_MAPPING, -1)
    stranger = Writer(broker, producer_id=77, epoch=0)
    assert send(broker, "w", stranger.batch(b"b")) == [refused], "since version 12 it is needed"
    broker.close()


def test_while_the_coordinator_cannot_tell_the_client_tries_again(pair: WholeBroker) -> None:
    stranger = Writer(pair, "w", producer_id=77, epoch=0)
    assert send(pair, "w", stranger.batch(b"a"), version=11) == [(Error.NOT_ENOUGH_REPLICAS, -1)]
