"""ApiVersions, versions 0–4: which APIs and versions are served here, and the cluster's features.

Versions: 1 throttle time, 3 flexible, the client's software name and version (KIP-511) and features
(KIP-584), 4 features whose lowest level is 0. A version that is not known is answered in version 0,
naming the versions of this API alone, so that the client can ask again.
The table is computed from the specs that have a handler; it is never written down.
"""

from __future__ import annotations

import re

from kafkalite.coordinators.cluster import features
from kafkalite.handlers.api_set import entry_of
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.protocol import spec
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import ApiVersionsRequest, ApiVersionsResponse

API_VERSIONS_KEY = 18
TELEMETRY_KEYS = (71, 72)
CLIENT_METRICS = 16  # the resource type of their subscriptions
SOFTWARE_VERSION = 3
# Clients of version 3 take a lowest level of 0 for an invalid range.
LEVEL_ZERO_VERSION = 4

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def api_versions(
    context: Context, call: Call, request: ApiVersionsRequest
) -> ApiVersionsResponse:
    if call.version >= SOFTWARE_VERSION:
        name, version = request.client_software_name, request.client_software_version
        if not (_SOFTWARE.fullmatch(name) and _SOFTWARE.fullmatch(version)):
            return ApiVersionsResponse(error_code=Error.INVALID_REQUEST)
        call.connection.software_name = name
        call.connection.software_version = version
    response = ApiVersionsResponse(api_keys=_advertised(context, call))
    if call.version >= SOFTWARE_VERSION:
        _add_features(context, call, response)
    return response


def _advertised(context: Context, call: Call) -> list[ApiVersionsResponse.ApiKey]:
    """What is served at this listener; the APIs of client metrics where they are taken or while
    somebody wants some, for a client that sees them asks for its subscription again and again."""
    served = context.api_sets[call.connection.kind].advertised
    wants_metrics = context.telemetry.wants_metrics or any(
        kind == CLIENT_METRICS for kind, _ in context.metadata.image.configs
    )
    return [entry for entry in served if wants_metrics or entry.api_key not in TELEMETRY_KEYS]


def unknown_version() -> ApiVersionsResponse:
    """What a version that this broker does not know is answered, in version 0."""
    own = entry_of(spec.api(API_VERSIONS_KEY))
    return ApiVersionsResponse(error_code=Error.UNSUPPORTED_VERSION, api_keys=[own])


def _add_features(context: Context, call: Call, response: ApiVersionsResponse) -> None:
    for name, (lowest, highest) in features.SUPPORTED.items():
        if lowest > 0 or call.version >= LEVEL_ZERO_VERSION:
            response.supported_features.append(
                ApiVersionsResponse.SupportedFeature(
                    name=name, min_version=lowest, max_version=highest
                )
            )
    finalized = context.metadata.finalized_features
    response.finalized_features = [
        ApiVersionsResponse.FinalizedFeature(
            name=name, min_version_level=level, max_version_level=level
        )
        for name, level in finalized.items()
    ]
    response.finalized_features_epoch = context.metadata.features_epoch
