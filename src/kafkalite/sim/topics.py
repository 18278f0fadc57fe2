"""Topics that come and go: who deletes them and makes them anew, and what that takes away.

A topic that was made anew is another one, and is known here by a label of its own: whoever writes
or reads by its id is bound to it. Who writes by name may meet either. Owns when each was there,
counted in values sent; a deletion takes what was sent to that one before it was answered, and
nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    MetadataRequest,
)
from kafkalite.sim.client import Ask, Script, Sleep

if TYPE_CHECKING:
    from kafkalite.sim.history import History, Partition

CREATE_VERSION, DELETE_VERSION, METADATA_VERSION = 7, 6, 12
# Of what is asked again until it is done, one of these says that it was done before.
DONE_BEFORE = (Error.TOPIC_ALREADY_EXISTS, Error.UNKNOWN_TOPIC_ID)
KINDS: tuple[dict[str, str], ...] = (
    {},
    {"cleanup.policy": "compact"},
    {"cleanup.policy": "delete", "retention.ms": "400"},
)


@dataclass(slots=True)
class Incarnation:
    """A topic from its creation to its deletion."""

    name: str
    number: int
    topic_id: bytes
    partition_count: int
    settings: dict[str, str]
    # So many values had been sent when its deletion was asked for, and when it was answered.
    asked_at: int | None = None
    gone_at: int | None = None

    @property
    def label(self) -> str:
        return f"{self.name}@{self.number}"

    @property
    def partitions(self) -> list[Partition]:
        return [(self.label, index) for index in range(self.partition_count)]

    @property
    def is_compacted(self) -> bool:
        return self.settings.get("cleanup.policy") == "compact"


@dataclass(slots=True)
class Topics:
    """All incarnations of the topics that come and go."""

    by_label: dict[str, Incarnation] = field(default_factory=dict)
    lives: dict[str, list[Incarnation]] = field(default_factory=dict)

    def promise(self, name: str) -> None:
        """A topic of this name is there now and then."""
        self.lives[name] = []

    def begin(
        self, name: str, topic_id: bytes, count: int, settings: dict[str, str]
    ) -> Incarnation:
        lives = self.lives[name]
        made = Incarnation(name, len(lives) + 1, topic_id, count, settings)
        lives.append(made)
        self.by_label[made.label] = made
        return made

    def current(self, name: str) -> Incarnation | None:
        """The one that is there, unless somebody is about to delete it."""
        lives = self.lives[name]
        return lives[-1] if lives and lives[-1].asked_at is None else None

    def is_going(self, partition: Partition) -> bool:
        """Whether it is, or will be, in vain to try again."""
        found = self.by_label.get(partition[0])
        return found is not None and found.asked_at is not None

    def bound(self, partition: Partition, sent_at: int, known_at: int | None) -> Bound:
        """Which incarnation a value is in that was sent by name.

        One that was sent after the last deletion is in the last topic. One that was acknowledged
        before that deletion was asked for is not; whether any other is, nobody can tell.
        """
        name, index = partition
        *before, last = self.lives[name]
        inside = last.label, index
        if not before:
            return Bound(inside, is_sure=True)
        asked_at, gone_at = before[-1].asked_at, before[-1].gone_at
        assert asked_at is not None
        assert gone_at is not None
        if sent_at >= gone_at:
            return Bound(inside, is_sure=True)
        if known_at is not None and known_at < asked_at:
            return Bound((before[-1].label, index), is_sure=True)
        return Bound(inside, is_sure=False)

    def __iter__(self) -> Iterator[Incarnation]:
        return iter(self.by_label.values())


@dataclass(frozen=True, slots=True)
class Bound:
    """Where a value is, if it is anywhere."""

    partition: Partition
    is_sure: bool


@dataclass(slots=True)
class Keeper:
    """Deletes a topic and makes it anew, and does not rest before both are answered."""

    history: History
    random: Random
    name: str
    partition_count: int = 1

    def renew(self) -> Script:
        """One more life; the first begins without a deletion."""
        current = self.history.topics.current(self.name)
        if current is not None:
            yield from self._delete(current)
            if self.random.random() < 0.5:
                yield Sleep(self.random.randrange(300))
        yield from self._create()

    def _delete(self, going: Incarnation) -> Script:
        going.asked_at = len(self.history.sent)
        wanted = DeleteTopicsRequest.Topic(name=None, topic_id=going.topic_id)
        request = DeleteTopicsRequest(topics=[wanted], timeout_ms=1_000)
        yield from self._until_done(request, DELETE_VERSION, lambda answer: answer.responses[0])
        going.gone_at = len(self.history.sent)
        self.history.count("deletions")
        if going.is_compacted:
            self.history.count("deletions of a compacted topic")
        if "retention.ms" in going.settings:
            self.history.count("deletions of a topic with retention")

    def _create(self) -> Script:
        settings = self.random.choice(KINDS)
        wanted = CreateTopicsRequest.Topic(
            name=self.name, num_partitions=self.partition_count, replication_factor=1,
            configs=[CreateTopicsRequest.Config(name=k, value=v) for k, v in settings.items()],
        )
        request = CreateTopicsRequest(topics=[wanted], timeout_ms=1_000)
        yield from self._until_done(request, CREATE_VERSION, lambda answer: answer.topics[0])
        topic_id = yield from self._topic_id()
        topics = self.history.topics
        made = topics.begin(self.name, topic_id, self.partition_count, settings)
        if made.is_compacted:
            self.history.compacted.update(made.partitions)
        if "retention.ms" in settings:
            self.history.fading.update(made.partitions)

    def _until_done(self, request: Any, version: int, part: Any) -> Script:
        while True:
            [answer] = yield Ask([(request, version)])
            code = None if answer is None else Error(part(answer).error_code)
            if code is Error.NONE or code in DONE_BEFORE:
                return
            yield Sleep(self.random.randrange(1, 40))

    def _topic_id(self) -> Script:
        """As clients learn it."""
        wanted = MetadataRequest.Topic(topic_id=bytes(16), name=self.name)
        request = MetadataRequest(topics=[wanted], allow_auto_topic_creation=False)
        while True:
            [answer] = yield Ask([(request, METADATA_VERSION)])
            if answer is not None and answer.topics[0].error_code == Error.NONE:
                return answer.topics[0].topic_id
            yield Sleep(self.random.randrange(1, 40))
