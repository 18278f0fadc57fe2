"""What `kafka-transactions` asks brokers, and what Apache Kafka's admin client makes of errors."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    InitProducerIdRequest,
    ListTransactionsRequest,
    MetadataRequest,
    WriteTxnMarkersRequest,
)
from kafkalite.tools.asking import Asking
from kafkalite.tools.failures import Failure, TerseFailure, refused
from kafkalite.tools.java_maps import TopicPartition
from kafkalite.tools.led_partitions import MOVING, ask_leaders
from kafkalite.tools.running import log

_TRANSACTION = 1  # of the kinds of keys that have coordinators
_TIMEOUT_MS = 30_000
_DESCRIBE_PRODUCERS = "describeProducers(api=DESCRIBE_PRODUCERS)"
_HANDLERS = "org.apache.kafka.clients.admin.internals."
_AWAY = MOVING | {Error.REPLICA_NOT_AVAILABLE, Error.BROKER_NOT_AVAILABLE}


@dataclass(frozen=True, slots=True)
class Abortion:
    """One partition's part of a transaction, which is to end."""

    place: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int

    def __str__(self) -> str:
        return (
            f"AbortTransactionSpec(topicPartition={self.place[0]}-{self.place[1]}, "
            f"producerId={self.producer_id}, producerEpoch={self.producer_epoch}, "
            f"coordinatorEpoch={self.coordinator_epoch})"
        )


def failed(what: str, failure: Failure) -> TerseFailure:
    """How the tool ends."""
    why = f"{what}: {failure.message}. Enable debug logging for additional detail."
    return TerseFailure(why)


def list_transactions(asking: Asking, request: ListTransactionsRequest) -> dict[int, list[Any]]:
    """Those of each broker."""
    found = {}
    for broker in sorted(_brokers(asking)):
        answer = asking.broker("listTransactions(api=LIST_TRANSACTIONS)", broker, request)
        code = Error(answer.error_code)
        start = f"ListTransactions request sent to broker {broker} failed"
        if code is Error.COORDINATOR_NOT_AVAILABLE:
            raise refused(code, f"{start} because the coordinator is shutting down")
        if code is not Error.NONE:
            _log_error(
                asking, "ListTransactionsHandler",
                f"The `ListTransactions` request sent to broker {broker} failed because of an "
                f"unexpected error {code.name}",
            )
            raise refused(code, f"{start} with an unexpected exception")
        found[broker] = list(answer.transaction_states)
    return found


def _brokers(asking: Asking) -> list[int]:
    request = MetadataRequest(topics=[], allow_auto_topic_creation=False)
    answer = asking.any("listTransactions(api=METADATA)", request)
    return [each.node_id for each in answer.brokers]


def describe_transaction(asking: Asking, transactional_id: str) -> tuple[int, Any]:
    """Its coordinator, and how it is."""
    call = "describeTransactions"
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    [state] = asking.coordinator(
        call, transactional_id, request,
        lambda answer: [each.error_code for each in answer.transaction_states], _TRANSACTION,
    ).transaction_states  # fmt: skip
    reasons = {
        Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "failed due to authorization failure",
        Error.TRANSACTIONAL_ID_NOT_FOUND: "failed because the ID could not be found",
    }
    _check_id("DescribeTransactions", transactional_id, state.error_code, reasons)
    return asking.coordinator_of(call, transactional_id, _TRANSACTION).node_id, state


def terminate(asking: Asking, transactional_id: str) -> None:
    """Ends what a transactional id has open, as a new producer with it would."""
    request = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=_TIMEOUT_MS
    )
    answer = asking.coordinator(
        "fenceProducer", transactional_id, request, lambda answer: [answer.error_code], _TRANSACTION
    )
    reasons = {
        Error.CLUSTER_AUTHORIZATION_FAILED: "failed due to cluster authorization failure",
        Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
            "failed due to transactional ID authorization failure",
    }  # fmt: skip
    _check_id("InitProducerId", transactional_id, answer.error_code, reasons)


def _check_id(
    api: str, transactional_id: str, code: int, reasons: Mapping[Error, str]
) -> None:
    if code != Error.NONE:
        why = reasons.get(Error(code), "failed due to unexpected error")
        raise refused(code, f"{api} request for transactionalId `{transactional_id}` {why}")


def describe_producers(
    asking: Asking, places: Collection[TopicPartition], broker: int | None = None
) -> dict[TopicPartition, list[Any] | Failure]:
    """The active producers of each partition, as its leader or one of its replicas knows them."""
    if broker is None:
        return ask_leaders(asking, "describeProducers", places, _describing(asking, MOVING))
    ask = _describing(asking, {Error.UNKNOWN_TOPIC_OR_PARTITION})
    return ask_leaders(asking, _DESCRIBE_PRODUCERS, places, ask, only=broker)


