"""AlterConfigs, versions 0–2: replaces all settings of a resource.

Version 2 is flexible. What is not named is lost, which is why IncrementalAlterConfigs exists. A
resource is changed whole or not at all.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.configs import Operation, Outcome, ResourceChange, Step
from kafkalite.coordinators.cluster.view import text_of
from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps
from kafkalite.handlers.altering import alter
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import AlterConfigsRequest, AlterConfigsResponse


def alter_configs(
    context: Context, call: Call, request: AlterConfigsRequest
) -> Later[AlterConfigsResponse] | InSteps:
    return alter(
        context,
        call,
        request.resources,
        _change,
        _response,
        lambda answers: AlterConfigsResponse(responses=answers),
        validate_only=request.validate_only,
    )


def _change(resource: AlterConfigsRequest.Resource) -> ResourceChange:
    return ResourceChange(
        resource.resource_type,
        resource.resource_name,
        [Step(each.name, Operation.SET, each.value) for each in resource.configs],
        is_whole=True,
    )


def _response(change: ResourceChange, outcome: Outcome) -> AlterConfigsResponse.Response:
    return AlterConfigsResponse.Response(
        error_code=Error.NONE if outcome is None else outcome.code,
        error_message=None if outcome is None else text_of(outcome),
        resource_type=change.resource_type,
        resource_name=change.name,
    )
