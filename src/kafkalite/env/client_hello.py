"""The first words of a peer that speaks TLS, read as far as to know when they are whole.

Owns where a hello ends that comes in any number of records. OpenSSL sets 40 KB aside for whoever
has sent it a byte, and 128 KB for whoever announces as much, so it is shown nothing before that.
"""

from __future__ import annotations

import struct

HANDSHAKE, CLIENT_HELLO = 22, 1
RECORD_HEAD_BYTES = 5
# The most that one may have, encrypted; whoever claims more is told so by OpenSSL.
RECORD_BYTES = 16_384 + 2_048
# As Java has it, for all messages of handshakes.
HELLO_BYTES = 32_768

_MESSAGE_HEAD_BYTES = 4
_BEGINS = b"\x16\x03"
_KINDS = range(20, 25)

_record_at = struct.Struct(">BBBH").unpack_from


def record_size(data: bytes | bytearray | memoryview) -> int:
    """Of the record that begins here, with its head; of one that is none the head alone."""
    kind, major, _, length = _record_at(data)
    is_one = kind in _KINDS and major == _BEGINS[1] and length <= RECORD_BYTES
    return RECORD_HEAD_BYTES + (int(length) if is_one else 0)


class ClientHello:
    """What is known of one while it comes."""

    __slots__ = ("_head", "_next", "_payload")

    def __init__(self) -> None:
        self._head = b""  # of the message
        self._next = self._payload = 0  # where the next record begins, what those before it hold

    def is_settled(self, said: bytearray) -> bool:
        """Whether all of it has come, or it is seen to be none; `said` only grows."""
        while len(said) >= self._next + RECORD_HEAD_BYTES:
            kind, major, _, length = _record_at(said, self._next)
            if kind != HANDSHAKE or major != _BEGINS[1] or not 0 < length <= RECORD_BYTES:
                return True
            start = self._next + RECORD_HEAD_BYTES
            if len(said) < start + length:
                return False
            self._head += said[start : start + length][: _MESSAGE_HEAD_BYTES - len(self._head)]
            self._payload += length
            self._next = start + length
            if len(self._head) == _MESSAGE_HEAD_BYTES and (
                self._head[0] != CLIENT_HELLO or self._payload >= self._needed
            ):
                return True
        return not _BEGINS.startswith(said[self._next : self._next + len(_BEGINS)])

    @property
    def is_too_large(self) -> bool:
        return self._needed > HELLO_BYTES

    @property
    def _needed(self) -> int:
        """What the whole message takes, as far as it has said."""
        return _MESSAGE_HEAD_BYTES + int.from_bytes(self._head[1:], "big")
