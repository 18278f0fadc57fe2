"""The login of a connection, request by request: SaslHandshake, tokens, and the way in.

Owns the order in which a peer may speak before it has logged in, and when it logs in again, both as
Apache Kafka has them: ApiVersions once, then a mechanism, then its tokens, in SaslAuthenticate or,
after the first version of SaslHandshake, as they are. What is out of turn ends the connection.
Whoever is refused hears of it after a while, for which the loop waits for nobody. Knows no
mechanism. Invariant: until a login has come to a user, no other request is decoded here but small
ones, and none is carried out.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from enum import Enum, auto
from typing import Any

from kafkalite.env.clock import Clock
from kafkalite.env.dataclasses import dataclass
from kafkalite.env.later import Later
from kafkalite.handlers.api_versions import API_VERSIONS_KEY
from kafkalite.handlers.call import CloseConnection
from kafkalite.protocol import codec, headers, spec
from kafkalite.protocol.errors import Error, MalformedFrame
from kafkalite.protocol.messages import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
    message_class,
)
from kafkalite.security.login_settings import LoginSettings
from kafkalite.security.mechanisms import (
    BrokenOff,
    Challenge,
    Exchange,
    LoggedIn,
    Mechanism,
    Refused,
    Step,
)
from kafkalite.server.connection_info import ConnectionInfo
from kafkalite.server.error_reply import error_reply
from kafkalite.server.limits import LimitedLog
from kafkalite.server.other_protocols import recognise
from kafkalite.server.request_header import read_header
from kafkalite.server.terms import Answer, NewTerms, Outcome, Reply, Service, Terms

HANDSHAKE_KEY = SaslHandshakeRequest.API_KEY
AUTHENTICATE_KEY = SaslAuthenticateRequest.API_KEY
LOGIN_MS = 30_000
# Apache Kafka answers a second login that comes so soon after the one before as any request.
LEAST_BETWEEN_MS = 1_000
# Of a request that is out of turn: a larger one is not even decoded.
SMALL_BYTES = 8_192
NAME_SHOWN = 100
# A challenge says again what its client said. Longer ones, which no client has a use for, are held
# for peers who do not take them: so much of them at a time, over all connections.
LONG_BYTES = 8_192
MOST_LONG_BYTES = 8 * 1024 * 1024
# From now on: the first request of a session that ended as it began comes too late.
NO_TIME_MS = -1

_SIZE = struct.Struct(">i")
_error_at = struct.Struct(">h").unpack_from
REPLY_HEAD_BYTES = 8  # size and correlation id


class _Turn(Enum):
    """What a peer may say next."""

    ANYTHING = auto()  # the first of all: ApiVersions, or a mechanism
    VERSIONS_OR_MECHANISM = auto()
    MECHANISM = auto()
    TOKEN = auto()


@dataclass(slots=True)
class LoginCounts:
    """What became of logins at a listener, the later ones of a connection apart."""

    taken: int = 0
    taken_again: int = 0
    failed: int = 0
    failed_again: int = 0


@dataclass(slots=True)
class LongWords:
    """How much was said to peers who are not let in so far, in long challenges."""

    used: int = 0


@dataclass(slots=True, frozen=True)
class Entrance:
    """A listener's: what is behind it, and how one comes in."""

    service: Service
    settings: LoginSettings
    mechanisms: Mapping[str, Mechanism]  # in the order in which they are told
    clock: Clock
    log: LimitedLog
    counts: LoginCounts
    long_words: LongWords

    def terms(self) -> Terms:
        """Those of a connection that has just come."""
        return self.narrow(Login(self))

    def narrow(self, login: Login) -> Terms:
        return Terms(login, self.settings.max_frame_bytes, owed_replies=1, login_ms=LOGIN_MS)


@dataclass(slots=True, frozen=True)
class _Header:
    key: int
    version: int
    correlation_id: int
    body: int  # where it begins

    @property
    def name(self) -> str:
        return f"{spec.api(self.key).name} v{self.version}"

    def framed(self, response: Any) -> bytes:
        head = headers.encode_response_header(self.key, self.version, self.correlation_id)
        frame = head + codec.encode(response, self.version)
        return _SIZE.pack(len(frame)) + frame


@dataclass(slots=True, frozen=True)
class _Before:
    """Who logs in again: only as it was."""

    principal: str
    mechanism: str


