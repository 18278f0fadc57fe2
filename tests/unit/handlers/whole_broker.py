"""A broker with all its rooms and no socket: requests go in as frames, replies come out decoded.

Nothing is faked but the network, which nobody connects to: the disk is memory and the clock stands
still, so what is seen here is what a client would see.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Any

from kafkalite.broker import Broker
from kafkalite.config import BrokerConfig
from kafkalite.coordinators.cluster.brokers import FenceBroker, RegisterBroker
from kafkalite.coordinators.cluster.states import EndPoint
from kafkalite.env import manual_env
from kafkalite.env.background import Background, QueuedBackground
from kafkalite.env.clock import ManualClock
from kafkalite.env.disk import Disk, FileRange
from kafkalite.env.later import Later
from kafkalite.env.network import SYSTEM_BUFFERS, Attempt, Buffers, Link
from kafkalite.handlers.call import CloseConnection
from kafkalite.protocol import codec, headers, spec
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import CreateTopicsRequest, DeleteTopicsRequest, message_class
from kafkalite.records.batch import iterate_headers
from kafkalite.records.convert import iterate_any
from kafkalite.records.record import BatchBuilder, Record
from kafkalite.replication.partition import Partition
from kafkalite.server.connection_info import ConnectionInfo
from kafkalite.server.counting import Counts
from kafkalite.server.terms import Throttled, reply_in

CORRELATION_ID = 7


class SilentPort:
    """An address that nobody connects to."""

    def __init__(self, host: str) -> None:
        self.address = (host or "0.0.0.0", 9092)

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def close(self) -> None:
        pass


class SilentNetwork:
    """A network that brings no connection."""

    def listen(
        self,
        host: str,
        port: int,
        backlog: int,
        accept: Callable[[Link], None],
        buffers: Buffers = SYSTEM_BUFFERS,
    ) -> SilentPort:
        return SilentPort(host)

    def connect(self, host: str, port: int, done: Callable[[Link | OSError], None]) -> Attempt:
        raise AssertionError(f"nobody asks another broker, at {host}:{port}")

    def soon(self, callback: Callable[[], None]) -> None:
        callback()


class Sometimes(QueuedBackground):
    """Jobs are done at once, until they are to wait."""

    is_held = False

    def submit(self, job: Callable[[], Any], done: Callable[[Any], None]) -> None:
        super().submit(job, done)
        if not self.is_held:
            self.run_all()


class WholeBroker:
    """One broker at work, asked as a client asks."""

    def __init__(
        self,
        settings: dict[str, str] | None = None,
        *,
        disk: Disk | None = None,
        background: Background | None = None,
        clock: ManualClock | None = None,
        counts: Counts | None = None,
    ) -> None:
        self.settings = settings or {}
        self.env = manual_env(7, disk, clock)
        if background is not None:
            self.env.background = background
        self.config = BrokerConfig({
            "node.id": "1",
            "log.dirs": "/data",
            "offsets.topic.num.partitions": "2",
            "transaction.state.log.num.partitions": "2",
            **self.settings,
        })
        self.broker = Broker(self.env, SilentNetwork(), self.config, counts=counts)
        self.started = self.broker.start()
        self.context = self.broker.context
        self.is_closed = False
        self.client_id = "me"
        self.muted_ms = 0  # for how long its client is not heard, by the last reply
        self.connection = ConnectionInfo("PLAINTEXT", ("10.0.0.1", 9092), ("10.0.0.9", 40_000))

    @property
    def clock(self) -> ManualClock:
        assert isinstance(self.env.clock, ManualClock)
        return self.env.clock

    @property
    def now_ms(self) -> int:
        return self.clock.now_ms()

    def close(self) -> None:
        """A clean stop; once is enough."""
        if not self.is_closed:
            self.is_closed = True
            self.broker.stop(0)
            self.clock.advance(1_000)

    def started_again(self) -> WholeBroker:
        """Another one over what a closed one left on the disk."""
        return WholeBroker(self.settings, disk=self.env.disk)

    # --- asking -----------------------------------------------------------------------------------

    def send(self, request: Any, version: int) -> Later[Any]:
        """What comes of a request: a response, None for no reply, or why the connection ends."""
        key = request.API_KEY
        answer = self.broker.dispatcher.answer(self.frame(request, version), self.connection)
        came: Later[Any] = Later()

        def decode(outcome: Any) -> None:
            self.muted_ms = outcome.wait_ms if isinstance(outcome, Throttled) else 0
            came.resolve(_decoded(key, version, reply_in(outcome) or None))

        answer.then(decode) if isinstance(answer, Later) else decode(answer)
        return came

    def frame(self, request: Any, version: int) -> memoryview:
        """The request as it comes over a connection."""
        return _frame(request, version, self.client_id)

    def ask(self, request: Any, version: int) -> Any:
        """The response, which must come within the loop's next turns."""
        came = self.send(request, version)
        self.clock.advance(0)
        assert came.is_resolved, f"{type(request).__name__} is still waiting"
        return came.value

    # --- what is there ----------------------------------------------------------------------------

    def create(self, name: str, partitions: int = 1, **configs: str) -> bytes:
        """Creates a topic (settings with underscores for dots) and returns its id."""
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        created = self.broker.create_topic(name, partitions, settings)
        if not created.is_resolved:  # many partitions take some turns of the loop
            self.clock.advance(0)
        assert not created.is_resolved or created.value is None, created.value
        topic_id = self.context.metadata.image.topic_id(name)
        assert topic_id is not None
        return topic_id

    def create_on(self, name: str, *node_ids: int) -> bytes:
        """Creates a topic of one partition with these replicas, the first of which leads."""
        assigned = CreateTopicsRequest.Assignment(partition_index=0, broker_ids=list(node_ids))
        asked = CreateTopicsRequest.Topic(
            name=name, num_partitions=-1, replication_factor=-1, assignments=[assigned]
        )
        (answer,) = self.ask(CreateTopicsRequest(topics=[asked]), 7).topics
        assert answer.error_code == Error.NONE, answer
        topic_id: bytes = answer.topic_id
        return topic_id

    def delete(self, name: str) -> None:
        (answer,) = self.ask(DeleteTopicsRequest(topic_names=[name]), 5).responses
        assert answer.error_code == Error.NONE, answer

    def partition(self, topic: str = "t", index: int = 0) -> Partition:
        return self.context.partitions.find(topic, index)

    def append(
        self, *values: bytes, topic: str = "t", index: int = 0, timestamp: int | None = None
    ) -> int:
        """Records as a producer without an id brings them, in one batch; returns its offset."""
        batch = records(values, timestamp=self.now_ms if timestamp is None else timestamp)
        return self.partition(topic, index).append(batch, self.now_ms).base_offset

    def next_epoch(self) -> None:
        """The broker comes back as if it had crashed: every leader begins its next epoch."""
        self._register(was_clean=False)

    def stop_leading(self) -> None:
        """The controller takes the broker for dead: nothing has a leader now."""
        self.broker.controller.decide(FenceBroker(1))

    def add_peer(self, node_id: int) -> None:
        """Another broker joins that nobody ever asks."""
        self._register(node_id, bytes([node_id]) * 16)

    def _register(
        self, node_id: int = 1, directory_id: bytes | None = None, *, was_clean: bool = True
    ) -> None:
        directories = [directory_id or self.broker.logs.directories[0].directory_id]
        endpoint = EndPoint("PLAINTEXT", f"host-{node_id}", 9091 + node_id, 0)
        self.broker.controller.decide(
            RegisterBroker(node_id, [endpoint], None, directories, was_clean)
        )


