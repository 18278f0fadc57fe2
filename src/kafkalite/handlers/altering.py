"""What the two APIs that change settings share: the checks before, and the replies after.

Owns which resources a broker settles itself (its loggers), which it looks at before the cluster
decides (its own settings), and that each resource has its own outcome.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from kafkalite.config.listeners import CONTROLLER
from kafkalite.coordinators.cluster.configs import (
    AlterConfigs,
    Operation,
    Outcome,
    ResourceChange,
    ResourceType,
)
from kafkalite.env.later import Later
from kafkalite.env.slicing import ELEMENTS_PER_STEP, LOOKS_PER_STEP, InSteps, Steps, in_steps
from kafkalite.handlers.broker_loggers import check_levels, set_levels
from kafkalite.handlers.broker_settings import check_broker_change, check_logger_node
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.permission import may_cluster, require_for_settings
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.security.acl import ALTER_CONFIGS

# Kinds that are decided by the cluster.
DECIDED = (
    ResourceType.TOPIC,
    ResourceType.BROKER,
    ResourceType.CLIENT_METRICS,
    ResourceType.GROUP,
)

OPERATIONS = frozenset(Operation)
_AT_ONCE = 64  # resources, with as many settings each


class Asked(Protocol):
    """A resource with settings, as a request names it."""

    configs: list[Any]


Q = TypeVar("Q", bound=Asked)
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")
Look = Outcome | Later[Outcome]


def alter(
    context: Context,
    call: Call,
    resources: Sequence[Q],
    change_of: Callable[[Q], ResourceChange],
    answer_to: Callable[[ResourceChange, Outcome], S],
    respond: Callable[[list[S]], R],
    *,
    validate_only: bool,
) -> Later[R] | InSteps:
    """The response with an answer to each change, in their order; a slice per turn when there are
    many."""
    most = max((len(resource.configs) for resource in resources), default=0)
    if max(len(resources), most) > _AT_ONCE:
        return InSteps(
            _altered(context, call, resources, change_of, answer_to, respond, validate_only)
        )
    changes = [change_of(resource) for resource in resources]
    counts = _counted(changes)
    looks = [_look_at(context, call, change, counts, validate_only) for change in changes]

    def made(outcomes: list[Outcome]) -> R:
        return respond([answer_to(*pair) for pair in zip(changes, outcomes, strict=True)])

    return _decided(context, changes, looks, made, validate_only)


def _altered(
    context: Context,
    call: Call,
    resources: Sequence[Q],
    change_of: Callable[[Q], ResourceChange],
    answer_to: Callable[[ResourceChange, Outcome], S],
    respond: Callable[[list[S]], R],
    validate_only: bool,
) -> Steps[Later[InSteps]]:
    changes = yield from _by_settings(change_of, [(each, len(each.configs)) for each in resources])
    counts = _counted(changes)
    looks = yield from _by_settings(
        lambda change: _look_at(context, call, change, counts, validate_only),
        [(change, len(change.steps)) for change in changes],
    )

    def responded(outcomes: list[Outcome]) -> Steps[R]:
        pairs = zip(changes, outcomes, strict=True)
        return respond((yield from in_steps(answer_to(*pair) for pair in pairs)))

    def made(outcomes: list[Outcome]) -> InSteps:
        return InSteps(responded(outcomes))

    return _decided(context, changes, looks, made, validate_only)


def _by_settings(make: Callable[[T], S], given: list[tuple[T, int]]) -> Steps[list[S]]:
    """What is made of each, which has so many settings."""
    made: list[S] = []
    weight = 0
    for each, settings in given:
        weight += LOOKS_PER_STEP // ELEMENTS_PER_STEP + settings
        if made and weight > LOOKS_PER_STEP:
            weight = 0
            yield
        made.append(make(each))
    return made


def _counted(changes: list[ResourceChange]) -> Counter[tuple[int, str]]:
    return Counter((change.resource_type, change.name) for change in changes)


def _look_at(
    context: Context,
    call: Call,
    change: ResourceChange,
    counts: Counter[tuple[int, str]],
    validate_only: bool,
) -> Look:
    """What is to be said of it before the cluster decides."""
    try:
        if counts[change.resource_type, change.name] > 1:
            why = "Each resource must appear at most once."
            raise KafkaError(Error.INVALID_REQUEST, why)
        look = _prepare(context, call, change, validate_only=validate_only)
        if change.resource_type in DECIDED:
            require_for_settings(context, call, ALTER_CONFIGS, change.resource_type, change.name)
    except KafkaError as error:
        return error
    return look


def _decided(
    context: Context,
    changes: list[ResourceChange],
    looks: list[Look],
    made: Callable[[list[Outcome]], T],
    validate_only: bool,
) -> Later[T]:
    """What is made of all outcomes, once files were looked at and the cluster has decided."""

    def ask(_: object) -> Later[T]:
        outcomes = [each.value if isinstance(each, Later) else each for each in looks]
        return _asked(context, changes, outcomes, made, validate_only)

    return Later.all([each for each in looks if isinstance(each, Later)]).then_ask(ask)


def _asked(
    context: Context,
    changes: list[ResourceChange],
    outcomes: list[Outcome],
    made: Callable[[list[Outcome]], T],
    validate_only: bool,
) -> Later[T]:
    """What is made of the outcomes, once the cluster has decided on those that are its own."""
    left = [
        index
        for index, change in enumerate(changes)
        if outcomes[index] is None and change.resource_type in DECIDED
    ]
    if not left:
        return Later.of(made(outcomes))

    def decided(answers: list[Outcome] | KafkaError) -> T:
        if isinstance(answers, KafkaError):
            answers = [answers] * len(left)
        for index, answer in zip(left, answers, strict=True):
            outcomes[index] = answer
        return made(outcomes)

    event = AlterConfigs([changes[index] for index in left], validate_only)
    return context.controller.submit(event).map(decided)


def _prepare(
    context: Context, call: Call, change: ResourceChange, *, validate_only: bool
) -> Look:
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
        if not may_cluster(context, call, ALTER_CONFIGS):
            raise KafkaError(Error.CLUSTER_AUTHORIZATION_FAILED, "")
        check_logger_node(context, change.name)
        check_levels(change.steps)
        if not validate_only:
            set_levels(change.steps)
    elif change.resource_type == ResourceType.BROKER:
        if call.connection.kind == CONTROLLER and change.name != str(context.node_id):
            return None  # another broker has looked at it, or nobody can
        return check_broker_change(context, change)
    elif change.resource_type not in DECIDED:
        why = f"Unknown resource type {change.resource_type}"
        raise KafkaError(Error.INVALID_REQUEST, why)
    return None
