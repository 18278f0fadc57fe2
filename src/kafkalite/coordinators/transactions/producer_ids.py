"""The producer ids that one broker gives away, from blocks that its controller gives it.

Owns the block at hand and who waits for the next. It knows nothing of the controller but how to ask
it, which takes as long as it takes. Invariant: an id is given away once, and only when the block
that it comes from lasts.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

from kafkalite.env.later import Later
from kafkalite.protocol.errors import Error, KafkaError

logger = logging.getLogger(__name__)

# Allocates a block, and answers when no crash can take it back.
Allocate = Callable[[], Later["range | KafkaError"]]


class ProducerIds:
    """One id at a time, to transactional producers and others alike."""

    def __init__(self, allocate: Allocate) -> None:
        self._allocate = allocate
        self._block = range(0)
        self._waiting: deque[Later[int | KafkaError]] = deque()

    def take(self) -> Later[int | KafkaError]:
        """An id that nobody has or ever had."""
        later: Later[int | KafkaError] = Later()
        self._waiting.append(later)
        if self._block:
            self._serve()
        elif len(self._waiting) == 1:
            self._allocate().then(self._came, self._failed)
        return later

    def stop(self) -> None:
        """Nothing more is given away, also of a block that is on its way."""
        self._refuse()

    def _came(self, block: range | KafkaError) -> None:
        if isinstance(block, KafkaError):
            logger.warning("no producer ids can be had for now: %s", block)
            self._refuse()
            return
        self._block = block
        self._serve()
        if self._waiting:
            self._allocate().then(self._came, self._failed)

    def _failed(self, error: Exception) -> None:
        logger.error("a block of producer ids is lost by a mistake of ours", exc_info=error)
        self._refuse()

    def _serve(self) -> None:
        while self._waiting and self._block:
            producer_id, self._block = self._block[0], self._block[1:]
            self._waiting.popleft().resolve(producer_id)

    def _refuse(self) -> None:
        """Clients ask again for what is answered so, as Apache Kafka's brokers answer."""
        waiting, self._waiting = self._waiting, deque()
        for later in waiting:
            later.resolve(KafkaError(Error.COORDINATOR_LOAD_IN_PROGRESS))
