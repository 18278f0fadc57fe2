"""The producer ids that one broker gives away, from blocks that its controller gives it.

Owns the block at hand and who waits for the next. It knows nothing of the controller but how to ask
it, which takes as long as it takes. Invariant: an id is given away once, and only when the block
that it comes from lasts.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

from kafkalite.env.later import Later, resolve_each
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
        self._is_asking = False

    def take(self) -> Later[int | KafkaError]:
        """An id that nobody has or ever had."""
        later: Later[int | KafkaError] = Later()
        self._waiting.append(later)
        self._serve()
        return later

    def stop(self) -> None:
        """Nothing more is given away, also of a block that is on its way."""
        self._refuse()

    def _came(self, block: range | KafkaError) -> None:
        self._is_asking = False
        if isinstance(block, KafkaError):
            logger.warning("no producer ids can be had for now: %s", block)
            self._refuse()
            return
        self._block = block
        self._serve()

    def _failed(self, error: Exception) -> None:
        self._is_asking = False
        logger.error("a block of producer ids is lost by a mistake of ours", exc_info=error)
        self._refuse()

    def _serve(self) -> None:
        """Those who come first, and asks for another block when there is none left for others."""
        count = min(len(self._waiting), len(self._block))
        given, self._block = self._block[:count], self._block[count:]
        try:
            resolve_each([(self._waiting.popleft(), producer_id) for producer_id in given])
        finally:
            if self._waiting and not self._is_asking:
                self._is_asking = True
                asked = Later.of(None).then_ask(lambda _: self._allocate())
                asked.then(self._came, self._failed)

    def _refuse(self) -> None:
        """Clients ask again for what is answered so, as Apache Kafka's brokers answer."""
        waiting, self._waiting = self._waiting, deque()
        error = KafkaError(Error.COORDINATOR_LOAD_IN_PROGRESS)
        resolve_each((later, error) for later in waiting)
