"""UpdateFeatures, versions 0–2: raises or lowers the finalized features of the cluster.

Flexible. Versions: 1 kinds of downgrades and validate_only, 2 one error for the whole instead of
one per feature (KIP-1022). All updates are made, or none.
"""

from __future__ import annotations

from dataclasses import replace

from kafkalite.coordinators.cluster.features import SAFE_DOWNGRADE, UPGRADE
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.protocol.messages import UpdateFeaturesRequest, UpdateFeaturesResponse


def update_features(
    context: Context, call: Call, request: UpdateFeaturesRequest
) -> Later[UpdateFeaturesResponse]:
    if call.version == 0:
        updates = [
            replace(each, upgrade_type=SAFE_DOWNGRADE if each.allow_downgrade else UPGRADE)
            for each in request.feature_updates
        ]
        request = replace(request, feature_updates=updates)
    later: Later[UpdateFeaturesResponse] = context.cluster.submit(request)
    return later
