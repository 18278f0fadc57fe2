"""A login as requests, for whoever carries them; and a blocking connection that begins with one.

Owns the order of requests and what refuses a login. Sans-IO but for the connection.
"""

from __future__ import annotations

import socket
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from kafkalite.client.wire import Wire, decode_response, request_frame
from kafkalite.env.randomness import system_random
from kafkalite.protocol.errors import Error, MalformedFrame
from kafkalite.protocol.framing import SIZE_BYTES, frame_size
from kafkalite.protocol.messages import SaslAuthenticateRequest, SaslHandshakeRequest
from kafkalite.security.client_login import Login, LoginFailed, Security

if TYPE_CHECKING:
    from random import Random

VERSION = 1  # of both requests
LARGEST_ANSWER = 1 << 20
_ID = 1

LoggingIn = Generator[Any, Any, None]


def logging_in(login: Login, random: Random) -> LoggingIn:
    """The requests, one after the other; it is sent their answers. Raises LoginFailed."""
    handshake = yield SaslHandshakeRequest(mechanism=login.mechanism)
    if handshake.error_code != Error.NONE:
        known = ", ".join(handshake.mechanisms)
        raise LoginFailed(f"{login.mechanism} is not enabled, but {known}")
    token: bytes | None
    token, go_on = login.begin(random)
    while token is not None:
        answer = yield SaslAuthenticateRequest(auth_bytes=token)
        if answer.error_code != Error.NONE:
            raise LoginFailed(answer.error_message)
        token = go_on(bytes(answer.auth_bytes))


def framed(request: Any, client_id: str) -> bytes:
    """One of those requests with its size."""
    frame = request_frame(request, VERSION, _ID, client_id)
    return frame_size([frame]) + frame


def answer_size(head: bytes) -> int:
    """Raises LoginFailed for what no answer to a login has."""
    size = int.from_bytes(head, "big", signed=True)
    if not 0 <= size <= LARGEST_ANSWER:
        raise LoginFailed("what answers does not speak the Kafka protocol")
    return size


def answer_in(frame: bytes, request: Any) -> Any:
    try:
        return decode_response(frame, request.API_KEY, VERSION)
    except MalformedFrame as error:
        raise LoginFailed(f"its answer cannot be read: {error}") from None


class SecuredWire(Wire):
    """A connection that is let in before anything is asked; raises LoginFailed where it is not."""

    def __init__(self, host: str, port: int, security: Security, client_id: str) -> None:
        super().__init__(host, port, security.context)
        self._login, self._client_id = security.login, client_id

    def _connected(self) -> socket.socket:
        made = super()._connected()
        try:
            if self._login is not None:
                self._log_in(made, logging_in(self._login, system_random()))
        except BaseException:
            made.close()
            raise
        return made

    def _log_in(self, made: socket.socket, steps: LoggingIn) -> None:
        request = next(steps)
        while request is not None:
            made.sendall(framed(request, self._client_id))
            size = answer_size(_exactly(made, SIZE_BYTES))
            answer = answer_in(_exactly(made, size), request)
            try:
                request = steps.send(answer)
            except StopIteration:
                request = None


def _exactly(made: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        more = made.recv(count - len(found))
        if not more:
            raise LoginFailed("the broker ended the connection")
        found += more
    return found
