"""DeleteGroups, versions 0–2: deletes empty groups with their offsets.

Version 2 is flexible. Each group has its own error; NON_EMPTY_GROUP while it has members. What
share coordinators know of a share group's partitions is deleted before the group is.
"""

from __future__ import annotations

from itertools import compress

from kafkalite.coordinators.groups.events import BeginShareDeletion, DeleteGroups
from kafkalite.coordinators.shares.persister import Outcomes, Partitions
from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps, Steps, begun, in_steps, outcome_of
from kafkalite.handlers.afterwards import afterwards
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.group_replies import ask_by_shard
from kafkalite.protocol.errors import KafkaError
from kafkalite.protocol.messages import DeleteGroupsRequest, DeleteGroupsResponse

Response = DeleteGroupsResponse


def delete_groups(
    context: Context, call: Call, request: DeleteGroupsRequest
) -> Response | InSteps | Later[Response | InSteps]:
    return begun(_deleted(context, list(dict.fromkeys(request.groups_names))))


def _deleted(context: Context, names: list[str]) -> Steps[Response | Later[Response | InSteps]]:
    is_shared = yield from in_steps(map(context.groups.is_share_group, names))
    shared = list(compress(names, is_shared))
    if not shared:
        found: Response | Later[Response | InSteps] = yield from outcome_of(_delete(context, names))
        return found

    def emptied(outcomes: list[KafkaError | None]) -> Later[Response | InSteps]:
        refused = {
            name: error for name, error in zip(shared, outcomes, strict=True) if error is not None
        }
        answer = _delete(context, [name for name in names if name not in refused])
        told = afterwards(answer, lambda response: _with(response, refused))
        return told if isinstance(told, Later) else Later.of(told)

    return Later.all([_empty(context, name) for name in shared]).then_ask(emptied)


def _delete(
    context: Context, names: list[str]
) -> InSteps | Later[Response | InSteps]:
    return ask_by_shard(
        context,
        names,
        DeleteGroups,
        lambda one, code: Response.Result(group_id=one, error_code=code),
        lambda results: Response(results=results),
    )


def _empty(context: Context, group_id: str) -> Later[KafkaError | None]:
    """Of a share group."""

    def begun(places: Partitions | KafkaError) -> Later[KafkaError | None]:
        if isinstance(places, KafkaError):
            return Later.of(places)
        return context.persister.delete(group_id, places).map(_first_failure)

    return context.groups.submit(group_id, BeginShareDeletion(group_id)).then_ask(begun)


def _first_failure(outcomes: Outcomes) -> KafkaError | None:
    return next((error for error in outcomes.values() if error is not None), None)


def _with(response: Response, refused: dict[str, KafkaError]) -> Response:
    response.results += [
        Response.Result(group_id=name, error_code=error.code) for name, error in refused.items()
    ]
    return response
