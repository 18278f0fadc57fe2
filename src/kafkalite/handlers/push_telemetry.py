"""PushTelemetry, version 0: a client's metrics (KIP-714).

Flexible. Metrics are checked as Apache Kafka checks them; where there is a receiver a push is
answered when that has read it.
"""

from __future__ import annotations

from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps, Steps, begun
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.telemetry import Push
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import ZERO_UUID, PushTelemetryRequest, PushTelemetryResponse

# The ids that Kafka keeps for itself: nought and one.
RESERVED = (ZERO_UUID, bytes(15) + b"\x01")


def push_telemetry(
    context: Context, call: Call, request: PushTelemetryRequest
) -> Later[PushTelemetryResponse] | InSteps:
    if request.client_instance_id in RESERVED:
        raise KafkaError(Error.INVALID_REQUEST)
    push = Push(
        instance_id=request.client_instance_id,
        subscription_id=request.subscription_id,
        is_terminating=request.terminating,
        compression_type=request.compression_type,
        metrics=bytes(request.metrics),
        max_size=context.config.get_int("telemetry.max.bytes"),
    )
    return begun(_pushed(context, call, push))


def _pushed(context: Context, call: Call, push: Push) -> Steps[Later[PushTelemetryResponse]]:
    now_ms = context.env.clock.now_ms()
    told = yield from context.telemetry.push(context.metadata.image, call, push, now_ms)
    return told.map(lambda code: PushTelemetryResponse(error_code=code))
