"""A Kafka that runs elsewhere, in the place of a test's own: what needs control of it is skipped.

Owns nothing of it, and leaves the topics that it made to whoever runs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any, NoReturn

from kafkalite.testing import arguments
from kafkalite.testing.asking import CURE, TIMEOUT_SECONDS, Asking


class NotOurs(Exception):
    """It is asked for what only a broker in this process can do."""


class OutsideKafka(Asking):
    """Any Kafka at HOST:PORT, as far as the protocol goes."""

    def __init__(self, bootstrap_servers: str) -> None:
        from kafkalite.client.addresses import addresses

        addresses(bootstrap_servers)
        self._bootstrap_servers = bootstrap_servers

    def __repr__(self) -> str:
        return f"OutsideKafka({self._bootstrap_servers!r})"

    @property
    def bootstrap_servers(self) -> str:
        return self._bootstrap_servers

    def create_topic(
        self, name: str, partitions: int = 1, configs: Mapping[str, Any] | None = None
    ) -> None:
        """Creates a topic; RuntimeError when it is refused."""
        from kafkalite.client.addresses import addresses
        from kafkalite.client.cluster import Cluster
        from kafkalite.client.topics import create_topic

        arguments.topic("name", name)
        count = arguments.partitions("partitions", partitions)
        texts = arguments.texts("configs", configs)
        with closing(Cluster(addresses(self._bootstrap_servers), cure=CURE)) as cluster:
            create_topic(cluster, name, count, texts, TIMEOUT_SECONDS)

    def __getattr__(self, name: str) -> NoReturn:
        from kafkalite.testing.embedded import EmbeddedKafka

        if name.startswith("_") or not hasattr(EmbeddedKafka, name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        raise NotOurs(
            f"`{name}` needs a broker in this process, and this is one at {self._bootstrap_servers}"
        )
