"""What the two APIs that change settings share: the checks before, and the replies after.

Owns which resources a broker settles itself (its loggers), which it looks at before the cluster
decides (its own settings), and that each resource has its own outcome.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kafkalite.coordinators.cluster.configs import (
    AlterConfigs,
    Operation,
    Outcome,
    ResourceChange,
    ResourceType,
)
from kafkalite.coordinators.effects import Refused
from kafkalite.env.later import Later
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


def alter(
    context: Context, changes: Sequence[ResourceChange], *, validate_only: bool
) -> Later[list[Outcome]]:
    """What came of each change, in their order: an error, or None."""
    counts = Counter((change.resource_type, change.name) for change in changes)
    outcomes: list[Outcome] = []
    for change in changes:
        try:
            if counts[change.resource_type, change.name] > 1:
                why = "Each resource must appear at most once."
                raise KafkaError(Error.INVALID_REQUEST, why)
            _prepare(context, change, validate_only=validate_only)
            outcomes.append(None)
        except KafkaError as error:
            outcomes.append(error)
    left = [
        index
        for index, change in enumerate(changes)
        if outcomes[index] is None and change.resource_type in DECIDED
    ]
    if not left:
        return Later.of(outcomes)
    done: Later[list[Outcome]] = Later()

    def decided(answers: list[Outcome] | KafkaError | Refused) -> None:
        if isinstance(answers, Refused):
            answers = answers.error
        if isinstance(answers, KafkaError):
            answers = [answers] * len(left)
        for index, answer in zip(left, answers, strict=True):
            outcomes[index] = answer
        done.resolve(outcomes)

    event = AlterConfigs([changes[index] for index in left], validate_only)
    context.cluster.submit(event).then(decided)
    return done


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
