"""A producer and a consumer by hand: each request with the version and the numbers a test chooses.

Stock clients never send what these tests are about: a stale epoch, a sequence out of order, an end
that comes late. Answers are error codes and what came with them, so that a test compares values.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from bench.raw_client import RawClient, make_topic
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    EndTxnRequest,
    EndTxnResponse,
    FetchRequest,
    FetchResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    ProduceRequest,
    ProduceResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kafkalite.records.batch import iterate_headers
from kafkalite.records.record import BatchBuilder, iterate_records
from tests.compat.brokers import Broker

PATIENCE_S = 20
# What every client tries again after: a coordinator that is not ready, a transaction that ends.
PASSING = (
    Error.CONCURRENT_TRANSACTIONS,
    Error.COORDINATOR_LOAD_IN_PROGRESS,
    Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_COORDINATOR,
    Error.NOT_LEADER_OR_FOLLOWER,
    Error.UNKNOWN_TOPIC_OR_PARTITION,
)
LATEST = -1
TRANSACTION_KEY = 1
GROUP_KEY = 0

Identity = tuple[int, int]


def patiently(ask: Callable[[], tuple[Error, Any]]) -> tuple[Error, Any]:
    """Asks until the answer is none that passes."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        answer = ask()
        if answer[0] not in PASSING or time.monotonic() > deadline:
            return answer
        time.sleep(0.01)


