"""What a transactional producer sends is appended in the order in which it came.

Apache Kafka looks at a connection's next request after the answer to the one before. Here several
are under way, and one may have to wait for the transaction's coordinator, in a partition where the
transaction begins: those behind it wait, too, also in partitions where it has begun.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

logger = logging.getLogger(__name__)

# Does what was put off; whether that is through, or will tell later.
Step = Callable[[], bool]


class ProduceOrder:
    """The producers of whom a request waits, and what waits behind it."""

    def __init__(self) -> None:
        self._lines: dict[int, deque[Step]] = {}  # by producer id

    def is_waiting(self, producer_id: int) -> bool:
        return producer_id in self._lines

    def enter(self, producer_id: int, step: Step) -> None:
        """Does it now, or behind what waits already; while it waits, until `over`, all others of
        its producer wait behind it."""
        line = self._lines.get(producer_id)
        if line is not None:
            line.append(step)
        elif not step():
            self._lines[producer_id] = deque()

    def over(self, producer_id: int) -> None:
        """What waited is through; those behind it go on, as far as none of them waits again."""
        line = self._lines[producer_id]
        while line:
            try:
                is_through = line.popleft()()
            except Exception:
                logger.exception("a request of producer %d was given up", producer_id)
                continue
            if not is_through:
                return
        del self._lines[producer_id]
