"""ListConfigResources, versions 0–1: names of the resources that can have settings.

Flexible. Version 0 knows only client metrics subscriptions (KIP-714), version 1 every kind
(KIP-1142).
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.configs import ResourceType
from kafkalite.coordinators.cluster.image import Image
from kafkalite.env.slicing import InSteps, Steps, begun, in_steps
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import ListConfigResourcesRequest, ListConfigResourcesResponse

SUPPORTED = {
    0: (ResourceType.CLIENT_METRICS,),
    1: (
        ResourceType.TOPIC,
        ResourceType.BROKER,
        ResourceType.BROKER_LOGGER,
        ResourceType.CLIENT_METRICS,
        ResourceType.GROUP,
    ),
}

Resource = ListConfigResourcesResponse.ConfigResource


def list_config_resources(
    context: Context, call: Call, request: ListConfigResourcesRequest
) -> ListConfigResourcesResponse | InSteps:
    supported = SUPPORTED[call.version]
    asked = list(dict.fromkeys(request.resource_types)) or list(supported)
    if any(each not in supported for each in asked):
        return ListConfigResourcesResponse(error_code=Error.UNSUPPORTED_VERSION)
    return begun(_listed(context.metadata.image, asked))


def _listed(image: Image, asked: list[int]) -> Steps[ListConfigResourcesResponse]:
    resources = yield from in_steps(
        Resource(resource_name=name, resource_type=kind)
        for kind in asked
        for name in _names(image, kind)
    )
    return ListConfigResourcesResponse(error_code=Error.NONE, config_resources=resources)


def _names(image: Image, kind: int) -> list[str]:
    if kind == ResourceType.TOPIC:
        return sorted(image.topics)
    if kind in (ResourceType.BROKER, ResourceType.BROKER_LOGGER):
        return [str(broker_id) for broker_id in sorted(image.brokers)]
    return sorted(name for each, name in image.configs if each == kind)
