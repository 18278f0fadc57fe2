"""A controller that is elsewhere, asked over a link: each event is a request of Kafka's.

Owns the translation, and that what cannot be asked now is asked again, for as long as Apache
Kafka's brokers would. What clients ask of it is forwarded as it came, in an envelope.
Invariant: each event is answered once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

from kafkalite.coordinators.cluster.alter_partition import AlterPartition, Outcomes
from kafkalite.coordinators.cluster.brokers import (
    AllocateProducerIds,
    AssignDirectories,
    DirectoriesOffline,
)
from kafkalite.coordinators.cluster.configs import AlterConfigs
from kafkalite.coordinators.cluster.configs import Outcome as SettingsOutcome
from kafkalite.coordinators.cluster.events import AlterClientQuotas, Mutation, Requested
from kafkalite.coordinators.cluster.states import PartitionState
from kafkalite.coordinators.events import Event
from kafkalite.env.clock import Clock
from kafkalite.env.dataclasses import dataclass, field
from kafkalite.env.later import Later
from kafkalite.peers.channel import Answer, Channel
from kafkalite.peers.lifecycle import FORGOTTEN, Lifecycle
from kafkalite.protocol import spec
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterConfigsRequest,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    EnvelopeRequest,
    EnvelopeResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

logger = logging.getLogger(__name__)

R = TypeVar("R")

PATIENCE_MS = 60_000
RETRY_MS = 50
ALTER_VERSIONS = range(2, 4)
# Nobody has answered, or not the one who leads: the same is asked again.
UNANSWERED = (
    Error.NETWORK_EXCEPTION, Error.REQUEST_TIMED_OUT, Error.NOT_CONTROLLER,
)  # fmt: skip


class WireController:
    """As one broker asks it: in-sync replicas on a way of their own, as with Apache Kafka."""

    def __init__(
        self, clock: Clock, altering: Channel, asking: Channel, lifecycle: Lifecycle
    ) -> None:
        self._clock, self._altering, self._asking = clock, altering, asking
        self._lifecycle = lifecycle
        self._open: dict[_Question, None] = {}

    def stop(self) -> None:
        """Asks nothing again."""
        for question in list(self._open):
            question.give_up_ms = 0

    def once_durable(self, then: Callable[[], None]) -> None:
        """What a broker knows of the metadata lasts already: it is given nothing else."""
        then()

    def forward(self, envelope: EnvelopeRequest) -> Later[EnvelopeResponse | KafkaError]:
        return self._ask(self._asking, envelope, range(1))

    def submit(self, event: Event[R]) -> Later[R | KafkaError]:
        answer = self._answer(event)
        return cast("Later[R | KafkaError]", answer)

    def _answer(self, event: object) -> Later[Any]:
        if isinstance(event, DirectoriesOffline):
            return self._lifecycle.offline(event.directories)
        if isinstance(event, AlterPartition):
            asked = self._ask(self._altering, altering(event), ALTER_VERSIONS)
            return asked.map(_understood(altered))
        if isinstance(event, AllocateProducerIds):
            allocating = partial(self._allocating, event)
            return self._ask_as_member(allocating).map(_understood(allocated))
        if isinstance(event, AssignDirectories):
            assigning = partial(self._assigning, event)
            return self._ask_as_member(assigning).map(_understood(assigned))
        if isinstance(event, AlterConfigs):
            settings = settings_request(event)
            asked = self._ask(self._asking, settings, _versions(settings))
            return asked.map(_understood(partial(settings_outcomes, event)))
        if isinstance(event, Requested | Mutation | AlterClientQuotas):
            wanted: Any = event.request
            return self._ask(self._asking, wanted, _versions(wanted))
        why = f"{type(event).__name__} is asked where the controller is"
        return Later.of(KafkaError(Error.INVALID_REQUEST, why))

    def _allocating(self, event: AllocateProducerIds) -> AllocateProducerIdsRequest:
        return AllocateProducerIdsRequest(
            broker_id=event.broker_id, broker_epoch=self._lifecycle.epoch
        )

    def _assigning(self, event: AssignDirectories) -> AssignReplicasToDirsRequest:
        directories: dict[bytes, AssignReplicasToDirsRequest.Directory] = {}
        topics: dict[tuple[bytes, bytes], AssignReplicasToDirsRequest.Topic] = {}
        for (topic_id, index), directory_id in event.directories.items():
            directory = directories.get(directory_id)
            if directory is None:
                directory = AssignReplicasToDirsRequest.Directory(id=directory_id)
                directories[directory_id] = directory
            topic = topics.get((directory_id, topic_id))
            if topic is None:
                topic = AssignReplicasToDirsRequest.Topic(topic_id=topic_id)
                topics[directory_id, topic_id] = topic
                directory.topics.append(topic)
            topic.partitions.append(AssignReplicasToDirsRequest.Partition(partition_index=index))
        return AssignReplicasToDirsRequest(
            broker_id=event.broker_id,
            broker_epoch=self._lifecycle.epoch,
            directories=list(directories.values()),
        )

    # --- asking -----------------------------------------------------------------------------------

    def _ask(self, channel: Channel, request: Any, versions: range) -> Later[Any]:
        """The response, or a KafkaError when nobody answers for long."""
        return self._put(channel, lambda: request, versions, UNANSWERED)

    def _ask_as_member(self, make: Callable[[], Any]) -> Later[Any]:
        """The same in the life that the broker is in by then: one that the controller knows no more
        is about to register anew."""
        return self._put(self._asking, make, range(1), (*UNANSWERED, *FORGOTTEN))

    def _put(
        self, channel: Channel, make: Callable[[], Any], versions: range, again: tuple[Error, ...]
    ) -> Later[Any]:
        give_up_ms = self._clock.monotonic_ms() + PATIENCE_MS
        question = _Question(self._clock, channel, make, versions, give_up_ms, again)
        self._open[question] = None
        question.ask()
        return question.answer.map(partial(self._settled, question))

    def _settled(self, question: _Question, answer: Answer) -> Answer:
        del self._open[question]
        return answer


@dataclass(slots=True, eq=False)
class _Question:
    """Asked again and again, until somebody answers or it is given up."""

    clock: Clock
    channel: Channel
    make: Callable[[], Any]
    versions: range
    give_up_ms: int
    again: tuple[Error, ...]  # after which it is asked again
    answer: Later[Any] = field(default_factory=Later)

    def ask(self) -> None:
        self.channel.ask(self.make(), self.versions).then(self._answered)

    def _answered(self, answer: Answer) -> None:
        code = answer.code if isinstance(answer, KafkaError) else _code_of(answer)
        if code not in self.again:
            self.answer.resolve(answer)
        elif self.clock.monotonic_ms() >= self.give_up_ms:
            self.answer.resolve(KafkaError(Error.REQUEST_TIMED_OUT, "the controller is not there"))
        else:
            self.clock.call_later(RETRY_MS, self.ask)


def _code_of(answer: Any) -> int:
    """Of the whole answer, where it has one."""
    code = getattr(answer, "error_code", 0)
    return code if isinstance(code, int) else 0


def _versions(request: Any) -> range:
    api = spec.api(request.API_KEY)
    return range(api.versions.start, api.stable.stop)


def _understood(meaning: Callable[[Any], R]) -> Callable[[Any], R | KafkaError]:
    """What an answer means; an error as a whole, and a mistake of ours, is one, too."""

    def understand(answer: Any) -> R | KafkaError:
        if isinstance(answer, KafkaError):
            return answer
        code = _code_of(answer)
        if code != Error.NONE:
            return KafkaError(known(code))
        try:
            return meaning(answer)
        except Exception:
            logger.exception("an answer was not understood: %s", type(answer).__name__)
            return KafkaError(Error.UNKNOWN_SERVER_ERROR)

    return understand


def known(code: int) -> Error:
    """A newer controller may have errors that nobody here has heard of."""
    try:
        return Error(code)
    except ValueError:
        return Error.UNKNOWN_SERVER_ERROR


# --- in-sync replicas -----------------------------------------------------------------------------


def altering(event: AlterPartition) -> AlterPartitionRequest:
    asked = AlterPartitionRequest
    topics: dict[bytes, AlterPartitionRequest.Topic] = {}
    for (topic_id, index), wanted in event.partitions.items():
        topic = topics.setdefault(topic_id, asked.Topic(topic_id=topic_id))
        topic.partitions.append(
            asked.Partition(
                partition_index=index,
                leader_epoch=wanted.leader_epoch,
                new_isr=[broker_id for broker_id, _ in wanted.isr],
                new_isr_with_epochs=[
                    asked.NewIsrWithEpoch(broker_id=broker_id, broker_epoch=epoch)
                    for broker_id, epoch in wanted.isr
                ],
                leader_recovery_state=wanted.leader_recovery_state,
                partition_epoch=wanted.partition_epoch,
            )
        )
    return asked(
        broker_id=event.broker_id, broker_epoch=event.broker_epoch, topics=list(topics.values())
    )


def altered(answer: AlterPartitionResponse) -> Outcomes:
    found: Outcomes = {}
    for topic in answer.topics:
        for each in topic.partitions:
            place = (topic.topic_id, each.partition_index)
            if each.error_code != Error.NONE:
                found[place] = known(each.error_code)
                continue
            found[place] = PartitionState(
                *place, replicas=(), isr=tuple(each.isr), leader=each.leader_id,
                leader_epoch=each.leader_epoch, partition_epoch=each.partition_epoch,
                leader_recovery_state=each.leader_recovery_state,
            )  # fmt: skip
    return found


# --- the rest -------------------------------------------------------------------------------------


def allocated(answer: AllocateProducerIdsResponse) -> range:
    first = answer.producer_id_start
    return range(first, first + answer.producer_id_len)


def assigned(answer: AssignReplicasToDirsResponse) -> None:
    """A partition that is not there any more has no directory either."""


def settings_request(
    event: AlterConfigs,
) -> AlterConfigsRequest | IncrementalAlterConfigsRequest:
    if any(change.is_whole for change in event.changes):
        whole = AlterConfigsRequest
        return whole(
            resources=[
                whole.Resource(
                    resource_type=change.resource_type,
                    resource_name=change.name,
                    configs=[whole.Config(name=one.name, value=one.value) for one in change.steps],
                )
                for change in event.changes
            ],
            validate_only=event.validate_only,
        )
    single = IncrementalAlterConfigsRequest
    return single(
        resources=[
            single.Resource(
                resource_type=change.resource_type,
                resource_name=change.name,
                configs=[
                    single.Config(
                        name=one.name, config_operation=one.operation, value=one.value
                    )
                    for one in change.steps
                ],
            )
            for change in event.changes
        ],
        validate_only=event.validate_only,
    )


def settings_outcomes(
    event: AlterConfigs, answer: IncrementalAlterConfigsResponse
) -> list[SettingsOutcome]:
    found = {
        (each.resource_type, each.resource_name): None
        if each.error_code == Error.NONE
        else KafkaError(known(each.error_code), each.error_message)
        for each in answer.responses
    }
    unknown = KafkaError(Error.UNKNOWN_SERVER_ERROR)
    return [found.get((one.resource_type, one.name), unknown) for one in event.changes]
