"""Batches with something wrong inside."""

import random

from kafkalite.records.batch import HEADER_BYTES


def mutated(data: bytearray, chance: random.Random) -> bytearray:
    """One or two bytes of the records changed, or some taken out or put in, or the count."""
    changed = bytearray(data)
    for _ in range(chance.randint(1, 2)):
        position = chance.randrange(HEADER_BYTES, len(changed))
        match chance.randrange(6):
            case 0:
                changed[position] ^= 1 << chance.randrange(8)
            case 1:
                changed[position] = chance.randrange(256)
            case 2:
                changed[position] = (changed[position] + chance.choice((-2, 2))) & 0xFF
            case 3 if position + 1 < len(changed):
                del changed[position]
            case 4:
                changed.insert(position, chance.choice((0, 1, 2, 127, 128, 255)))
            case _:
                changed[60] = (changed[60] + chance.choice((-1, 1))) & 0xFF
    changed[8:12] = (len(changed) - 12).to_bytes(4, "big")
    return changed
