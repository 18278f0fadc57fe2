"""UpdateFeatures, versions 0–2: raises or lowers the finalized features of the cluster.

Flexible. Versions: 1 kinds of downgrades and validate_only, 2 one error for the whole instead of
one per feature (KIP-1022). All updates are made, or none. As in Apache Kafka 4.3, version 0 only
raises: its allow_downgrade is passed over.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.events import UpdateFeatures
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.protocol.errors import KafkaError
from kafkalite.protocol.messages import UpdateFeaturesRequest, UpdateFeaturesResponse


def update_features(
    context: Context, call: Call, request: UpdateFeaturesRequest
) -> Later[UpdateFeaturesResponse | KafkaError]:
    return context.controller.submit(UpdateFeatures(request))