class Login:
    """One login of one connection."""

    def __init__(
        self, entrance: Entrance, before: _Before | None = None, began_ms: int | None = None
    ) -> None:
        self._entrance = entrance
        self._before = before
        self._began_ms = began_ms  # of one that is not the first
        self._turn = _Turn.ANYTHING if before is None else _Turn.MECHANISM
        self._mechanism = ""
        self._exchange: Exchange | None = None
        self._has_headers = False
        self._long_bytes = 0  # of challenges

    # --- what a connection asks -------------------------------------------------------------------

    def answer(self, frame: memoryview, connection: ConnectionInfo) -> Answer:
        try:
            if self._turn is _Turn.TOKEN:
                return self._token(frame, connection)
            return self._before_tokens(frame, connection)
        except MalformedFrame as error:
            why = f"what it sent is no request of a login ({error})"
            if self._turn is _Turn.ANYTHING:
                why += ": a client of another security.protocol, or none of Kafka's"
            return self._end(connection, why)

    def refuse(self, head: memoryview, size: int, connection: ConnectionInfo) -> bytes:
        foreign = recognise(head)
        if foreign is not None:
            why = f"it speaks {foreign.name} to a listener of {connection.protocol}"
            self._end(connection, why)
            return foreign.reply
        self._end(
            connection,
            f"it announced {size} bytes, which is negative or more than "
            "sasl.server.max.receive.size",
        )
        return b""

    def expired(self, reason: str, connection: ConnectionInfo) -> None:
        self._entrance.log.warn("login slow", f"{connection} was cut off: {reason}")

    # --- before tokens ----------------------------------------------------------------------------

    def _before_tokens(self, frame: memoryview, connection: ConnectionInfo) -> Answer:
        header = _header_of(frame)
        if header.key == HANDSHAKE_KEY:
            return self._handshake(header, frame, connection)
        if header.key != API_VERSIONS_KEY:
            return self._end(connection, f"it asked for {header.name} before it logged in")
        if self._turn is _Turn.MECHANISM:
            return self._end(connection, "it asked for ApiVersions once more")
        self._turn = _Turn.VERSIONS_OR_MECHANISM
        answer = self._entrance.service.answer(frame, connection)
        return answer.map(self._greeted) if isinstance(answer, Later) else self._greeted(answer)

    def _greeted(self, answer: Any) -> Any:
        """A version that is not known, or a name that is none, may be put right."""
        if isinstance(answer, list) and not _error_at(b"".join(answer), REPLY_HEAD_BYTES)[0]:
            self._turn = _Turn.MECHANISM
        return answer

    def _handshake(
        self, header: _Header, frame: memoryview, connection: ConnectionInfo
    ) -> Answer:
        request: SaslHandshakeRequest = _body_of(header, frame)
        name = request.mechanism
        known = self._entrance.mechanisms
        response = SaslHandshakeResponse(mechanisms=list(known))
        begin = known.get(name)
        if begin is None:
            response.error_code = Error.UNSUPPORTED_SASL_MECHANISM
            why = f"it asked for the mechanism {_shown(name)}, and there is {', '.join(known)}"
            if self._before is not None:  # who has been told before what there is
                return self._end(connection, why)
            return self._refuse_later(connection, None, why, header.framed(response))
        self._turn, self._has_headers = _Turn.TOKEN, header.version > 0
        self._mechanism, self._exchange = name, begin()
        return [header.framed(response)]

    # --- tokens -----------------------------------------------------------------------------------

    def _token(self, frame: memoryview, connection: ConnectionInfo) -> Answer:
        before = self._before
        if before is not None and before.mechanism != self._mechanism:
            why = f"SASL mechanism '{self._mechanism}' requested by client is not supported for "
            why += f"re-authentication of mechanism '{before.mechanism}'"
            return self._refuse_later(connection, None, why, b"")
        if not self._has_headers:
            return self._stepped(bytes(frame), connection, None)
        header = _header_of(frame)
        if header.key != AUTHENTICATE_KEY:
            return self._out_of_turn(header, frame, connection)
        request: SaslAuthenticateRequest = _body_of(header, frame)
        return self._stepped(bytes(request.auth_bytes), connection, header)

    def _out_of_turn(
        self, header: _Header, frame: memoryview, connection: ConnectionInfo
    ) -> Answer:
        api = spec.api(header.key).name
        why = f"Unexpected Kafka request of type {_java_name(api)} during SASL authentication."
        if len(frame) > SMALL_BYTES:
            return self._end(connection, why)
        request = _body_of(header, frame)
        response = error_reply(request, header.version, Error.ILLEGAL_SASL_STATE, why)
        last_words = b"" if response is None else header.framed(response)
        return self._refuse_later(connection, None, why, last_words)

    def _stepped(
        self, token: bytes, connection: ConnectionInfo, header: _Header | None
    ) -> Answer:
        """Without a header tokens go as they are, and a refusal is the connection's end."""
        assert self._exchange is not None
        step = self._exchange.take(token)
        if isinstance(step, Later):
            return step.then_ask(lambda come: _later(self._after(come, connection, header)))
        return self._after(step, connection, header)

    def _after(self, step: Step, connection: ConnectionInfo, header: _Header | None) -> Answer:
        if isinstance(step, LoggedIn) and self._is_another(step.user):
            step = self._changed_user(step.user)
        if isinstance(step, BrokenOff):
            return self._end(connection, step.why, step.user)
        if isinstance(step, Refused):
            return self._refused(step, connection, header)
        if isinstance(step, Challenge):
            if not self._may_say(len(step.token), connection):
                return self._end(connection, "many have long challenges that they do not take")
            return self._said(step.token, 0, header)
        self._give_back()
        connection.principal = f"User:{step.user}"
        connection.is_by_token = step.is_by_token
        session_ms = self._session_ms(step)
        return NewTerms(self._said(step.token, session_ms or 0, header), self._inside(session_ms))

    def _may_say(self, size: int, connection: ConnectionInfo) -> bool:
        """Whether there is memory for a challenge, until its peer is in or has ended."""
        if size <= LONG_BYTES:
            return True
        words = self._entrance.long_words
        if words.used + size > MOST_LONG_BYTES:
            return False
        words.used += size
        self._long_bytes += size

        def ended() -> None:
            if connection.has_ended:
                self._give_back()

        connection.when_gone(ended)
        return True

    def _give_back(self) -> None:
        self._entrance.long_words.used -= self._long_bytes
        self._long_bytes = 0

    def _session_ms(self, step: LoggedIn) -> int | None:
        """How long the login holds: as long as settings say, and what was shown; None: for as long
        as its connection. It is over at once where that has expired."""
        entrance = self._entrance
        most_ms = entrance.settings.session_ms.get(self._mechanism, 0) or None
        if step.expires_ms is None:
            return most_ms
        left_ms = max(0, step.expires_ms - entrance.clock.now_ms())
        return left_ms if most_ms is None else min(left_ms, most_ms)

    def _said(self, token: bytes, session_ms: int, header: _Header | None) -> Reply:
        if header is None:
            return [_SIZE.pack(len(token)) + token]
        return [
            header.framed(
                SaslAuthenticateResponse(auth_bytes=token, session_lifetime_ms=session_ms)
            )
        ]

    def _inside(self, session_ms: int | None) -> Terms:
        entrance = self._entrance
        if self._before is None:
            entrance.counts.taken += 1
        else:
            entrance.counts.taken_again += 1
        if session_ms is None:
            return Terms(entrance.service)
        until_ms = entrance.clock.monotonic_ms() + (session_ms or NO_TIME_MS)
        return Terms(Session(entrance, self._mechanism, until_ms, self._began_ms))

    def _is_another(self, user: str) -> bool:
        return self._before is not None and self._before.principal != f"User:{user}"

    def _changed_user(self, user: str) -> Refused:
        assert self._before is not None
        kind, _, name = self._before.principal.partition(":")
        why = "Cannot change principals during re-authentication from "
        why += f"{kind}.{name}: User.{user}"
        return Refused(why, told=why, user=user)

    # --- refusals ---------------------------------------------------------------------------------

    def _refused(
        self, step: Refused, connection: ConnectionInfo, header: _Header | None
    ) -> Answer:
        last_words = b""
        if header is not None:
            what = "authentication" if self._before is None else "re-authentication"
            usual = f"Authentication failed during {what} due to invalid credentials with SASL "
            told = step.told if step.told is not None else f"{usual}mechanism {self._mechanism}"
            response = SaslAuthenticateResponse(
                error_code=Error.SASL_AUTHENTICATION_FAILED, error_message=told
            )
            last_words = header.framed(response)
        return self._refuse_later(connection, step.user, step.why, last_words)

    def _refuse_later(
        self, connection: ConnectionInfo, user: str | None, why: str, last_words: bytes
    ) -> Answer:
        self._tell(connection, user, why)
        end: Outcome = CloseConnection("its login was refused")
        if last_words:
            end = NewTerms([last_words], OVER)
        delay_ms = self._entrance.settings.failure_delay_ms
        if not delay_ms:
            return Later.of(end)
        return _delayed(self._entrance.clock, delay_ms, connection, end)

    def _end(self, connection: ConnectionInfo, why: str, user: str | None = None) -> Outcome:
        self._tell(connection, user, why)
        return CloseConnection("out of turn")

    def _tell(self, connection: ConnectionInfo, user: str | None, why: str) -> None:
        who = "" if user is None else f" as {_shown(user)}"
        how = f" with {self._mechanism}" if self._mechanism else ""
        if self._before is None:
            self._entrance.counts.failed += 1
        else:
            self._entrance.counts.failed_again += 1
        self._entrance.log.warn(
            "login",
            f"{connection} failed to log in{who}{how} on listener {connection.listener}: {why}",
        )


