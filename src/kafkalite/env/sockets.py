"""The real network: non-blocking sockets under an event loop's reader and writer callbacks.

Owns the sockets and what waits to go out of them. Bytes come straight into the receiver's buffer
and leave by one gather write, those of thousands of parts by some in each turn; large parts of
files go from the page cache to the socket without passing through this process. Runs on uvloop and
on asyncio's own loop alike.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

from kafkalite.env import unix
from kafkalite.env.connecting import Connected, LookUps, SocketAttempt
from kafkalite.env.descriptors import OUT_OF_DESCRIPTORS, Descriptors
from kafkalite.env.disk import Buffer, FileRange
from kafkalite.env.network import SYSTEM_BUFFERS, Address, Buffers, Link, Part, Receiver
from kafkalite.env.parts import ends_early, read_part, rest_of
from kafkalite.env.reading import Reading

_LOG = logging.getLogger(__name__)

ACCEPTED_PER_TURN = 128
# How long no connection is taken after the process ran out of descriptors.
ACCEPT_PAUSE_SECONDS = 0.2
WARN_EVERY_SECONDS = 60
# Below this a read into memory and one gather write cost less than sendfile, which goes from page
# to page, and less for the peer too.
SENDFILE_BYTES = 196_608
CHUNK_BYTES = 262_144
GATHERED_PARTS = 64
WRITES_PER_TURN = 8
# Up to here joining costs less than handing the system a list.
JOINED_BYTES = 4_096

_MORE = getattr(socket, "MSG_MORE", 0)
_PEER_GONE = (ConnectionError, TimeoutError)
_NO_ROOM = (*OUT_OF_DESCRIPTORS, errno.ENOBUFS, errno.ENOMEM)


class SocketLink:
    """A connected socket."""

    __slots__ = (
        "_descriptor",
        "_is_closing",
        "_is_put_off",
        "_is_reading",
        "_is_writing",
        "_loop",
        "_queue",
        "_reading",
        "_receiver",
        "_socket",
        "peer_address",
        "unsent_bytes",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        reading: Reading,
        connected: socket.socket,
        peer_address: Address,
    ) -> None:
        self._loop = loop
        self._reading = reading
        self._socket = connected
        self._descriptor = connected.fileno()
        reading.enter()
        self._queue: deque[Part] | None = None
        self._receiver: Receiver | None = None
        self._is_reading = self._is_writing = self._is_closing = False
        self._is_put_off = False  # it reads, but in a later turn
        self.peer_address = peer_address
        self.unsent_bytes = 0

    @property
    def local_address(self) -> Address:
        return _plain(self._socket.getsockname())

    @property
    def held_bytes(self) -> int:
        return sum(len(part) for part in self._queue or () if not isinstance(part, FileRange))

    # --- reading ----------------------------------------------------------------------------------

    def start(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self.resume()

    def pause(self) -> None:
        if self._is_reading:
            self._is_reading = False
            if not self._is_put_off:
                self._loop.remove_reader(self._descriptor)

    def resume(self) -> None:
        if not self._is_reading and not self._is_closing:
            self._is_reading = True
            if not self._is_put_off:
                self._loop.add_reader(self._descriptor, self._readable)

    def put_off(self) -> None:
        self._is_put_off = True
        self._loop.remove_reader(self._descriptor)

    def go_on(self) -> None:
        self._is_put_off = False
        if self._is_reading:
            self._loop.add_reader(self._descriptor, self._readable)
            self._readable()

    def _readable(self) -> None:
        receiver = self._receiver
        if receiver is None or (self._reading.is_crowded and not self._reading.has_room(self)):
            return
        try:
            count = self._socket.recv_into(receiver.buffer())
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.abort()
            return
        if count:
            receiver.received(count)
        else:
            self.pause()
            receiver.finished()

    # --- writing ----------------------------------------------------------------------------------

    def send(self, parts: Sequence[Part]) -> None:
        if self._receiver is None or self._is_closing:
            return
        if self._queue is not None:
            self._queue.extend(parts)
            self.unsent_bytes += sum(map(len, parts))
        elif not self._send_at_once(parts):
            self._queue = deque(parts)
            self.unsent_bytes = sum(map(len, parts))
            self._write()

    def _send_at_once(self, parts: Sequence[Part]) -> bool:
        """The way of all but large replies: one system call, no queue. False: nothing was sent."""
        if len(parts) > GATHERED_PARTS:
            return False
        size = 0
        for part in parts:
            length = len(part)
            size += length
            if length >= SENDFILE_BYTES and type(part) is FileRange:
                return False
        if size > CHUNK_BYTES:
            return False
        try:
            batch = [read_part(part) if isinstance(part, FileRange) else part for part in parts]
            if size <= JOINED_BYTES or not unix.HAS_GATHER:
                count = self._socket.send(b"".join(batch))
            else:
                count = self._socket.sendmsg(batch)
        except OSError:
            return False  # the long way meets the same error and tells it from a full socket
        if count < size:
            self._queue = deque(parts)
            self.unsent_bytes = size
            self._took(self._queue, count)
            self._await_writable()
        return True

    def _write(self) -> None:
        """As much as the socket takes, and as has its place in a turn: each part of a file takes
        time to read, however short it is."""
        queue = self._queue
        left = WRITES_PER_TURN
        try:
            while queue and left and self._write_some(queue):
                left -= 1
        except (BlockingIOError, InterruptedError):
            pass
        except _PEER_GONE:
            self.abort()
            return
        except OSError as error:
            _LOG.error("a reply to %s:%d was cut off: %s", *self.peer_address, error)
            self.abort()
            return
        if queue:
            self._await_writable()
        else:
            self._emptied()

    def _write_some(self, queue: deque[Part]) -> bool:
        """One system call's worth; False when the socket took less than it was offered."""
        head = queue[0]
        if type(head) is FileRange and len(head) >= SENDFILE_BYTES:
            return self._write_range(queue, head)
        batch, flags = _gather(queue)
        offered = sum(map(len, batch))
        if len(batch) == 1:
            count = self._socket.send(batch[0], flags)
        elif not unix.HAS_GATHER:
            count = self._socket.send(b"".join(batch), flags)
        else:
            count = self._socket.sendmsg(batch, (), flags)
        self._took(queue, count)
        return count == offered

    def _write_range(self, queue: deque[Part], part: FileRange) -> bool:
        descriptor = part.file.fileno() if unix.HAS_SENDFILE else None
        offered = len(part)
        if descriptor is not None:
            count = os.sendfile(self._descriptor, descriptor, part.position, offered)
        else:
            offered = min(offered, CHUNK_BYTES)
            count = self._socket.send(part.file.read_at(part.position, offered))
        if count == 0:
            raise ends_early(part)
        self._took(queue, count)
        return count == offered

    def _took(self, queue: deque[Part], count: int) -> None:
        """Drops what has gone from the front of the queue."""
        self.unsent_bytes -= count
        while count > 0:
            head = queue[0]
            if count < len(head):
                queue[0] = rest_of(head, count)
                return
            count -= len(head)
            queue.popleft()

    def _await_writable(self) -> None:
        if not self._is_writing:
            self._is_writing = True
            self._loop.add_writer(self._descriptor, self._writable)

    def _writable(self) -> None:
        self._write()
        if self._receiver is not None and not self._is_closing:
            self._receiver.sent()

    def _emptied(self) -> None:
        self._queue = None
        if self._is_writing:
            self._is_writing = False
            self._loop.remove_writer(self._descriptor)
        if self._is_closing:
            self.abort()

    # --- ending -----------------------------------------------------------------------------------

    def close(self) -> None:
        self.pause()
        self._is_closing = True
        if self._queue is None:
            self.abort()

    def abort(self) -> None:
        receiver, self._receiver = self._receiver, None
        self._is_closing = True
        if self._descriptor < 0:
            return
        self.pause()
        if self._is_writing:
            self._is_writing = False
            self._loop.remove_writer(self._descriptor)
        self._descriptor = -1
        self._reading.leave()
        self._queue = None
        self.unsent_bytes = 0
        self._socket.close()
        if receiver is not None:
            receiver.ended()


