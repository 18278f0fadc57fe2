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
from kafkalite.env.later import Later
from kafkalite.env.network import Address
from kafkalite.handlers.call import CloseConnection
from kafkalite.server.connection_info import ConnectionInfo
from kafkalite.server.error_reply import error_reply
from kafkalite.server.terms import Answer, Outcome, Service, reply_in
from kafkalite.testing.chosen import DONE_FIRST, Chooser, Deed, Explored, World
from kafkalite.testing.faults import Act, Fault, Faults
from kafkalite.testing.observing import Observers
from kafkalite.testing.understanding import (
    Request,
    copy,
    is_of_a_fetcher,
    reply_of,
    response_in,
    understood,
    when_there,
)

# The keys of SyncGroup, Heartbeat and ConsumerGroupHeartbeat, as a frame begins.
_OF_MEMBERS = (b"\x00\x0e", b"\x00\x0c", b"\x00\x44")
MOST_MEMBERS = 10_000
ENDED = "the broker has ended"


@dataclass(slots=True, eq=False)
class _Line:
    """What waits on one connection behind requests that are held."""

    connection: ConnectionInfo  # kept, so that no other one has its identity
    holding: int = 0  # how many of them there are
    waiting: deque[tuple[memoryview, Later[Outcome]]] = field(default_factory=deque)