class _Over:
    """A connection that was told why it ends, and has the time until the next sweep to read it:
    clients that find the end of a connection look no more at what came before."""

    def answer(self, frame: memoryview, connection: ConnectionInfo) -> Answer:
        return CloseConnection("its login was refused")

    def refuse(self, head: memoryview, size: int, connection: ConnectionInfo) -> bytes:
        return b""

    def expired(self, reason: str, connection: ConnectionInfo) -> None:
        """That has been said."""


OVER = Terms(_Over(), owed_replies=0, login_ms=0)


class Session:
    """A login that holds for a while: the next one has to begin before it ends."""

    def __init__(
        self, entrance: Entrance, mechanism: str, until_ms: int, again_ms: int | None
    ) -> None:
        self._entrance, self._mechanism, self._until_ms = entrance, mechanism, until_ms
        self._again_ms = again_ms  # when the last one began that was not the first

    def answer(self, frame: memoryview, connection: ConnectionInfo) -> Answer:
        entrance, now_ms = self._entrance, self._entrance.clock.monotonic_ms()
        if frame[:2] == HANDSHAKE_KEY.to_bytes(2, "big") and self._may_begin(now_ms):
            self._again_ms = now_ms
            again = Login(entrance, _Before(connection.principal, self._mechanism), now_ms)
            answer = again.answer(frame, connection)
            if isinstance(answer, list):
                return NewTerms(answer, entrance.narrow(again))
            return answer
        if now_ms > self._until_ms:
            entrance.log.warn(
                "session", f"{connection} was cut off: it did not log in again in time"
            )
            return CloseConnection("its session is over")
        return entrance.service.answer(frame, connection)

    def _may_begin(self, now_ms: int) -> bool:
        return self._again_ms is None or now_ms - self._again_ms >= LEAST_BETWEEN_MS

    def refuse(self, head: memoryview, size: int, connection: ConnectionInfo) -> bytes:
        return self._entrance.service.refuse(head, size, connection)

    def expired(self, reason: str, connection: ConnectionInfo) -> None:
        self._entrance.service.expired(reason, connection)


