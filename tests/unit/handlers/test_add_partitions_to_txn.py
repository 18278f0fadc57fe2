"""AddPartitionsToTxn: for clients one transaction, for brokers several, added to or verified."""

from __future__ import annotations

from typing import Any

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import AddPartitionsToTxnRequest
from tests.unit.handlers.whole_broker import WholeBroker
from tests.unit.handlers.writer import Writer, writer

Topic, Transaction = AddPartitionsToTxnRequest.Topic, AddPartitionsToTxnRequest.Transaction
Codes = dict[tuple[str, int], int]


def topics_of(partitions: tuple[tuple[str, int], ...]) -> list[Any]:
    return [Topic(name=name, partitions=[index]) for name, index in partitions]


def codes_of(results: Any) -> Codes:
    return {
        (topic.name, one.partition_index): one.partition_error_code
        for topic in results
        for one in topic.results_by_partition
    }


def add(who: Writer, *partitions: tuple[str, int], version: int = 3) -> Codes:
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=who.id,
        v3_and_below_producer_id=who.producer_id,
        v3_and_below_producer_epoch=who.epoch,
        v3_and_below_topics=topics_of(partitions or (("t", 0),)),
    )
    return codes_of(who.broker.ask(request, version).results_by_topic_v3_and_below)


def asked(who: Writer, *partitions: tuple[str, int], is_verifying: bool = False) -> Any:
    return Transaction(
        transactional_id=who.id,
        producer_id=who.producer_id,
        producer_epoch=who.epoch,
        verify_only=is_verifying,
        topics=topics_of(partitions or (("t", 0),)),
    )


def batched(broker: WholeBroker, *transactions: Any, version: int = 5) -> dict[str, Codes]:
    answer = broker.ask(AddPartitionsToTxnRequest(transactions=list(transactions)), version)
    assert answer.error_code == 0
    return {
        one.transactional_id: codes_of(one.topic_results) for one in answer.results_by_transaction
    }


# --- for clients ----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(4))
def test_what_was_added_may_be_written_to(broker: WholeBroker, version: int) -> None:
    who = writer(broker, version=1)
    assert add(who, version=version) == {("t", 0): 0}
    assert who.write(b"a").error_code == 0


@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state"])
def test_no_client_adds_internal_topics_also_where_nobody_asks_for_rights(
    broker: WholeBroker, name: str
) -> None:
    who = writer(broker, version=1)
    assert add(who, (name, 0), ("t", 0)) == {
        (name, 0): Error.TOPIC_AUTHORIZATION_FAILED, ("t", 0): Error.OPERATION_NOT_ATTEMPTED,
    }  # fmt: skip


def test_adding_twice_is_adding_once(broker: WholeBroker) -> None:
    who = writer(broker, version=1)
    for _ in range(2):
        assert add(who) == {("t", 0): 0}
    assert who.end() is Error.NONE
    assert broker.partition().log.log_end_offset == 1, "one marker"


def test_one_unknown_partition_spares_all_others(broker: WholeBroker) -> None:
    who = writer(broker, version=1)
    assert add(who, ("t", 0), ("t", 9), ("no", 0)) == {
        ("t", 0): Error.OPERATION_NOT_ATTEMPTED,
        ("t", 9): Error.UNKNOWN_TOPIC_OR_PARTITION,
        ("no", 0): Error.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert who.end() is Error.INVALID_TXN_STATE, "no transaction has begun"


@pytest.mark.parametrize(
    ("version", "code"), [(1, Error.INVALID_PRODUCER_EPOCH), (2, Error.PRODUCER_FENCED)]
)
def test_a_producer_that_was_replaced(broker: WholeBroker, version: int, code: Error) -> None:
    old = writer(broker, version=1)
    writer(broker, version=1)
    assert add(old, version=version) == {("t", 0): code}


def test_who_is_not_known(broker: WholeBroker) -> None:
    who = writer(broker, version=1)
    unknown = Error.INVALID_PRODUCER_ID_MAPPING
    assert add(Writer(broker, who.id, producer_id=who.producer_id + 1, epoch=0)) == {
        ("t", 0): unknown
    }
    assert add(Writer(broker, "nobody", producer_id=1, epoch=0)) == {("t", 0): unknown}
    assert add(Writer(broker, "", producer_id=1, epoch=0)) == {("t", 0): Error.INVALID_REQUEST}


def test_before_there_is_a_coordinator(broker: WholeBroker) -> None:
    who = Writer(broker, "w", producer_id=1, epoch=0)
    assert add(who) == {("t", 0): Error.NOT_COORDINATOR}


# --- for brokers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [4, 5])
def test_several_transactions_are_added_to_at_once(broker: WholeBroker, version: int) -> None:
    broker.create("u")
    one, other = writer(broker, "one"), writer(broker, "other")
    stranger = Writer(broker, "stranger", producer_id=99, epoch=0)
    found = batched(
        broker, asked(one), asked(other, ("t", 0), ("u", 0)), asked(stranger), version=version
    )
    assert found == {
        "one": {("t", 0): 0},
        "other": {("t", 0): 0, ("u", 0): 0},
        "stranger": {("t", 0): Error.INVALID_PRODUCER_ID_MAPPING},
    }


def test_verifying_adds_nothing(broker: WholeBroker) -> None:
    broker.create("u")
    who = writer(broker, version=1)
    add(who)
    found = batched(broker, asked(who, ("t", 0), ("u", 0), is_verifying=True))
    assert found == {"w": {("t", 0): 0, ("u", 0): Error.TRANSACTION_ABORTABLE}}
    assert who.write(b"a", topic="u", version=10).error_code == Error.INVALID_TXN_STATE


def test_an_unknown_partition_fails_its_transaction_alone(broker: WholeBroker) -> None:
    one, other = writer(broker, "one"), writer(broker, "other")
    assert batched(broker, asked(one, ("no", 0)), asked(other)) == {
        "one": {("no", 0): Error.UNKNOWN_TOPIC_OR_PARTITION},
        "other": {("t", 0): 0},
    }
