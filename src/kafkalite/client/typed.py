"""Records as they are typed or piped into a program: standard input, cut at delimiters."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterator

from kafkalite.client.cluster import ClientFailed

READ_BYTES = 1 << 16


def pieces_of_input() -> Iterator[bytes | None]:
    """What comes in on standard input, as it comes; None where nothing waits to be read. Raises
    ClientFailed when it cannot be read."""
    try:
        descriptor = sys.stdin.fileno()
    except OSError:  # another program's stand-in for an input
        yield sys.stdin.buffer.read()
        return
    while True:
        if not _is_waiting(descriptor):
            yield None
        try:
            data = os.read(descriptor, READ_BYTES)
        except BlockingIOError:  # somebody shares it who does not wait
            select.select([descriptor], [], [])
            continue
        except OSError as error:
            raise ClientFailed(f"standard input cannot be read: {error.strerror}") from error
        if not data:
            return
        yield data


def _is_waiting(descriptor: int) -> bool:
    try:
        return bool(select.select([descriptor], [], [], 0)[0])
    except (OSError, ValueError):  # no select for what it is
        return True


def split(pieces: Iterator[bytes | None], delimiter: bytes) -> Iterator[bytes | None]:
    """Records between delimiters, the last with or without one; None is passed on."""
    for found in split_pieces(pieces, delimiter):
        if found is None:
            yield None
        else:
            yield from found


def split_pieces(
    pieces: Iterator[bytes | None], delimiter: bytes
) -> Iterator[list[bytes] | None]:
    """The same, those together that end in one piece."""
    kept: list[bytes] = []
    edge, reach = b"", len(delimiter) - 1  # a delimiter may come in two pieces
    for piece in pieces:
        if piece is None:
            yield None
            continue
        near = edge + piece
        kept.append(piece)
        if delimiter in near:
            *whole, rest = b"".join(kept).split(delimiter)
            kept, near = [rest] if rest else [], rest
            yield whole
        edge = near[-reach:] if reach else b""
    if last := b"".join(kept):
        yield [last]
