"""What a conversation has come to: the ids, epochs and generations that answers told, canonically.

The generator draws from it, so that requests follow from each other as a client's do.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

KEPT = 4


def _few() -> deque[Any]:
    return deque(maxlen=KEPT)


@dataclass(slots=True)
class Memory:
    """The last few of each; the newest is last."""

    topic_ids: deque[bytes] = field(default_factory=_few)
    members: deque[tuple[str, int]] = field(default_factory=_few)  # and its generation or epoch
    producers: deque[tuple[int, int]] = field(default_factory=_few)  # and its epoch
    sessions: deque[tuple[int, int]] = field(default_factory=_few)  # and its epoch
    sequences: dict[tuple[int, int], int] = field(default_factory=dict)

    def learn(self, view: dict[str, Any]) -> None:
        """From a view in which both sides agree."""
        if view.get("error_code", "NONE") in ("NONE", "MEMBER_ID_REQUIRED"):
            self._member(view)
            self._producer(view)
            if view.get("session_id"):
                self.sessions.append((view["session_id"], 1))
        for topic in view.get("topics") or ():
            if isinstance(topic, dict):
                _note(self.topic_ids, topic.get("topic_id"))

    def _member(self, view: dict[str, Any]) -> None:
        if view.get("member_id"):
            epoch = view.get("generation_id", view.get("member_epoch", -1))
            self.members.append((view["member_id"], epoch))

    def _producer(self, view: dict[str, Any]) -> None:
        if view.get("producer_id", -1) >= 0:
            _note(self.producers, (view["producer_id"], view["producer_epoch"]))


def _note(known: deque[Any], value: Any) -> None:
    if value is not None and value != bytes(16) and value not in known:
        known.append(value)
