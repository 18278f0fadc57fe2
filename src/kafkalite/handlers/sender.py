"""Who has sent a request that a broker forwards to its controller (KIP-590).

Owns nothing but these words, which travel between the rooms.
"""

from __future__ import annotations

from kafkalite.env.dataclasses import dataclass
from kafkalite.handlers.call import Address


@dataclass(slots=True, frozen=True)
class Sender:
    """And the way by which its answer goes."""

    principal: str
    is_by_token: bool
    host: str
    listener: str
    local_address: Address  # where the broker that forwards it has reached us
