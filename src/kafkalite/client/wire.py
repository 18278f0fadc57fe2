"""One blocking connection to a broker, below any client: frames out, frames in, or why none came.

A connection that ended, or whose answer is overdue, is opened anew for the next request.
"""

from __future__ import annotations

import select
import socket
import struct
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING, Any

from kafkalite.protocol import codec, headers
from kafkalite.protocol.errors import MalformedFrame
from kafkalite.protocol.framing import MAX_FRAME_BYTES, FrameCutter, frame_size
from kafkalite.protocol.messages import RequestHeader, ResponseHeader, message_class

if TYPE_CHECKING:
    import ssl

CONNECT_TIMEOUT_S = 10
RECEIVE_BYTES = 1 << 16


class NoReply(Enum):
    """What came instead of an answer."""

    CLOSED = "the broker closed the connection"
    SILENT = "no answer in time"
    FOREIGN = "the broker sent bytes that are no answer"


class NoAnswer(ConnectionError):
    """A question that the comparison cannot go on without has no answer."""


class NotEncrypted(OSError):
    """A peer that does not shake hands, or refuses the certificate that it was shown."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"SSL handshake failed: {reason}")
        self.reason = reason


class Wire:
    """With a context it is encrypted by that."""

    def __init__(self, host: str, port: int, context: ssl.SSLContext | None = None) -> None:
        self.host, self.port = host, port
        self._context = context
        self._socket: socket.socket | None = None
        self._cutter = FrameCutter(MAX_FRAME_BYTES)
        self._end = NoReply.CLOSED

    def send(self, frame: bytes) -> None:
        """Sends a frame without its size."""
        if self._socket is None:
            self._socket = self._connected()
            self._cutter = FrameCutter(MAX_FRAME_BYTES)
            self._end = NoReply.CLOSED
        with suppress(ConnectionError):  # the answer to it will tell
            self._socket.sendall(frame_size([frame]) + frame)

    def _connected(self) -> socket.socket:
        made = socket.create_connection((self.host, self.port), CONNECT_TIMEOUT_S)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._context is None:
            return made
        import ssl

        try:
            return self._context.wrap_socket(made, server_hostname=self.host)
        except (ssl.SSLError, ValueError) as error:
            made.close()
            raise _not_encrypted(error) from None
        except BaseException:
            made.close()
            raise

    def has_some(self) -> bool:
        """Whether something of an answer is there, or the end of the connection."""
        if self._socket is None or (self._context is not None and self._socket.pending()):  # type: ignore[attr-defined]
            return True
        return bool(select.select([self._socket], [], [], 0)[0])

    def receive(self, timeout_s: float) -> bytes | NoReply:
        """The next frame. Each of its pieces may take the whole time."""
        try:
            return self._next(timeout_s)
        except TimeoutError:
            return self._ended(NoReply.SILENT)
        except ConnectionError:
            return self._ended(self._end)
        except MalformedFrame:
            return self._ended(NoReply.FOREIGN)

    def poll(self, timeout_s: float) -> bytes | NoReply | None:
        """The next frame, or None when there is none so far; then the connection stays."""
        try:
            return self._next(timeout_s)
        except TimeoutError:
            return None
        except ConnectionError:
            return self._ended(self._end)
        except MalformedFrame:
            return self._ended(NoReply.FOREIGN)

    def _ended(self, end: NoReply) -> NoReply:
        """What was asked on this connection and has no answer so far ends in the same way."""
        self.close()
        self._end = end
        return end

    def _next(self, timeout_s: float) -> bytes:
        if self._socket is None:
            raise ConnectionResetError("ended before")
        self._socket.settimeout(timeout_s)
        while (frame := self._cutter.take()) is None:
            data = self._received(self._socket)
            if not data:
                raise ConnectionResetError("ended by the broker")
            self._cutter.feed(data)
        return bytes(frame)

    def _received(self, encrypted: socket.socket) -> bytes:
        if self._context is None:
            return encrypted.recv(RECEIVE_BYTES)
        import ssl

        try:
            return encrypted.recv(RECEIVE_BYTES)
        except ssl.SSLError as error:  # such as a certificate that is missed: it is told here
            self.close()
            raise _not_encrypted(error) from None

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _not_encrypted(error: Exception) -> NotEncrypted:
    import ssl

    from kafkalite.env.tls import reason_of

    why = reason_of(error) if isinstance(error, ssl.SSLError) else str(error)
    return NotEncrypted(why)


def request_frame(request: Any, version: int, correlation_id: int, client_id: str | None) -> bytes:
    """A request behind its header."""
    header = RequestHeader(
        request_api_key=request.API_KEY,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    header_version = headers.request_header_version(request.API_KEY, version)
    return codec.encode(header, header_version) + codec.encode(request, version)


def decode_response(frame: bytes, api_key: int, version: int) -> Any:
    """The message of an answer to a request of this API and version."""
    from kafkalite.protocol import spec

    header_version = headers.response_header_version(api_key, version)
    _, position = codec.decode_prefix(ResponseHeader, header_version, frame)
    response = message_class(f"{spec.api(api_key).name}Response")
    return codec.decode(response, version, frame, position)


def correlation_id(frame: bytes) -> int:
    """Of an answer; it comes first in every version of the header."""
    number: int = struct.unpack_from(">i", frame)[0]
    return number
