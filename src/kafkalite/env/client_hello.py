"""The first words of a peer that speaks TLS, read as far as to know when they are whole.

Owns where a hello ends that comes in any number of records. OpenSSL sets 40 KB aside for whoever
has sent it a byte, and 128 KB for whoever announces as much, so it is shown nothing before that;
nor a hello that would have it reckon for many milliseconds.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

HANDSHAKE, CLIENT_HELLO = 22, 1
RECORD_HEAD_BYTES = 5
# The most that one may have, encrypted; whoever claims more is told so by OpenSSL.
RECORD_BYTES = 16_384 + 2_048
# As Java has it, for all messages of handshakes.
HELLO_BYTES = 32_768

_MESSAGE_HEAD_BYTES = 4
_RANDOM_END = _MESSAGE_HEAD_BYTES + 2 + 32
_SUPPORTED_GROUPS, _KEY_SHARE = 10, 51
# Finite fields of 4,096, 6,144 and 8,192 bits: an exchange takes 7 to 30 ms and more.
_SLOW_GROUPS = frozenset((0x0102, 0x0103, 0x0104))
# Those that OpenSSL has beside them.
_OTHER_GROUPS = frozenset((0x0017, 0x0018, 0x0019, 0x001D, 0x001E, 0x0100, 0x0101))
_BEGINS = b"\x16\x03"
_KINDS = range(20, 25)

_number_at = struct.Struct(">H").unpack_from
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


def is_slow(said: bytes | bytearray) -> bool:
    """Whether a whole hello has this side exchange keys over a large finite field; of what is none
    OpenSSL says why."""
    try:
        extensions = _extensions(_payload_of(said))
        shares = set(_groups_of_shares(extensions.get(_KEY_SHARE, b"")))
        offered = set(_numbers(extensions.get(_SUPPORTED_GROUPS, b"")[2:]))
    except (struct.error, IndexError):
        return False
    return bool(shares & _SLOW_GROUPS) or (
        bool(offered & _SLOW_GROUPS) and not offered & _OTHER_GROUPS
    )


def _payload_of(said: bytes | bytearray) -> bytes:
    payload, position = b"", 0
    while position < len(said):
        size = record_size(said[position : position + RECORD_HEAD_BYTES])
        payload += said[position + RECORD_HEAD_BYTES : position + size]
        position += size
    return payload


def _extensions(hello: bytes) -> dict[int, bytes]:
    position = _RANDOM_END
    position += 1 + hello[position]  # the session
    position += 2 + _number(hello, position)  # suites
    position += 1 + hello[position]  # compressions
    end = position + 2 + _number(hello, position)
    position += 2
    found: dict[int, bytes] = {}
    while position < min(end, len(hello)):
        size = _number(hello, position + 2)
        found[_number(hello, position)] = hello[position + 4 : position + 4 + size]
        position += 4 + size
    return found


def _groups_of_shares(shares: bytes) -> Iterator[int]:
    position = 2
    while position < len(shares):
        yield _number(shares, position)
        position += 4 + _number(shares, position + 2)


def _numbers(data: bytes) -> Iterator[int]:
    return (_number(data, position) for position in range(0, len(data), 2))


def _number(data: bytes, position: int) -> int:
    return int(_number_at(data, position)[0])
