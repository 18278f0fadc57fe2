"""GetTelemetrySubscriptions, version 0: which of its metrics a client should push, and how often.

Flexible (KIP-714). A client without an instance id is given one. Subscriptions are settings of
client metrics resources; without any that match, no metrics are asked for.
"""

from __future__ import annotations

from kafkalite.env.randomness import random_uuid
from kafkalite.env.slicing import InSteps, Steps, begun
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    ZERO_UUID,
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from kafkalite.records.batch import Compression

# The best first, as a client takes the first that it knows.
ACCEPTED = [Compression.ZSTD, Compression.LZ4, Compression.GZIP, Compression.SNAPPY]


def get_telemetry_subscriptions(
    context: Context, call: Call, request: GetTelemetrySubscriptionsRequest
) -> GetTelemetrySubscriptionsResponse | InSteps:
    return begun(_wanted(context, call, request))


def _wanted(
    context: Context, call: Call, request: GetTelemetrySubscriptionsRequest
) -> Steps[GetTelemetrySubscriptionsResponse]:
    instance_id = request.client_instance_id
    if instance_id == ZERO_UUID:
        instance_id = random_uuid(context.env.random)
    now_ms = context.env.clock.now_ms()
    wanted = yield from context.telemetry.ask(context.metadata.image, call, instance_id, now_ms)
    return GetTelemetrySubscriptionsResponse(
        error_code=Error.NONE,
        client_instance_id=instance_id,
        subscription_id=wanted.subscription_id,
        accepted_compression_types=[int(each) for each in ACCEPTED],
        push_interval_ms=wanted.push_interval_ms,
        telemetry_max_bytes=context.config.get_int("telemetry.max.bytes"),
        delta_temporality=True,
        requested_metrics=list(wanted.metrics),
    )
