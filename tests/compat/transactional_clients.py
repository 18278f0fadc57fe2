"""The Python clients behind one face, so that one scenario runs with each.

A producer has `init`, `begin`, `send`, `commit`, `abort` and `send_offsets`; `read` and `consume`
are of the same client. What a client raises stays what it is: the class's name is what is compared.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Protocol

import aiokafka
import confluent_kafka
import kafka

TIMEOUT_S = 20
DEADLINE_S = 15


class Producer(Protocol):
    """One producer with a transactional id."""

    def init(self) -> None: ...
    def begin(self) -> None: ...
    def send(self, topic: str, value: bytes) -> None: ...
    def commit(self) -> None: ...
    def abort(self) -> None: ...
    def send_offsets(self, topic: str, offset: int, group: str) -> None: ...
    def close(self) -> None: ...


class Client(Protocol):
    """A library: how it makes producers and reads topics."""

    def producer(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> Producer: ...
    def read(self, bootstrap: str, topic: str, isolation: str, count: int) -> list[bytes]: ...


def gather(poll: Callable[[], list[bytes]], count: int) -> list[bytes]:
    """Polls until so many values came, and once more for those that should not come."""
    found: list[bytes] = []
    deadline = time.monotonic() + DEADLINE_S
    while len(found) < count and time.monotonic() < deadline:
        found += poll()
    return found + poll()


# --- confluent-kafka ------------------------------------------------------------------------------


class ConfluentProducer:
    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config
        self._producer = confluent_kafka.Producer(config)

    def init(self) -> None:
        self._producer.init_transactions(TIMEOUT_S)

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, topic: str, value: bytes) -> None:
        errors: list[Any] = []
        try:
            self._producer.produce(topic, value, on_delivery=lambda error, _: errors.append(error))
            self._producer.flush(TIMEOUT_S)
        except SystemError as error:  # of the binding, which stumbles over a fatal error
            cause: BaseException | None = error
            while cause is not None and not isinstance(cause, confluent_kafka.KafkaException):
                cause = cause.__cause__
            raise cause or error from None
        if errors != [None]:
            raise confluent_kafka.KafkaException(*errors)

    def commit(self) -> None:
        self._producer.commit_transaction(TIMEOUT_S)

    def abort(self) -> None:
        self._producer.abort_transaction(TIMEOUT_S)

    def send_offsets(self, topic: str, offset: int, group: str) -> None:
        bootstrap = self._config["bootstrap.servers"]
        member = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": group})
        where = [confluent_kafka.TopicPartition(topic, 0, offset)]
        metadata = member.consumer_group_metadata()
        self._producer.send_offsets_to_transaction(where, metadata, TIMEOUT_S)
        member.close()

    def close(self) -> None:
        with suppress(confluent_kafka.KafkaException):  # a fenced producer refuses even this
            self._producer.flush(0)


class Confluent:
    def producer(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> Producer:
        return ConfluentProducer({
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": timeout_ms,
            "message.timeout.ms": timeout_ms,
            "log_level": 0,
        })

    def read(self, bootstrap: str, topic: str, isolation: str, count: int) -> list[bytes]:
        consumer = confluent_kafka.Consumer({
            "bootstrap.servers": bootstrap, "group.id": "none", "isolation.level": isolation,
            "auto.offset.reset": "earliest",
        })
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        try:
            return gather(lambda: [each.value() for each in consumer.consume(100, 0.3)], count)
        finally:
            consumer.close()


# --- kafka-python ---------------------------------------------------------------------------------


class KafkaPythonProducer:
    def __init__(self, config: dict[str, Any]) -> None:
        self._producer = kafka.KafkaProducer(**config)
        self.init = self._producer.init_transactions
        self.begin = self._producer.begin_transaction
        self.commit = self._producer.commit_transaction
        self.abort = self._producer.abort_transaction

    def send(self, topic: str, value: bytes) -> None:
        self._producer.send(topic, value).get(TIMEOUT_S)

    def send_offsets(self, topic: str, offset: int, group: str) -> None:
        position = {kafka.TopicPartition(topic, 0): kafka.OffsetAndMetadata(offset, "", -1)}
        self._producer.send_offsets_to_transaction(
            position, kafka.ConsumerGroupMetadata(group, -1, "", None)
        )

    def close(self) -> None:
        self._producer.close(timeout=5)


class KafkaPython:
    def producer(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> Producer:
        return KafkaPythonProducer({
            "bootstrap_servers": bootstrap,
            "transactional_id": transactional_id,
            "transaction_timeout_ms": timeout_ms,
        })

    def read(self, bootstrap: str, topic: str, isolation: str, count: int) -> list[bytes]:
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=bootstrap, isolation_level=isolation, auto_offset_reset="earliest"
        )
        where = kafka.TopicPartition(topic, 0)
        consumer.assign([where])
        try:
            return gather(
                lambda: [each.value for each in consumer.poll(300).get(where, [])], count
            )
        finally:
            consumer.close()


# --- aiokafka -------------------------------------------------------------------------------------


class AioKafkaProducer:
    """On a loop that turns only while something is asked of it."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._loop = asyncio.new_event_loop()
        self._producer: Any = None  # made by `init`, because it takes the running loop
        self._config = config

    def _run(self, asked: Awaitable[Any]) -> Any:
        return self._loop.run_until_complete(asyncio.wait_for(asked, TIMEOUT_S))

    def init(self) -> None:
        async def start() -> None:
            self._producer = aiokafka.AIOKafkaProducer(**self._config)
            await self._producer.start()

        self._run(start())

    def begin(self) -> None:
        self._run(self._producer.begin_transaction())

    def send(self, topic: str, value: bytes) -> None:
        self._run(self._producer.send_and_wait(topic, value))

    def commit(self) -> None:
        self._run(self._producer.commit_transaction())

    def abort(self) -> None:
        self._run(self._producer.abort_transaction())

    def send_offsets(self, topic: str, offset: int, group: str) -> None:
        position = {aiokafka.TopicPartition(topic, 0): offset}
        self._run(self._producer.send_offsets_to_transaction(position, group))

    def close(self) -> None:
        if self._producer is not None:
            with suppress(Exception):  # a fenced producer refuses even this
                self._run(self._producer.stop())
        self._loop.close()


class AioKafka:
    def producer(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> Producer:
        return AioKafkaProducer({
            "bootstrap_servers": bootstrap,
            "transactional_id": transactional_id,
            "transaction_timeout_ms": timeout_ms,
        })

    def read(self, bootstrap: str, topic: str, isolation: str, count: int) -> list[bytes]:
        async def reading() -> list[bytes]:
            found: list[bytes] = []
            consumer = aiokafka.AIOKafkaConsumer(
                topic, bootstrap_servers=bootstrap, isolation_level=isolation,
                auto_offset_reset="earliest",
            )
            async with consumer:
                deadline = time.monotonic() + DEADLINE_S
                is_last = count == 0
                while time.monotonic() < deadline:
                    polled = await consumer.getmany(timeout_ms=300)
                    found += [each.value for some in polled.values() for each in some]
                    if is_last:
                        break
                    is_last = len(found) >= count
            return found

        return asyncio.run(reading())


CLIENTS: dict[str, Client] = {
    "confluent": Confluent(),
    "kafka-python": KafkaPython(),
    "aiokafka": AioKafka(),
}
