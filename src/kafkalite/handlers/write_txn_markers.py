"""WriteTxnMarkers, versions 0–2: a coordinator has the ends of transactions written here.

Versions: 1 flexible, 2 the transaction version of each marker (KIP-890). Writing a marker that is
there already changes nothing.
"""

from __future__ import annotations

from kafkalite.coordinators.effects import Producer
from kafkalite.coordinators.shards import gather
from kafkalite.coordinators.transactions.markers import Marker, Outcomes
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.protocol.messages import WriteTxnMarkersRequest, WriteTxnMarkersResponse


def write_txn_markers(
    context: Context, call: Call, request: WriteTxnMarkersRequest
) -> Later[WriteTxnMarkersResponse]:
    markers = [_marker(entry) for entry in request.markers]
    response: Later[WriteTxnMarkersResponse] = Later()

    def respond(outcomes: list[Outcomes]) -> None:
        by_producer: dict[int, Outcomes] = {}
        for marker, outcome in zip(markers, outcomes, strict=True):
            by_producer.setdefault(marker.producer.producer_id, {}).update(outcome)
        response.resolve(WriteTxnMarkersResponse(
            markers=[
                WriteTxnMarkersResponse.Marker(producer_id=producer_id, topics=_topics(outcome))
                for producer_id, outcome in by_producer.items()
                if outcome
            ]
        ))

    gather([context.transactions.markers.write(marker) for marker in markers]).then(respond)
    return response


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
