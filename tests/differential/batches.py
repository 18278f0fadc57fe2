"""Record batches as they stand in a generated request: described, and built when they are sent.

Only then is it known which producer id stands for the canonical one on that side.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, replace
from typing import Any

from kafkalite.records.batch import Compression
from kafkalite.records.record import BatchBuilder
from kafkalite.testing.comparison.names import PRODUCER_ID, Names
from tests.differential.memory import Memory

# So long ago that views tell it from now, and not so long that retention would delete it.
TIMESTAMP = (int(time.time()) - 3 * 86_400) * 1000
WRONGS = ("checksum", "cut", "control", "count", "empty", "twice", "magic")


@dataclass(frozen=True, slots=True)
class Batch:
    """`wrong` says what is not as it should be, if anything."""

    records: tuple[tuple[int, bytes | None, bytes | None, tuple[Any, ...]], ...]
    producer_id: int = -1
    epoch: int = -1
    sequence: int = -1
    is_transactional: bool = False
    compression: int = 0
    wrong: str = ""

    def build(self, names: Names) -> bytes:
        builder = BatchBuilder()
        for timestamp, key, value, headers in self.records:
            builder.append(timestamp, key, value, headers)
        batch = builder.build(
            producer_id=names.actual(PRODUCER_ID, self.producer_id),
            producer_epoch=self.epoch,
            base_sequence=self.sequence,
            is_transactional=self.is_transactional,
            is_control=self.wrong == "control",
            compression=self.compression,
        )
        return spoiled(bytes(batch), self.wrong)


def spoiled(batch: bytes, wrong: str) -> bytes:
    if wrong == "checksum":
        return batch[:17] + bytes([batch[17] ^ 1]) + batch[18:]
    if wrong == "cut":
        return batch[:-3]
    if wrong == "count":
        return batch[:57] + b"\0\0\0\7" + batch[61:]
    if wrong == "magic":
        return batch[:16] + b"\3" + batch[17:]
    if wrong == "empty":
        return b""
    return batch * 2 if wrong == "twice" else batch


def random_batch(rng: random.Random, memory: Memory, *, transactional: bool) -> Batch:
    count = rng.choice((1, 1, 2, 5))
    records = tuple(
        (
            TIMESTAMP + 1000 * rng.randrange(20),
            rng.choice((None, b"", b"a", b"b")),
            rng.choice((None, b"", b"value", b"v" * 200)),
            rng.choice(((), (), (("h", b"1"),), (("h", None), ("h", b"2")))),
        )
        for _ in range(count)
    )
    compression = rng.choice((0, 0, 0, 1, 2, 3, 4))
    batch = Batch(records, compression=int(Compression(compression)))
    if rng.random() < 0.08:
        batch = replace(batch, wrong=rng.choice(WRONGS))
    if transactional or (memory.producers and rng.random() < 0.4):
        batch = _of_producer(batch, rng, memory, transactional=transactional)
    return batch


def _of_producer(
    batch: Batch, rng: random.Random, memory: Memory, *, transactional: bool
) -> Batch:
    producer_id, epoch = memory.producers[-1] if memory.producers else (10**15, 0)
    sequence = memory.sequences.get((producer_id, epoch), 0)
    if rng.random() < 0.15:
        sequence = rng.choice((0, 1, 5, -1, 2**31 - 1))
    else:
        memory.sequences[producer_id, epoch] = sequence + len(batch.records)
    if rng.random() < 0.1:
        epoch += rng.choice((-1, 1))
    is_transactional = transactional if rng.random() < 0.95 else not transactional
    return replace(
        batch,
        producer_id=producer_id,
        epoch=epoch,
        sequence=sequence,
        is_transactional=is_transactional,
    )
