"""One connection: bytes in, replies out in the order of their requests. Does no I/O itself.

Owns the bytes of frames that are not whole yet, the replies that are owed, and when reading pauses.
A request is decoded where it lies in the receive buffer, which is used again afterwards: a handler
must be done with its request's views when it returns. What is kept grows with the bytes received,
never with the size that a frame claims. Invariant: replies leave in the order of their requests.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from kafkalite.env.disk import FileRange
from kafkalite.env.later import Later
from kafkalite.env.network import Link, Part
from kafkalite.handlers.call import CloseConnection
from kafkalite.server.common import Common
from kafkalite.server.connection_info import ConnectionInfo
from kafkalite.server.limits import RequestMemory
from kafkalite.server.terms import Answer, NewTerms, Outcome, Reply, Terms, Throttled

SIZE_BYTES = 4
# What is kept of a frame up to here is put before the next bytes in the common buffer; beyond, the
# frame gets a buffer of its own, and its rest is received straight into that.
SMALL_BYTES = 8_192
# The same of a peer that has not logged in: there may be very many.
STRANGERS_SMALL_BYTES = 256
# Per connection; whoever has more than this open must take replies before it is read from again.
OWED_REQUEST_BYTES = 16 * 1024 * 1024
UNSENT_BYTES = 1024 * 1024  # of which lie in memory
UNSENT_FILE_BYTES = 16 * 1024 * 1024  # in all: parts of files cost nothing while they wait

_size_at = struct.Struct(">i").unpack_from


class _Owed:
    """The place of one reply in the order of replies."""

    __slots__ = ("_connection", "outcome", "request_bytes")

    def __init__(self, connection: Connection, request_bytes: int) -> None:
        self._connection = connection
        self.outcome: Reply | CloseConnection | None = None
        self.request_bytes = request_bytes

    def fill(self, outcome: Outcome) -> None:
        if isinstance(outcome, NewTerms):
            self._connection.agree(outcome.terms)
            outcome = outcome.reply
        elif isinstance(outcome, Throttled):
            self._connection.mute(outcome.wait_ms)
            outcome = outcome.reply or []
        self.outcome = outcome
        self._connection.filled(self)


class Connection:
    """The receiver of one link."""

    __slots__ = (
        "_common", "_has_backlog", "_held", "_is_closing", "_is_leaving", "_is_muted", "_is_paused",
        "_is_taking", "_is_waiting", "_largest", "_link", "_memory", "_most_owed", "_needed",
        "_on_end", "_out", "_out_bytes", "_owed", "_owed_bytes", "_own", "_own_filled", "_service",
        "_small", "_watch", "info", "last_active_ms",
    )  # fmt: skip

    def __init__(
        self,
        common: Common,
        terms: Terms,
        link: Link,
        info: ConnectionInfo,
        on_end: Callable[[Connection], None],
    ) -> None:
        self._common = common
        self._watch = common.watch
        self._link = link
        self.info = info
        self._on_end = on_end
        self._held = bytearray()  # the start of a frame, or with a backlog whole frames too
        self._own: bytearray | None = None  # a large frame that is not whole yet
        self._own_filled = self._needed = 0
        self._owed: list[_Owed] = []
        self._owed_bytes = 0
        self._out: list[Part] = []
        self._out_bytes = 0
        self._has_backlog = self._is_waiting = self._is_paused = False
        self._is_taking = self._is_closing = self._is_leaving = self._is_muted = False
        self.last_active_ms = 0
        self._memory = common.memory
        common.deadlines.add(self)
        self.agree(terms)

    def agree(self, terms: Terms) -> None:
        """Has these terms hold for the frames that are taken from here on."""
        self._service = terms.service
        self._largest = min(terms.max_frame_bytes, self._common.limits.max_request_bytes)
        self._most_owed = terms.owed_replies
        if self.info.has_ended:
            return
        common, is_stranger = self._common, terms.login_ms is not None
        common.deadlines.login_within(self, terms.login_ms, self.info.is_encrypted)
        self._small = STRANGERS_SMALL_BYTES if is_stranger else SMALL_BYTES
        self._hold_in(common.deadlines.strangers_memory if is_stranger else common.memory)

    def _hold_in(self, memory: RequestMemory) -> None:
        """Strangers have a memory of their own, so that they cannot take that of others."""
        if memory is self._memory:
            return
        held = len(self._held) + len(self._own or b"") + self._owed_bytes
        self._memory.leave(self)  # before it is woken by what it gives back itself
        self._memory.give_back(held)
        self._memory = memory
        memory.take(held)
        if self._is_waiting:
            self._grow()

    # --- bytes in ---------------------------------------------------------------------------------

    def buffer(self) -> memoryview:
        own = self._own
        if own is not None:
            return memoryview(own)[self._own_filled : self._needed]
        common = self._common
        held = self._held
        buffer = common.buffer
        if self._memory.is_short:
            buffer = buffer[: max(len(held), self._small) + self._small]
        if self._largest < len(buffer):
            buffer = buffer[: SIZE_BYTES + max(self._largest, len(held))]
        if held:
            buffer[: len(held)] = held
            return buffer[len(held) :]
        return buffer

    def received(self, count: int) -> None:
        common = self._common
        self.last_active_ms = common.deadlines.now_ms
        if self._watch is not None:
            self.info.heard_ns = 0
        if self._own is None:
            end = len(self._held) + count
            if self._held:
                self._take_held()
            self._take(common.buffer, end)
            return
        self._own_filled += count
        if self._own_filled == self._needed:
            own = self._take_own()
            self._take(memoryview(own), self._needed)
            common.spare(own)
        elif self._own_filled == len(self._own):
            self._grow()

    def _take(self, view: memoryview, end: int) -> None:
        """Answers the whole frames of a buffer, as far as there is room for answers."""
        position = 0
        self._is_taking, self._has_backlog = True, False
        while end - position >= SIZE_BYTES:
            size: int = _size_at(view, position)[0]
            if not 0 <= size <= self._largest:
                self._refuse(view[position:end], size)
                break
            stop = position + SIZE_BYTES + size
            if stop > end:
                break
            if not self._has_room or (position and not self._common.in_turn.has_room()):
                self._has_backlog = True
                break
            if stop < end and not position and self._watch is not None:
                self.info.heard_ns = self._watch.now_ns()
            answer = self._service.answer(view[position + SIZE_BYTES : stop], self.info)
            position = stop
            self._reply(answer, size)
            if self._is_closing:
                break
        self._is_taking = False
        if position or self._has_backlog:
            self._common.deadlines.frame_done(self)
        if not self._is_closing and position < end:
            self._keep(view[position:end])
        self.flush()

    def _keep(self, rest: memoryview) -> None:
        """Keeps what cannot be answered yet; the buffer it lies in is used again at once."""
        count = len(rest)
        needed = SIZE_BYTES + _size_at(rest)[0] if count >= SIZE_BYTES else SIZE_BYTES
        if self._has_backlog or count <= self._small:
            self._held = bytearray(rest)
            self._memory.take(count)
        else:
            self._own = self._common.room(count, needed)
            self._own[:count] = rest
            self._own_filled = count
            self._needed = needed
            self._memory.take(len(self._own))
        if not self._has_backlog:
            self._common.deadlines.frame_begun(self)

    def _grow(self) -> None:
        """Doubles the room of a large frame, of which half has come; or waits for memory."""
        own = self._own
        assert own is not None
        memory = self._memory
        self._is_waiting = not memory.may_grow(self, len(own))
        if self._is_waiting:
            memory.wait(self)
        else:
            larger = self._common.room(len(own), self._needed)
            larger[: len(own)] = own
            memory.take(len(larger) - len(own))
            self._own = larger
            self._common.spare(own)
        self._regulate()

    def memory_freed(self) -> bool:
        self._grow()
        return not self._is_waiting

    def _take_held(self) -> bytearray:
        held, self._held = self._held, bytearray()
        self._memory.give_back(len(held))
        return held

    def _take_own(self) -> bytearray:
        own, self._own = self._own, None
        assert own is not None
        self._memory.give_back(len(own))
        self._memory.leave(self)
        return own

    # --- replies out ------------------------------------------------------------------------------

    def _reply(self, answer: Answer, request_bytes: int) -> None:
        if answer is None:
            return
        if type(answer) is list and not self._owed:
            self._out += answer
            self._out_bytes += sum(map(len, answer))
            return
        if isinstance(answer, CloseConnection):
            self._collect()
            self._is_closing = True
            return
        if isinstance(answer, NewTerms):
            self.agree(answer.terms)
            self._reply(answer.reply, request_bytes)
            return
        if isinstance(answer, Throttled):
            self.mute(answer.wait_ms)
            self._reply(answer.reply, request_bytes)
            return
        owed = _Owed(self, request_bytes)
        self._owed.append(owed)
        self._owed_bytes += request_bytes
        self._memory.take(request_bytes)
        if isinstance(answer, Later):
            answer.then(owed.fill)
        else:
            owed.outcome = answer

    def filled(self, owed: _Owed) -> None:
        """A reply that was owed has come; it can go when it is the next in order."""
        if self._is_taking or not self._owed or self._owed[0] is not owed:
            if self.info.has_ended and not self._owed:
                self._memory.give_back(owed.request_bytes)
            return
        if len(self._owed) == 1:
            self.flush()
        else:
            self._common.flush_soon(self)  # with what may have become ready behind it

    def flush(self) -> None:
        """Sends what is ready, then goes on with requests that waited for it."""
        if self._owed:
            self._collect()
        if self._out:
            out, size, self._out, self._out_bytes = self._out, self._out_bytes, [], 0
            watch = self._watch
            if watch is not None:
                watch.sent_bytes += size
            if watch is None or self.info.timed is None:
                self._link.send(out)
            else:
                watch.send(self._link, self.info, out)
            if self._link.unsent_bytes:
                self._common.deadlines.reply_waits(self)
        if self._is_leaving and not self._owed and not self._has_backlog:
            self._is_closing = True
        if self._is_closing:
            self._link.close()
        else:
            self._regulate()

    def _collect(self) -> None:
        """Moves the replies that are next in order to what is sent."""
        owed = self._owed
        while owed and not self._is_closing:
            outcome = owed[0].outcome
            if outcome is None:
                return
            request_bytes = owed.pop(0).request_bytes
            self._owed_bytes -= request_bytes
            self._memory.give_back(request_bytes)
            if isinstance(outcome, CloseConnection):
                self._is_closing = True
            else:
                self._out += outcome
                self._out_bytes += sum(map(len, outcome))

    def _refuse(self, head: memoryview, size: int) -> None:
        self._collect()
        last_words = self._service.refuse(head, size, self.info)
        if last_words:
            self._out.append(last_words)
        self._is_closing = True

    # --- pace -------------------------------------------------------------------------------------

    @property
    def _has_room(self) -> bool:
        """Whether the peer may have another reply: it has taken enough, and has not to wait."""
        return (
            not self._is_muted
            and len(self._owed) < self._most_owed
            and self._owed_bytes < OWED_REQUEST_BYTES
            and (
                self._out_bytes + self._link.unsent_bytes < UNSENT_BYTES or self._is_mostly_files
            )
        )

    @property
    def _is_mostly_files(self) -> bool:
        """Whether the peer may fetch on although much is still to be sent."""
        own = sum(len(part) for part in self._out if not isinstance(part, FileRange))
        is_light = own + self._link.held_bytes < UNSENT_BYTES
        return is_light and self._out_bytes + self._link.unsent_bytes < UNSENT_FILE_BYTES

    def mute(self, wait_ms: int) -> None:
        """Takes no frame for so long, though replies go out."""
        if not self.info.has_ended:
            self._is_muted = True
            self._common.deadlines.mute(self, wait_ms)
            self._regulate()

    def unmute(self) -> None:
        self._is_muted = False
        self._regulate()

    def _regulate(self) -> None:
        """Reads on, goes on with the backlog in a later turn, or does neither."""
        if self._is_closing:
            return
        has_room = self._has_room
        if self._has_backlog and has_room:
            self._common.in_turn.put_off(self)
        should_pause = self._is_leaving or self._has_backlog or self._is_waiting or not has_room
        if should_pause != self._is_paused:
            self._is_paused = should_pause
            if should_pause:
                self._link.pause()
            else:
                self._link.resume()

    def go_on(self) -> None:
        if self._has_backlog and not self._is_closing:
            held = self._take_held()
            self._take(memoryview(held), len(held))

    def sent(self) -> None:
        self.last_active_ms = self._common.deadlines.now_ms
        if not self._link.unsent_bytes:
            self._common.deadlines.replies_taken(self)
            if self._watch is not None:
                self._watch.taken(self.info)
        self._regulate()

    # --- the end ----------------------------------------------------------------------------------

    @property
    def is_busy(self) -> bool:
        """Whether a reply is owed."""
        return bool(self._owed)

    @property
    def is_quiet(self) -> bool:
        """Whether nothing has begun that is not finished."""
        return not (
            self._owed or self._held or self._own is not None or self._link.unsent_bytes
        )

    @property
    def frame_bytes(self) -> int:
        return self._own_filled if self._own is not None else len(self._held)

    @property
    def is_held_up(self) -> bool:
        return self._is_paused

    @property
    def held_reply_bytes(self) -> int:
        return self._link.held_bytes

    def expire(self, reason: str) -> None:
        """Cuts the peer off; without a reason it was only idle."""
        if reason:
            self._service.expired(reason, self.info)
        self._link.abort()

    def close(self) -> None:
        """Ends the connection once what is ready has been sent."""
        self._is_closing = True
        self.flush()

    def abort(self) -> None:
        self._link.abort()

    def hear_no_more(self) -> None:
        """Takes no more frames, and has what waits for more to come answered."""
        self._most_owed = 0
        self.info.has_gone()
        self._regulate()

    def release(self) -> Link:
        """Lets go of a link over which nothing is under way; the connection has ended then."""
        assert self.is_quiet
        self._link.pause()
        self.ended()
        return self._link

    def finished(self) -> None:
        """The peer asks for nothing more, or has gone: it gets what it is owed, and what would
        wait for more to come does not."""
        self._is_leaving = True
        self._common.deadlines.leaves(self)
        self.info.has_gone()
        self.flush()

    def ended(self) -> None:
        self._is_closing = True
        self.info.has_ended = True
        self.info.has_gone()
        # What is still worked on is in memory until that is over.
        done_bytes = sum(each.request_bytes for each in self._owed if each.outcome is not None)
        self._owed.clear()
        self._memory.give_back(done_bytes)
        self._owed_bytes = 0
        self._out.clear()
        self._common.deadlines.remove(self)
        self._memory.leave(self)
        if self._held:
            self._take_held()
        if self._own is not None:
            self._take_own()
        self._on_end(self)