class Stage:
    """A Service over another one."""

    def __init__(
        self,
        service: Service,
        clock: Clock,
        faults: Faults,
        observers: Observers,
        explored: Explored,
        world: World,
        knows: Callable[[memoryview], bool] | None = None,
    ) -> None:
        """`knows` tells whether the service takes a request to be one of its APIs and versions;
        what it does not know goes on to it whatever is to go wrong."""
        self._service = service
        self._knows = knows
        self._world = world
        self._explored = explored
        self._clock = clock
        self._faults = faults
        self._observers = observers
        self._is_over = False  # its broker has ended
        self._held: dict[Callable[[], None], None] = {}  # what ends each wait for a release
        self._members: dict[tuple[str, str], ConnectionInfo] = {}
        self._lines: dict[int, _Line] = {}  # by the connection's identity, while something waits

    def end(self) -> None:
        """Its broker ends: what is held, and what waits behind that, is never done."""
        self._is_over = True
        lines, self._lines = self._lines, {}
        for line in lines.values():
            for _, later in line.waiting:
                later.resolve(CloseConnection(ENDED))
        for give_up in list(self._held):
            give_up()

    def refuse(self, head: memoryview, size: int, connection: ConnectionInfo) -> bytes:
        return self._service.refuse(head, size, connection)

    def expired(self, reason: str, connection: ConnectionInfo) -> None:
        self._service.expired(reason, connection)

    def answer(self, frame: memoryview, connection: ConnectionInfo) -> Answer:
        if frame[:2] in _OF_MEMBERS:
            self._note_member(frame, connection)
        is_asked_for = self._faults or self._observers or self._explored.chooser is not None
        if not is_asked_for and not self._lines:
            return self._service.answer(frame, connection)
        if is_of_a_fetcher(frame):
            return self._service.answer(frame, connection)
        line = self._lines.get(id(connection))
        if line is not None:
            later: Later[Outcome] = Later()
            line.waiting.append((copy(frame), later))
            return later
        return self._staged(frame, connection)

    def _staged(self, frame: memoryview, connection: ConnectionInfo) -> Answer:
        if not self._observers:
            return self._acted(frame, connection)
        observers, now_ms = self._observers, self._clock.now_ms
        number, exchange = observers.asked(connection, frame, now_ms())
        answer = self._acted(frame, connection)
        when_there(
            answer,
            lambda outcome: observers.answered(number, exchange, reply_in(outcome), now_ms()),
        )
        return answer

    def _acted(self, frame: memoryview, connection: ConnectionInfo) -> Answer:
        chooser = self._explored.chooser
        is_asked_for = self._faults or chooser is not None
        asked = self._of_interest(frame, connection, chooser) if is_asked_for else None
        if asked is None:
            return self._service.answer(frame, connection)
        fault = self._faults.of(asked, self._world.known)
        if fault is not None:
            return _ACTS[fault.act](self, fault, asked)
        if chooser is not None and chooser.concerns(asked.api) and not asked.is_of_the_cluster:
            return self._chosen(chooser, asked)
        return self._service.answer(frame, connection)

    def _of_interest(
        self, frame: memoryview, connection: ConnectionInfo, chooser: Chooser | None
    ) -> Request | None:
        if self._knows is not None and not self._knows(frame):
            return None

        def is_of_interest(api: str) -> bool:
            return self._faults.concerns(api) or (chooser is not None and chooser.concerns(api))

        return understood(frame, connection, is_of_interest)

    # --- what is explored -------------------------------------------------------------------------

    def _chosen(self, chooser: Chooser, asked: Request) -> Answer:
        asked.tell = chooser.told
        if asked.api not in DONE_FIRST:
            return self._do(chooser.choose(asked, self._world), asked)
        later: Later[Outcome] = Later()

        def done(outcome: Outcome) -> None:
            asked.outcome = outcome
            when_there(self._do(chooser.choose(asked, self._world), asked), later.resolve)

        when_there(self._done(asked), done)
        return later

    def _do(self, deed: Deed | None, asked: Request) -> Answer:
        if deed is None:
            return self._done(asked)
        if deed.before is None:
            return _ACTS[deed.act](self, deed, asked)
        self._hold_line(asked.connection)
        key, later = id(asked.connection), Later[Outcome]()
        asked.frame = copy(asked.frame)

        def go_on(_: object) -> None:
            if self._is_over:
                later.resolve(CloseConnection(ENDED))
                return
            when_there(_ACTS[deed.act](self, deed, asked), later.resolve)
            self._let_go(key, asked.connection)

        deed.before().then(go_on)
        return later

    def _done(self, asked: Request) -> Answer:
        """What the broker says, once."""
        if asked.outcome is not None:
            return asked.outcome
        answer = self._service.answer(asked.frame, asked.connection)
        tell = asked.tell
        if tell is not None:
            when_there(answer, lambda outcome: tell(asked, outcome))
        return answer

    # --- members ----------------------------------------------------------------------------------

    def connected_members(self) -> list[tuple[str, str]]:
        """The members of groups whose clients are connected, by group and id."""
        self._members = {
            key: info for key, info in self._members.items() if not info.has_ended
        }
        return list(self._members)

    def resume(self, members: list[tuple[str, str]], connection: ConnectionInfo) -> None:
        """These were connected before the broker was renewed, and are by this connection now."""
        self._members |= dict.fromkeys(members, connection)

    def members_by_peer(self) -> dict[Address, list[tuple[str, str]]]:
        """Those who are connected, by where they are."""
        found: dict[Address, list[tuple[str, str]]] = {}
        for key in self.connected_members():
            found.setdefault(self._members[key].peer_address, []).append(key)
        return found

    def _note_member(self, frame: memoryview, connection: ConnectionInfo) -> None:
        asked = understood(frame, connection)
        if asked is not None and asked.message.member_id:
            self._members[asked.message.group_id, asked.message.member_id] = connection
            if len(self._members) > MOST_MEMBERS:
                self.connected_members()

    # --- acts -------------------------------------------------------------------------------------

    def _refuse(self, fault: Fault, asked: Request) -> Answer:
        assert fault.error is not None
        as_sent = understood(asked.frame, asked.connection)  # whatever `when` did to the other
        assert as_sent is not None
        response = error_reply(as_sent.message, asked.version, fault.error, "asked for by the test")
        if response is None or not as_sent.is_answered:
            return CloseConnection(f"{fault.error.name}, asked for by the test")
        return reply_of(asked, response)

    def _delay(self, fault: Fault | Deed, asked: Request) -> Answer:
        answer = self._done(asked)
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

        when_there(answer, there)
        return later

    def _throttle(self, fault: Fault | Deed, asked: Request) -> Answer:
        answer = self._done(asked)
        self._hold_line(asked.connection)
        key = id(asked.connection)
        self._clock.call_later(fault.duration_ms, lambda: self._let_go(key, asked.connection))
        if answer is None:
            return None
        later: Later[Outcome] = Later()

        def there(outcome: Outcome) -> None:
            told = fault.alter(asked, outcome) if isinstance(fault, Deed) else outcome
            later.resolve(_throttled(asked, told, fault.duration_ms))

        when_there(answer, there)
        return later

    def _change(self, deed: Deed, asked: Request) -> Answer:
        later: Later[Outcome] = Later()
        when_there(self._done(asked), lambda outcome: later.resolve(deed.alter(asked, outcome)))
        return later

    def _tell(self, deed: Deed, asked: Request) -> Answer:
        return deed.alter(asked, [])

    def _disconnect(self, fault: Fault | Deed, asked: Request) -> Answer:
        return CloseConnection("asked for by the test")

    def _lose_reply(self, fault: Fault | Deed, asked: Request) -> Answer:
        answer = self._done(asked)
        if answer is None:
            return CloseConnection("asked for by the test")
        later: Later[Outcome] = Later()
        when_there(answer, lambda _: later.resolve(CloseConnection("asked for by the test")))
        return later

    def _hold(self, fault: Fault, asked: Request) -> Answer:
        if self._is_over:
            return CloseConnection(ENDED)
        self._hold_line(asked.connection)
        key, later = id(asked.connection), Later[Outcome]()
        frame = copy(asked.frame)

        def release() -> None:
            if give_up not in self._held:
                return
            del self._held[give_up]
            self._pass_on(frame, asked.connection, later)
            self._let_go(key, asked.connection)

        def give_up() -> None:
            del self._held[give_up]
            fault.holds_no_more(release)
            later.resolve(CloseConnection(ENDED))

        self._held[give_up] = None
        fault.holds(release)
        return later

    # --- lines ------------------------------------------------------------------------------------

    def _hold_line(self, connection: ConnectionInfo) -> None:
        self._lines.setdefault(id(connection), _Line(connection)).holding += 1

    def _let_go(self, key: int, connection: ConnectionInfo) -> None:
        """What waited behind goes on when nothing before it is held, until one of them is."""
        line = self._lines.get(key)
        if line is None:
            return
        line.holding -= 1
        if line.holding:
            return
        del self._lines[key]
        while line.waiting:
            frame, later = line.waiting.popleft()
            answer = self._staged(frame, connection)
            when_there(answer, later.resolve)
            if key in self._lines:
                self._lines[key].waiting.extend(line.waiting)
                return

    def _pass_on(
        self, frame: memoryview, connection: ConnectionInfo, later: Later[Outcome]
    ) -> None:
        when_there(self._service.answer(frame, connection), later.resolve)


_ACTS: dict[Act, Callable[[Stage, Any, Request], Answer]] = {
    Act.REFUSE: Stage._refuse,
    Act.DELAY: Stage._delay,
    Act.THROTTLE: Stage._throttle,
    Act.DISCONNECT: Stage._disconnect,
    Act.LOSE_REPLY: Stage._lose_reply,
    Act.HOLD: Stage._hold,
    Act.CHANGE: Stage._change,
    Act.TELL: Stage._tell,
}

def _throttled(asked: Request, outcome: Outcome, duration_ms: int) -> Outcome:
    """A reply that says for how long its client is to be silent, where it has a place for that."""
    response = response_in(asked, outcome)
    if response is None or not hasattr(response, "throttle_time_ms"):
        return outcome
    response.throttle_time_ms = duration_ms
    return reply_of(asked, response)
