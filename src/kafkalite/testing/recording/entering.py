"""How a proxy comes to brokers, and who is shown to its clients: TLS and a login of its own.

Owns the login on a connection that a client is about to have. Where the proxy has none, what a
client says of its own goes through like all that it says. What keeps it out is an OSError.
"""

from __future__ import annotations

import asyncio
import errno
import ssl
from dataclasses import dataclass

from kafkalite.client.logging_in import LoggingIn, answer_in, answer_size, framed, logging_in
from kafkalite.env.randomness import system_random
from kafkalite.env.tls import reason_of
from kafkalite.protocol.framing import SIZE_BYTES
from kafkalite.security.client_login import OPEN, Login, LoginFailed, Security
from kafkalite.testing.recording.link import Ends, shut

CLIENT_ID = "kafkalite-proxy"


@dataclass(slots=True, frozen=True)
class Entrances:
    """`to` brokers, and what is shown to clients; None: they come in the open."""

    to: Security = OPEN
    shown: ssl.SSLContext | None = None


IN_THE_OPEN = Entrances()


async def entered(host: str, port: int, security: Security) -> Ends:
    """A connection on which a client may go on. Takes its time: whoever calls sets a limit."""
    try:
        ends = await asyncio.open_connection(host, port, ssl=security.context)
    except ssl.SSLError as error:
        raise OSError(errno.EACCES, f"SSL handshake failed: {reason_of(error)}") from None
    if security.login is None:
        return ends
    try:
        await _log_in(ends, security.login)
    except BaseException as error:
        shut(ends[1], at_once=True)
        if isinstance(error, LoginFailed):
            raise OSError(errno.EACCES, f"no login: {error}") from None
        if isinstance(error, EOFError):
            raise OSError(errno.EACCES, "no login: the broker ended the connection") from None
        raise
    return ends


async def _log_in(ends: Ends, login: Login) -> None:
    steps = logging_in(login, system_random())
    request = next(steps)
    while request is not None:
        request = await _step(steps, request, ends)


async def _step(steps: LoggingIn, request: object, ends: Ends) -> object | None:
    """The next request; None where it is let in."""
    reader, writer = ends
    writer.write(framed(request, CLIENT_ID))
    await writer.drain()
    size = answer_size(await reader.readexactly(SIZE_BYTES))
    answer = answer_in(await reader.readexactly(size), request)
    try:
        following: object = steps.send(answer)
    except StopIteration:
        return None
    return following
