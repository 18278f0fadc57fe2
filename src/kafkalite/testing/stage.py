"""Between connections and broker: who looks on, and what goes wrong on purpose.

Owns the order of a connection's requests while one of them is held or throttled. Stands in the way
of nothing while nobody asks for anything: then a request passes with one look.
Invariant: requests of one connection reach the broker in the order in which they came.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kafkalite.env.clock import Clock
from kafkalite.env.disk import FileRange
from kafkalite.env.later import Later
from kafkalite.handlers.call import CloseConnection
from kafkalite.protocol import codec, headers, spec
from kafkalite.protocol.errors import MalformedFrame
from kafkalite.protocol.messages import RequestHeader, ResponseHeader, message_class
from kafkalite.server.connection_info import ConnectionInfo
from kafkalite.server.error_reply import error_reply
from kafkalite.server.terms import Answer, NewTerms, Outcome, Reply, Service
from kafkalite.testing.faults import Act, Fault, Faults
from kafkalite.testing.observing import Observers
from kafkalite.testing.where import Known

SIZE_BYTES = 4
# The keys of SyncGroup, Heartbeat and ConsumerGroupHeartbeat, as a frame begins.
_OF_MEMBERS = (b"\x00\x0e", b"\x00\x0c", b"\x00\x44")
MOST_MEMBERS = 10_000


@dataclass(slots=True)
class _Asked:
    """One request, as far as it is understood."""

    frame: memoryview
    connection: ConnectionInfo
    header: RequestHeader
    api: str
    message: Any

    @property
    def version(self) -> int:
        return self.header.request_api_version

    @property
    def client_id(self) -> str | None:
        return self.header.client_id

    @property
    def is_answered(self) -> bool:
        return not (self.api == "Produce" and self.message.acks == 0)


@dataclass(slots=True, eq=False)
class _Line:
    """What waits on one connection behind a request that is held."""

    connection: ConnectionInfo  # kept, so that no other one has its identity
    waiting: deque[tuple[memoryview, Later[Outcome]]] = field(default_factory=deque)


class Stage:
    """A Service over another one."""

    def __init__(
        self,
        service: Service,
        clock: Clock,
        faults: Faults,
        observers: Observers,
        known: Known,
        knows: Callable[[memoryview], bool] | None = None,
    ) -> None:
        """`knows` tells whether the service takes a request to be one of its APIs and versions;
        what it does not know goes on to it whatever is to go wrong."""
        self._service = service
        self._knows = knows
        self._known = known
        self._clock = clock
        self._faults = faults
        self._observers = observers
        self.is_over = False  # its broker has ended, and what was held is never done
        self._members: dict[tuple[str, str], ConnectionInfo] = {}
        self._lines: dict[int, _Line] = {}  # by the connection's identity, while something waits

    def refuse(self, head: memoryview, size: int, connection: ConnectionInfo) -> bytes:
        return self._service.refuse(head, size, connection)

    def expired(self, reason: str, connection: ConnectionInfo) -> None:
        self._service.expired(reason, connection)

    def answer(self, frame: memoryview, connection: ConnectionInfo) -> Answer:
        if frame[:2] in _OF_MEMBERS:
            self._note_member(frame, connection)
        if not self._faults and not self._observers and not self._lines:
            return self._service.answer(frame, connection)
        line = self._lines.get(id(connection))
        if line is not None:
            later: Later[Outcome] = Later()
            line.waiting.append((_copy(frame), later))
            return later
        return self._staged(frame, connection)

    def _staged(self, frame: memoryview, connection: ConnectionInfo) -> Answer:
        if not self._observers:
            return self._acted(frame, connection)
        observers, now_ms = self._observers, self._clock.now_ms
        number, exchange = observers.asked(connection, frame, now_ms())
        answer = self._acted(frame, connection)
        _when_there(
            answer, lambda outcome: observers.answered(number, exchange, _seen(outcome), now_ms())
        )
        return answer

    def _acted(self, frame: memoryview, connection: ConnectionInfo) -> Answer:
        asked = self._of_interest(frame, connection) if self._faults else None
        fault = None if asked is None else self._faults.of(asked, self._known)
        if asked is None or fault is None:
            return self._service.answer(frame, connection)
        return _ACTS[fault.act](self, fault, asked)

    def _of_interest(self, frame: memoryview, connection: ConnectionInfo) -> _Asked | None:
        if self._knows is not None and not self._knows(frame):
            return None
        return _understood(frame, connection, self._faults)

    # --- members ----------------------------------------------------------------------------------

    def connected_members(self) -> list[tuple[str, str]]:
        """The members of groups whose clients are connected, by group and id."""
        self._members = {
            key: info for key, info in self._members.items() if not info.has_ended
        }
        return list(self._members)

    def _note_member(self, frame: memoryview, connection: ConnectionInfo) -> None:
        asked = _understood(frame, connection)
        if asked is not None and asked.message.member_id:
            self._members[asked.message.group_id, asked.message.member_id] = connection
            if len(self._members) > MOST_MEMBERS:
                self.connected_members()

    # --- acts -------------------------------------------------------------------------------------

    def _refuse(self, fault: Fault, asked: _Asked) -> Answer:
        assert fault.error is not None
        as_sent = _understood(asked.frame, asked.connection)  # whatever `when` did to the other
        assert as_sent is not None
        response = error_reply(as_sent.message, asked.version, fault.error, "asked for by the test")
        if response is None or not as_sent.is_answered:
            return CloseConnection(f"{fault.error.name}, asked for by the test")
        return _reply_of(asked, response)

    def _delay(self, fault: Fault, asked: _Asked) -> Answer:
        answer = self._service.answer(asked.frame, asked.connection)
        if answer is None:
            return None
        later: Later[Outcome] = Later()
        client = asked.connection

        def there(outcome: Outcome) -> None:
            def reply() -> None:
                client.stays_without(gone)
                later.resolve(outcome)

            def gone() -> None:
                timer.cancel()
                reply()

            timer = self._clock.call_later(0 if client.has_ended else fault.duration_ms, reply)
            client.when_gone(gone)

        _when_there(answer, there)
        return later

    def _throttle(self, fault: Fault, asked: _Asked) -> Answer:
        answer = self._service.answer(asked.frame, asked.connection)
        self._hold_line(asked.connection)
        key = id(asked.connection)
        self._clock.call_later(fault.duration_ms, lambda: self._let_go(key, asked.connection))
        if answer is None:
            return None
        later: Later[Outcome] = Later()
        _when_there(
            answer, lambda outcome: later.resolve(_throttled(asked, outcome, fault.duration_ms))
        )
        return later

    def _disconnect(self, fault: Fault, asked: _Asked) -> Answer:
        return CloseConnection("asked for by the test")

    def _lose_reply(self, fault: Fault, asked: _Asked) -> Answer:
        answer = self._service.answer(asked.frame, asked.connection)
        if answer is None:
            return CloseConnection("asked for by the test")
        later: Later[Outcome] = Later()
        _when_there(answer, lambda _: later.resolve(CloseConnection("asked for by the test")))
        return later

    def _hold(self, fault: Fault, asked: _Asked) -> Answer:
        self._hold_line(asked.connection)
        key, later = id(asked.connection), Later[Outcome]()
        frame = _copy(asked.frame)

        def release() -> None:
            if self.is_over:
                return
            self._pass_on(frame, asked.connection, later)
            self._let_go(key, asked.connection)

        fault.holds(release)
        return later

    # --- lines ------------------------------------------------------------------------------------

    def _hold_line(self, connection: ConnectionInfo) -> None:
        self._lines.setdefault(id(connection), _Line(connection))

    def _let_go(self, key: int, connection: ConnectionInfo) -> None:
        """What waited behind goes on, until one of them is held as well."""
        line = self._lines.pop(key, None)
        while line is not None and line.waiting:
            frame, later = line.waiting.popleft()
            answer = self._staged(frame, connection)
            _when_there(answer, later.resolve)
            if key in self._lines:
                self._lines[key].waiting.extend(line.waiting)
                return

    def _pass_on(
        self, frame: memoryview, connection: ConnectionInfo, later: Later[Outcome]
    ) -> None:
        _when_there(self._service.answer(frame, connection), later.resolve)


_ACTS: dict[Act, Callable[[Stage, Fault, _Asked], Answer]] = {
    Act.REFUSE: Stage._refuse,
    Act.DELAY: Stage._delay,
    Act.THROTTLE: Stage._throttle,
    Act.DISCONNECT: Stage._disconnect,
    Act.LOSE_REPLY: Stage._lose_reply,
    Act.HOLD: Stage._hold,
}


def _understood(
    frame: memoryview, connection: ConnectionInfo, faults: Faults | None = None
) -> _Asked | None:
    """The request, when a rule is about its API and it can be read."""
    try:
        header, position = headers.decode_request_header(frame)
        api = spec.api(header.request_api_key)
        version = header.request_api_version
        is_of_interest = faults is None or faults.concerns(api.name)
        if version not in api.versions or not is_of_interest:
            return None
        cls = message_class(f"{api.name}Request")
        # Of bytes of its own: a test may keep the message that its `when` was asked about.
        mine = frame if faults is None else _copy(frame)
        message, _ = codec.decode_prefix(cls, version, mine, position)
    except MalformedFrame:
        return None
    return _Asked(frame, connection, header, api.name, message)


def _when_there(answer: Answer, then: Callable[[Outcome], None]) -> None:
    """Goes on with the reply; with none at all where none is owed."""
    if isinstance(answer, Later):
        answer.then(then)
    else:
        then([] if answer is None else answer)


def _seen(outcome: Outcome) -> Reply | CloseConnection:
    return outcome.reply if isinstance(outcome, NewTerms) else outcome


def _reply_of(asked: _Asked, response: Any) -> Reply:
    header = asked.header
    key, version = header.request_api_key, header.request_api_version
    body = headers.encode_response_header(key, version, header.correlation_id)
    body += codec.encode(response, version)
    return [len(body).to_bytes(SIZE_BYTES, "big"), body]


def _throttled(asked: _Asked, outcome: Outcome, duration_ms: int) -> Outcome:
    """A reply that says for how long its client is to be silent, where it has a place for that."""
    if not isinstance(outcome, list) or not outcome:
        return outcome
    whole = b"".join(
        part.read() if isinstance(part, FileRange) else bytes(part) for part in outcome
    )
    key, version = asked.header.request_api_key, asked.header.request_api_version
    header_version = headers.response_header_version(key, version)
    _, position = codec.decode_prefix(ResponseHeader, header_version, whole, SIZE_BYTES)
    response = codec.decode(message_class(f"{asked.api}Response"), version, whole, position)
    if not hasattr(response, "throttle_time_ms"):
        return outcome
    response.throttle_time_ms = duration_ms
    return _reply_of(asked, response)


def _copy(frame: memoryview) -> memoryview:
    """What lies in the receive buffer is overwritten when this request is done with."""
    return memoryview(bytearray(frame))
