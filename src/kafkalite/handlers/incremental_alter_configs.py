"""IncrementalAlterConfigs, versions 0–1: sets, unsets, extends or shortens single settings.

Version 1 is flexible (KIP-339). Levels of the broker's loggers can be set too (KIP-412), for as
long as the process lives. A resource is changed whole or not at all.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.configs import Outcome, ResourceChange, Step
from kafkalite.coordinators.cluster.view import text_of
from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps
from kafkalite.handlers.altering import alter
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

Response = IncrementalAlterConfigsResponse.Response


def incremental_alter_configs(
    context: Context, call: Call, request: IncrementalAlterConfigsRequest
) -> Later[IncrementalAlterConfigsResponse] | InSteps:
    return alter(
        context,
        call,
        request.resources,
        _change,
        _response,
        lambda answers: IncrementalAlterConfigsResponse(responses=answers),
        validate_only=request.validate_only,
    )


def _change(resource: IncrementalAlterConfigsRequest.Resource) -> ResourceChange:
    return ResourceChange(
        resource.resource_type,
        resource.resource_name,
        [Step(each.name, each.config_operation, each.value) for each in resource.configs],
    )


def _response(change: ResourceChange, outcome: Outcome) -> Response:
    return Response(
        error_code=Error.NONE if outcome is None else outcome.code,
        error_message=None if outcome is None else text_of(outcome) or None,
        resource_type=change.resource_type,
        resource_name=change.name,
    )
