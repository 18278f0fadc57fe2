"""One connection between a client and its broker: what is said is noted, and goes on.

Requests go on as they come; answers frame by frame, since the addresses in one may have to be
others. Brokers speak only when they are asked: where one does otherwise, that is another protocol,
and bytes pass as they come, both ways. Invariant: nobody is read from faster than the other end,
and the trace, take it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from kafkalite.testing.recording.conversation import Conversation
from kafkalite.testing.recording.cutting import Cutter, Form, Held, Piece
from kafkalite.testing.recording.said import REQUEST, RESPONSE, Said

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]
READ_BYTES = 1 << 16
# How much is noted of bytes that cannot be read.
NOTED_BYTES = 1 << 10
# What a client may take to end its way after the broker has ended the other.
LINGERING_SECONDS = 30
LOOK_SECONDS = 0.05


@dataclass(slots=True)
class Hearer:
    """Who is told what was said, in order; `room` is awaited before more is read."""

    saw: Callable[[Said], None]
    room: Callable[[], Awaitable[None]]


class Link:
    """`here` makes of an answer the bytes that name the proxy, or None where it names nobody."""

    def __init__(
        self,
        conversation: Conversation,
        hearer: Hearer,
        held: Held,
        here: Callable[[Said], Awaitable[bytes | None]],
    ) -> None:
        self._conversation, self._hearer, self._held, self._here = conversation, hearer, held, here
        self._cutters = {REQUEST: Cutter(held), RESPONSE: Cutter(held)}

    async def carry(self, client: Ends, broker: Ends) -> None:
        """Until both ways have ended, or one could not go on."""
        asking = asyncio.create_task(self._carry(REQUEST, client[0], broker[1]))
        answering = asyncio.create_task(self._carry(RESPONSE, broker[0], client[1]))
        ways = [asking, answering]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            is_over = any(way.done() and not way.result() for way in ways)
            if not is_over:
                # A client that ended its way is owed its answers, however long they take.
                await asyncio.wait(ways, timeout=LINGERING_SECONDS if answering.done() else None)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _carry(
        self, kind: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Whether the way came to its end; the other end is told then, and may still answer."""
        turn = self._pass_request if kind == REQUEST else self._pass_answers
        try:
            while data := await self._read(reader):
                await turn(data, writer)
            self._note_rest(kind, writer)
            await writer.drain()
            if not writer.can_write_eof():  # TLS, which has no half of an end here
                if kind == REQUEST:
                    await self._answered()
                return False
            writer.write_eof()
        except OSError:
            return False
        finally:
            self._note_rest(kind, None)
        return True

    async def _answered(self) -> None:
        """Until what the client asked has its answers, or they are long in coming."""
        for _ in range(int(LINGERING_SECONDS / LOOK_SECONDS)):
            if not self._conversation.is_owed:
                return
            await asyncio.sleep(LOOK_SECONDS)

    async def _read(self, reader: asyncio.StreamReader) -> bytes:
        await self._hearer.room()
        return await reader.read(READ_BYTES)

    # --- requests ---------------------------------------------------------------------------------

    async def _pass_request(self, data: bytes, writer: asyncio.StreamWriter) -> None:
        for piece in self._cutters[REQUEST].feed(data):
            if piece.form == Form.RAW:
                self._note_unread(REQUEST, piece)
            else:
                said = self._conversation.request(piece.frame, _now_ms(), piece.unread)
                self._hearer.saw(said)
        writer.write(data)
        await writer.drain()

    # --- answers ----------------------------------------------------------------------------------

    async def _pass_answers(self, data: bytes, writer: asyncio.StreamWriter) -> None:
        cutter = self._cutters[RESPONSE]
        for piece in cutter.feed(data):
            await self._pass_answer(piece, writer)
        if cutter.held_bytes and not self._conversation.is_owed:
            self._note_unread(REQUEST, self._cutters[REQUEST].give_up("not Kafka's protocol"))
            await self._pass_answer(cutter.give_up("said without having been asked"), writer)

    async def _pass_answer(self, piece: Piece, writer: asyncio.StreamWriter) -> None:
        moved = None
        if piece.form == Form.RAW:
            self._note_unread(RESPONSE, piece)
        else:
            said = self._conversation.response(piece.frame, _now_ms(), piece.unread)
            self._hearer.saw(said)
            moved = await self._here(said)
        sent = piece.data if moved is None else moved
        self._held.held += len(sent)
        try:
            writer.write(sent)
            await writer.drain()
        finally:
            self._held.held -= len(sent)

    # --- what cannot be read ----------------------------------------------------------------------

    def _note_unread(self, kind: str, piece: Piece) -> None:
        if piece.unread and piece.data:
            said = self._conversation.unreadable(
                kind, piece.data[:NOTED_BYTES], piece.unread, _now_ms()
            )
            self._hearer.saw(said)

    def _note_rest(self, kind: str, writer: asyncio.StreamWriter | None) -> None:
        """Of a frame that the end of its way has cut off; answers' rests go on."""
        rest = self._cutters[kind].release()
        self._note_unread(kind, Piece(Form.RAW, rest, "the connection ended within a frame"))
        if kind == RESPONSE and writer is not None:
            writer.write(rest)


def shut(writer: asyncio.StreamWriter, *, at_once: bool = False) -> None:
    """Ends a connection; what was written still goes out, unless `at_once`."""
    with suppress(OSError):
        if at_once:
            writer.transport.abort()
        else:
            writer.close()


def _now_ms() -> int:
    return int(time.time() * 1000)
