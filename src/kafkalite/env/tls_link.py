"""TLS as a link over another link: plain bytes on this side, records on the other.

Owns the records that are not whole yet and what waits to be encrypted. OpenSSL is given whole
records alone, one or two at a time: what it sets aside for a peer is what that has sent, and its
buffers stay small. What is sent is encrypted in pieces, no faster than the other link takes them:
parts of files wait unread. The handshake is done in steps, which handshakes.py has done in turn; a
link is given to its receiver after that. Invariants: memory is bounded by what the link below has
brought, whatever the peer claims; a receiver hears of the end exactly once.
"""

from __future__ import annotations

import logging
import ssl
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

from kafkalite.env.client_hello import RECORD_HEAD_BYTES, ClientHello, is_slow, record_size
from kafkalite.env.disk import FileRange
from kafkalite.env.network import Address, Link, Part, Receiver
from kafkalite.env.parts import rest_of, start_of
from kafkalite.env.tls import reason_of

_LOG = logging.getLogger(__name__)

BUFFER_BYTES = 131_072
RECORD_PAYLOAD_BYTES = 16_384
# Encrypted at a time: eight records.
PIECE_BYTES = 8 * RECORD_PAYLOAD_BYTES
# Or so many parts, each of which may have to be read from a file.
PIECE_PARTS = 64
# No more is encrypted while so much waits for the peer; nor more than this in one turn.
WINDOW_BYTES = 262_144
TURN_BYTES = 524_288
TURN_PIECES = 8
# Nor are more records read in one turn, however little is in each.
TURN_RECORDS = 512
# A hello or certificates that are larger are none.
HANDSHAKE_BYTES = 262_144
# Read at a time of a hello, and of what comes after it in a handshake.
HELLO_ROOM, HANDSHAKE_ROOM = 1_024, 16_384
# And after that, until a peer has shown that its records are not many and small: what is left of
# them when a turn is over lies in memory.
FIRST_ROOM = 16_384
# A peer that has us answer (with new keys) and takes no answers is cut off.
ANSWERS_BYTES = 4_194_304

TLS_HANDSHAKE = b"\x16"
_NOTHING = memoryview(b"")
_NOBODYS: deque[Part] = deque()
_HEAD_BYTES = 4


class TlsFailure(Exception):
    """Why there is no encrypted link; `is_silent` when that is nobody's concern."""

    def __init__(self, reason: str, *, is_silent: bool = False) -> None:
        super().__init__(reason)
        self.is_silent = is_silent


