"""Where a reply is told of its client's quotas: what the request counts, and what its client waits.

Owns which requests count for what (KIP-13, 124, 219): those of brokers among themselves for
nothing, a Produce for its bytes, and for its time unless nobody is told of it. A reply goes at
once; that nothing more is heard of its client for a while is the connection's to see to.
"""

from __future__ import annotations

import struct
from typing import Any

from kafkalite.handlers.call import Call, Encoded
from kafkalite.handlers.context import Context
from kafkalite.handlers.fetch_sessions import replica_id
from kafkalite.handlers.permission import may_cluster
from kafkalite.protocol import spec
from kafkalite.protocol.messages import FetchRequest, ProduceRequest
from kafkalite.quotas.meter import Meter
from kafkalite.security.acl import CLUSTER_ACTION

WAIT = "throttle_time_ms"
# What brokers and controllers say to each other, which Apache Kafka lets pass.
_OF_BROKERS = frozenset({
    "AllocateProducerIds", "AlterPartition", "BeginQuorumEpoch", "EndQuorumEpoch", "FetchSnapshot",
    "Vote", "WriteTxnMarkers",
})  # fmt: skip

_put_wait = struct.Struct(">i").pack


def charged(
    context: Context, api: spec.Api, call: Call, request: Any, response: Any
) -> tuple[Any, int]:
    """The response, None where there is none, with what it says of its client's wait, and that."""
    meter = call.meter
    if meter is None:
        return response, 0
    wait_ms = _wait_ms(context, api, call, meter, request)
    if not wait_ms:
        return response, 0
    if type(response) is Encoded:
        return _with_wait(api, call.version, response, wait_ms), wait_ms
    if hasattr(response, WAIT):
        setattr(response, WAIT, wait_ms)
    return response, wait_ms


def _wait_ms(context: Context, api: spec.Api, call: Call, meter: Meter, request: Any) -> int:
    is_of_brokers = api.name in _OF_BROKERS and may_cluster(
        context, call, CLUSTER_ACTION, is_quiet=True
    )
    if is_of_brokers or (isinstance(request, FetchRequest) and replica_id(request) >= 0):
        meter.exempt()
        return 0
    is_produce = isinstance(request, ProduceRequest)
    return meter.settle(is_produce=is_produce, is_timed=not (is_produce and request.acks == 0))


def _with_wait(api: spec.Api, version: int, response: Encoded, wait_ms: int) -> Encoded:
    """Bytes that are kept are others' too, so they are copied."""
    fields = spec.message(f"{api.name}Response").root.fields
    first = next(field for field in fields if field.is_in(version))
    if first.name != WAIT:
        return response
    return Encoded(_put_wait(wait_ms) + response.body[4:])
