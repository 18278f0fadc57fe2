"""What the two APIs that change settings share: the checks before, and the replies after.

Owns which resources a broker settles itself (its loggers), which it looks at before the cluster
decides (its own settings), and that each resource has its own outcome.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from kafkalite.coordinators.cluster.configs import (
    AlterConfigs,
    Operation,
    Outcome,
    ResourceChange,
    ResourceType,
)
from kafkalite.coordinators.effects import Refused
from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps, Steps, begun
from kafkalite.handlers.broker_loggers import check_levels, set_levels
from kafkalite.handlers.broker_settings import check_broker_change, check_logger_node
from kafkalite.handlers.context import Context
from kafkalite.protocol.errors import Error, KafkaError

# Kinds that are decided by the cluster.
DECIDED = (
    ResourceType.TOPIC,
    ResourceType.BROKER,
    ResourceType.CLIENT_METRICS,
    ResourceType.GROUP,
)

OPERATIONS = frozenset(Operation)
_PER_STEP = 64  # resources

R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")


def alter(
    context: Context,
    resources: Sequence[Any],
    change_of: Callable[[Any], ResourceChange],
    answer_to: Callable[[ResourceChange, Outcome], S],
    respond: Callable[[list[S]], R],
    *,
    validate_only: bool,
) -> R | Later[R | InSteps] | InSteps:
    """The response with an answer to each change, in their order; a slice per turn when there are
    many."""

    def response(changes: list[ResourceChange], outcomes: list[Outcome]) -> Steps[R]:
        pairs = list(zip(changes, outcomes, strict=True))
        return respond((yield from _each(pairs, lambda pair: answer_to(*pair))))

    steps = _altered(context, resources, change_of, response, validate_only=validate_only)
    return begun(steps)


def _altered(
    context: Context,
    resources: Sequence[Any],
    change_of: Callable[[Any], ResourceChange],
    response: Callable[[list[ResourceChange], list[Outcome]], Steps[R]],
    *,
    validate_only: bool,
) -> Steps[R | Later[R | InSteps]]:
    changes = yield from _each(resources, change_of)
    counts = Counter((change.resource_type, change.name) for change in changes)

    def looked_at(change: ResourceChange) -> Outcome:
        try:
            if counts[change.resource_type, change.name] > 1:
                why = "Each resource must appear at most once."
                raise KafkaError(Error.INVALID_REQUEST, why)
            _prepare(context, change, validate_only=validate_only)
        except KafkaError as error:
            return error
        return None

    outcomes = yield from _each(changes, looked_at)
    left = [
        index
        for index, change in enumerate(changes)
        if outcomes[index] is None and change.resource_type in DECIDED
    ]

    if not left:
        return (yield from response(changes, outcomes))
    done: Later[R | InSteps] = Later()

    def decided(answers: list[Outcome] | KafkaError | Refused) -> None:
        if isinstance(answers, Refused):
            answers = answers.error
        if isinstance(answers, KafkaError):
            answers = [answers] * len(left)
        for index, answer in zip(left, answers, strict=True):
            outcomes[index] = answer
        done.resolve(begun(response(changes, outcomes)))

    event = AlterConfigs([changes[index] for index in left], validate_only)
    context.cluster.submit(event).then(decided)
    return done


def _each(items: Sequence[T], make: Callable[[T], S]) -> Steps[list[S]]:
    made: list[S] = []
    for item in items:
        made.append(make(item))
        if len(made) % _PER_STEP == 0:
            yield
    return made


def _prepare(context: Context, change: ResourceChange, *, validate_only: bool) -> None:
    names = [step.name for step in change.steps]
    if len(set(names)) < len(names):
        raise KafkaError(Error.INVALID_REQUEST, "Error due to duplicate config keys")
    unknown = [step.operation for step in change.steps if step.operation not in OPERATIONS]
    if unknown:
        raise KafkaError(Error.INVALID_REQUEST, f"Unknown operations type {unknown[0]}")
    nulls = [
        step.name
        for step in change.steps
        if step.value is None and step.operation != Operation.DELETE
    ]
    if nulls:
        why = f"Null value not supported for : {', '.join(nulls)}"
        raise KafkaError(Error.INVALID_REQUEST, why)
    if change.resource_type == ResourceType.BROKER_LOGGER and not change.is_whole:
        check_logger_node(context, change.name)
        check_levels(change.steps)
        if not validate_only:
            set_levels(change.steps)
    elif change.resource_type == ResourceType.BROKER:
        check_broker_change(context, change)
    elif change.resource_type not in DECIDED:
        why = f"Unknown resource type {change.resource_type}"
        raise KafkaError(Error.INVALID_REQUEST, why)
