"""One stock client at work, in a process of its own: see clients.py.

    python -m bench.client_loads CLIENT produce|consume BOOTSTRAP TOPIC RECORDS RECORD_BYTES

Settings are the client's own defaults, but that a consumer reads from the start. It prints how many
records a second it came to: a producer from its first acknowledged record to its last, a consumer
from its first record to its last.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

WAIT_SECONDS = 120


@dataclass(slots=True, frozen=True)
class Load:
    """What one process does."""

    bootstrap: str
    topic: str
    records: int
    record_bytes: int

    @property
    def value(self) -> bytes:
        return bytes(number * 7 % 251 for number in range(self.record_bytes))


# --- kafka-python ---------------------------------------------------------------------------------


def kafka_python_produce(load: Load) -> float:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=load.bootstrap)
    producer.send(load.topic, load.value).get(WAIT_SECONDS)
    value = load.value
    started = time.perf_counter()
    futures = [producer.send(load.topic, value) for _ in range(load.records)]
    producer.flush(WAIT_SECONDS)
    took = time.perf_counter() - started
    assert all(future.succeeded() for future in futures)
    producer.close()
    return took


def kafka_python_consume(load: Load) -> float:
    from kafka import KafkaConsumer

    consumer = KafkaConsumer(
        load.topic, bootstrap_servers=load.bootstrap, auto_offset_reset="earliest"
    )
    next(consumer)
    started = time.perf_counter()
    for _ in range(load.records):
        next(consumer)
    took = time.perf_counter() - started
    consumer.close()
    return took


# --- aiokafka -------------------------------------------------------------------------------------


def aiokafka_produce(load: Load) -> float:
    return asyncio.run(_aiokafka_produce(load))


def aiokafka_consume(load: Load) -> float:
    return asyncio.run(_aiokafka_consume(load))


async def _aiokafka_produce(load: Load) -> float:
    from aiokafka import AIOKafkaProducer

    producer = AIOKafkaProducer(bootstrap_servers=load.bootstrap)
    await producer.start()
    await producer.send_and_wait(load.topic, load.value)
    value = load.value
    started = time.perf_counter()
    futures = [await producer.send(load.topic, value) for _ in range(load.records)]
    await producer.flush()
    took = time.perf_counter() - started
    assert all(future.done() and future.exception() is None for future in futures)
    await producer.stop()
    return took


async def _aiokafka_consume(load: Load) -> float:
    from aiokafka import AIOKafkaConsumer

    consumer = AIOKafkaConsumer(
        load.topic, bootstrap_servers=load.bootstrap, auto_offset_reset="earliest"
    )
    await consumer.start()
    await consumer.getone()
    started = time.perf_counter()
    for _ in range(load.records):
        await consumer.getone()
    took = time.perf_counter() - started
    await consumer.stop()
    return took


# --- confluent-kafka ------------------------------------------------------------------------------


def confluent_produce(load: Load) -> float:
    from confluent_kafka import Producer

    delivered = 0

    def on_delivery(error: object, _: object) -> None:
        nonlocal delivered
        assert error is None, error
        delivered += 1

    producer = Producer({"bootstrap.servers": load.bootstrap})
    producer.produce(load.topic, load.value, on_delivery=on_delivery)
    assert producer.flush(WAIT_SECONDS) == 0
    value = load.value
    started = time.perf_counter()
    for _ in range(load.records):
        while True:
            try:
                producer.produce(load.topic, value, on_delivery=on_delivery)
                break
            except BufferError:
                producer.poll(0.01)
    assert producer.flush(WAIT_SECONDS) == 0
    took = time.perf_counter() - started
    assert delivered == load.records + 1
    return took


def confluent_consume(load: Load) -> float:
    from confluent_kafka import Consumer

    consumer = Consumer(
        {
            "bootstrap.servers": load.bootstrap,
            "group.id": f"group-{load.topic}-{time.time_ns()}",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([load.topic])
    left = load.records + 1
    started = 0.0
    deadline = time.perf_counter() + WAIT_SECONDS
    while left > 0:
        assert time.perf_counter() < deadline, f"{left} records did not come"
        for message in consumer.consume(1_000, 0.2):
            assert message.error() is None, message.error()
            started = started or time.perf_counter()
            left -= 1
    took = time.perf_counter() - started
    consumer.close()
    return took


LOADS: dict[str, Callable[[Load], float]] = {
    "kafka-python produce": kafka_python_produce,
    "kafka-python consume": kafka_python_consume,
    "aiokafka produce": aiokafka_produce,
    "aiokafka consume": aiokafka_consume,
    "confluent-kafka produce": confluent_produce,
    "confluent-kafka consume": confluent_consume,
}


def main() -> None:
    client, mode, bootstrap, topic, *sizes = sys.argv[1:]
    records, record_bytes = map(int, sizes)
    took: Any = LOADS[f"{client} {mode}"](Load(bootstrap, topic, records, record_bytes))
    print(records / took)


if __name__ == "__main__":
    main()