def records(
    values: Iterable[bytes | None],
    *,
    timestamp: int,
    step_ms: int = 0,
    keys: Iterable[bytes | None] | None = None,
    **fields: Any,
) -> memoryview:
    """One batch v2; `fields` are those of its header."""
    builder = BatchBuilder()
    values = list(values)
    for number, (key, value) in enumerate(zip(keys or [None] * len(values), values, strict=True)):
        builder.append(timestamp + number * step_ms, key, value)
    return memoryview(builder.build(0, **fields))


def all_records(data: bytes) -> list[Record]:
    """The records of what a fetch brought, whole batches and control records too."""
    return [record for header in iterate_headers(data) for record in iterate_any(data, header)]


def _frame(request: Any, version: int, client_id: str) -> memoryview:
    key, name = request.API_KEY, client_id.encode()
    head = struct.pack(">hhih", key, version, CORRELATION_ID, len(name)) + name
    if headers.request_header_version(key, version) == 2:
        head += b"\0"
    return memoryview(bytearray(head + codec.encode(request, version)))


def _decoded(key: int, version: int, outcome: Any) -> Any:
    if outcome is None or isinstance(outcome, CloseConnection):
        return outcome
    data = b"".join(part.read() if isinstance(part, FileRange) else bytes(part) for part in outcome)
    size, correlation_id = struct.unpack_from(">ii", data)
    assert (size, correlation_id) == (len(data) - 4, CORRELATION_ID)
    start = 8 + (headers.response_header_version(key, version) == 1)
    return codec.decode(_response_class(key), version, data[start:])


def _response_class(key: int) -> Any:
    return message_class(f"{spec.api(key).name}Response")
