"""Topics that are created because somebody asked for them: by a client's request for metadata, and
Kafka's own by whoever is to work with them.

Owns what such a topic is to be like, and that its failure is told once in the log: who asked hears
a code that says nothing of the settings, and asks again and again. Decides nothing: the controller
is asked as by anybody else.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from kafkalite.config import BrokerConfig
from kafkalite.coordinators.cluster.controller import Controller
from kafkalite.coordinators.cluster.events import CreateTopics
from kafkalite.coordinators.cluster.internal_topics import internal_topic
from kafkalite.coordinators.cluster.metadata import Metadata
from kafkalite.coordinators.cluster.view import INTERNAL_TOPICS
from kafkalite.env.later import Later
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import CreateTopicsRequest, CreateTopicsResponse
from kafkalite.quotas.permits import Permits

logger = logging.getLogger(__name__)

CURES = {
    Error.INVALID_REPLICATION_FACTOR: "Lower default.replication.factor, or start more brokers.",
}
MAX_FAILED = 100  # topics whose failed creation is remembered, so that it is told once


class AutoCreation:
    """Creates what is missing, by the settings of one broker."""

    def __init__(self, metadata: Metadata, controller: Controller, config: BrokerConfig) -> None:
        self._metadata = metadata
        self._controller = controller
        self._config = config
        self._failed: dict[str, Error] = {}

    def create(
        self, names: Iterable[str], permits: Permits | None = None
    ) -> Later[dict[str, Error]]:
        """Creates topics that were asked for and are missing; tells what came of each. Who asks
        may have so many permits; Kafka's own topics are nobody's."""
        missing = [name for name in names if name not in self._metadata.image.topics]
        if self._metadata.controller_id is None:  # as of any on its way, for who asks again
            return Later.of(dict.fromkeys(missing, Error.UNKNOWN_TOPIC_OR_PARTITION))
        request = CreateTopicsRequest(topics=[self._by_default(name) for name in missing])

        def outcomes(answer: CreateTopicsResponse | KafkaError) -> dict[str, Error]:
            if isinstance(answer, KafkaError):
                for name in missing:
                    self._tell_of(name, Error(answer.code), answer.message)
                return dict.fromkeys(missing, Error(answer.code))
            for each in answer.topics:
                code = Error(each.error_code)
                self._tell_of(each.name, code, _with_cure(code, each.error_message))
            return {each.name: Error(each.error_code) for each in answer.topics}

        return self._controller.submit(CreateTopics(request, permits)).map(outcomes)

    def create_internal(self, name: str) -> Later[KafkaError | None]:
        """Creates one of Kafka's own topics unless it is there; the value is None or an error."""

        def outcome(outcomes: dict[str, Error]) -> KafkaError | None:
            code = outcomes.get(name, Error.NONE)
            return None if code is Error.NONE else KafkaError(code)

        return self.create([name]).map(outcome)

    def _tell_of(self, name: str, code: Error, why: str | None) -> None:
        if code in (Error.NONE, Error.TOPIC_ALREADY_EXISTS):
            self._failed.pop(name, None)
        elif self._failed.get(name) != code and len(self._failed) < MAX_FAILED:
            self._failed[name] = code
            logger.warning("topic %s was asked for and cannot be created: %s", name, why or code)

    def _by_default(self, name: str) -> CreateTopicsRequest.Topic:
        if name in INTERNAL_TOPICS:
            live = self._metadata.image.live_brokers()
            return internal_topic(self._config, name, len(live))
        return CreateTopicsRequest.Topic(
            name=name,
            num_partitions=self._config.get_int("num.partitions"),
            replication_factor=self._config.get_int("default.replication.factor"),
        )


def _with_cure(code: Error, why: str | None) -> str | None:
    """Why a topic cannot be created, and what its owner can do about it where that is known."""
    return f"{why} {CURES[code]}" if code in CURES else why
