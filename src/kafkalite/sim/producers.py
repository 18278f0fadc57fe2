"""Producers of a simulation: plain, idempotent and transactional, each as careful as real ones.

A plain producer never tries again. An idempotent one has several batches under way and sends all
that are not acknowledged again, in order. A transactional one speaks the flow of its version, and
tries every step until it is decided, and begins a new life when it is fenced. What they know goes
into the history.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
)
from kafkalite.records.batch import peek_header
from kafkalite.records.record import BatchBuilder
from kafkalite.sim.client import Ask, Script, Sleep
from kafkalite.sim.compacted import key_of
from kafkalite.sim.history import Attempt, Fate, History, Partition
from kafkalite.sim.topics import Topics

IN_FLIGHT = 5
PAUSE_MS = 40
TRANSACTION_KEY, GROUP_KEY = 1, 0
BY_ID_VERSION = 13
KEPT = (Error.NONE, Error.DUPLICATE_SEQUENCE_NUMBER)
FENCED = (
    Error.INVALID_PRODUCER_EPOCH,
    Error.PRODUCER_FENCED,
    Error.INVALID_PRODUCER_ID_MAPPING,
    Error.INVALID_TXN_STATE,
)
# Whoever is told one of these has written nothing and tries again.
PASSING = (
    Error.CONCURRENT_TRANSACTIONS,
    Error.COORDINATOR_LOAD_IN_PROGRESS,
    Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_COORDINATOR,
    Error.NOT_ENOUGH_REPLICAS,
    Error.NOT_LEADER_OR_FOLLOWER,
    Error.LEADER_NOT_AVAILABLE,
    Error.REQUEST_TIMED_OUT,
    Error.UNKNOWN_TOPIC_OR_PARTITION,
    Error.UNKNOWN_TOPIC_ID,
    Error.KAFKA_STORAGE_ERROR,
    Error.UNSTABLE_OFFSET_COMMIT,
)


class Fenced(Exception):
    """Somebody newer has the transactional id, or the coordinator gave up on this producer."""


class BeganInTheMiddle(Exception):
    """The first batches of a flight can be delivered no more by this producer id."""


class MustAbort(Exception):
    """The transaction cannot be committed any more."""


def batch_of(
    values: list[bytes], now_ms: int, *, identity: tuple[int, int] = (-1, -1), sequence: int = -1,
    is_transactional: bool = False,
) -> bytes:
    builder = BatchBuilder()
    for value in values:
        builder.append(now_ms, key_of(value), value)
    return bytes(builder.build(
        producer_id=identity[0], producer_epoch=identity[1], base_sequence=sequence,
        is_transactional=is_transactional,
    ))


def produce_request(
    topics: Topics,
    partition: Partition,
    batch: bytes,
    transactional_id: str | None = None,
    version: int = 11,
) -> tuple[ProduceRequest, int]:
    """With the version to send it in: one that names the topic by its id, if that is known."""
    label, index = partition
    data = ProduceRequest.PartitionData(index=index, records=batch)
    topic = ProduceRequest.TopicData(name=label, partition_data=[data])
    if label in topics.by_label:
        topic.topic_id, version = topics.by_label[label].topic_id, BY_ID_VERSION
    return ProduceRequest(
        transactional_id=transactional_id, acks=-1, timeout_ms=1_000, topic_data=[topic]
    ), version


def code_of(answer: Any) -> Error | None:
    """The code of a Produce answer for one partition; None when it did not come."""
    if answer is None:
        return None
    return Error(answer.responses[0].partition_responses[0].error_code)


# What a batch came from, and the request, with its version.
Batch = tuple[Attempt, tuple[ProduceRequest, int]]


class Producer:
    """What all of them have: a name of this incarnation, chance, time and the history."""

    def __init__(
        self, name: str, random: Random, now_ms: Callable[[], int], history: History,
        partitions: list[Partition], is_ending: Callable[[], bool],
    ) -> None:
        self.name = name
        self.random = random
        self.now_ms = now_ms
        self.history = history
        self.partitions = partitions
        self.is_ending = is_ending

    def script(self) -> Script:
        raise NotImplementedError

    def pause(self) -> Sleep:
        return Sleep(self.random.randrange(1, PAUSE_MS))

    def choose(self, *, by_name: bool = False) -> Partition:
        """Somewhere to write: of a topic that comes and goes, the one that is there now."""
        topics = self.history.topics
        while True:
            name, index = self.random.choice(self.partitions)
            if by_name or name not in topics.lives:
                return name, index
            current = topics.current(name)
            if current is not None:
                return current.label, index % current.partition_count

    def new_values(self, attempt: Attempt, partition: Partition) -> list[bytes]:
        count = self.random.randrange(1, 4)
        return [self.history.send(attempt, self.name, partition) for _ in range(count)]


class PlainProducer(Producer):
    """acks=all and no second try."""

    def script(self) -> Script:
        while not self.is_ending():
            partition = self.choose(by_name=self.random.random() < 0.5)
            attempt = self.history.begin(is_transactional=False)
            batch = batch_of(self.new_values(attempt, partition), self.now_ms())
            attempt.fate = Fate.UNKNOWN
            [answer] = yield Ask([produce_request(self.history.topics, partition, batch)])
            code = code_of(answer)
            if code is Error.NONE:
                self.history.keep(attempt)
                self.history.count("plain")
            elif code is not None and code not in (
                Error.REQUEST_TIMED_OUT, Error.KAFKA_STORAGE_ERROR,
            ):
                attempt.fate = Fate.GONE
            else:
                self.name += "+"  # it may still come, and then behind what follows
            yield self.pause()


class IdempotentProducer(Producer):
    """Up to five batches under way to a partition."""

    def script(self) -> Script:
        identity = yield from self._identity()
        sequences: dict[Partition, int] = {}
        while not self.is_ending():
            partition = self.choose()
            unacknowledged: list[Batch] = []
            # Where records go, the last batch alone is sure to be known after a restart.
            goes = partition in self.history.compacted or partition in self.history.fading
            most = 1 if goes else IN_FLIGHT
            for _ in range(self.random.randrange(1, most + 1)):
                attempt = self.history.begin(is_transactional=False)
                values = self.new_values(attempt, partition)
                sequence = sequences.get(partition, 0)
                batch = batch_of(values, self.now_ms(), identity=identity, sequence=sequence)
                sequences[partition] = sequence + len(values)
                attempt.fate = Fate.UNKNOWN
                request = produce_request(self.history.topics, partition, batch)
                unacknowledged.append((attempt, request))
            try:
                while unacknowledged and not self.history.topics.is_going(partition):
                    unacknowledged = yield from self._deliver(unacknowledged)
            except BeganInTheMiddle:
                self.history.count("flights whose middle was first at a new leader")
                self.name += "+"
                identity, sequences = (yield from self._identity()), {}
            yield self.pause()

    def _identity(self) -> Script:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        while True:
            [answer] = yield Ask([(request, 4)])
            if answer is not None and answer.error_code == Error.NONE:
                return answer.producer_id, answer.producer_epoch
            yield self.pause()

    def _deliver(self, batches: list[Batch]) -> Script:
        """Sends them all; returns those to send again, from the first that was not taken."""
        answers = yield Ask([request for _, request in batches])
        codes = [code_of(answer) for answer in answers]
        if _began_in_the_middle(batches, codes):
            for (attempt, _), code in zip(batches, codes, strict=True):
                if code in KEPT:
                    self.history.keep(attempt)
            raise BeganInTheMiddle
        for index, code in enumerate(codes):
            if code in KEPT:
                self.history.keep(batches[index][0])
                self.history.count("idempotent")
                continue
            if code is not None and code not in PASSING:
                self.history.complain(f"{self.name} was told {code.name}")
                return []
            yield self.pause()
            return batches[index:]
        return []


def _began_in_the_middle(batches: list[Batch], codes: list[Error | None]) -> bool:
    """Whether the first batches of all came before their leader did, and a later one behind it: a
    log that knows nothing of a producer begins with any sequence, and takes none in front of it."""
    request, _ = batches[0][1]
    records = request.topic_data[0].partition_data[0].records
    is_first = peek_header(records, 0).base_sequence == 0
    is_refused = codes[0] is Error.NOT_LEADER_OR_FOLLOWER
    return is_first and is_refused and any(code in KEPT for code in codes)


class TransactionalProducer(Producer):
    """Transactions of a few batches, by the old flow or by the new one (KIP-890)."""

    is_new = True
    transactional_id = "id"
    timeout_ms = 60_000
    group: str | None = None
    is_superseded = False

    def script(self) -> Script:
        yield from self.find_coordinator(self.transactional_id, TRANSACTION_KEY)
        while not self.is_ending():
            yield from self.initialize()
            try:
                while not self.is_ending():
                    yield from self.transact()
                    yield self.pause()
            except Fenced:
                self.history.count("fenced")
                if self.is_superseded:
                    return
                yield self.pause()

    def find_coordinator(self, key: str, kind: int) -> Script:
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        while True:
            [answer] = yield Ask([(request, 4)])
            if answer is not None and answer.coordinators[0].error_code == Error.NONE:
                return
            yield self.pause()

    def initialize(self) -> Script:
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=self.timeout_ms
        )
        answer = yield from self.until_told(request, 4, lambda answer: Error(answer.error_code))
        self.identity = answer.producer_id, answer.producer_epoch
        self.sequences: dict[Partition, int] = {}

    def until_told(
        self,
        request: Any,
        version: int,
        code_of: Callable[[Any], Error],
        is_in_vain: Callable[[], bool] = lambda: False,
    ) -> Script:
        """Asks until the answer is a decision; raises when it is one against this producer."""
        while True:
            [answer] = yield Ask([(request, version)])
            code = None if answer is None else code_of(answer)
            if code in KEPT:
                return answer
            if code in FENCED:
                raise Fenced
            if code is Error.TRANSACTION_ABORTABLE:
                raise MustAbort
            if code is not None and code not in PASSING:
                self.history.complain(f"{self.name}: {type(request).__name__} got {code.name}")
                raise Fenced
            if is_in_vain():
                raise MustAbort
            yield self.pause()

    def transact(self) -> Script:
        attempt = self.history.begin(is_transactional=True)
        self.begun: set[Partition] = set()
        is_commit = self.random.random() < 0.7
        try:
            yield from self.work(attempt)
        except MustAbort:
            is_commit = False
        except Fenced:
            attempt.fate = Fate.GONE
            raise
        yield from self.end(attempt, is_commit=is_commit)

    def work(self, attempt: Attempt) -> Script:
        for _ in range(self.random.randrange(1, 5)):
            partition = self.choose(by_name=not self.is_new)
            yield from self.write(partition, self.new_values(attempt, partition))
            if self.random.random() < 0.3:
                yield self.pause()
        for name in self.history.topics.lives:
            if self.random.random() < 0.1:  # whether it is there or not
                yield from self.commit_offset("watchers", (name, 0), len(self.history.sent))
                self.history.count("offsets committed to a topic that comes and goes")

    def write(self, partition: Partition, values: list[bytes]) -> Script:
        if not self.is_new and partition not in self.begun:
            yield from self.add(partition)
        self.begun.add(partition)
        sequence, topics = self.sequences.get(partition, 0), self.history.topics
        batch = batch_of(
            values, self.now_ms(), identity=self.identity, sequence=sequence, is_transactional=True
        )
        request, version = produce_request(
            topics, partition, batch, self.transactional_id, 12 if self.is_new else 11
        )
        def code(answer: Any) -> Error:
            told = code_of(answer) or Error.NONE
            # A marker of the last transaction is all that a topic of the same name may have of it.
            is_other = partition[0] in topics.lives
            # When retention took all that a log had, nobody is known to it after a restart.
            is_forgotten = self.is_new and partition in self.history.fading
            is_excused = told is Error.OUT_OF_ORDER_SEQUENCE_NUMBER and (is_other or is_forgotten)
            return Error.INVALID_PRODUCER_EPOCH if is_excused else told

        yield from self.until_told(request, version, code, lambda: topics.is_going(partition))
        self.sequences[partition] = sequence + len(values)

    def add(self, partition: Partition) -> Script:
        topic, index = partition
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.identity[0],
            v3_and_below_producer_epoch=self.identity[1],
            v3_and_below_topics=[AddPartitionsToTxnRequest.Topic(name=topic, partitions=[index])],
        )
        yield from self.until_told(request, 3, lambda answer: Error(
            answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
        ))

    def commit_offset(self, group: str, source: Partition, offset: int) -> Script:
        identity: dict[str, Any] = {
            "transactional_id": self.transactional_id, "group_id": group,
            "producer_id": self.identity[0], "producer_epoch": self.identity[1],
        }
        if not self.is_new:
            yield from self.until_told(
                AddOffsetsToTxnRequest(**identity), 3, lambda answer: Error(answer.error_code)
            )
        where = TxnOffsetCommitRequest.Partition(
            partition_index=source[1], committed_offset=offset, committed_metadata=""
        )
        topics = [TxnOffsetCommitRequest.Topic(name=source[0], partitions=[where])]
        request = TxnOffsetCommitRequest(**identity, topics=topics)
        yield from self.until_told(request, 5 if self.is_new else 4, lambda answer: Error(
            answer.topics[0].partitions[0].error_code
        ))

    def end(self, attempt: Attempt, *, is_commit: bool) -> Script:
        attempt.fate = Fate.UNKNOWN if is_commit else Fate.GONE
        request = EndTxnRequest(
            transactional_id=self.transactional_id, producer_id=self.identity[0],
            producer_epoch=self.identity[1], committed=is_commit,
        )
        answer = yield from self.until_told(
            request, 5 if self.is_new else 4, lambda answer: Error(answer.error_code)
        )
        if is_commit:
            self.history.keep(attempt)
        self.history.count("committed" if is_commit else "aborted")
        if self.is_new:
            self.identity = answer.producer_id, answer.producer_epoch
            self.sequences = {}
