"""What a runtime has for others: replies that are due, then errands and questions.

Owns their order. It is handed over between events, so that what goes wrong on the other side is
never taken for the shard's fault, nor for that of who submits an event just then. Invariant:
everybody is told once, whatever another one does with what it was told.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

from kafkalite.coordinators.asked import Reply
from kafkalite.env.dataclasses import dataclass, field

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Outbox:
    replies: deque[Reply] = field(default_factory=deque)
    errands: deque[Callable[[], object]] = field(default_factory=deque)

    def __bool__(self) -> bool:
        return bool(self.replies or self.errands)

    def hand_over(self, most: int) -> int:
        """So many at most; returns how many more it could have been."""
        replies, errands = self.replies, self.errands
        while most > 0 and (replies or errands):
            most -= 1
            try:
                if replies:
                    later, reply = replies.popleft()
                    if not later.is_resolved:
                        later.resolve(reply)
                else:
                    errands.popleft()()
            except Exception:
                log.exception("what somebody made of a coordinator's answer or errand is a mistake")
        return most
