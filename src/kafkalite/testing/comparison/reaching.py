"""Whether a Kafka broker answers at an address; and if none does, what does."""

from __future__ import annotations

import socket
from contextlib import closing, suppress

from kafkalite.client.logging_in import SecuredWire
from kafkalite.client.wire import NoAnswer, NoReply, decode_response, request_frame
from kafkalite.protocol.errors import MalformedFrame
from kafkalite.protocol.framing import SIZE_BYTES, frame_size
from kafkalite.protocol.messages import ApiVersionsRequest
from kafkalite.security.client_login import OPEN, LoginFailed, Security

PATIENCE_S = 5
MOST_BYTES = 1 << 20
_CLIENT_ID = "kafkalite-replay"
# What who reads lines is waiting for, after a request without an end of a line in it.
_LINES = b"\r\n\r\n"


def expect_broker(host: str, port: int, security: Security = OPEN) -> None:
    """NoAnswer, with a sentence, unless a broker answers a request for its versions."""
    where = f"{host}:{port}"
    if security != OPEN:
        _expect_to_be_let_in(host, port, security)
        return
    try:
        with socket.create_connection((host, port), PATIENCE_S) as link:
            answer = _answer(link)
    except (OSError, UnicodeError) as reason:
        text = getattr(reason, "strerror", None) or reason
        raise NoAnswer(f"{where} cannot be reached: {text}") from None
    if not _is_of_broker(answer):
        raise NoAnswer(f"{where} {_what_else(answer)}")


def _expect_to_be_let_in(host: str, port: int, security: Security) -> None:
    with closing(SecuredWire(host, port, security, _CLIENT_ID)) as wire:
        try:
            wire.send(request_frame(ApiVersionsRequest(), 0, 1, _CLIENT_ID))
            answer = wire.receive(PATIENCE_S)
        except (OSError, UnicodeError, LoginFailed) as reason:
            text = getattr(reason, "strerror", None) or reason
            raise NoAnswer(f"{host}:{port} does not let us in: {text}") from None
    if isinstance(answer, NoReply):
        raise NoAnswer(f"{host}:{port} does not let us in: {answer.value}")


def _answer(link: socket.socket) -> bytes:
    """What comes in time, up to a frame."""
    frame = request_frame(ApiVersionsRequest(), 0, 1, _CLIENT_ID)
    link.sendall(frame_size([frame]) + frame)
    answer = _received(link)
    if not answer:
        with suppress(OSError):
            link.sendall(_LINES)
            answer = _received(link)
    return answer


def _received(link: socket.socket) -> bytes:
    received = b""
    with suppress(OSError):  # among them that nothing more comes in time
        while len(received) < MOST_BYTES and not _is_whole(received):
            data = link.recv(MOST_BYTES)
            if not data:
                break
            received += data
    return received


def _is_whole(data: bytes) -> bool:
    return len(data) >= SIZE_BYTES and len(data) - SIZE_BYTES >= int.from_bytes(data[:SIZE_BYTES])


def _is_of_broker(answer: bytes) -> bool:
    try:
        return _is_whole(answer) and bool(
            decode_response(answer[SIZE_BYTES:], ApiVersionsRequest.API_KEY, 0).api_keys
        )
    except MalformedFrame:
        return False


def _what_else(answer: bytes) -> str:
    if not answer:
        return "takes connections, but does not answer as a Kafka broker does (does it want TLS?)"
    if answer.startswith(b"HTTP/") or b"<html" in answer.lower():
        return "speaks HTTP, not the Kafka protocol"
    if answer[:2] in (b"\x15\x03", b"\x16\x03"):
        return "speaks TLS: say how to be let in, in a file of a client's settings"
    return "speaks another protocol than Kafka's"
