"""Clients of a simulated cluster: they find out who leads, and ask again elsewhere.

A script is a generator: it yields milliseconds to wait, or an answer to wait for, and is sent that.
Clients reach every machine, also those that others do not reach. What they know goes into the
history.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

from kafkalite.env.later import Later
from kafkalite.env.slicing import Slices
from kafkalite.peers.channel import Channel
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    AlterPartitionReassignmentsRequest,
    InitProducerIdRequest,
    MetadataRequest,
)
from kafkalite.sim.cluster import BROKERS, CLIENTS, PORT, Cluster, host_of
from kafkalite.sim.consumers import fetch_request, take
from kafkalite.sim.history import Attempt, Fate, Partition, Reading
from kafkalite.sim.machine_life import MachineLife
from kafkalite.sim.producers import KEPT, PASSING, batch_of, code_of, produce_request
from kafkalite.sim.wires import HostNetwork

TIMEOUT_MS = 2_500
PAUSE_MS = 60
METADATA_VERSIONS = range(13)
Script = Generator[int | Later[Any], Any, None]
Life = tuple[int, int]  # a broker, and which of its lives
# Whoever is told so knows that nothing was written.
REFUSED = (Error.NOT_ENOUGH_REPLICAS, Error.UNKNOWN_TOPIC_OR_PARTITION, Error.UNKNOWN_TOPIC_ID)
# What passes, beside what does with one broker.
ALSO_PASSING = (
    Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND, Error.FENCED_LEADER_EPOCH, Error.UNKNOWN_LEADER_EPOCH,
    Error.OFFSET_NOT_AVAILABLE, Error.REPLICA_NOT_AVAILABLE, Error.NETWORK_EXCEPTION,
    Error.BROKER_NOT_AVAILABLE,
)  # fmt: skip


@dataclass(slots=True)
class Client:
    """One of them: what it knows of leaders, its connections, and the script that it runs."""

    cluster: Cluster
    leaders: dict[Partition, int] = field(default_factory=dict)
    is_running: bool = False
    _channels: dict[int, Channel] = field(init=False)
    _script: Script = field(init=False)

    def __post_init__(self) -> None:
        clock = self.cluster.clock
        life = MachineLife(clock, self.cluster.random, lambda: 0)
        network, slices = HostNetwork(self.cluster.wires, CLIENTS, life), Slices(life, None)

        def channel(node_id: int) -> Channel:
            return Channel(
                network, life, slices, client_id="sim",
                address=lambda: (host_of(node_id), PORT), timeout_ms=TIMEOUT_MS,
            )  # fmt: skip

        self._channels = {node_id: channel(node_id) for node_id in BROKERS}

    def begin(self, script: Script) -> None:
        self.is_running, self._script = True, script
        self.cluster.clock.call_later(0, lambda: self._go_on(None))

    def _go_on(self, value: Any) -> None:
        try:
            command = self._script.send(value)
        except StopIteration:
            self.is_running = False
            return
        if isinstance(command, int):
            self.cluster.clock.call_later(command, lambda: self._go_on(None))
        else:
            command.then(self._answered)

    def _answered(self, answer: Any) -> None:
        """In a turn of its own, since a script may ask the same channel again."""
        value = None if isinstance(answer, KafkaError) else answer
        self.cluster.clock.call_later(0, lambda: self._go_on(value))

    def ask(self, node_id: int, request: Any, versions: range) -> Later[Any]:
        return self._channels[node_id].ask(request, versions)

    def ask_somebody(self, request: Any, versions: range) -> Later[Any]:
        return self.ask(self.cluster.random.choice(BROKERS), request, versions)

    def pause(self) -> int:
        return self.cluster.random.randrange(1, PAUSE_MS)

    def ask_leader(
        self, partition: Partition, request: Any, version: int
    ) -> Generator[int | Later[Any], Any, Any]:
        """Whom this client takes for the leader; None when nobody answers."""
        if partition not in self.leaders:
            yield from self._look_around()
        leader = self.leaders.get(partition)
        if leader is None:
            yield self.pause()
            return None
        return (yield self.ask(leader, request, range(version, version + 1)))

    def _look_around(self) -> Script:
        answer = yield self.ask_somebody(MetadataRequest(topics=None), METADATA_VERSIONS)
        for topic in () if answer is None else answer.topics:
            for each in topic.partitions:
                if each.leader_id in BROKERS:
                    self.leaders[topic.name, each.partition_index] = each.leader_id

    def was_told(self, partition: Partition, code: Error | None) -> None:
        """Anything but a good answer: somebody else may lead."""
        if code is not Error.NONE:
            self.leaders.pop(partition, None)


# --- who writes -----------------------------------------------------------------------------------


def plain(client: Client, name: str, partitions: list[Partition]) -> Script:
    """acks=all and no second try."""
    cluster, history = client.cluster, client.cluster.history
    while not cluster.is_ending:
        partition = cluster.random.choice(partitions)
        attempt = history.begin(is_transactional=False)
        values = _new(client, attempt, name, partition)
        attempt.fate = Fate.UNKNOWN
        batch = batch_of(values, _now(client))
        request, version = produce_request(history.topics, partition, batch)
        code = code_of((yield from client.ask_leader(partition, request, version)))
        client.was_told(partition, code)
        if code is Error.NONE:
            history.keep(attempt)
            history.count("plain")
        elif code in REFUSED:
            attempt.fate = Fate.GONE
        else:
            name += "+"  # it may still come, and then behind what follows
        yield client.pause()


def idempotent(client: Client, name: str, partitions: list[Partition]) -> Script:
    """One batch at a time, until it is acknowledged."""
    cluster, history = client.cluster, client.cluster.history
    identity = yield from _identity(client)
    sequences = dict.fromkeys(partitions, 0)
    while not cluster.is_ending:
        partition = cluster.random.choice(partitions)
        attempt = history.begin(is_transactional=False)
        values = _new(client, attempt, name, partition)
        attempt.fate = Fate.UNKNOWN
        batch = batch_of(
            values, _now(client), identity=identity, sequence=sequences[partition]
        )
        sequences[partition] += len(values)
        request, version = produce_request(history.topics, partition, batch)
        code: Error | None = None
        while code not in KEPT:
            code = code_of((yield from client.ask_leader(partition, request, version)))
            client.was_told(partition, code)
            if code is not None and code not in (*KEPT, *PASSING, *ALSO_PASSING):
                history.complain(f"{name} was told {code.name}")
                return
            if code not in KEPT:
                yield client.pause()
        history.keep(attempt)
        history.count("idempotent")
        yield client.pause()


def _identity(client: Client) -> Generator[int | Later[Any], Any, tuple[int, int]]:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    while True:
        answer = yield client.ask_somebody(request, range(4, 5))
        if answer is not None and answer.error_code == Error.NONE:
            return answer.producer_id, answer.producer_epoch
        yield client.pause()


def _new(client: Client, attempt: Attempt, name: str, partition: Partition) -> list[bytes]:
    count = client.cluster.random.randrange(1, 4)
    return [client.cluster.history.send(attempt, name, partition) for _ in range(count)]


def _now(client: Client) -> int:
    return client.cluster.clock.now_ms()


# --- who changes replicas -------------------------------------------------------------------------


def reassign(client: Client, wanted: dict[Partition, list[int]]) -> Script:
    """Asked for once: whoever does not get it done asks again."""
    asked = AlterPartitionReassignmentsRequest
    topics = [
        asked.Topic(name=name, partitions=[asked.Partition(partition_index=index, replicas=each)])
        for (name, index), each in wanted.items()
    ]
    yield client.ask_somebody(asked(timeout_ms=TIMEOUT_MS, topics=topics), range(1))


# --- who reads ------------------------------------------------------------------------------------


def reader(client: Client, reading: Reading, is_done: Callable[[int], bool]) -> Script:
    """From the beginning, until it is done: it is told how far the partition is committed."""
    history, told = client.cluster.history, 0
    highest: dict[Life, int] = {}
    while True:
        request, version = fetch_request(history.topics, reading)
        life = _life_of_leader(client, reading.partition)
        answer = yield from client.ask_leader(reading.partition, request, version)
        fetched = answer.responses[0].partitions[0] if answer and answer.responses else None
        code = None if fetched is None else Error(fetched.error_code)
        client.was_told(reading.partition, code)
        if fetched is not None and code is Error.NONE:
            told = fetched.high_watermark
            if life is not None and life == _life_of_leader(client, reading.partition):
                _does_not_go_back(client, reading, life, told, highest)
            take(reading, fetched)
        elif code is not None and code not in (*PASSING, *ALSO_PASSING):
            history.complain(f"a reader of {reading.partition} was told {code.name}")
            return
        if is_done(told):
            return
        yield client.pause()


def _life_of_leader(client: Client, partition: Partition) -> Life | None:
    leader = client.leaders.get(partition)
    return None if leader is None else (leader, client.cluster.machines[leader].lives)


def _does_not_go_back(
    client: Client, reading: Reading, life: Life, told: int, highest: dict[Life, int]
) -> None:
    """As one broker tells it in one of its lives."""
    if told < highest.get(life, 0):
        client.cluster.history.complain(
            f"broker {life[0]} told that {reading.partition} is committed up to {told}, and before "
            f"that up to {highest[life]}"
        )
    highest[life] = told
