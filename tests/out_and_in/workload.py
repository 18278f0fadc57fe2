"""What people do with a cluster, in steps that chance picks, on whichever broker runs.

Owns the names it made and what lives across a switch: one idempotent producer that is never
closed, and transactions left open. Everything else comes and goes within its step.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import OffsetCommitRequest
from tests.out_and_in import administering
from tests.out_and_in.asking import HOST, PATIENCE_S, Asker
from tests.out_and_in.other_groups import ShareMember, StreamsMember

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
STEADY, OPEN_TO = "steady", "in-transactions"
TRANSACTION_TIMEOUT_MS = 600_000


@dataclass(slots=True)
class _Transaction:
    """One that is open, and what was written in it."""

    producer: Producer
    name: str
    values: list[bytes] = field(default_factory=list)


@dataclass
class Workload:
    """The clients of one round."""

    port: int
    dice: Random
    log_dirs: list[str]
    done: Counter[str] = field(default_factory=Counter)
    topics: dict[str, int] = field(default_factory=dict)
    other_groups: list[tuple[str, str, str]] = field(default_factory=list)
    # What must be there in the end, each once: by the one producer, and by ended transactions.
    acknowledged: list[bytes] = field(default_factory=list)
    committed: list[bytes] = field(default_factory=list)
    moved: set[str] = field(default_factory=set)  # partitions, in this leg
    _steady: Producer | None = None
    _open: list[_Transaction] = field(default_factory=list)
    _last: int = 0

    # -- the life of a round ---------------------------------------------------------------

    def begin(self) -> None:
        """What every round has, whatever chance picks."""
        with self._asker() as asker:
            for name, partitions in ((STEADY, 1), (OPEN_TO, 2), ("sources", 2)):
                self._create(asker, name, partitions)
            self._create(asker, "compacted", 2, administering.COMPACTED)
            for kind in administering.TOPIC_SETTINGS:
                self._create(asker, f"{kind}-0", self.dice.randint(1, 3), {
                    **administering.TOPIC_SETTINGS[kind]
                })  # fmt: skip
        self._steady = Producer({
            **self._broker(), "enable.idempotence": True,
            "linger.ms": 5, "message.timeout.ms": 300_000, "reconnect.backoff.max.ms": 200,
        })  # fmt: skip
        self.produce_in_every_codec()
        self.open_a_transaction()
        self.commit_from_outside()

    def leg(self, steps: int, *, is_apache_kafka: bool, has_other_groups: bool) -> None:
        """Some steps on the broker that runs now."""
        self.moved.clear()
        self.keep_on()
        # A transaction that was left open ends one way or the other, but for one that goes on.
        while len(self._open) > 1:
            self._end(self._open.pop(0))
        chosen = self.dice.sample(_STEPS, min(steps, len(_STEPS)))
        if is_apache_kafka:
            chosen.append(Workload.allow_somebody)
            if has_other_groups:
                chosen += [Workload.share, Workload.stream]
        for step in chosen:
            step(self)
            self.done[step.__name__] += 1
        self.keep_on()

    def end(self) -> None:
        """Closes everything that lives across switches."""
        while self._open:
            self._end(self._open.pop(0))

    def _broker(self) -> dict[str, Any]:
        """Settings of a client; that its broker goes away is no news."""
        return {"bootstrap.servers": f"{HOST}:{self.port}", "log_level": 0}

    def _asker(self) -> Any:
        return administering.closing_asker(self.port)

    def _name(self, what: str) -> str:
        self._last += 1
        return f"{what}-{self._last}"

    def _create(
        self, asker: Asker, name: str, partitions: int, settings: dict[str, str] | None = None
    ) -> None:
        administering.create_topic(asker, name, partitions, settings or {})
        self.topics[name] = partitions

    def _some_topic(self) -> str:
        return self.dice.choice([name for name in self.topics if name != STEADY])

    # -- records ---------------------------------------------------------------------------

    def keep_on(self) -> None:
        """The one producer goes on with its sequence numbers; every number is to be there once."""
        assert self._steady is not None
        first = len(self.acknowledged)
        numbers = [b"%d" % number for number in range(first, first + 50)]

        def delivered(error: Any, message: Any) -> None:
            assert error is None, error
            self.acknowledged.append(message.value())

        for number in numbers:
            self._steady.produce(STEADY, number, partition=0, on_delivery=delivered)
        assert self._steady.flush(PATIENCE_S) == 0, "the steady producer is stuck"
        assert self.acknowledged[first:] == numbers, "acknowledged in another order"

    def produce_in_every_codec(self) -> None:
        for codec in CODECS:
            self._produce({"compression.type": codec}, 20)
        codec = self.dice.choice(CODECS)
        self._produce({"enable.idempotence": True, "compression.type": codec}, 40)

    def _produce(self, settings: dict[str, Any], count: int) -> None:
        producer = Producer({
            **self._broker(), "batch.num.messages": 7, **settings
        })  # fmt: skip
        self._write(producer, count)
        assert producer.flush(PATIENCE_S) == 0

    def _write(self, producer: Producer, count: int, topic: str | None = None) -> None:
        for _ in range(count):
            name = topic or self._some_topic()
            key = b"key %d" % self.dice.randrange(12)
            is_bare = self.dice.random() < 0.1 and "compacted" not in name
            bare, size = self.dice.random() < 0.1, self.dice.randrange(400)
            value = None if bare else self.dice.randbytes(size)
            producer.produce(
                name, value, None if is_bare else key,
                partition=self.dice.randrange(self.topics[name]),
                headers=[("a", b"1"), ("a", None)] if self.dice.random() < 0.3 else [],
                timestamp=int(time.time() * 1000) - self.dice.randrange(100_000),
            )  # fmt: skip
            producer.poll(0)

    def open_a_transaction(self) -> None:
        """Records and offsets in a transaction that outlives the broker."""
        name = self._name("transaction")
        one = _Transaction(self._transactional(name), name)
        self._write_in(one, 10)
        self._open.append(one)

    def _write_in(self, one: _Transaction, count: int) -> None:
        for _ in range(count):
            value = b"%s/%d" % (one.name.encode(), len(one.values))
            one.values.append(value)
            one.producer.produce(OPEN_TO, value, partition=self.dice.randrange(2))
        assert one.producer.flush(PATIENCE_S) == 0

    def _transactional(self, name: str) -> Producer:
        producer = Producer({
            **self._broker(),
            "transactional.id": name,
            "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
            "reconnect.backoff.max.ms": 200,
        })  # fmt: skip
        producer.init_transactions(PATIENCE_S)
        producer.begin_transaction()
        return producer

    def _end(self, one: _Transaction) -> None:
        self._write_in(one, 3)
        if self.dice.random() < 0.5:
            one.producer.commit_transaction(PATIENCE_S)
            self.committed += one.values
            self.done["committed after a switch"] += 1
        else:
            one.producer.abort_transaction(PATIENCE_S)
            self.done["aborted after a switch"] += 1

    def transact(self) -> None:
        """A transaction of each end, with offsets of a group in it."""
        for is_commit in (True, False):
            producer = self._transactional(self._name("transaction"))
            self._write(producer, 8, self._some_topic())
            consumer = self._consumer(self._name("exactly-once"), "classic")
            consumer.subscribe(["sources"])
            self._poll(consumer, 1)
            offsets = [TopicPartition("sources", 0, self.dice.randrange(100))]
            producer.send_offsets_to_transaction(
                offsets, consumer.consumer_group_metadata(), PATIENCE_S
            )
            consumer.close()
            if is_commit:
                producer.commit_transaction(PATIENCE_S)
            else:
                producer.abort_transaction(PATIENCE_S)

    def delete_records(self) -> None:
        with self._asker() as asker:
            administering.delete_records(asker, self._some_topic_to_cut(), 0, self.dice)

    def _some_topic_to_cut(self) -> str:
        return self.dice.choice([
            name for name in self.topics if name not in (STEADY, OPEN_TO, "compacted")
        ])  # fmt: skip

    # -- groups ----------------------------------------------------------------------------

    def consume(self) -> None:
        for protocol in ("classic", "consumer"):
            if protocol == "consumer" and not administering.serves_consumer_groups(self.port):
                continue
            consumer = self._consumer(self._name(f"{protocol}-group"), protocol)
            consumer.subscribe(["sources", OPEN_TO])
            self._poll(consumer, 5)
            consumer.commit(asynchronous=False)
            consumer.close()

    def _consumer(self, group_id: str, protocol: str) -> Consumer:
        return Consumer({
            **self._broker(), "group.id": group_id,
            "group.protocol": protocol, "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        })  # fmt: skip

    def _poll(self, consumer: Consumer, least: int) -> None:
        self._produce_to("sources", least)
        got, deadline = 0, time.monotonic() + PATIENCE_S
        while got < least:
            assert time.monotonic() < deadline, f"{got} of {least} records"
            got += len(consumer.consume(100, 0.2))

    def _produce_to(self, topic: str, count: int) -> None:
        producer = Producer({**self._broker()})
        self._write(producer, count, topic)
        assert producer.flush(PATIENCE_S) == 0

    def commit_from_outside(self) -> None:
        """As tools do, for a group of its own; to older groups only if they are classic."""
        group_id = self._name("tool")
        partition = OffsetCommitRequest.Partition(
            partition_index=0, committed_offset=self.dice.randrange(50), committed_metadata="é\n",
        )  # fmt: skip
        request = OffsetCommitRequest(
            group_id=group_id,
            topics=[OffsetCommitRequest.Topic(name=self._some_topic(), partitions=[partition])],
        )
        with self._asker() as asker:
            asker.find(group_id)
            answer = asker.patiently(
                request, 9, lambda got: int(got.topics[0].partitions[0].error_code)
            )
            assert answer.topics[0].partitions[0].error_code == Error.NONE, answer

    def share(self) -> None:
        """A share group reads on; Apache Kafka alone serves it."""
        group_id = self._name("share")
        with self._asker() as asker:
            administering.set_group(asker, group_id, "share.auto.offset.reset", "earliest")
            self._produce_to("sources", 20)
            topic_id = administering.topic_id(asker, "sources")
            member = ShareMember(asker, group_id, "sources", topic_id, self._last)
            member.read(10)
            member.leave()

    def stream(self) -> None:
        with self._asker() as asker:
            member = StreamsMember(asker, self._name("streams"), "sources", self._last)
            member.join()
            member.commit(self.dice.randrange(20))
            member.leave()

    # -- administration --------------------------------------------------------------------

    def make_topics(self) -> None:
        with self._asker() as asker:
            kind = self.dice.choice(list(administering.TOPIC_SETTINGS))
            settings = administering.TOPIC_SETTINGS[kind]
            self._create(asker, self._name(kind), self.dice.randint(1, 3), settings)
            name = self._name("doomed")
            self._create(asker, name, 1)
            self._produce_to(name, 3)
            administering.delete_topic(asker, name)
            del self.topics[name]

    def grow_a_topic(self) -> None:
        with self._asker() as asker:
            name = self._some_topic_to_cut()
            self.topics[name] += 1
            administering.create_partitions(asker, name, self.topics[name])

    def configure(self) -> None:
        with self._asker() as asker:
            administering.configure(asker, self._some_topic(), self._name("configured"), self.dice)

    def limit_somebody(self) -> None:
        with self._asker() as asker:
            administering.set_quota(asker, self._name("user"), self.dice)

    def enroll_somebody(self) -> None:
        with self._asker() as asker:
            administering.set_password(asker, self._name("user"), self.dice)

    def allow_somebody(self) -> None:
        with self._asker() as asker:
            administering.allow(asker, self._name("user"), self._some_topic())

    def move_a_log(self) -> None:
        if len(self.log_dirs) > 1:
            with self._asker() as asker:
                name = self._some_topic()
                index = self.dice.randrange(self.topics[name])
                administering.move(asker, name, index, self.dice.choice(self.log_dirs))
                self.moved.add(f"{name}-{index}")

    def compact(self) -> None:
        """Enough for the cleaner to have something to do, and time to do it."""
        for _ in range(3):
            self._produce_to("compacted", 40)
        time.sleep(0.5)


_STEPS: list[Callable[[Workload], None]] = [
    Workload.produce_in_every_codec,
    Workload.open_a_transaction,
    Workload.transact,
    Workload.delete_records,
    Workload.consume,
    Workload.commit_from_outside,
    Workload.make_topics,
    Workload.grow_a_topic,
    Workload.configure,
    Workload.limit_somebody,
    Workload.enroll_somebody,
    Workload.move_a_log,
    Workload.compact,
]
