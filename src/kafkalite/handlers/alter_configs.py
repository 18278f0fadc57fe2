"""AlterConfigs, versions 0–2: replaces all settings of a resource.

Version 2 is flexible. What is not named is lost, which is why IncrementalAlterConfigs exists. A
resource is changed whole or not at all.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.configs import Operation, Outcome, ResourceChange, Step
from kafkalite.coordinators.cluster.deciding import text_of
from kafkalite.env.later import Later
from kafkalite.handlers.altering import alter
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.group_replies import reply_with
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import AlterConfigsRequest, AlterConfigsResponse


def alter_configs(
    context: Context, call: Call, request: AlterConfigsRequest
) -> AlterConfigsResponse | Later[AlterConfigsResponse]:
    changes = [
        ResourceChange(
            resource.resource_type,
            resource.resource_name,
            [Step(each.name, Operation.SET, each.value) for each in resource.configs],
            is_whole=True,
        )
        for resource in request.resources
    ]
    return reply_with(
        alter(context, changes, validate_only=request.validate_only),
        lambda outcomes: AlterConfigsResponse(
            responses=[
                _response(change, outcome)
                for change, outcome in zip(changes, outcomes, strict=True)
            ]
        ),
    )


def _response(change: ResourceChange, outcome: Outcome) -> AlterConfigsResponse.Response:
    return AlterConfigsResponse.Response(
        error_code=Error.NONE if outcome is None else outcome.code,
        error_message=None if outcome is None else text_of(outcome),
        resource_type=change.resource_type,
        resource_name=change.name,
    )
