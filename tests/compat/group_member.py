"""A member of a group in a process of its own: a stock client that tells all that befalls it.

`python -m tests.compat.group_member CLIENT JSON` prints a line per event, each with the moment on
the machine's monotonic clock (the same for all processes): what it was assigned, what was revoked
or lost, each record, each commit with the moment it began, each refusal. `java/GroupMember.java`
prints the same of the Java clients; `group_watch` reads and judges. On its input it takes
`leave`, `seek TOPIC PARTITION OFFSET`; the end of its input is a leave.
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import sys
import time
from collections.abc import Iterable
from typing import Any, Protocol

from tests.compat.polls import LONG_POLL_MS

COMMIT_EVERY_S = 0.05
POLL_S = 0.05

Place = tuple[str, int]
Offsets = dict[Place, int]


class Teller:
    """What every member says, whichever its client; keeps the positions to commit."""

    def __init__(self) -> None:
        self.positions: Offsets = {}
        self._committed: Offsets = {}

    def _say(self, what: str, *words: object, at: int | None = None) -> None:
        moment = time.monotonic_ns() if at is None else at
        sys.stdout.write(" ".join(map(str, (moment, what, *words))) + "\n")
        sys.stdout.flush()

    def assigned(self, generation: int, places: Iterable[Place]) -> None:
        self._say("assigned", generation, *_names(places))

    def revoked(self, places: Iterable[Place], what: str = "revoked") -> None:
        places = list(places)
        for place in places:
            self.positions.pop(place, None)
            self._committed.pop(place, None)
        self._say(what, *_names(places))

    def record(self, topic: str, partition: int, offset: int) -> None:
        self.positions[topic, partition] = offset + 1
        self._say("record", f"{topic}:{partition}", offset)

    def due(self, places: Iterable[Place] | None = None) -> Offsets:
        """What has moved since the last commit, of these places or of all."""
        chosen = self.positions if places is None else [p for p in places if p in self.positions]
        return {
            place: self.positions[place]
            for place in chosen
            if self._committed.get(place) != self.positions[place]
        }

    def committed(self, began: int, offsets: Offsets) -> None:
        self._committed.update(offsets)
        pairs = (f"{topic}:{index}={offset}" for (topic, index), offset in offsets.items())
        self._say("committed", *pairs, at=began)

    def refused(self, error: BaseException) -> None:
        name = getattr(error, "args", [None])[0]
        code = name.name() if callable(getattr(name, "name", None)) else type(error).__name__
        self._say("refused", code)

    def left(self) -> None:
        self._say("left")


def _names(places: Iterable[Place]) -> list[str]:
    return [f"{topic}:{partition}" for topic, partition in sorted(places)]


class Face(Protocol):
    """A client: it joins when made, and calls the teller from its own callbacks."""

    def poll(self) -> None: ...
    def commit(self, offsets: Offsets) -> None: ...
    def seek(self, place: Place, offset: int) -> None: ...
    def close(self) -> None: ...


# --- confluent-kafka ------------------------------------------------------------------------------


class Confluent:
    def __init__(self, teller: Teller, options: dict[str, Any]) -> None:
        import confluent_kafka

        self._kafka, self._teller = confluent_kafka, teller
        config = {
            "bootstrap.servers": options["bootstrap"],
            "group.id": options["group"],
            "group.protocol": options["protocol"],
            "auto.offset.reset": options["reset"],
            "enable.auto.commit": False,
            "topic.metadata.refresh.interval.ms": 500,
            "fetch.wait.max.ms": 50,
            "reconnect.backoff.max.ms": 500,
            "log_level": 0,
        }
        if options["protocol"] == "classic":
            strategy = {"cooperative": "cooperative-sticky"}.get(options["assignor"], "range")
            config["partition.assignment.strategy"] = strategy
            config["session.timeout.ms"] = options["session_ms"]
            config["heartbeat.interval.ms"] = options["heartbeat_ms"]
        if options["instance"]:
            config["group.instance.id"] = options["instance"]
        self._consumer = confluent_kafka.Consumer(config)
        self._consumer.subscribe(
            options["topics"],  # one that begins with ^ is a pattern
            on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost,
        )

    def _assigned(self, _: object, places: list[Any]) -> None:
        self._teller.assigned(self._generation(), _of(places))

    def _generation(self) -> int:
        """Out of what librdkafka packs for a transaction's offsets: seven letters, then this."""
        packed = self._consumer.consumer_group_metadata()
        return int.from_bytes(packed[7:11], sys.byteorder, signed=True)

    def _revoked(self, _: object, places: list[Any]) -> None:
        commit(self, self._teller, self._teller.due(_of(places)))
        self._teller.revoked(_of(places))

    def _lost(self, _: object, places: list[Any]) -> None:
        self._teller.revoked(_of(places), "lost")

    def poll(self) -> None:
        message = self._consumer.poll(POLL_S)
        if message is not None and message.error() is None:
            self._teller.record(message.topic(), message.partition(), message.offset())

    def commit(self, offsets: Offsets) -> None:
        asked = [self._kafka.TopicPartition(*place, offset) for place, offset in offsets.items()]
        for one in self._consumer.commit(offsets=asked, asynchronous=False):
            if one.error is not None:
                raise self._kafka.KafkaException(one.error)

    def seek(self, place: Place, offset: int) -> None:
        self._consumer.seek(self._kafka.TopicPartition(*place, offset))

    def close(self) -> None:
        self._consumer.close()


