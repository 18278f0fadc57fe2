"""What was changed, told to those who follow the metadata: in order, and to one after the other.

Owns the changes that not everybody has heard of yet. Whoever follows may take its time, with files
to be made and thousands of partitions to be opened; it hears of the next change when it is through
with the one before. Invariant: a change is published when everyone who followed as it was begun is
through with it, or has left.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from kafkalite.coordinators.cluster.changes import Changes
from kafkalite.env.later import Later

logger = logging.getLogger(__name__)

S = TypeVar("S")
T = TypeVar("T")

# Told of a change; None, or a slot that is filled when it is through with it.
Subscriber = Callable[[Changes], "Later[None] | None"]
# Told in the turn in which the image changes, whatever else is to be followed before: for what must
# not be seen any more. It takes no time.
AtOnce = Callable[[Changes], None]


class Publishing:
    """Those who follow, and what they are to hear."""

    def __init__(self) -> None:
        self._subscribers: dict[Subscriber, AtOnce | None] = {}
        self._waiting: deque[tuple[Changes, Later[None]]] = deque()
        self._to_be_told: deque[Subscriber] = deque()  # of the change that is first in line
        self._is_telling = self._is_begun = self._is_waiting = False

    def subscribe(self, subscriber: Subscriber, at_once: AtOnce | None = None) -> None:
        """From the next change on that is begun."""
        self._subscribers[subscriber] = at_once

    def unsubscribe(self, subscriber: Subscriber) -> None:
        """It is told no more; what it is at it is to end by itself."""
        del self._subscribers[subscriber]
        if subscriber in self._to_be_told:
            self._to_be_told.remove(subscriber)

    def publish(self, changes: Changes) -> Later[None]:
        """Filled when everybody is through with it."""
        for at_once in self._subscribers.values():
            if at_once is not None:
                _guarded(at_once, changes)
        published: Later[None] = Later()
        self._waiting.append((changes, published))
        self._go_on()
        return published

    def _go_on(self) -> None:
        """Tells as many as are through at once; called again by who was not."""
        if self._is_telling or self._is_waiting:
            return
        self._is_telling = True
        try:
            while self._waiting and self._tell_next():
                pass
        finally:
            self._is_telling = False

    def _waited(self, _: None) -> None:
        self._is_waiting = False
        self._go_on()

    def _tell_next(self) -> bool:
        """False when somebody has to be waited for."""
        changes, published = self._waiting[0]
        if not self._is_begun:
            self._is_begun = True
            self._to_be_told.extend(self._subscribers)
        while self._to_be_told:
            through = _guarded(self._to_be_told.popleft(), changes)
            if through is not None and not through.is_resolved:
                self._is_waiting = True
                through.then(self._waited)
                return False
        self._waiting.popleft()
        self._is_begun = False
        _guarded(published.resolve, None)
        return True


def _guarded(tell: Callable[[S], T], told: S) -> T | None:
    """What one of them does wrong keeps nobody else waiting."""
    try:
        return tell(told)
    except Exception:
        logger.exception("a change of the metadata is not followed, by a mistake of ours")
        return None
