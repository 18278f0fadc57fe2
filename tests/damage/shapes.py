"""Logs of every shape, made by the broker's own code on a disk in memory, and closed or left.

Each has its neighbour, another partition in the same directory, whose files may come in place of
its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from kafkalite.log.config import COMPACT, LOG_APPEND_TIME, LogConfig, LogSettings
from kafkalite.log.partition_log import AppendOrigin, PartitionLog
from kafkalite.records.batch import Compression
from tests.unit.log.making import START_MS, World, batch, committed, keyed, marker

QUIET = LogSettings(log_cleaner_enable=False, log_retention_check_interval_ms=1 << 40)
SMALL = LogConfig(segment_bytes=500, index_interval_bytes=90, file_delete_delay_ms=0)
COMPACTED = replace(SMALL, cleanup_policy=(COMPACT,), min_cleanable_dirty_ratio=0.01)
CODECS = (Compression.NONE, Compression.LZ4, Compression.GZIP)

Fill = Callable[[World, PartitionLog, Random], None]


def epoch(log: PartitionLog) -> int:
    """The leader's, which never falls."""
    return max(0, log.epochs.latest)


def plain(world: World, log: PartitionLog, random: Random) -> None:
    for number in range(14):
        log.append_as_leader(batch([b"p%d" % number], timestamp=START_MS + number), epoch(log))


def compressed(world: World, log: PartitionLog, random: Random) -> None:
    for number in range(12):
        values = [b"c%d-%d" % (number, index) for index in range(1 + number % 4)]
        codec, timestamp = CODECS[number % 3], START_MS + 10 * number
        made = batch(values, timestamp=timestamp, step_ms=3, compression=codec)
        log.append_as_leader(made, epoch(log))


def transactional(world: World, log: PartitionLog, random: Random) -> None:
    """Two producers whose transactions overlap, and a third that leaves one open."""
    sequences = {7: 0, 8: 0, 9: 0}

    def write(producer: int) -> None:
        value = b"t%d-%d" % (producer, sequences[producer])
        made = keyed(
            [(value, value)],
            timestamp=START_MS + log.log_end_offset,
            producer_id=producer, producer_epoch=0, base_sequence=sequences[producer],
            is_transactional=True,
        )  # fmt: skip
        log.append_as_leader(made, epoch(log))
        sequences[producer] += 1

    def end(producer: int, *, commit: bool) -> None:
        ends = marker(producer, 0, commit=commit, timestamp=START_MS + log.log_end_offset)
        log.append_as_leader(ends, epoch(log), AppendOrigin.COORDINATOR)

    for number in range(4):
        write(7)
        write(8)
        made = keyed([(b"p", b"plain")], timestamp=START_MS + log.log_end_offset)
        log.append_as_leader(made, epoch(log))
        end(7, commit=number % 2 == 1)
        write(8)
        end(8, commit=number == 3)
    write(9)
    write(7)
    end(7, commit=False)


def idempotent(world: World, log: PartitionLog, random: Random) -> None:
    sequences = {5: 0, 6: 0}
    for number in range(16):
        producer = 5 + number % 3 // 2
        made = batch(
            [b"i"] * (1 + number % 2), timestamp=START_MS + number,
            producer_id=producer, producer_epoch=number // 12, base_sequence=sequences[producer],
        )  # fmt: skip
        log.append_as_leader(made, epoch(log))
        sequences[producer] += 1 + number % 2
        if number == 11:
            sequences = {5: 0, 6: 0}


def times(world: World, log: PartitionLog, random: Random) -> None:
    """Out of order, and the same again and again."""
    for number in (5, 3, 5, 9, 1, 9, 9, 2, 12, 12, 4, 12, 3, 3, 13, 1, 13, 2):
        made = batch([b"x", b"y"], timestamp=START_MS + 10 * number, step_ms=4)
        log.append_as_leader(made, epoch(log))


def append_time(world: World, log: PartitionLog, random: Random) -> None:
    for number in range(12):
        log.append_as_leader(batch([b"a%d" % number]), epoch(log))
        world.clock.advance(number % 3)


def epochs(world: World, log: PartitionLog, random: Random) -> None:
    first = epoch(log)
    for number in range(14):
        made = batch([b"e%d" % number], timestamp=START_MS)
        log.append_as_leader(made, first + number // 4 * 2)


def compacted(world: World, log: PartitionLog, random: Random) -> None:
    for number in range(24):
        fields = {"producer_id": 3, "producer_epoch": 0, "base_sequence": number}
        pairs = [(b"k%d" % (number % 5), b"v%d" % number)]
        log.append_as_leader(keyed(pairs, timestamp=START_MS + number, **fields), epoch(log))
    committed(log)
    log.flush()
    cleaner = world.manager.periodic.cleaner
    cleaner.run()
    while cleaner.is_running:
        world.clock.advance(1)
    cleaner.stop()


def deleted(world: World, log: PartitionLog, random: Random) -> None:
    """From its start, into the middle of a segment."""
    transactional(world, log, random)
    committed(log)
    log.delete_records_before(log.bases[1] + 1)
    world.manager.periodic.retain()
    world.clock.advance(0)


def anything(world: World, log: PartitionLog, random: Random) -> None:
    """A longer log in which all of this happens."""
    for fill in random.choices((plain, compressed, times, epochs), k=random.randrange(1, 4)):
        fill(world, log, random)
    random.choice((transactional, idempotent, deleted, plain))(world, log, random)


SHAPES: dict[str, tuple[Fill, LogConfig]] = {
    "plain": (plain, SMALL),
    "compressed": (compressed, SMALL),
    "transactional": (transactional, SMALL),
    "idempotent": (idempotent, SMALL),
    "times": (times, SMALL),
    "append time": (append_time, replace(SMALL, message_timestamp_type=LOG_APPEND_TIME)),
    "epochs": (epochs, SMALL),
    "compacted": (compacted, COMPACTED),
    "deleted": (deleted, SMALL),
    "one segment": (transactional, LogConfig(index_interval_bytes=90)),
    "anything": (anything, SMALL),
}


def made(name: str, seed: int) -> World:
    """A world with a log of this shape and its neighbour, still open."""
    fill, config = SHAPES[name]
    world, random = World(config, settings=QUIET), Random(f"{name} {seed}")
    for topic, one in (("t", fill), ("u", transactional)):
        log = world.log(topic)
        one(world, log, random)
        committed(log)
    return world
