"""What the handlers of groups share: asking the coordinators, and reading their refusals.

Owns nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sized
from typing import Any, Protocol, TypeVar

from kafkalite.coordinators.cluster.image import Image
from kafkalite.coordinators.events import Event
from kafkalite.env.later import Later
from kafkalite.env.slicing import (
    ELEMENTS_PER_STEP,
    InSteps,
    Steps,
    begun,
    finish,
    in_steps,
    outcome_of,
)
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.operations import operations
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.security.acl import GROUP

R = TypeVar("R")
G = TypeVar("G")
K = TypeVar("K", bound=Hashable)

# Of a request about partitions: at once, and in one step of those about more.
PARTITIONS_AT_ONCE = 200
PARTITIONS_PER_STEP = 64
TOPICS_PER_STEP = 32


class _OfPartition(Protocol):
    @property
    def partition_index(self) -> int: ...


class _OfTopic(Protocol):
    @property
    def partitions(self) -> Sized: ...


P = TypeVar("P", bound=_OfPartition)


def unless_many(steps: Steps[R], topics: Iterable[_OfTopic]) -> R | InSteps:
    """What comes of it; for a request about many partitions it is worked out a slice per turn."""
    asked = 0
    for topic in topics:
        asked += len(topic.partitions)
    return InSteps(steps) if asked > PARTITIONS_AT_ONCE else finish(steps)


def sorted_out(
    topic: str, partitions: list[P], image: Image
) -> Steps[tuple[list[P], list[P]]]:
    """The partitions that exist, and those that do not."""
    known: list[P] = []
    missing: list[P] = []
    has = image.has_partition
    for count, partition in enumerate(partitions, 1):
        (known if has(topic, partition.partition_index) else missing).append(partition)
        if count % PARTITIONS_PER_STEP == 0:
            yield
    return known, missing


def of_known_partitions(
    topics: list[Any], image: Image, refused: dict[str, Any], answer: Callable[..., Any],
    partition: Callable[..., Any],
) -> Steps[list[Any]]:  # fmt: skip
    """The topics with those of their partitions that exist, if any; the others are refused, with
    the response's `answer` for a topic and its `partition`."""
    known: list[Any] = []
    for count, topic in enumerate(topics, 1):
        if count % TOPICS_PER_STEP == 0:  # they may have one partition each
            yield
        topic.partitions, missing = yield from sorted_out(topic.name, topic.partitions, image)
        if topic.partitions:
            known.append(topic)
        if missing:
            answers = yield from one_answer(partition, missing, Error.UNKNOWN_TOPIC_OR_PARTITION)
            refused.setdefault(topic.name, answer(name=topic.name)).partitions += answers
    return known


def one_answer(
    make: Callable[..., R], partitions: Iterable[_OfPartition], code: int
) -> Steps[list[R]]:
    """The same error code for each partition."""
    answers: list[R] = []
    for asked in partitions:
        answers.append(make(partition_index=asked.partition_index, error_code=code))
        if len(answers) % PARTITIONS_PER_STEP == 0:
            yield
    return answers


def merged(refused: dict[K, R], accepted: list[R], key: Callable[[R], K]) -> Steps[list[R]]:
    """One answer per topic: what was refused here, then what the coordinator said."""
    for count, topic in enumerate(accepted, 1):
        present: Any = refused.setdefault(key(topic), topic)
        if present is not topic:
            present.partitions += topic.partitions  # type: ignore[attr-defined]
        if count % TOPICS_PER_STEP == 0:
            yield
    return list(refused.values())


def ask_by_shard(
    context: Context,
    group_ids: Iterable[str],
    make_event: Callable[[list[str]], Event[list[G] | InSteps]],
    failed: Callable[[str, int], G],
    respond: Callable[[list[G]], R],
    nameless: Error | None = None,
) -> InSteps | Later[R | InSteps]:
    """The response with an answer for each group, of one event per shard; `failed` is the answer
    where the shard refuses, or is not asked because the group is `nameless`."""
    return begun(_asked_by_shard(context, list(group_ids), make_event, failed, respond, nameless))


def _asked_by_shard(
    context: Context,
    group_ids: list[str],
    make_event: Callable[[list[str]], Event[list[G] | InSteps]],
    failed: Callable[[str, int], G],
    respond: Callable[[list[G]], R],
    nameless: Error | None,
) -> Steps[Later[R | InSteps]]:
    sorted_ids: list[list[str]] = []
    asked: list[Later[list[G] | InSteps | KafkaError]] = []
    if nameless is not None:
        sorted_ids.append([group_id for group_id in group_ids if not group_id])
        asked.append(Later.of(KafkaError(nameless)))
        group_ids = [group_id for group_id in group_ids if group_id]
    by_shard = yield from context.groups.by_shard(group_ids)
    for first, ids in by_shard.items():
        sorted_ids.append(ids)
        asked.append(context.groups.submit(first, make_event(ids)))

    def responded(found: list[list[G] | InSteps | KafkaError]) -> Steps[R]:
        groups: list[G] = []
        for number, (ids, answer) in enumerate(zip(sorted_ids, found, strict=True), 1):
            if number % ELEMENTS_PER_STEP == 0:  # they may be of one group each
                yield
            if isinstance(answer, KafkaError):
                code = answer.code
                groups += yield from in_steps(failed(group_id, code) for group_id in ids)
            else:
                groups += yield from outcome_of(answer)
        return respond(groups)

    return Later.all(asked).map(lambda found: begun(responded(found)))


def describe_by_shard(
    context: Context,
    call: Call,
    request: Any,
    group_ids: Iterable[str],
    make_event: Callable[[list[str]], Event[list[Any] | InSteps]],
    kind: type[R],
    nameless: Error | None = None,
) -> InSteps | Later[R | InSteps]:
    """The same for descriptions in this kind of response, which tell what one may do if asked."""
    make_group: Any = kind.Group  # type: ignore[attr-defined]

    def respond(groups: list[Any]) -> R:
        if request.include_authorized_operations:
            for group in groups:
                if group.error_code == Error.NONE:
                    allowed = operations(context, call, GROUP, group.group_id)
                    group.authorized_operations = allowed
        return kind(groups=groups)  # type: ignore[call-arg]

    return ask_by_shard(
        context, group_ids, make_event,
        lambda group_id, code: make_group(group_id=group_id, error_code=code), respond, nameless,
    )  # fmt: skip


def serves_consumer_groups(context: Context) -> bool:
    """Whether the cluster has finalized KIP-848's protocol, and the settings have it."""
    is_finalized = context.metadata.image.features.get("group.version", 0) >= 1
    return is_finalized and "consumer" in context.config.get_list(
        "group.coordinator.rebalance.protocols"
    )


def serves_streams_groups(context: Context) -> bool:
    """Whether the cluster has finalized KIP-1071, and the settings have it."""
    is_finalized = context.metadata.image.features.get("streams.version", 0) >= 1
    return is_finalized and "streams" in context.config.get_list(
        "group.coordinator.rebalance.protocols"
    )


def code_of(answer: object) -> Error:
    return Error(answer.code) if isinstance(answer, KafkaError) else Error.NONE


def client_id_of(call: Call) -> str:
    return call.client_id or ""


def client_host_of(call: Call) -> str:
    """As Java prints an address: a slash, then the number."""
    return f"/{call.connection.peer_address[0]}"
