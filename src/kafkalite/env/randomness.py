"""Chance: the generators that everything random in the broker draws from, and ids made with them.

Owns the choice between the system's randomness and a seed. Invariant: with a seed, the same calls
give the same values, on every machine.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from random import Random, SystemRandom

_RESERVED_BELOW = 100  # Apache Kafka keeps the first hundred uuids for itself


def system_random() -> Random:
    """Unpredictable values, for brokers that serve people."""
    return SystemRandom()


def seeded_random(seed: int | str) -> Random:
    """Repeatable values, for tests and simulations."""
    return Random(seed)


def random_uuid(random: Random) -> bytes:
    """A version 4 uuid, of those whose text does not begin with a dash (tools would take it for an
    option)."""
    while True:
        value = random.getrandbits(128)
        value = value & ~(0xF << 76) | 0x4 << 76
        value = value & ~(0x3 << 62) | 0x2 << 62
        uuid = value.to_bytes(16, "big")
        if value >= _RESERVED_BELOW and not urlsafe_b64encode(uuid).startswith(b"-"):
            return uuid
