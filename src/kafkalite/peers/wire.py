"""Another broker, asked over a link: each question is a request of Kafka's, each answer a response.

Owns the translation alone. What fails on the way is told for every partition that was asked for,
with an error that whoever asked tries again after.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, TypeVar

from kafkalite.coordinators.transactions.markers import Marker, Outcomes
from kafkalite.coordinators.transactions.peer import Admission, Refusals
from kafkalite.coordinators.transactions.transaction import TopicPartition
from kafkalite.env.later import Later
from kafkalite.peers.channel import Answer, Channel
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

Q = TypeVar("Q")
A = TypeVar("A")

logger = logging.getLogger(__name__)

ADMITTING = range(4, 6)  # since version 4 brokers ask, for several transactions at once
MARKING = range(1, 3)
SHARING = range(2)


class WirePeer:
    """What one broker asks one other."""

    def __init__(self, admissions: Channel, markers: Channel, shares: Channel) -> None:
        self._admissions, self._markers, self._shares = admissions, markers, shares

    def stop(self) -> None:
        self._admissions.stop()
        self._markers.stop()
        self._shares.stop()

    def answer(self, request: Any) -> Later[Answer]:
        """To a question about states of shared partitions, which is a request as it is."""
        return self._shares.ask(request, SHARING)

    def admit(self, admission: Admission) -> Later[Refusals]:
        return self._admissions.ask(_admitting(admission), ADMITTING).map(
            partial(_understood, _refusals, admission)
        )

    def write_markers(self, marker: Marker) -> Later[Outcomes]:
        return self._markers.ask(_marking(marker), MARKING).map(
            partial(_understood, _outcomes, marker)
        )


def _understood(meaning: Callable[[Q, Answer], A], question: Q, answer: Answer) -> A:
    """What an answer means; a mistake of ours with it is an answer, too: somebody waits."""
    try:
        return meaning(question, answer)
    except Exception:
        logger.exception("an answer was not understood: %s", type(answer).__name__)
        return meaning(question, KafkaError(Error.UNKNOWN_SERVER_ERROR))


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for name, index in partitions:
        topics.setdefault(name, []).append(index)
    return topics


def _known(code: int) -> Error:
    """A newer peer may have errors that nobody here has heard of."""
    try:
        return Error(code)
    except ValueError:
        return Error.UNKNOWN_SERVER_ERROR


# --- admissions -----------------------------------------------------------------------------------


def _admitting(admission: Admission) -> AddPartitionsToTxnRequest:
    topics = [
        AddPartitionsToTxnRequest.Topic(name=name, partitions=indexes)
        for name, indexes in _by_topic(admission.partitions).items()
    ]
    transaction = AddPartitionsToTxnRequest.Transaction(
        transactional_id=admission.transactional_id,
        producer_id=admission.producer_id,
        producer_epoch=admission.producer_epoch,
        verify_only=not admission.is_adding,
        topics=topics,
    )
    return AddPartitionsToTxnRequest(transactions=[transaction])


def _refusals(admission: Admission, answer: Answer) -> Refusals:
    if isinstance(answer, AddPartitionsToTxnResponse) and answer.error_code != Error.NONE:
        answer = KafkaError(_known(answer.error_code))
    elif isinstance(answer, KafkaError) and answer.code == Error.REQUEST_TIMED_OUT:
        # Of the peer: no producer hears what took too long between brokers.
        answer = KafkaError(Error.NETWORK_EXCEPTION, answer.message)
    if isinstance(answer, KafkaError):
        return dict.fromkeys(admission.partitions, answer)
    codes = dict(_codes_of(admission, answer))
    refusals: Refusals = {}
    for where in admission.partitions:
        code = codes.get(where, Error.UNKNOWN_SERVER_ERROR)
        if code != Error.NONE:
            refusals[where] = KafkaError(code)
    return refusals


def _codes_of(
    admission: Admission, response: AddPartitionsToTxnResponse
) -> Iterator[tuple[TopicPartition, Error]]:
    for transaction in response.results_by_transaction:
        if transaction.transactional_id == admission.transactional_id:
            for topic in transaction.topic_results:
                for one in topic.results_by_partition:
                    yield (topic.name, one.partition_index), _known(one.partition_error_code)


# --- markers --------------------------------------------------------------------------------------


def _marking(marker: Marker) -> WriteTxnMarkersRequest:
    topics = [
        WriteTxnMarkersRequest.Topic(name=name, partition_indexes=indexes)
        for name, indexes in _by_topic(marker.partitions).items()
    ]
    entry = WriteTxnMarkersRequest.Marker(
        producer_id=marker.producer.producer_id,
        producer_epoch=marker.producer.producer_epoch,
        transaction_result=marker.is_commit,
        topics=topics,
        coordinator_epoch=marker.coordinator_epoch,
        transaction_version=marker.transaction_version,
    )
    return WriteTxnMarkersRequest(markers=[entry])


def _outcomes(marker: Marker, answer: Answer) -> Outcomes:
    if isinstance(answer, KafkaError):
        return dict.fromkeys(marker.partitions, Error(answer.code))
    codes = dict(_codes_of_marker(marker, answer))
    return {where: codes.get(where, Error.UNKNOWN_SERVER_ERROR) for where in marker.partitions}


def _codes_of_marker(
    marker: Marker, response: WriteTxnMarkersResponse
) -> Iterator[tuple[TopicPartition, Error]]:
    for entry in response.markers:
        if entry.producer_id == marker.producer.producer_id:
            for topic in entry.topics:
                for one in topic.partitions:
                    yield (topic.name, one.partition_index), _known(one.error_code)