class Peer:
    """One connection to a broker, as one transactional id; `v` names versions."""

    def __init__(self, broker: Broker, transactional_id: str) -> None:
        self.client = RawClient(broker.host, broker.port)
        self.transactional_id = transactional_id
        self.find(transactional_id, TRANSACTION_KEY)

    def close(self) -> None:
        self.client.close()

    def topic(self, name: str, partitions: int = 1) -> str:
        make_topic(self.client, name, partitions)
        return name

    def find(self, key: str, kind: int) -> None:
        """The coordinator's topic is created when somebody first looks for it."""
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])

        def ask() -> tuple[Error, None]:
            answer = self.client.call(request, 4, FindCoordinatorResponse).coordinators[0]
            return Error(answer.error_code), None

        assert patiently(ask) == (Error.NONE, None)

    # --- the coordinator ------------------------------------------------------------------

    def init(self, had: Identity = (-1, -1), timeout_ms: int = 60_000) -> Identity:
        """The identity that a producer gets who waits until it gets one."""
        error, identity = patiently(lambda: self.try_init(had, timeout_ms))
        assert error is Error.NONE, error
        return identity

    def try_init(
        self, had: Identity = (-1, -1), timeout_ms: int = 60_000, v: int = 5
    ) -> tuple[Error, Identity]:
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=timeout_ms,
            producer_id=had[0], producer_epoch=had[1],
        )
        answer = self.client.call(request, v, InitProducerIdResponse)
        return Error(answer.error_code), (answer.producer_id, answer.producer_epoch)

    def add(self, who: Identity, topic: str, *indexes: int, v: int = 3) -> Error:
        """Adds partitions, as producers before transaction version 2 do."""
        return patiently(lambda: (self.try_add(who, topic, *indexes, v=v), None))[0]

    def try_add(self, who: Identity, topic: str, *indexes: int, v: int = 3) -> Error:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=who[0], v3_and_below_producer_epoch=who[1],
            v3_and_below_topics=[
                AddPartitionsToTxnRequest.Topic(name=topic, partitions=list(indexes or (0,)))
            ],
        )
        answer = self.client.call(request, v, AddPartitionsToTxnResponse)
        [result] = answer.results_by_topic_v3_and_below
        [code] = {one.partition_error_code for one in result.results_by_partition}
        return Error(code)

    def add_offsets(self, who: Identity, group: str, v: int = 3) -> Error:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id, producer_id=who[0], producer_epoch=who[1],
            group_id=group,
        )
        return patiently(lambda: (
            Error(self.client.call(request, v, AddOffsetsToTxnResponse).error_code), None
        ))[0]

    def end(self, who: Identity, *, commit: bool, v: int = 4) -> tuple[Error, Identity]:
        """Until version 4 the answer names no identity."""
        return patiently(lambda: self.try_end(who, commit=commit, v=v))

    def try_end(self, who: Identity, *, commit: bool, v: int = 4) -> tuple[Error, Identity]:
        request = EndTxnRequest(
            transactional_id=self.transactional_id, producer_id=who[0], producer_epoch=who[1],
            committed=commit,
        )
        answer = self.client.call(request, v, EndTxnResponse)
        return Error(answer.error_code), (answer.producer_id, answer.producer_epoch)

    def commit_offset(
        self, who: Identity, group: str, topic: str, offset: int, v: int = 4
    ) -> Error:
        partition = TxnOffsetCommitRequest.Partition(
            partition_index=0, committed_offset=offset, committed_metadata=""
        )
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id, group_id=group,
            producer_id=who[0], producer_epoch=who[1],
            topics=[TxnOffsetCommitRequest.Topic(name=topic, partitions=[partition])],
        )

        def ask() -> tuple[Error, None]:
            answer = self.client.call(request, v, TxnOffsetCommitResponse)
            return Error(answer.topics[0].partitions[0].error_code), None

        return patiently(ask)[0]

    def describe(self) -> DescribeTransactionsResponse.TransactionState:
        request = DescribeTransactionsRequest(transactional_ids=[self.transactional_id])
        [found] = self.client.call(request, 0, DescribeTransactionsResponse).transaction_states
        return found

    def await_state(self, state: str) -> None:
        """Markers are written behind the producer's back."""
        deadline = time.monotonic() + PATIENCE_S
        while self.describe().transaction_state != state:
            assert time.monotonic() < deadline, self.describe()
            time.sleep(0.01)

    def epoch(self) -> int:
        return self.describe().producer_epoch

    # --- the partition --------------------------------------------------------------------

    def produce(
        self, who: Identity, sequence: int, topic: str, *values: bytes, v: int = 11, index: int = 0
    ) -> tuple[Error, int]:
        """One transactional batch; the code and the first offset of what was written."""
        return self._produce(who, sequence, topic, values, v, index, is_transactional=True)

    def produce_plainly(
        self, who: Identity, sequence: int, topic: str, *values: bytes
    ) -> tuple[Error, int]:
        """The same by an idempotent producer."""
        return self._produce(who, sequence, topic, values, 11, 0, is_transactional=False)

    def _produce(
        self, who: Identity, sequence: int, topic: str, values: Sequence[bytes], v: int,
        index: int, *, is_transactional: bool,
    ) -> tuple[Error, int]:
        builder = BatchBuilder()
        for value in values or (b"value",):
            builder.append(int(time.time() * 1000), None, value)
        batch = builder.build(
            producer_id=who[0], producer_epoch=who[1], base_sequence=sequence,
            is_transactional=is_transactional,
        )
        partition = ProduceRequest.PartitionData(index=index, records=bytes(batch))
        request = ProduceRequest(
            transactional_id=self.transactional_id if is_transactional else None,
            acks=-1, timeout_ms=10_000,
            topic_data=[ProduceRequest.TopicData(name=topic, partition_data=[partition])],
        )

        def ask() -> tuple[Error, int]:
            answer = self.client.call(request, v, ProduceResponse)
            [found] = answer.responses[0].partition_responses
            return Error(found.error_code), found.base_offset

        return patiently(ask)

    def end_offset(self, topic: str, *, committed: bool, index: int = 0) -> int:
        """What ListOffsets says of the end of a partition, by isolation level."""
        asked = ListOffsetsRequest.Partition(partition_index=index, timestamp=LATEST)
        request = ListOffsetsRequest(
            replica_id=-1, isolation_level=int(committed),
            topics=[ListOffsetsRequest.Topic(name=topic, partitions=[asked])],
        )
        answer = self.client.call(request, 7, ListOffsetsResponse)
        [found] = answer.topics[0].partitions
        assert found.error_code == 0, found
        return found.offset

    def await_end(self, topic: str, offset: int, *, index: int) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while self.end_offset(topic, committed=True, index=index) < offset:
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def fetch(self, topic: str, *, committed: bool, index: int = 0) -> FetchResponse.Partition:
        wanted = FetchRequest.Partition(
            partition=index, fetch_offset=0, partition_max_bytes=1 << 20
        )
        request = FetchRequest(
            max_wait_ms=0, min_bytes=0, isolation_level=int(committed), session_epoch=-1,
            topics=[FetchRequest.Topic(topic=topic, partitions=[wanted])],
        )
        [found] = self.client.call(request, 12, FetchResponse).responses[0].partitions
        assert found.error_code == 0, found
        return found

    def values(self, topic: str, *, committed: bool) -> list[bytes | None]:
        """The data that a fetch carries, before the consumer drops what was aborted."""
        return [value for _, value in self.log(topic, committed=committed) if value != MARKER]

    def log(self, topic: str, *, committed: bool = False) -> list[tuple[int, bytes | None]]:
        """Every record below the end by its offset, markers as MARKER."""
        records = self.fetch(topic, committed=committed).records
        found: list[tuple[int, bytes | None]] = []
        for header in iterate_headers(records) if records else ():
            found += [
                (record.offset, MARKER if header.is_control else record.value)
                for record in iterate_records(records, header)
            ]
        return found

    def open_since(self, topic: str) -> list[int]:
        """Where each producer of a partition has its open transaction, -1 without one."""
        asked = DescribeProducersRequest.Topic(name=topic, partition_indexes=[0])
        request = DescribeProducersRequest(topics=[asked])
        answer = self.client.call(request, 0, DescribeProducersResponse)
        producers = answer.topics[0].partitions[0].active_producers
        return [each.current_txn_start_offset for each in producers]

    def write_marker(
        self, who: Identity, topic: str, *, commit: bool, coordinator_epoch: int = 0,
        transaction_version: int = 0,
    ) -> Error:
        """What a transaction's coordinator, or somebody who believes to be it, tells a leader."""
        marker = WriteTxnMarkersRequest.Marker(
            producer_id=who[0], producer_epoch=who[1], transaction_result=commit,
            topics=[WriteTxnMarkersRequest.Topic(name=topic, partition_indexes=[0])],
            coordinator_epoch=coordinator_epoch, transaction_version=transaction_version,
        )
        request = WriteTxnMarkersRequest(markers=[marker])
        answer = self.client.call(request, 2, WriteTxnMarkersResponse)
        return Error(answer.markers[0].topics[0].partitions[0].error_code)

    # --- the group ------------------------------------------------------------------------

    def committed_offset(self, group: str, topic: str, *, stable: bool = False) -> Any:
        """The group's offset, -1 without one; with `stable`, the refusal while one is pending."""
        wanted = OffsetFetchRequest.GroupTopic(name=topic, partition_indexes=[0])
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequest.Group(group_id=group, topics=[wanted])],
            require_stable=stable,
        )
        [found] = self.client.call(request, 8, OffsetFetchResponse).groups
        assert found.error_code == 0, found
        [partition] = found.topics[0].partitions
        return Error(partition.error_code) if partition.error_code else partition.committed_offset


MARKER = b"(marker)"
