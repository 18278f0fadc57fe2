"""The last offset of every key of a log, in bounded memory.

Owns what a compaction remembers between its two readings of the log, and the question which records
of a stretch of offsets are the last of their keys: an offset that is still in the map when all keys
are known is that of a record to keep, so nobody looks at a key again. Invariant: no more keys than
the memory given is enough for.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import islice

LONG_KEY = 40  # longer keys are remembered by a digest; a UUID's text is not
DIGEST_BYTES = 16  # so a digest is no long key, and may be asked for in place of its key
_BYTES_PER_KEY = 180  # of memory, in a dict from bytes to int and a list
_STRETCH_BITS = 16  # of offsets that are kept in one list
_STEP_KEYS = 20_000  # looked through between two steps: some milliseconds


class LatestOffsets:
    """What is known of the dirty part of a log."""

    def __init__(self, memory: int) -> None:
        self._offsets: dict[bytes, int] = {}
        self._limit = max(1, memory // _BYTES_PER_KEY)
        self._stretches: dict[int, list[int]] = {}
        self._sorted = -1  # the stretch that was asked for last, and is in order
        self.end_offset = 0  # below this all keys are known
        # Of the first batch whose records are not at the offsets that its header says: a producer
        # may send such a batch, and nobody looks there.
        self.odd_offset = 2**63 - 1

    # --- while the keys are read ------------------------------------------------------------------

    def put(self, key: bytes, offset: int) -> bool:
        """False when there is no room for one more key; this offset is where the known ones end
        then."""
        key = _short(key)
        if len(self._offsets) >= self._limit and key not in self._offsets:
            self.end_offset = offset
            return False
        self._offsets[key] = offset
        return True

    def put_all(self, keys: Sequence[bytes], first_offset: int) -> bool:
        """The same for neighbouring records."""
        offsets = range(first_offset, first_offset + len(keys))
        if len(self._offsets) + len(keys) > self._limit:
            return all(map(self.put, keys, offsets))
        self._offsets.update(zip(_all_short(keys), offsets, strict=True))
        return True

    def finish(self) -> Iterator[None]:
        """All keys are known; in steps, since there may be millions."""
        offsets = iter(self._offsets.values())
        stretches = self._stretches
        while some := list(islice(offsets, _STEP_KEYS)):
            for offset in some:
                number = offset >> _STRETCH_BITS
                if number in stretches:
                    stretches[number].append(offset)
                else:
                    stretches[number] = [offset]
            yield

    # --- afterwards -------------------------------------------------------------------------------

    def get(self, key: bytes) -> int:
        """The last offset of a key, -1 when it is not in the dirty part."""
        return self._offsets.get(_short(key), -1)

    def between(self, first: int, last: int) -> list[int]:
        """The offsets from `first` to `last` that are the last of their keys, in order."""
        number, final = first >> _STRETCH_BITS, last >> _STRETCH_BITS
        found = self._within(number, first, last)
        while number < final:
            number += 1
            found += self._within(number, first, last)
        return found

    def _within(self, number: int, first: int, last: int) -> list[int]:
        stretch = self._stretches.get(number)
        if stretch is None:
            return []
        if number != self._sorted:
            stretch.sort()
            self._sorted = number
        return stretch[bisect_left(stretch, first) : bisect_right(stretch, last)]


def _short(key: bytes) -> bytes:
    return key if len(key) <= LONG_KEY else blake2b(key, digest_size=DIGEST_BYTES).digest()


def _all_short(keys: Sequence[bytes]) -> Sequence[bytes]:
    if max(map(len, keys), default=0) <= LONG_KEY:
        return keys
    return [_short(key) for key in keys]