class TlsLink:
    """An encrypted link; without a receiver until the handshake is over."""

    __slots__ = (
        "_context", "_fresh", "_has_ended", "_hello", "_incoming", "_is_behind", "_is_closing",
        "_is_paused", "_is_pumping", "_is_reading", "_link", "_on_flight", "_outgoing",
        "_peer_is_done", "_queue", "_queued_bytes", "_raw", "_received_bytes", "_receiver",
        "_room", "_scratch", "_soon", "_tls", "_told_done", "_turn_records", "head", "peer_address",
    )  # fmt: skip

    def __init__(
        self,
        link: Link,
        context: ssl.SSLContext,
        soon: Callable[[Callable[[], None]], None],
        scratch: memoryview,
        called: str | None = None,
    ) -> None:
        """`scratch` is shared by the links of a loop: it is used between `buffer` and `received`.
        `called` is the name by which this side has called the peer."""
        self._link = link
        self.peer_address = link.peer_address
        self._soon = soon
        self._scratch = scratch
        self._context = context
        self._hello: ClientHello | None = None
        self._fresh = _NOTHING  # what has just come, and lies in the scratch buffer
        self._raw = bytearray()  # what came before that and was not given to OpenSSL
        if called is None:
            self._hello = ClientHello()
        else:
            self._begin(called)
        self._on_flight: Callable[[TlsFailure | None], None] | None = None
        self._received_bytes = 0
        self.head = b""  # the first bytes that the peer has sent
        self._receiver: Receiver | None = None
        self._queue = _NOBODYS  # an empty one takes 600 bytes
        self._queued_bytes = 0
        self._is_paused = self._is_closing = self._is_reading = self._is_pumping = False
        self._is_behind = False  # with records, which are read in a later turn
        self._turn_records = 0
        self._room = FIRST_ROOM
        self._peer_is_done = self._told_done = False
        self._has_ended = False

    def _begin(self, called: str | None = None) -> None:
        """From here on it costs memory."""
        self._hello = None
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = self._context.wrap_bio(
            self._incoming, self._outgoing, server_side=called is None, server_hostname=called
        )

    @property
    def local_address(self) -> Address:
        return self._link.local_address

    @property
    def unsent_bytes(self) -> int:
        return self._queued_bytes + self._link.unsent_bytes

    @property
    def held_bytes(self) -> int:
        waiting = sum(len(part) for part in self._queue if not isinstance(part, FileRange))
        return waiting + self._link.held_bytes

    @property
    def peer_certificate(self) -> bytes | None:
        """The DER of the certificate that the peer has shown, and that was verified."""
        return self._tls.getpeercert(binary_form=True)

    @property
    def version(self) -> str | None:
        return self._tls.version()

    @property
    def cipher(self) -> str | None:
        found = self._tls.cipher()
        return None if found is None else found[0]

    # --- the handshake ----------------------------------------------------------------------------

    def shake(self, on_flight: Callable[[TlsFailure | None], None]) -> None:
        """Begins; `on_flight` is told whenever a step can be done, or that it has failed."""
        self._on_flight = on_flight
        self._link.start(self)

    def advance(self) -> bool:
        """A step of the handshake; whether it is over. Raises TlsFailure."""
        if self._hello is not None:
            self._begin()
        try:
            if not self._shake():
                return False
        except ssl.SSLError as error:
            self._flush()
            raise TlsFailure(reason_of(error)) from None
        except ValueError as error:  # such as a name that cannot be compared
            raise TlsFailure(str(error)) from None
        self._on_flight = None
        self._flush()
        if self._has_ended:  # as the last words found
            raise self._gone()
        return True

    def _shake(self) -> bool:
        while True:
            try:
                self._tls.do_handshake()
                return True
            except ssl.SSLWantReadError:
                if self._give():
                    continue
                self._flush()
                if self._received_bytes > HANDSHAKE_BYTES:
                    raise TlsFailure("its part of the handshake is too large") from None
                if not self._has_ended:
                    self._link.resume()
                return False

    @property
    def is_heard(self) -> bool:
        """Whether the peer's hello was read, so that it costs memory."""
        return self._hello is None

    @property
    def has_ended(self) -> bool:
        return self._has_ended

    @property
    def has_begun(self) -> bool:
        """Whether the peer has sent anything."""
        return self._received_bytes > 0

    @property
    def is_foreign(self) -> bool:
        """Whether what the peer has sent is no TLS."""
        return self.has_begun and not self.head.startswith(TLS_HANDSHAKE)

    def _gone(self) -> TlsFailure:
        return TlsFailure("it has gone in the middle of it", is_silent=not self.has_begun)

    def give_up(self) -> None:
        """Ends what is no link yet, after the last words of TLS."""
        self._on_flight = None
        self._is_closing = True
        self._link.close()

    # --- reading ----------------------------------------------------------------------------------

    def start(self, receiver: Receiver) -> None:
        if self._receiver is None:
            self._queue = deque()
        self._receiver = receiver
        self.resume()

    def pause(self) -> None:
        self._is_paused = True
        self._link.pause()

    def resume(self) -> None:
        self._is_paused = False
        if self._has_ended or self._is_closing:
            return
        if not self._peer_is_done and not self._is_behind:
            self._link.resume()
        self._soon(self._read)  # what was left, or came with the end of the handshake

    def buffer(self) -> memoryview:
        if self._on_flight is None:
            return self._scratch[: self._room]
        return self._scratch[: HELLO_ROOM if self._hello is not None else HANDSHAKE_ROOM]

    def received(self, count: int) -> None:
        if self._on_flight is None:
            self._fresh = self._scratch[:count]
            self._read()
            self._raw += self._fresh
            self._fresh = _NOTHING
            if self._is_behind:
                self._room = FIRST_ROOM
            elif count == self._room:
                self._room = len(self._scratch)
            return
        self._raw += self._scratch[:count]
        if len(self.head) < _HEAD_BYTES:
            self.head = bytes(self._raw[:_HEAD_BYTES])
        self._received_bytes += count
        self._listen(self._on_flight)

    def _listen(self, on_flight: Callable[[TlsFailure | None], None]) -> None:
        """Has a step done, unless a hello is still to come."""
        hello = self._hello
        if hello is not None and not hello.is_settled(self._raw):
            if hello.is_too_large:
                on_flight(TlsFailure("its part of the handshake is too large"))
            return
        if hello is not None and is_slow(self._raw):
            why = "it would exchange keys over a finite field of 4,096 bits or more, which takes "
            on_flight(TlsFailure(f"{why}the time of others: have it offer X25519 or secp256r1"))
            return
        self._link.pause()
        on_flight(None)

    def _read(self) -> None:
        """Gives the receiver what has come, as long as it takes it and the turn is not over."""
        if self._is_reading:
            return
        self._is_reading, self._turn_records = True, TURN_RECORDS
        try:
            while self._receiver is not None and not self._is_paused and not self._is_closing:
                view = self._receiver.buffer()
                count = self._fill(view)
                if count:
                    self._receiver.received(count)
                if count < len(view):
                    break
        except TlsFailure as failure:
            self._fail(failure)
            return
        finally:
            self._is_reading = False
        if self._outgoing.pending:
            self._answer()
        if not self._turn_records:
            self._read_on_later()
        self._tell_done()

    def _read_on_later(self) -> None:
        """Nothing else comes until what has come is read."""
        if not self._is_behind and not self._is_closing:
            self._is_behind = True
            self._link.pause()
            self._soon(self._read_on)

    def _read_on(self) -> None:
        self._is_behind = False
        if self._has_ended or self._is_closing:
            return
        self._read()
        if not (self._is_behind or self._is_paused or self._is_closing or self._peer_is_done):
            self._link.resume()

    def _fill(self, view: memoryview) -> int:
        """Decrypts as much as there is, or as there is room for."""
        filled, room = 0, len(view)
        incoming, tls = self._incoming, self._tls
        try:
            while filled < room and (incoming.pending or tls.pending() or self._give()):
                try:
                    count = tls.read(room - filled, view[filled:])
                except ssl.SSLWantReadError:  # what TLS says to itself
                    continue
                if not count:
                    self._peer_is_done = True
                    break
                filled += int(count)
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            self._peer_is_done = True
        except ssl.SSLError as error:
            if not filled:
                raise TlsFailure(reason_of(error)) from None
        return filled

    def _give(self) -> bool:
        """Gives OpenSSL the next record; False when none is whole, or enough were read."""
        if not self._turn_records and self._on_flight is None:
            return False
        raw, fresh = self._raw, self._fresh
        if raw:
            while (missing := _missing(raw)) > 0:
                if not fresh:
                    return False
                raw += fresh[:missing]
                self._fresh = fresh = fresh[missing:]
            size = record_size(raw)
            self._incoming.write(memoryview(raw)[:size])
            del raw[:size]
            self._turn_records -= 1
            return True
        count = len(fresh)
        if count < RECORD_HEAD_BYTES or count < (size := record_size(fresh)):
            return False
        self._incoming.write(fresh[:size])
        self._fresh = fresh[size:]
        self._turn_records -= 1
        return True

    def _answer(self) -> None:
        """What TLS itself has to say."""
        self._flush()
        if self._link.unsent_bytes > ANSWERS_BYTES:
            self._fail(TlsFailure("it asks for new keys and takes no answers"))

    def _tell_done(self) -> None:
        if self._peer_is_done and not (self._told_done or self._is_paused or self._is_behind):
            receiver = self._receiver
            if receiver is not None and not self._is_closing:
                self._told_done = True
                receiver.finished()

    def finished(self) -> None:
        self._peer_is_done = True
        if self._on_flight is not None:
            self._on_flight(self._gone())
        else:
            self._read()

    # --- writing ----------------------------------------------------------------------------------

    def send(self, parts: Sequence[Part]) -> None:
        if self._receiver is None or self._is_closing:
            return
        self._queue.extend(parts)
        self._queued_bytes += sum(map(len, parts))
        self._pump()

    def _pump(self) -> None:
        """Encrypts what the link below takes without waiting."""
        left = TURN_BYTES
        try:
            while self._queue and left > 0 and self._link.unsent_bytes < WINDOW_BYTES:
                piece = memoryview(self._next_piece())
                left -= max(len(piece), TURN_BYTES // TURN_PIECES)
                self._link.send(self._encrypted(piece))
        except OSError as error:  # SSLError is one, too
            _LOG.error("a reply to %s:%d was cut off: %s", *self.peer_address, error)
            self.abort()
            return
        if self._has_ended:
            return
        if self._queue and left <= 0:
            self._pump_soon()
        elif not self._queue and self._is_closing:
            self._say_goodbye()

    def _encrypted(self, piece: memoryview) -> list[Part]:
        """Record by record: OpenSSL keeps the largest buffer that it has needed."""
        records: list[Part] = []
        while piece:
            piece = piece[self._tls.write(piece[:RECORD_PAYLOAD_BYTES]) :]
            records.append(self._outgoing.read())
        return records

    def _pump_soon(self) -> None:
        if not self._is_pumping:
            self._is_pumping = True
            self._soon(self._pump_on)

    def _pump_on(self) -> None:
        self._is_pumping = False
        if not self._has_ended:
            self._pump()
            self._tell_sent()

    def _next_piece(self) -> bytes | memoryview:
        """Small parts together, large ones piece by piece."""
        pieces: list[bytes | memoryview] = []
        size = 0
        while self._queue and size < PIECE_BYTES and len(pieces) < PIECE_PARTS:
            head = self._queue[0]
            piece = start_of(head, PIECE_BYTES - size)
            pieces.append(piece)
            size += len(piece)
            if len(piece) < len(head):
                self._queue[0] = rest_of(head, len(piece))
            else:
                self._queue.popleft()
        self._queued_bytes -= size
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _flush(self) -> None:
        if self._hello is None and self._outgoing.pending:
            self._link.send([self._outgoing.read()])

    def sent(self) -> None:
        if self._on_flight is None:
            self._pump()
            self._tell_sent()

    def _tell_sent(self) -> None:
        if self._receiver is not None and not self._is_closing:
            self._receiver.sent()

    # --- ending -----------------------------------------------------------------------------------

    def close(self) -> None:
        self._link.pause()
        self._is_closing = True
        if not self._queue and not self._has_ended:
            self._say_goodbye()

    def abort(self) -> None:
        self._is_closing = True
        if not self._has_ended and not self._link.unsent_bytes:
            self._notify()
        self._link.abort()

    def _say_goodbye(self) -> None:
        self._notify()
        self._link.close()

    def _notify(self) -> None:
        """Tells the peer that nothing more comes; it need not answer that."""
        if self._hello is not None:
            return
        with suppress(OSError, ValueError):  # it wants the peer's answer, or there is nobody
            self._tls.unwrap()
        self._flush()

    def _fail(self, failure: TlsFailure) -> None:
        _LOG.warning("the TLS link of %s:%d ends: %s", *self.peer_address, failure)
        self._is_closing = True
        self._flush()
        self._link.close()

    def ended(self) -> None:
        self._has_ended = self._is_closing = True
        self._raw.clear()
        self._queue.clear()
        self._queued_bytes = 0
        on_flight, self._on_flight = self._on_flight, None
        receiver, self._receiver = self._receiver, None
        if on_flight is not None:
            on_flight(self._gone())
        if receiver is not None:
            receiver.ended()


def _missing(data: bytearray | memoryview) -> int:
    """How many bytes have to come until the record that begins here, or its head, is whole."""
    if len(data) < RECORD_HEAD_BYTES:
        return RECORD_HEAD_BYTES - len(data)
    return record_size(data) - len(data)
