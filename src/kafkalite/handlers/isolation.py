"""Isolation levels: what of open and aborted transactions a reader is shown.

Owns their numbers. What another number comes to is each API's own.
"""

from __future__ import annotations

READ_COMMITTED = 1
ISOLATION_LEVELS = (0, READ_COMMITTED)
