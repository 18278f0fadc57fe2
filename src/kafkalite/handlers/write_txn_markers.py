"""WriteTxnMarkers, versions 0–2: a coordinator has the ends of transactions written here.

Versions: 1 flexible, 2 the transaction version of each marker (KIP-890). A marker that is there
already is written again. One of no producer makes all of the request fail, but what is written
before it stays.
"""

from __future__ import annotations

from itertools import takewhile

from kafkalite.coordinators.effects import Producer
from kafkalite.coordinators.transactions.markers import Marker, Outcomes
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import WriteTxnMarkersRequest, WriteTxnMarkersResponse


def write_txn_markers(
    context: Context, call: Call, request: WriteTxnMarkersRequest
) -> Later[WriteTxnMarkersResponse]:
    markers = [_marker(entry) for entry in request.markers]
    good = list(takewhile(lambda marker: not _is_of_nobody(context, marker), markers))
    written = context.transactions.markers.write_all(good)
    if len(good) < len(markers):
        return Later.of(_response({
            marker.producer.producer_id: dict.fromkeys(
                marker.partitions, Error.UNKNOWN_SERVER_ERROR
            )
            for marker in markers
        }))
    response: Later[WriteTxnMarkersResponse] = Later()

    def respond(outcomes: list[Outcomes]) -> None:
        by_producer: dict[int, Outcomes] = {}
        for marker, outcome in zip(markers, outcomes, strict=True):
            by_producer.setdefault(marker.producer.producer_id, {}).update(outcome)
        response.resolve(_response(
            {producer_id: outcome for producer_id, outcome in by_producer.items() if outcome}
        ))

    written.then(respond)
    return response


def _response(by_producer: dict[int, Outcomes]) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[
            WriteTxnMarkersResponse.Marker(producer_id=producer_id, topics=_topics(outcome))
            for producer_id, outcome in by_producer.items()
        ]
    )


def _is_of_nobody(context: Context, marker: Marker) -> bool:
    """Whether there is a place for this marker, and nobody who could have begun a transaction."""
    producer_id, epoch = marker.producer.producer_id, marker.producer.producer_epoch
    return (producer_id < 0 or epoch < 0) and any(
        context.partitions.get(topic, index) is not None for topic, index in marker.partitions
    )


def _marker(entry: WriteTxnMarkersRequest.Marker) -> Marker:
    return Marker(
        Producer(entry.producer_id, entry.producer_epoch),
        entry.coordinator_epoch,
        entry.transaction_result,
        entry.transaction_version,
        tuple((topic.name, index) for topic in entry.topics for index in topic.partition_indexes),
    )


def _topics(outcome: Outcomes) -> list[WriteTxnMarkersResponse.Topic]:
    topics: dict[str, WriteTxnMarkersResponse.Topic] = {}
    for (name, index), error in outcome.items():
        topic = topics.setdefault(name, WriteTxnMarkersResponse.Topic(name=name))
        topic.partitions.append(
            WriteTxnMarkersResponse.Partition(partition_index=index, error_code=error)
        )
    return list(topics.values())