def _of(places: Iterable[Any]) -> list[Place]:
    return [(each.topic, each.partition) for each in places]


# --- kafka-python ---------------------------------------------------------------------------------


class KafkaPython:
    def __init__(self, teller: Teller, options: dict[str, Any]) -> None:
        import kafka
        from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
        from kafka.coordinator.assignors.range import RangePartitionAssignor

        self._kafka, self._teller = kafka, teller
        is_cooperative = options["assignor"] == "cooperative"
        assignor = CooperativeStickyAssignor if is_cooperative else RangePartitionAssignor
        self._consumer = kafka.KafkaConsumer(
            bootstrap_servers=options["bootstrap"],
            group_id=options["group"],
            group_instance_id=options["instance"],
            auto_offset_reset=options["reset"],
            enable_auto_commit=False,
            partition_assignment_strategy=[assignor],
            session_timeout_ms=options["session_ms"],
            heartbeat_interval_ms=options["heartbeat_ms"],
            metadata_max_age_ms=500,
            fetch_max_wait_ms=50,
        )
        member = self

        class Listener(kafka.ConsumerRebalanceListener):
            def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
                generation = member._consumer.group_metadata().generation_id
                teller.assigned(generation, _of(assigned))

            def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
                commit(member, teller, teller.due(_of(revoked)))
                teller.revoked(_of(revoked))

            def on_partitions_lost(self, lost: Iterable[Any]) -> None:
                teller.revoked(_of(lost), "lost")

        if options["is_regex"]:
            self._consumer.subscribe(pattern=options["topics"][0], listener=Listener())
        else:
            self._consumer.subscribe(options["topics"], listener=Listener())

    def poll(self) -> None:
        for records in self._consumer.poll(LONG_POLL_MS).values():
            for record in records:
                self._teller.record(record.topic, record.partition, record.offset)

    def commit(self, offsets: Offsets) -> None:
        kafka = self._kafka
        self._consumer.commit({
            kafka.TopicPartition(*place): kafka.OffsetAndMetadata(offset, "", -1)
            for place, offset in offsets.items()
        })

    def seek(self, place: Place, offset: int) -> None:
        self._consumer.seek(self._kafka.TopicPartition(*place), offset)

    def close(self) -> None:
        self._consumer.close(autocommit=False)


# --- aiokafka -------------------------------------------------------------------------------------


