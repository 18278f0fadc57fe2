"""kafka-python, 2.2 or 3, behind those commands of python/client.py that secured brokers are asked.

What keeps a client out it writes to its log, and raises that time is over: both are told.
"""

import gc
from typing import Any

from kafka import KafkaConsumer, KafkaProducer

from tests.compat.secured.words import login, told_of

try:
    from kafka.net.sasl.oauth import AbstractTokenProvider
except ImportError:  # before 3
    from kafka.sasl.oauth import AbstractTokenProvider

Command = dict[str, Any]


class Session:
    """Clients that come to one place in one way, until they are told another."""

    def __init__(self, bootstrap: str) -> None:
        self.config: dict[str, Any] = {"bootstrap_servers": bootstrap}

    def act(self, c: Command) -> Any:
        try:
            with told_of("kafka"):
                return getattr(self, c["do"])(c)
        finally:
            gc.collect()  # of the sockets that a client leaves which was kept out

    def secure(self, c: Command) -> None:
        told = c["security"]
        self.config = {
            "bootstrap_servers": c["bootstrap"], "security_protocol": told["protocol"],
            "request_timeout_ms": 10_000, **encryption(told), **login(told, Given),
        }

    def produce(self, c: Command) -> list[dict[str, Any]]:
        producer = KafkaProducer(**self.config, **starting(c), max_block_ms=c["wait_ms"])
        try:
            sent = [
                producer.send(c["topic"], each["value"], partition=c["partition"])
                for each in c["records"]
            ]
            found = [each.get(c["wait_ms"] / 1000) for each in sent]
        finally:
            producer.close(1)
        return [{"partition": at.partition, "offset": at.offset} for at in found]

    def read(self, c: Command) -> list[dict[str, Any]]:
        consumer = KafkaConsumer(
            **self.config, **starting(c), auto_offset_reset="earliest", enable_auto_commit=False,
            consumer_timeout_ms=c["wait_ms"],
        )
        try:
            consumer.subscribe([c["topic"]])
            found = [each for _, each in zip(range(c["count"]), consumer, strict=False)]
            if not found:
                raise TimeoutError("nothing came")
        finally:
            consumer.close()
        return [
            {"partition": each.partition, "offset": each.offset, "value": each.value}
            for each in found
        ]


def starting(c: Command) -> dict[str, Any]:
    """How long a client may look for its brokers, in the words of its version."""
    name = "bootstrap_timeout_ms"
    if name not in KafkaProducer.DEFAULT_CONFIG:
        name = "api_version_auto_timeout_ms"
    return {name: c["wait_ms"]}


def encryption(told: dict[str, str]) -> dict[str, Any]:
    if not told["protocol"].endswith("SSL"):
        return {}
    own = told["certificate"] or None
    return {"ssl_cafile": told["ca"], "ssl_certfile": own, "ssl_keyfile": own}


class Given(AbstractTokenProvider):
    """A token that somebody else got."""

    def __init__(self, token: str) -> None:
        super().__init__()
        self._token = token

    def token(self) -> str:
        return self._token
