"""WriteTxnMarkers, versions 0–2: a coordinator has the ends of transactions written here.

Versions: 1 flexible, 2 the transaction version of each marker (KIP-890). A marker that is there
already is written again. One of no producer makes all of the request fail, but what is written
before it stays.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkalite.coordinators.effects import Producer
from kafkalite.coordinators.transactions.markers import Marker, Outcomes
from kafkalite.env.later import Later
from kafkalite.env.slicing import ELEMENTS_PER_STEP, InSteps, Steps, begun, in_steps
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.permission import may_cluster
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from kafkalite.security.acl import ALTER, CLUSTER_ACTION

Response = WriteTxnMarkersResponse


def write_txn_markers(
    context: Context, call: Call, request: WriteTxnMarkersRequest
) -> Response | InSteps | Later[Response | InSteps]:
    return begun(_written(context, call, request))


def _written(
    context: Context, call: Call, request: WriteTxnMarkersRequest
) -> Steps[Response | Later[Response | InSteps]]:
    markers = yield from in_steps(_marker(entry) for entry in request.markers)
    if not may_cluster(context, call, ALTER, is_quiet=True) and not may_cluster(
        context, call, CLUSTER_ACTION
    ):
        return (yield from _refused(markers, Error.CLUSTER_AUTHORIZATION_FAILED))
    good: list[Marker] = []
    for marker in markers:
        if _is_of_nobody(context, marker):
            break
        good.append(marker)
        if len(good) % ELEMENTS_PER_STEP == 0:
            yield
    written = context.transactions.markers.write_all(good)
    if len(good) == len(markers):
        return written.map(lambda outcomes: begun(_answered(zip(markers, outcomes, strict=True))))
    return (yield from _refused(markers, Error.UNKNOWN_SERVER_ERROR))


def _refused(markers: list[Marker], code: Error) -> Steps[Response]:
    return (yield from _response({
        marker.producer.producer_id: dict.fromkeys(marker.partitions, code) for marker in markers
    }))


def _answered(outcomes: Iterable[tuple[Marker, Outcomes]]) -> Steps[WriteTxnMarkersResponse]:
    by_producer: dict[int, Outcomes] = {}
    for marker, outcome in outcomes:
        by_producer.setdefault(marker.producer.producer_id, {}).update(outcome)
    return (yield from _response(
        {producer_id: outcome for producer_id, outcome in by_producer.items() if outcome}
    ))


def _response(by_producer: dict[int, Outcomes]) -> Steps[WriteTxnMarkersResponse]:
    response, told = WriteTxnMarkersResponse(), 0
    for producer_id, outcome in by_producer.items():
        topics: dict[str, WriteTxnMarkersResponse.Topic] = {}
        for (name, index), error in outcome.items():
            topic = topics.setdefault(name, WriteTxnMarkersResponse.Topic(name=name))
            topic.partitions.append(
                WriteTxnMarkersResponse.Partition(partition_index=index, error_code=error)
            )
            told += 1
            if told % ELEMENTS_PER_STEP == 0:
                yield
        response.markers.append(
            WriteTxnMarkersResponse.Marker(producer_id=producer_id, topics=list(topics.values()))
        )
    return response


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
