"""TxnOffsetCommit: offsets that wait, and the question to the transaction's coordinator."""

from types import SimpleNamespace
from typing import Any

import pytest

from kafkalite.coordinators.effects import Producer
from kafkalite.coordinators.transactions.peer import Admission
from kafkalite.env.later import Later
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import TxnOffsetCommitRequest
from tests.unit.handlers.group_desk import Desk, versions
from tests.unit.handlers.test_offset_commit import committed

Topic, Partition = TxnOffsetCommitRequest.Topic, TxnOffsetCommitRequest.Partition


class FakeTransactions:
    """Admits, unless it was told not to, and remembers what it was asked."""

    def __init__(self, refusal: KafkaError | None = None) -> None:
        self.refusal = refusal
        self.asked: list[tuple[bool, bool]] = []

    def ask(self, admission: Admission, *, knows_abortable: bool) -> Later[Any]:
        self.asked.append((admission.is_adding, knows_abortable))
        refusal, where = self.refusal, admission.partitions
        return Later.of({} if refusal is None else dict.fromkeys(where, refusal))


def desk_with(refusal: KafkaError | None = None) -> Desk:
    desk = Desk()
    desk.context.transactions = FakeTransactions(refusal)
    for partition in desk.partitions:
        log: Any = partition.log
        partition.log = _ProxyLog(log)  # type: ignore[assignment]
    return desk


class _ProxyLog:
    """A log that has seen no producer yet."""

    def __init__(self, log: Any) -> None:
        self._log = log

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def start_verification(self, *_: Any, **__: Any) -> Any:
        return SimpleNamespace()


def request(*indexes: int, topic: str = "orders") -> TxnOffsetCommitRequest:
    return TxnOffsetCommitRequest(
        transactional_id="t",
        group_id="readers",
        producer_id=7,
        producer_epoch=0,
        topics=[
            Topic(
                name=topic,
                partitions=[
                    Partition(partition_index=index, committed_offset=9) for index in indexes
                ],
            )
        ],
    )


@pytest.mark.parametrize("version", versions("TxnOffsetCommit"))
def test_offsets_count_once_the_transaction_commits(version: int) -> None:
    desk = desk_with()
    response = desk.ask(request(1, 99), version)
    codes = {one.partition_index: one.error_code for one in response.topics[0].partitions}
    assert codes == {1: Error.NONE, 99: Error.UNKNOWN_TOPIC_OR_PARTITION}
    assert committed(desk, 1) == (-1, "")
    index = desk.groups.partition_for("readers")
    assert desk.groups.end_transaction(index, Producer(7, 0), 0, True).value is None
    assert committed(desk, 1) == (9, "")
    asked = desk.context.transactions.asked[0]
    assert asked == (version >= 5, version >= 4)


@pytest.mark.parametrize(
    ("refusal", "version", "code"),
    [
        (Error.INVALID_TXN_STATE, 3, Error.INVALID_TXN_STATE),
        (Error.NETWORK_EXCEPTION, 3, Error.COORDINATOR_LOAD_IN_PROGRESS),
        (Error.NETWORK_EXCEPTION, 1, Error.COORDINATOR_NOT_AVAILABLE),
        (Error.NOT_COORDINATOR, 3, Error.NOT_COORDINATOR),
    ],
)
def test_a_producer_that_is_not_admitted_hears_why(
    refusal: Error, version: int, code: Error
) -> None:
    desk = desk_with(KafkaError(refusal))
    response = desk.ask(request(0, 1), version)
    assert [one.error_code for one in response.topics[0].partitions] == [code, code]
    assert desk.partitions[0].log.log_end_offset == 0


def test_an_unknown_topic_asks_nobody() -> None:
    desk = desk_with()
    response = desk.ask(request(0, topic="nowhere"), 5)
    assert response.topics[0].partitions[0].error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert desk.context.transactions.asked == []