class SocketPort:
    """A listening socket."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        reading: Reading,
        listening: socket.socket,
        accept: Callable[[Link], None],
    ) -> None:
        self._loop = loop
        self._reading = reading
        self._socket = listening
        self._accept = accept
        self._resuming: asyncio.TimerHandle | None = None
        self._is_paused = False  # by its owner
        self._is_accepting = False
        self._descriptors = Descriptors.of_process()
        self._warn_after = 0.0
        self.address = _plain(listening.getsockname())
        self._go_on()

    def _go_on(self) -> None:
        """Takes connections, or does not, as things stand."""
        should = not self._is_paused and self._resuming is None and self._socket.fileno() >= 0
        if should and not self._is_accepting:
            self._loop.add_reader(self._socket.fileno(), self._acceptable)
        elif self._is_accepting and not should:
            self._loop.remove_reader(self._socket.fileno())
        self._is_accepting = should

    def pause(self) -> None:
        self._is_paused = True
        self._go_on()

    def resume(self) -> None:
        self._is_paused = False
        self._go_on()

    def _acceptable(self) -> None:
        """Takes a bounded number of connections, so that those which are open get their turn."""
        for _ in range(ACCEPTED_PER_TURN):
            try:
                connected, peer = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno in _NO_ROOM:
                    _LOG.error("no connection can be taken for now: %s", error.strerror)
                    self._pause()
                return
            connected.setblocking(False)
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            is_last = connected.fileno() >= self._descriptors.connections_end
            self._accept(SocketLink(self._loop, self._reading, connected, _plain(peer)))
            if is_last:
                self._pause_for_files()
            if not self._is_accepting:
                return

    def _pause_for_files(self) -> None:
        now = self._loop.time()
        if now >= self._warn_after:
            self._warn_after = now + WARN_EVERY_SECONDS
            _LOG.error(
                "new connections wait until others end: of the %d files that may be open the last "
                "%d are kept for data. Raise the limit (ulimit -n, LimitNOFILE=), or lower "
                "connections.max.idle.ms", self._descriptors.limit, self._descriptors.reserve,
            )
        self._pause()

    def _pause(self) -> None:
        self._resuming = self._loop.call_later(ACCEPT_PAUSE_SECONDS, self._resume)
        self._go_on()

    def _resume(self) -> None:
        if not self._has_room():
            self._resuming = self._loop.call_later(ACCEPT_PAUSE_SECONDS, self._resume)
            return
        self._resuming = None
        self._go_on()

    def _has_room(self) -> bool:
        """Whether a connection would be given a descriptor that is not kept for files."""
        try:
            with self._socket.dup() as copy:
                return copy.fileno() < self._descriptors.connections_end
        except OSError:
            return False

    def close(self) -> None:
        if self._socket.fileno() < 0:
            return
        self.pause()
        if self._resuming is not None:
            self._resuming.cancel()
        with suppress(OSError):
            # A forked child may have a copy, which would keep the port listening to nobody.
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


class SocketNetwork:
    """The machine's own network, on one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._reading = Reading(loop)
        self._look_ups = LookUps(loop)

    def listen(
        self,
        host: str,
        port: int,
        backlog: int,
        accept: Callable[[Link], None],
        buffers: Buffers = SYSTEM_BUFFERS,
    ) -> SocketPort:
        listening = _listening_socket(host, port, backlog)
        # What is accepted has the buffers of the socket that it came through.
        if buffers.send_bytes >= 0:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffers.send_bytes)
        if buffers.receive_bytes >= 0:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffers.receive_bytes)
        return SocketPort(self._loop, self._reading, listening, accept)

    def connect(
        self, host: str, port: int, done: Callable[[Link | OSError], None]
    ) -> SocketAttempt:
        def ended(outcome: Connected | OSError) -> None:
            if isinstance(outcome, OSError):
                done(outcome)
            else:
                done(SocketLink(self._loop, self._reading, outcome.socket, _plain(outcome.address)))

        return SocketAttempt(self._loop, self._look_ups, host, port, ended)

    def soon(self, callback: Callable[[], None]) -> None:
        self._loop.call_soon(callback)


