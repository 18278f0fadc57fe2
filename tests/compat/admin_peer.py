"""Administration by hand: requests that a test chooses, with what they need to be readable.

Owns one connection. Nothing here asserts what a broker should answer, but that what was created is
there: at once in kafkalite, after a moment in Apache Kafka.
"""

from __future__ import annotations

from typing import Any

from bench.raw_client import RawClient
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    CreateTopicsRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
    MetadataRequest,
    message_class,
)
from tests.compat.brokers import Broker
from tests.compat.waiting import eventually

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


class Admin:
    """Requests by hand."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.client = RawClient(broker.host, broker.port)

    def close(self) -> None:
        self.client.close()

    def ask(self, request: Any, version: int) -> Any:
        name = type(request).SPEC.api.name
        return self.client.call(request, version, message_class(f"{name}Response"))

    def create(
        self,
        name: str,
        partitions: int = 1,
        factor: int = 1,
        settings: dict[str, str | None] | None = None,
        assignments: list[tuple[int, list[int]]] | None = None,
    ) -> Any:
        topic = CreateTopicsRequest.Topic(
            name=name,
            num_partitions=partitions,
            replication_factor=factor,
            configs=[
                CreateTopicsRequest.Config(name=key, value=value)
                for key, value in (settings or {}).items()
            ],
            assignments=[
                CreateTopicsRequest.Assignment(partition_index=index, broker_ids=brokers)
                for index, brokers in assignments or []
            ],
        )
        (answer,) = self.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7).topics
        if answer.error_code == Error.NONE:
            eventually(self.broker, lambda: self.knows(name))
        return answer

    def knows(self, name: str) -> bool:
        """Whether the topic is in the metadata, of which Apache Kafka's broker learns later."""
        return bool(self._metadata(name).error_code == Error.NONE)

    def topic_id(self, name: str) -> bytes:
        return bytes(self._metadata(name).topic_id)

    def _metadata(self, name: str) -> Any:
        request = MetadataRequest(
            topics=[MetadataRequest.Topic(name=name)], allow_auto_topic_creation=False
        )
        (topic,) = self.ask(request, 12).topics
        return topic

    def alter(self, kind: int, name: str, *steps: tuple[str, int, str | None]) -> Any:
        resource = IncrementalAlterConfigsRequest.Resource(
            resource_type=kind,
            resource_name=name,
            configs=[
                IncrementalAlterConfigsRequest.Config(
                    name=key, config_operation=operation, value=value
                )
                for key, operation, value in steps
            ],
        )
        (answer,) = self.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
        return answer

    def describe(self, kind: int, name: str, *keys: str) -> dict[str, Any]:
        resource = DescribeConfigsRequest.Resource(
            resource_type=kind, resource_name=name, configuration_keys=list(keys) or None
        )
        request = DescribeConfigsRequest(
            resources=[resource], include_synonyms=True, include_documentation=True
        )
        (result,) = self.ask(request, 4).results
        assert result.error_code == Error.NONE, result.error_message
        return {each.name: each for each in result.configs}
