"""The internal topics of streams applications, made when a member is told that they are missing.

Owns which are on their way, so that nobody asks twice, and for a while why some could not be made:
until then nobody asks again, and members are told. Decides nothing: the controller is asked as by
anybody else. Invariant: of so many failures at most is anything remembered.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from kafkalite.coordinators.cluster.controller import Controller
from kafkalite.coordinators.cluster.events import CreateTopics
from kafkalite.coordinators.cluster.metadata import Metadata
from kafkalite.env.clock import Clock
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import CreateTopicsRequest, CreateTopicsResponse
from kafkalite.quotas.permits import Permits

MOST_FAILURES = 1_000


class StreamsTopics:
    """Of one broker."""

    def __init__(self, metadata: Metadata, controller: Controller, clock: Clock) -> None:
        self._metadata = metadata
        self._controller = controller
        self._clock = clock
        self._on_their_way: set[str] = set()
        # Why, and until when that is told; the one that ends first comes first, or nearly so.
        self._failures: dict[str, tuple[str, int]] = {}

    def create(
        self, topics: Iterable[CreateTopicsRequest.Topic], told_ms: int, permits: Permits | None
    ) -> None:
        """Asks for those that nobody asked for yet; why one fails is told for so long."""
        asked = list(topics)
        failed = self.failures(topic.name for topic in asked)
        wanted = [
            topic
            for topic in asked
            if topic.name not in self._on_their_way and topic.name not in failed
        ]
        if not wanted or self._metadata.controller_id is None:
            return  # who is told that they are missing comes again
        names = [topic.name for topic in wanted]
        self._on_their_way.update(names)

        def came(answer: CreateTopicsResponse | KafkaError) -> None:
            self._on_their_way.difference_update(names)
            until_ms = self._clock.monotonic_ms() + told_ms
            for name, why in islice(_failed(names, answer).items(), MOST_FAILURES):
                self._remember(name, why, until_ms)

        self._controller.submit(
            CreateTopics(CreateTopicsRequest(topics=wanted), permits)
        ).then(came)

    def failures(self, names: Iterable[str]) -> dict[str, str]:
        """Of these topics, why they could not be made lately."""
        now_ms, found = self._clock.monotonic_ms(), dict[str, str]()
        for name in names:
            if name in self._failures:  # which is quick, for those that are many
                why, until_ms = self._failures[name]
                if now_ms < until_ms:
                    found[name] = why
        return found

    def _remember(self, name: str, why: str, until_ms: int) -> None:
        self._failures.pop(name, None)
        self._failures[name] = (why, until_ms)
        now_ms = self._clock.monotonic_ms()
        while (first := next(iter(self._failures))) != name and (
            self._failures[first][1] <= now_ms or len(self._failures) > MOST_FAILURES
        ):
            del self._failures[first]


def _failed(names: list[str], answer: CreateTopicsResponse | KafkaError) -> dict[str, str]:
    if isinstance(answer, KafkaError):
        return dict.fromkeys(names, answer.message or answer.code.message)
    return {
        topic.name: topic.error_message or Error(topic.error_code).message
        for topic in answer.topics
        if topic.error_code != Error.NONE
    }
