"""Replies in their bytes, kept for as long as the cluster's metadata stays as it is.

Owns how long a reply may be given again, and to whom, and how much memory such replies may take.
Knows nothing of what is in them. Invariants: no reply outlives the metadata it was made from, and
none is given to another user than the one it was made for, who may not see the same.
"""

from __future__ import annotations

from collections.abc import Hashable

MOST_BYTES = 16 * 1024 * 1024


class KeptReplies:
    """The bodies of replies by what was asked."""

    __slots__ = ("_bodies", "_offset", "_size")

    def __init__(self) -> None:
        self._bodies: dict[tuple[str, Hashable], bytes] = {}
        self._offset = -1  # of the last metadata record that the replies know of
        self._size = 0

    def find(self, offset: int, principal: str, asked: Hashable) -> bytes | None:
        """The body that was given to the same question, with nothing new since."""
        return self._bodies.get((principal, asked)) if offset == self._offset else None

    def keep(self, offset: int, principal: str, asked: Hashable, body: bytes) -> None:
        """Keeps a body; all that came before go when there is news, or no more room."""
        self._size += len(body)
        if offset != self._offset or self._size > MOST_BYTES:
            self._bodies = {}
            self._offset, self._size = offset, len(body)
        self._bodies[principal, asked] = body