def _describing(
    asking: Asking, again: Collection[Error]
) -> Callable[[int, list[TopicPartition]], dict[TopicPartition, list[Any] | Failure]]:
    def ask(
        broker: int, places: list[TopicPartition]
    ) -> dict[TopicPartition, list[Any] | Failure]:
        topics: dict[str, list[int]] = {}
        for topic, index in places:
            topics.setdefault(topic, []).append(index)
        request = DescribeProducersRequest(topics=[
            DescribeProducersRequest.Topic(name=name, partition_indexes=topics[name])
            for name in topics
        ])  # fmt: skip
        answer = asking.broker(_DESCRIBE_PRODUCERS, broker, request)
        return {
            (topic.name, each.partition_index): _producers(asking, topic.name, each, broker)
            for topic in answer.topics
            for each in topic.partitions
            if each.error_code not in again
        }

    return ask


def _producers(asking: Asking, topic: str, answer: Any, broker: int) -> list[Any] | Failure:
    code = Error(answer.error_code)
    if code is Error.NONE:
        return list(answer.active_producers)
    shown = f"{topic}-{answer.partition_index}"
    response = f"`DescribeProducers` response for partition {shown}"
    said, why = {
        Error.NOT_LEADER_OR_FOLLOWER: (
            f"Not leader error in {response} for brokerId {broker} set in options",
            f"Failed to describe active producers for partition {shown} on brokerId {broker}",
        ),
        Error.INVALID_TOPIC_EXCEPTION: (
            f"Invalid topic in {response}",
            f"Failed to fetch metadata for partition {shown} due to invalid topic error: "
            f"{answer.error_message or code.message}",
        ),
        Error.TOPIC_AUTHORIZATION_FAILED: (
            f"Authorization failed in {response}",
            f"Failed to describe active producers for partition {shown} due to authorization "
            f"failure on topic `{topic}`",
        ),
    }.get(code, (
        f"Unexpected error in {response}",
        f"Failed to describe active producers for partition {shown} due to unexpected error",
    ))  # fmt: skip
    _log_error(asking, "DescribeProducersHandler", said)
    return refused(code, why)


def abort(asking: Asking, spec: Abortion) -> None:
    """Writes the marker that ends it in its partition."""
    topic, index = spec.place
    marker = WriteTxnMarkersRequest.Marker(
        producer_id=spec.producer_id, producer_epoch=spec.producer_epoch, transaction_result=False,
        coordinator_epoch=spec.coordinator_epoch,
        topics=[WriteTxnMarkersRequest.Topic(name=topic, partition_indexes=[index])],
    )  # fmt: skip

    def ask(leader: int, _: list[TopicPartition]) -> dict[TopicPartition, Failure | None]:
        request = WriteTxnMarkersRequest(markers=[marker])
        call = "abortTransaction(api=WRITE_TXN_MARKERS)"
        [answered] = asking.broker(call, leader, request).markers
        [[partition]] = [each.partitions for each in answered.topics]
        code = Error(partition.error_code)
        if code in _AWAY:
            return {}
        return {spec.place: None if code is Error.NONE else _not_aborted(asking, spec, code)}

    outcome = ask_leaders(asking, "abortTransaction", [spec.place], ask)[spec.place]
    if outcome is not None:
        raise outcome


def _not_aborted(asking: Asking, spec: Abortion, code: Error) -> Failure:
    said, why = {
        Error.CLUSTER_AUTHORIZATION_FAILED: (
            "failed cluster authorization", "failed due to cluster authorization error"
        ),
        Error.INVALID_PRODUCER_EPOCH: (
            "failed due to an invalid producer epoch", "failed due an invalid producer epoch"
        ),
        Error.TRANSACTION_COORDINATOR_FENCED: (
            "failed because the coordinator epoch is fenced",
            f"failed since the provided coordinator epoch {spec.coordinator_epoch} has been fenced "
            "by the active coordinator",
        ),
    }.get(code, (
        f"failed due to an unexpected error {code.name}",
        f"failed due to unexpected error: {refused(code).message}",
    ))  # fmt: skip
    handler = "AbortTransactionHandler"
    _log_error(asking, handler, f"WriteTxnMarkers request for abort spec {spec} {said}")
    return refused(code, f"WriteTxnMarkers request with {spec} {why}")


def _log_error(asking: Asking, handler: str, message: str) -> None:
    log("ERROR", f"[AdminClient clientId={asking.client_id}] {message}", f"{_HANDLERS}{handler}")
