"""A transactional producer by hand: every step is one request, in either version of transactions.

Version 2 (KIP-890) is Produce 12, TxnOffsetCommit 5 and EndTxn 5: partitions are added by writing
to them and the epoch rises with each end. Before, they are added first and the epoch stays.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ProduceRequest,
)
from tests.unit.handlers.whole_broker import WholeBroker, records

TRANSACTION = 1


@dataclass(slots=True)
class Writer:
    """Where it stands; refusals are returned, not raised."""

    broker: WholeBroker
    id: str = "w"
    version: int = 2
    timeout_ms: int = 60_000
    producer_id: int = -1
    epoch: int = -1
    sequences: dict[tuple[str, int], int] = field(default_factory=dict)

    def init(
        self, *, version: int = 5, producer_id: int = -1, producer_epoch: int = -1
    ) -> Error:
        """Takes the id over, or goes on as who it was (`producer_id`, `producer_epoch`)."""
        self.broker.ask(FindCoordinatorRequest(key=self.id, key_type=TRANSACTION), 1)
        answer = self.broker.ask(
            InitProducerIdRequest(
                transactional_id=self.id,
                transaction_timeout_ms=self.timeout_ms,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
            ),
            version,
        )
        if answer.error_code == Error.NONE:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self.sequences.clear()
        return Error(answer.error_code)

    def add(self, topic: str = "t", index: int = 0) -> Error:
        asked = AddPartitionsToTxnRequest.Topic(name=topic, partitions=[index])
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[asked],
        )
        (answer,) = self.broker.ask(request, 3).results_by_topic_v3_and_below
        return Error(answer.results_by_partition[0].partition_error_code)

    def batch(self, *values: bytes, topic: str = "t", index: int = 0) -> memoryview:
        """The next batch for a partition, as it goes over the wire."""
        sequence = self.sequences.get((topic, index), 0)
        return records(
            values, timestamp=self.broker.now_ms, producer_id=self.producer_id,
            producer_epoch=self.epoch, base_sequence=sequence, is_transactional=True,
        )  # fmt: skip

    def write(
        self, *values: bytes, topic: str = "t", index: int = 0, version: int | None = None
    ) -> Any:
        """The partition's answer to Produce."""
        batch = self.batch(*values, topic=topic, index=index)
        data = ProduceRequest.PartitionData(index=index, records=batch)
        request = ProduceRequest(
            transactional_id=self.id,
            acks=-1,
            timeout_ms=1_000,
            topic_data=[ProduceRequest.TopicData(name=topic, partition_data=[data])],
        )
        version = version or (12 if self.version >= 2 else 11)
        answer = self.broker.ask(request, version).responses[0].partition_responses[0]
        if answer.error_code == Error.NONE:
            self.sequences[topic, index] = self.sequences.get((topic, index), 0) + len(values)
        return answer

    def end(self, *, commit: bool = True, version: int | None = None) -> Error:
        request = EndTxnRequest(
            transactional_id=self.id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commit,
        )
        answer = self.broker.ask(request, version or (5 if self.version >= 2 else 4))
        if answer.error_code == Error.NONE and answer.producer_epoch != -1:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self.sequences.clear()
        return Error(answer.error_code)

    def transact(self, *values: bytes, topic: str = "t", index: int = 0, commit: bool) -> None:
        """One whole transaction of one partition, which must succeed."""
        if self.version < 2:
            assert self.add(topic, index) is Error.NONE
        assert self.write(*values, topic=topic, index=index).error_code == Error.NONE
        assert self.end(commit=commit) is Error.NONE


def writer(broker: WholeBroker, name: str = "w", version: int = 2) -> Writer:
    """A producer that has its id."""
    made = Writer(broker, name, version)
    assert made.init() is Error.NONE
    return made
