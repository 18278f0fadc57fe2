"""One of two brokers that are compared: connections to it, and what ids mean there."""

from __future__ import annotations

from typing import Any

from kafkalite.client.logging_in import SecuredWire
from kafkalite.client.wire import (
    NoAnswer,
    NoReply,
    Wire,
    decode_response,
    request_frame,
)
from kafkalite.protocol.errors import MalformedFrame
from kafkalite.protocol.messages import MetadataRequest
from kafkalite.security.client_login import OPEN, Security
from kafkalite.testing.comparison.names import HOST, PORT, Names, translate
from kafkalite.testing.comparison.views import View

PATIENCE_S = 60.0
CLIENT_ID = "comparison"
FIRST = 0
_FIRST_PORT = 2_000_000_000
_CORRELATION_ID = 1
_BESIDE = -1  # the connection of questions that are not part of the conversation


class Side:
    def __init__(self, host: str, port: int, security: Security = OPEN) -> None:
        self.host, self.port = host, port
        self._security = security
        self.names = Names()
        self.view = View(self.names)
        self._wires: dict[int, Wire] = {}
        self._brokers: list[tuple[int, str, int]] | None = None

    def name_addresses(self) -> None:
        """Where its brokers are reached means the same on both sides, by the order of node ids."""
        if self._brokers is None:
            self._brokers = sorted(
                (each.node_id, each.host, each.port)
                for each in self.ask(MetadataRequest(topics=[]), 5).brokers
            )
        for number, (_, host, port) in enumerate(self._brokers, 1):
            if not self.names.knows(HOST, host):
                self.names.bind(HOST, host, f"host of broker {number}")
            self.names.bind(PORT, port, _FIRST_PORT + number)

    def wire(self, connection: int = FIRST) -> Wire:
        """The connection of this number; it is opened by what is sent first."""
        if connection not in self._wires:
            self._wires[connection] = self._new_wire()
        return self._wires[connection]

    def _new_wire(self) -> Wire:
        if self._security == OPEN:
            return Wire(self.host, self.port)
        return SecuredWire(self.host, self.port, self._security, CLIENT_ID)

    def close(self) -> None:
        for connection in list(self._wires):
            self.hang_up(connection)

    def hang_up(self, connection: int = FIRST) -> None:
        wire = self._wires.pop(connection, None)
        if wire is not None:
            wire.close()

    def send(self, request: Any, version: int, connection: int = FIRST) -> None:
        """Under the names of this side."""
        renamed = translate(request, version, self.names)
        self.wire(connection).send(request_frame(renamed, version, _CORRELATION_ID, CLIENT_ID))

    def understand(self, frame: bytes | NoReply, api_key: int, version: int) -> Any:
        """The view of an answer, or why there is none."""
        if isinstance(frame, NoReply):
            return frame.value
        try:
            if not frame.startswith(_CORRELATION_ID.to_bytes(4)):
                return "an answer to another request"
            message = decode_response(frame, api_key, version)
        except MalformedFrame as reason:
            return f"malformed: {reason}"
        return self.view.of(message, version)

    def ask_again(self, request: Any, version: int) -> bytes | NoReply:
        """What was sent in the conversation, beside it: another answer to the same."""
        self.send(request, version, _BESIDE)
        return self.wire(_BESIDE).receive(PATIENCE_S)

    def ask(self, request: Any, version: int) -> Any:
        """Beside the conversation: the message as it is."""
        wire = self.wire(_BESIDE)
        wire.send(request_frame(request, version, _CORRELATION_ID, CLIENT_ID))
        frame = wire.receive(PATIENCE_S)
        if isinstance(frame, NoReply):
            name = type(request).__name__
            raise NoAnswer(f"{self.host}:{self.port}, asked {name}: {frame.value}")
        return decode_response(frame, request.API_KEY, version)
