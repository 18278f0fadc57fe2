"""aiokafka behind those commands of python/client.py that secured brokers are asked.

What keeps a client out it writes to its log, and raises less: both are told.
"""

import asyncio
import gc
import ssl
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.abc import AbstractTokenProvider

from tests.compat.secured.words import login, told_of

Command = dict[str, Any]


class Session:
    """Clients that come to one place in one way, until they are told another."""

    def __init__(self, bootstrap: str) -> None:
        self.config: dict[str, Any] = {"bootstrap_servers": bootstrap}

    def act(self, c: Command) -> Any:
        try:
            with told_of("aiokafka"):
                doing = getattr(self, c["do"])(c)
                return asyncio.run(asyncio.wait_for(doing, c["wait_ms"] / 1000))
        finally:
            gc.collect()  # of the transports that it leaves

    async def secure(self, c: Command) -> None:
        told = c["security"]
        self.config = {
            "bootstrap_servers": c["bootstrap"], "security_protocol": told["protocol"],
            "request_timeout_ms": 10_000, **encryption(told), **login(told, Given),
        }

    async def produce(self, c: Command) -> list[dict[str, Any]]:
        producer = AIOKafkaProducer(**self.config)
        try:
            await producer.start()
            found = [
                await producer.send_and_wait(c["topic"], each["value"], partition=c["partition"])
                for each in c["records"]
            ]
        finally:
            await producer.stop()
        return [{"partition": at.partition, "offset": at.offset} for at in found]

    async def read(self, c: Command) -> list[dict[str, Any]]:
        consumer = AIOKafkaConsumer(**self.config, enable_auto_commit=False)
        try:
            await consumer.start()
            await asyncio.sleep(0)  # its tasks must have begun, or it cannot be closed
            partition = TopicPartition(c["topic"], c["partition"])
            consumer.assign([partition])
            consumer.seek(partition, c["offset"])
            found = [await consumer.getone() for _ in range(c["count"])]
        finally:
            await consumer.stop()
        return [
            {"partition": each.partition, "offset": each.offset, "value": each.value}
            for each in found
        ]


def encryption(told: dict[str, str]) -> dict[str, Any]:
    if not told["protocol"].endswith("SSL"):
        return {}
    context = ssl.create_default_context(cafile=told["ca"])
    if told["certificate"]:
        context.load_cert_chain(told["certificate"])
    return {"ssl_context": context}


class Given(AbstractTokenProvider):
    """A token that somebody else got."""

    def __init__(self, token: str) -> None:
        self._token = token

    async def token(self) -> str:
        return self._token