def _later(answer: Answer) -> Later[Outcome]:
    """An answer that may have come already; to a token there is always one."""
    assert answer is not None
    return answer if isinstance(answer, Later) else Later.of(answer)


def _delayed(
    clock: Clock, delay_ms: int, connection: ConnectionInfo, outcome: Outcome
) -> Later[Outcome]:
    """An answer that comes later, or when the connection has ended."""
    later: Later[Outcome] = Later()

    def come() -> None:
        connection.stays_without(look)
        timer.cancel()
        if not later.is_resolved:
            later.resolve(outcome)

    def look() -> None:
        if connection.has_ended:
            come()

    timer = clock.call_later(delay_ms, come)
    connection.when_gone(look)
    return later


def _header_of(frame: memoryview) -> _Header:
    key = int.from_bytes(frame[:2], "big", signed=True)
    version = int.from_bytes(frame[2:4], "big", signed=True)
    has_tags = headers.request_header_version(key, version) == 2
    key, version, correlation_id, _, body = read_header(frame, has_tags)
    return _Header(key, version, correlation_id, body)


def _body_of(header: _Header, frame: memoryview) -> Any:
    api = spec.api(header.key)
    if header.version not in api.versions:
        raise MalformedFrame(f"there is no {header.name}")
    request, _ = codec.decode_prefix(
        message_class(f"{api.name}Request"), header.version, frame, header.body
    )
    return request


def _java_name(api: str) -> str:
    """As Apache Kafka's constant for an API is called: METADATA, FIND_COORDINATOR."""
    return "".join(f"_{each}" if each.isupper() else each for each in api).strip("_").upper()


def _shown(name: str) -> str:
    """A peer chose it: in quotes, and not all of it."""
    return repr(name[:NAME_SHOWN]) + "…" * (len(name) > NAME_SHOWN)
