"""A channel on a network that does what the test says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafkalite.env.clock import ManualClock
from kafkalite.env.later import Later
from kafkalite.env.network import Link
from kafkalite.env.slicing import Slices
from kafkalite.peers.channel import Channel
from kafkalite.peers.login import Entry
from kafkalite.protocol import codec, headers, spec
from kafkalite.protocol.framing import frame_size
from kafkalite.protocol.messages import (
    ApiVersionsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    RequestHeader,
    message_class,
)

TIMEOUT_MS = 30_000
KEY = FindCoordinatorRequest.API_KEY


class FakeLink:
    """Takes down what is sent, and sends what the test says."""

    peer_address = local_address = ("10.0.0.2", 9092)
    unsent_bytes = held_bytes = 0

    def __init__(self) -> None:
        self.requests: list[tuple[RequestHeader, Any]] = []
        self.receiver: Any = None
        self.is_open = True
        self.is_paused = False
        self.is_cut = False  # the next send finds the other end gone
        self._out = b""

    def start(self, receiver: Any) -> None:
        self.receiver = receiver

    def send(self, parts: Any) -> None:
        assert self.is_open
        if self.is_cut:
            self.abort()
            return
        self._out += b"".join(parts)
        while len(self._out) >= 4 + (size := int.from_bytes(self._out[:4], "big")):
            frame, self._out = self._out[4 : 4 + size], self._out[4 + size :]
            header, position = headers.decode_request_header(frame)
            cls = message_class(f"{spec.api(header.request_api_key).name}Request")
            version = header.request_api_version
            self.requests.append((header, codec.decode(cls, version, frame, position)))

    def answer(self, response: Any, *, version: int | None = None, step: int = 1 << 20) -> None:
        """The oldest request that was not answered."""
        header, _ = self.requests.pop(0)
        version = header.request_api_version if version is None else version
        head = headers.encode_response_header(
            header.request_api_key, version, header.correlation_id
        )
        frame = head + codec.encode(response, version)
        self.bring(frame_size([frame]) + frame, step)

    def bring(self, data: bytes, step: int = 1 << 20) -> None:
        while data and self.is_open:
            room = self.receiver.buffer()
            count = min(step, len(room), len(data))
            room[:count] = data[:count]
            data = data[count:]
            self.receiver.received(count)

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False

    def close(self) -> None:
        self.abort()

    def abort(self) -> None:
        if self.is_open:
            self.is_open = False
            self.receiver.ended()


class FakeNetwork:
    """Connections that are made, or fail, when the test says."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []
        self.done: Callable[[Link | OSError], None] | None = None
        self.turns: list[Callable[[], None]] = []

    def connect(self, host: str, port: int, done: Callable[[Link | OSError], None]) -> FakeNetwork:
        assert self.done is None, "two connections at a time"
        self.asked.append((host, port))
        self.done = done
        return self

    def cancel(self) -> None:
        self.done = None

    def soon(self, callback: Callable[[], None]) -> None:
        self.turns.append(callback)

    def succeed(self) -> FakeLink:
        link = FakeLink()
        self._tell(link)
        return link

    def fail(self) -> None:
        self._tell(ConnectionRefusedError("nobody there"))

    def _tell(self, outcome: Any) -> None:
        done, self.done = self.done, None
        assert done is not None
        done(outcome)


class World:
    def __init__(self, entry: Entry | None = None) -> None:
        self.clock = ManualClock()
        self.network = FakeNetwork()
        self.address: tuple[str, int] | None = ("10.0.0.2", 9092)
        self.channel = Channel(
            self.network, self.clock, Slices(self.clock),  # type: ignore[arg-type]
            client_id="broker-1-to-2", address=lambda: self.address, timeout_ms=TIMEOUT_MS,
            entry=entry,
        )  # fmt: skip

    def ask(self, key: str = "k", versions: range = range(4, 6)) -> Later[Any]:
        return self.channel.ask(FindCoordinatorRequest(coordinator_keys=[key]), versions)

    def connected(self) -> FakeLink:
        link = self.network.succeed()
        link.answer(greeting())
        return link


def greeting(newest: int = 5, code: int = 0) -> ApiVersionsResponse:
    one = ApiVersionsResponse.ApiKey(api_key=KEY, min_version=0, max_version=newest)
    return ApiVersionsResponse(error_code=code, api_keys=[one])


def found(key: str) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(coordinators=[FindCoordinatorResponse.Coordinator(key=key)])