def _listening_socket(host: str, port: int, backlog: int) -> socket.socket:
    """Every address of the machine means those of both families; a name means its IPv4 address if
    it has one, as with Java, whose clients look for a broker there."""
    if host in ("", "::") and socket.has_dualstack_ipv6():
        listening = socket.create_server(
            ("", port), family=socket.AF_INET6, backlog=backlog, dualstack_ipv6=True
        )
    else:
        try:
            found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM)
        except (socket.gaierror, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or "no name has such a part"
            raise OSError(f"{host} is no address of this machine: {reason}") from error
        family, _, _, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
        listening = socket.create_server(address[:2], family=family, backlog=backlog)
    listening.setblocking(False)
    return listening


def _gather(queue: deque[Part]) -> tuple[list[Buffer], int]:
    """What goes out together: parts in memory and small parts of files, up to a large one."""
    batch: list[Buffer] = []
    size = 0
    for part in queue:
        if isinstance(part, FileRange):
            if len(part) >= SENDFILE_BYTES:
                return batch, _MORE
            batch.append(read_part(part))
        else:
            batch.append(part)
        size += len(part)
        if len(batch) == GATHERED_PARTS or size >= CHUNK_BYTES:
            break
    return batch, 0


def _plain(address: tuple[str, int] | tuple[str, int, int, int]) -> Address:
    """Host and port; an IPv4 peer of a socket for both families by its IPv4 address."""
    return address[0].removeprefix("::ffff:"), address[1]
