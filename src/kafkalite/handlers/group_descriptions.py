"""Descriptions of groups whose coordinator assigns topics: of consumers, share and streams groups.

Owns what is told of a group that has topics which who asks may not describe: nothing but that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from kafkalite.coordinators.events import Event
from kafkalite.env.later import Later
from kafkalite.env.slicing import (
    ELEMENTS_PER_STEP,
    LOOKS_PER_STEP,
    InSteps,
    Steps,
    begun,
    chosen,
    in_steps,
)
from kafkalite.handlers.afterwards import afterwards
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.group_replies import describe_by_shard
from kafkalite.handlers.permission import divide, permitted
from kafkalite.protocol.errors import Error
from kafkalite.security.acl import DESCRIBE, GROUP, TOPIC

HIDDEN_TOPICS = "The group has described topic(s) that the client is not authorized to describe."

R = TypeVar("R")


def describe_with_topics(
    context: Context,
    call: Call,
    request: Any,
    make_event: Callable[[list[str]], Event[list[Any] | InSteps]],
    kind: type[R],
    topics_of: Callable[[Any], Iterable[str]],
    *,
    is_served: bool,
    hidden: str = HIDDEN_TOPICS,
) -> R | InSteps | Later[R | InSteps]:
    """`topics_of` names the topics that a described group has; `hidden` says that some may not be
    described. Whether they are served is told to who may not describe any."""
    group_ids = request.group_ids
    if not is_served:
        return begun(_refused(group_ids, kind, Error.UNSUPPORTED_VERSION))

    def describe(ids: list[str]) -> R | InSteps | Later[R | InSteps]:
        return describe_by_shard(
            context, call, request, ids, make_event, kind, Error.INVALID_GROUP_ID
        )

    if context.authorizer is None:
        return describe(group_ids)

    def asked() -> Steps[R | InSteps | Later[R | InSteps]]:
        allowed = yield from permitted(context, call, DESCRIBE, GROUP, group_ids)
        refused = [each for each in group_ids if each not in allowed]
        answer = yield from _refused(refused, kind, Error.GROUP_AUTHORIZATION_FAILED)
        described = describe([each for each in group_ids if each in allowed])

        def shown(response: R) -> InSteps:
            return InSteps(_shown(context, call, response, topics_of, hidden, answer))

        told: R | InSteps | Later[R | InSteps] = afterwards(described, shown)
        return told

    return begun(asked())


def _shown(
    context: Context,
    call: Call,
    response: Any,
    topics_of: Callable[[Any], Iterable[str]],
    hidden: str,
    refused: Any,
) -> Steps[Any]:
    groups = response.groups
    names = yield from _names_in(groups, topics_of)
    unseen: set[str] = set()
    yield from divide(context, call, DESCRIBE, TOPIC, names, set(), unseen)
    shown = refused.groups
    for number, group in enumerate(groups, 1):
        is_hidden = unseen and (yield from chosen(topics_of(group), unseen.__contains__))
        shown.append(_hidden(group, hidden) if is_hidden else group)
        if number % ELEMENTS_PER_STEP == 0:
            yield
    response.groups = shown
    return response


def _names_in(groups: list[Any], topics_of: Callable[[Any], Iterable[str]]) -> Steps[set[str]]:
    """Each name once, however many members have it."""
    found: set[str] = set()
    for number, name in enumerate((name for each in groups for name in topics_of(each)), 1):
        found.add(name)
        if number % LOOKS_PER_STEP == 0:
            yield
    return found


def _hidden(group: Any, why: str) -> Any:
    return type(group)(
        group_id=group.group_id,
        error_code=Error.TOPIC_AUTHORIZATION_FAILED,
        error_message=why,
    )


def _refused(group_ids: list[str], kind: type[R], code: Error) -> Steps[R]:
    make_group: Any = kind.Group  # type: ignore[attr-defined]
    groups = yield from in_steps(
        make_group(group_id=group_id, error_code=code) for group_id in group_ids
    )
    return kind(groups=groups)  # type: ignore[call-arg]
