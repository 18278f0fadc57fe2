"""ListGroups, versions 0–5: the groups that this broker coordinates.

Versions: 3 flexible, 4 states (KIP-518), 5 types (KIP-848). Filters ignore case.
"""

from __future__ import annotations

from kafkalite.coordinators.groups.events import ListGroups
from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps, Steps, outcome_of
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.permission import may_cluster, permitted
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import ListGroupsRequest, ListGroupsResponse
from kafkalite.security.acl import DESCRIBE, GROUP


def list_groups(
    context: Context, call: Call, request: ListGroupsRequest
) -> Later[InSteps]:
    event = ListGroups(
        frozenset(state.strip().lower() for state in request.states_filter),
        frozenset(kind.strip().lower() for kind in request.types_filter),
    )
    return context.groups.submit_all(lambda: event).map(
        lambda found: InSteps(_respond(context, call, found))
    )


def _respond(
    context: Context,
    call: Call,
    answers: list[list[ListGroupsResponse.Group] | InSteps | KafkaError],
) -> Steps[ListGroupsResponse]:
    response = ListGroupsResponse()
    for answer in answers:
        if not isinstance(answer, KafkaError):
            response.groups += yield from outcome_of(answer)
        elif answer.code != Error.NOT_COORDINATOR:
            # Part of the list would read as the whole of it.
            return ListGroupsResponse(error_code=answer.code)
    if not may_cluster(context, call, DESCRIBE, is_quiet=True):
        names = (group.group_id for group in response.groups)
        shown = yield from permitted(context, call, DESCRIBE, GROUP, names, is_quiet=True)
        response.groups = [group for group in response.groups if group.group_id in shown]
    return response