class AioKafka:
    """On a loop that turns while it is polled, which is nearly always."""

    def __init__(self, teller: Teller, options: dict[str, Any]) -> None:
        import aiokafka
        from aiokafka.coordinator.assignors.range import RangePartitionAssignor

        self._kafka, self._teller = aiokafka, teller
        self._loop = asyncio.new_event_loop()
        self._leaving: set[Place] = set()  # what is being given back while it is polled
        self._consumer: Any = None  # made on the loop
        face = self

        class Listener(aiokafka.ConsumerRebalanceListener):
            async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
                await face._give_back(_of(revoked))

            async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
                generation = face._consumer._coordinator.generation
                teller.assigned(generation, _of(assigned))

        async def start() -> Any:
            consumer = aiokafka.AIOKafkaConsumer(
                bootstrap_servers=options["bootstrap"],
                group_id=options["group"],
                group_instance_id=options["instance"],
                auto_offset_reset=options["reset"],
                enable_auto_commit=False,
                partition_assignment_strategy=(RangePartitionAssignor,),
                session_timeout_ms=options["session_ms"],
                heartbeat_interval_ms=options["heartbeat_ms"],
                metadata_max_age_ms=500,
                fetch_max_wait_ms=50,
            )
            self._consumer = consumer
            if options["is_regex"]:
                consumer.subscribe(pattern=options["topics"][0], listener=Listener())
            else:
                consumer.subscribe(options["topics"], listener=Listener())
            await consumer.start()

        self._loop.run_until_complete(start())

    async def _give_back(self, places: list[Place]) -> None:
        self._leaving.update(places)
        offsets = self._teller.due(places)
        began = time.monotonic_ns()
        try:
            if offsets:
                await self._commit(offsets)
                self._teller.committed(began, offsets)
        except Exception as error:  # noqa: BLE001 - whatever a client raises is told
            self._teller.refused(error)
        self._teller.revoked(places)
        self._leaving.difference_update(places)

    async def _commit(self, offsets: Offsets) -> None:
        kafka = self._kafka
        await self._consumer.commit(
            {kafka.TopicPartition(*place): offset for place, offset in offsets.items()}
        )

    def poll(self) -> None:
        polled = self._loop.run_until_complete(
            self._consumer.getmany(timeout_ms=int(POLL_S * 1000))
        )
        for place, records in polled.items():
            for record in () if _of([place])[0] in self._leaving else records:
                self._teller.record(record.topic, record.partition, record.offset)

    def commit(self, offsets: Offsets) -> None:
        self._loop.run_until_complete(self._commit(offsets))

    def seek(self, place: Place, offset: int) -> None:
        self._consumer.seek(self._kafka.TopicPartition(*place), offset)

    def close(self) -> None:
        self._loop.run_until_complete(self._consumer.stop())


FACES: dict[str, Any] = {
    "confluent": Confluent, "kafka-python": KafkaPython, "aiokafka": AioKafka
}


# --- the member -----------------------------------------------------------------------------------


def commit(face: Face, teller: Teller, offsets: Offsets) -> None:
    if not offsets:
        return
    began = time.monotonic_ns()
    try:
        face.commit(offsets)
    except Exception as error:  # noqa: BLE001 - whatever a client raises is told
        teller.refused(error)
    else:
        teller.committed(began, offsets)


def commands() -> list[list[str]]:
    """What was asked since the last look."""
    if not select.select([0], [], [], 0)[0]:
        return []
    text = os.read(0, 4096).decode()
    return [line.split() for line in text.splitlines()] or [["leave"]]


def main() -> None:
    client, options = sys.argv[1], json.loads(sys.argv[2])
    teller = Teller()
    face: Face = FACES[client](teller, options)
    next_commit = 0.0
    while True:
        for word, *rest in commands():
            if word == "leave":
                commit(face, teller, teller.due())
                face.close()
                teller.left()
                return
            face.seek((rest[0], int(rest[1])), int(rest[2]))
        face.poll()
        if time.monotonic() >= next_commit:
            commit(face, teller, teller.due())
            next_commit = time.monotonic() + COMMIT_EVERY_S


if __name__ == "__main__":
    main()
