"""ListGroups, versions 0–5: the groups that this broker coordinates.

Versions: 3 flexible, 4 states (KIP-518), 5 types (KIP-848). Filters ignore case.
"""

from __future__ import annotations

from kafkalite.coordinators.groups.events import ListGroups
from kafkalite.env.later import Later
from kafkalite.env.slicing import ELEMENTS_PER_STEP, InSteps, Steps, begun, outcome_of
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.permission import may_cluster, permitted
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import ListGroupsRequest, ListGroupsResponse
from kafkalite.security.acl import DESCRIBE, GROUP


def list_groups(
    context: Context, call: Call, request: ListGroupsRequest
) -> Later[InSteps] | InSteps:
    return begun(_asked(context, call, request))


def _asked(
    context: Context, call: Call, request: ListGroupsRequest
) -> Steps[Later[InSteps]]:
    states = yield from _without_case(request.states_filter)
    kinds = yield from _without_case(request.types_filter)
    event = ListGroups(states, kinds)
    return context.groups.submit_all(lambda: event).map(
        lambda found: InSteps(_respond(context, call, found))
    )


def _without_case(names: list[str]) -> Steps[frozenset[str]]:
    found = set[str]()
    for number, name in enumerate(names, 1):
        found.add(name.strip().lower())
        if number % ELEMENTS_PER_STEP == 0:
            yield
    return frozenset(found)


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
