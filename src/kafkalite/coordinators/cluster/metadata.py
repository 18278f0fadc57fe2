"""The cluster's metadata as every broker sees it: the image, how far it is, and who follows it.

Owns the offset that the image stands at and the order in which changes are told. Nothing here
decides, and nothing here writes: records come from whoever reads the log, which is the controller
of this process. Invariant: what is published is in the image already.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol, TypeVar

from kafkalite.coordinators.cluster.changes import Changes
from kafkalite.coordinators.cluster.controller import OutcomeUnknown
from kafkalite.coordinators.cluster.feature_levels import KRAFT_VERSION
from kafkalite.coordinators.cluster.folding import Folded, put_in_place
from kafkalite.coordinators.cluster.image import Image
from kafkalite.coordinators.cluster.publishing import AtOnce, Publishing, Subscriber
from kafkalite.env.later import Later, resolve_each
from kafkalite.protocol.errors import KafkaError

R = TypeVar("R")


class Log(Protocol):
    """Where the records of the image are, as far as it is about stable storage."""

    @property
    def is_durable(self) -> bool: ...

    def when_durable(self) -> Later[KafkaError | None]: ...


class Metadata:
    """One image for all brokers of a process."""

    def __init__(self, cluster_id: str) -> None:
        self.cluster_id = cluster_id
        self.image = Image()
        # The offset of the last record that is in the image.
        self.offset = -1
        # Finalized by the log's control records (KIP-853), not by a record of the image.
        self.kraft_version = 0
        # Who leads the metadata log, while that is known.
        self.controller_id: int | None = None
        # The log that the image may be ahead of the disk with: only a process that leads it, and
        # has every append synced, tells of records that a power cut could still take back.
        self.ahead_of: Log | None = None
        self._publishing = Publishing()
        # Offsets of what somebody is not through with, in the order of publishing.
        self._followed: deque[int] = deque()
        self._waiting: list[tuple[int, Later[None]]] = []

    @property
    def finalized_features(self) -> dict[str, int]:
        """The levels of all features; that of kraft.version is the metadata log's own."""
        own = {KRAFT_VERSION: self.kraft_version} if self.kraft_version else {}
        return {**self.image.features, **own}

    @property
    def features_epoch(self) -> int:
        """The offset up to which finalized features are known: that of the last record."""
        return self.offset

    @property
    def lasts(self) -> bool:
        """Whether all of the metadata is as durable as is configured. While it is not, nobody is
        told of it, and nothing is done because of it that cannot be undone."""
        return self.ahead_of is None or self.ahead_of.is_durable

    def once_it_lasts(self, reply: R) -> Later[R | KafkaError]:
        """A reply that comes when all records so far are as durable as is configured; an error in
        its place when their disk fails."""
        if self.ahead_of is None or self.ahead_of.is_durable:
            return Later.of(reply)
        return self.ahead_of.when_durable().map(
            lambda error: reply if error is None else OutcomeUnknown(error.code, error.message)
        )

    def subscribe(self, subscriber: Subscriber, at_once: AtOnce | None = None) -> None:
        """Has a callback told of every change, after it is in the image and before its reply; and
        another one in the turn in which the image changes."""
        self._publishing.subscribe(subscriber, at_once)

    def unsubscribe(self, subscriber: Subscriber) -> None:
        """Tells a callback no more."""
        self._publishing.unsubscribe(subscriber)

    def replace(self, image: Image, offset: int) -> Changes:
        """Has another image take this one's place; what is different is still to be published."""
        changes = Changes.between(self.image, image)
        put_in_place(self.image, Folded(image, changes))
        self.offset = offset
        return changes

    def publish(self, changes: Changes) -> None:
        """Tells everybody who follows of changes that are in the image."""
        self._followed.append(self.offset)
        self._publishing.publish(changes).then(self._is_followed)

    def _is_followed(self, _: None) -> None:
        self._followed.popleft()
        through = self.applied
        due = [later for offset, later in self._waiting if offset <= through]
        self._waiting = [each for each in self._waiting if each[0] > through]
        resolve_each((later, None) for later in due)

    @property
    def applied(self) -> int:
        """Up to which offset everybody has followed."""
        return self._followed[0] - 1 if self._followed else self.offset

    def when_applied(self, offset: int) -> Later[None]:
        """Filled when the image has the record at this offset, and everybody who follows it is
        through with what that changed."""
        if offset <= self.applied:
            return Later.of(None)
        later: Later[None] = Later()
        self._waiting.append((offset, later))
        return later
