"""The log alone, without network: append, open, compaction, memory. `python -m bench.log`

Each row compares in one run and in turns: an append with a bare `pwrite` of the same bytes (its
floor), compaction with Apache Kafka's own cleaner over copies of the same files.
"""

from __future__ import annotations

import argparse
import gc
import os
import shutil
import struct
import subprocess
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

from bench import report
from bench.pair import Run
from bench.rows import Row
from kafkalite.env import Env
from kafkalite.env.background import InlineBackground
from kafkalite.env.clock import ManualClock
from kafkalite.env.disk import RealDisk
from kafkalite.env.randomness import seeded_random
from kafkalite.jvm import jars, java
from kafkalite.log.config import COMPACT, LogConfig, LogSettings
from kafkalite.log.manager import LogManager
from kafkalite.log.partition_log import PartitionLog
from kafkalite.records.record import BatchBuilder
from tests.compat.java_classes import compile_classes

SUITE = "log"
NOW_MS = 1_700_000_000_000
TOPIC_ID = bytes(range(16))
QUIET = LogSettings(log_cleaner_enable=False)
MEGA = 1_000_000
BURST_BYTES = MEGA // 4  # so much in one go, ours and the bare one in turns
CLEANING = Path(__file__).parent / "java" / "Cleaning.java"

# Records in a batch, bytes of a record, and the share of a bare pwrite that is asked for.
APPENDS = (
    (1, 950, 0.60), (10, 85, None), (1, 65_400, 0.85), (64, 990, 0.85), (640, 90, None),
)  # fmt: skip
OPEN_LIMIT_MS = 50.0  # for 100 segments
PARTITION_LIMIT_BYTES = 6 * 1024
CREATION_LIMIT_US = 300.0
SEGMENTS = 100
KEYS = 100_000
# Which key comes next: all of them in turns, so that batches stay or go whole, or at random.
KEY_ORDERS: dict[str, Callable[[int], int]] = {
    "in turns": lambda number: number * 7919 % KEYS,
    "at random": lambda number: number * number * 2_654_435_761 % 4_294_967_311 % KEYS,
}
COMPACT_SEGMENT_BYTES = 16 * MEGA


def measure(
    run: Run, *, gigabytes: float = 10.0, megabytes: int = 120, partitions: int = 10_000
) -> Iterator[Row]:
    if run.is_quick:
        gigabytes, megabytes, partitions = gigabytes / 10, megabytes // 4, partitions // 10
    parts: list[tuple[str, Callable[[Path], Iterator[Row]]]] = [
        ("append", lambda path: _appending(run, path)),
        ("open", lambda path: _opening(path, gigabytes)),
        ("compaction", lambda path: _compactions(path, megabytes, run.rounds)),
        ("partition", lambda path: _partitions(path, partitions)),
    ]
    for name, part in parts:
        if run.wants(name):
            run.tell(f"log: {name}")
            with tempfile.TemporaryDirectory(prefix="kafkalite-bench-") as folder:
                yield from part(Path(folder))


def logs_in(path: Path, config: LogConfig | None = None) -> LogManager:
    clock = ManualClock(NOW_MS)
    env = Env(clock, RealDisk(), InlineBackground(), seeded_random(1))
    manager = LogManager(
        env, [str(path)], node_id=1, cluster_id="bench", settings=QUIET,
        config_of=lambda topic: config or LogConfig(),
    )  # fmt: skip
    manager.start()
    return manager


def die(manager: LogManager) -> None:
    """What is left of a process that was killed."""
    manager.periodic.stop()
    for directory in manager.directories:
        directory.release()


def batch_of(records: int, size: int) -> bytearray:
    builder = BatchBuilder()
    for _ in range(records):
        builder.append(NOW_MS, None, os.urandom(size))
    return builder.build(0)


# --- append ---------------------------------------------------------------------------------------


def _appending(run: Run, path: Path) -> Iterator[Row]:
    manager = logs_in(path)
    for records, size, share in APPENDS:
        data = batch_of(records, size)
        bursts = (20 if run.is_quick else 200) * run.rounds
        ours, bare = _in_turns(manager, path, data, bursts)
        plural = "s" if records > 1 else ""
        yield Row(
            SUITE, f"append of {len(data):,} bytes, {records} record{plural}", "us", [ours],
            floor=bare, floor_goal=round(1 / share, 2) if share else None, is_rate=False,
            note=f"{bare / ours:.0%} of a bare pwrite: {len(data) / ours:,.0f} MB/s against"
            f" {len(data) / bare:,.0f}",
        )  # fmt: skip
    manager.close()


def _in_turns(manager: LogManager, path: Path, data: bytearray, bursts: int) -> tuple[float, float]:
    """Microseconds of an append and of a bare pwrite: the best of short bursts in turns, since
    whatever else the machine does only ever makes one longer."""
    log = manager.create("t", 0, TOPIC_ID)
    descriptor = os.open(path / "bare", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    count = max(8, BURST_BYTES // len(data))
    ours, bare = [], []
    for burst in range(bursts):
        ours.append(_append_burst(log, data, count))
        bare.append(_pwrite_burst(descriptor, data, count, burst * count * len(data)))
    os.close(descriptor)
    manager.delete("t", 0)
    shutil.rmtree(log.directory)
    return min(ours) / count * 1e6, min(bare) / count * 1e6


def _append_burst(log: PartitionLog, data: bytearray, count: int) -> float:
    view = memoryview(data)
    started = time.perf_counter()
    for _ in range(count):
        struct.pack_into(">q", data, 0, 0)  # as it came from a producer
        log.append_as_leader(view, 0)
    return time.perf_counter() - started


def _pwrite_burst(descriptor: int, data: bytearray, count: int, position: int) -> float:
    started = time.perf_counter()
    for _ in range(count):
        os.pwrite(descriptor, data, position)
        position += len(data)
    return time.perf_counter() - started


# --- open -----------------------------------------------------------------------------------------


def _opening(path: Path, gigabytes: float) -> Iterator[Row]:
    config = LogConfig(segment_bytes=int(gigabytes * 1e9 / SEGMENTS))
    manager = logs_in(path, config)
    log = manager.create("t", 0, TOPIC_ID)
    data = batch_of(64, 990)
    while len(log.segments) < SEGMENTS or log.active.size < config.segment_bytes // 2:
        struct.pack_into(">q", data, 0, 0)
        log.append_as_leader(memoryview(data), 0)
    size = log.size
    manager.close()
    name = f"open {size / 1e9:.1f} GB in {SEGMENTS} segments"
    clean = []
    for _ in range(3):
        manager, took = _open(path, config)
        clean.append(took * 1e3)
        manager.close()
    yield Row(SUITE, f"{name}, clean stop", "ms", clean, limit=OPEN_LIMIT_MS, is_rate=False)
    manager, _ = _open(path, config)
    die(manager)
    manager, took = _open(path, config)  # the recovery point says that all but the last is synced
    die(manager)
    yield Row(SUITE, f"{name}, killed", "ms", [took * 1e3], is_rate=False)
    os.unlink(path / "recovery-point-offset-checkpoint")
    manager, took = _open(path, config)
    manager.close()
    yield Row(
        SUITE, f"{name}, all of it to be checked", "s", [took], is_rate=False,
        note=f"{size / took / MEGA:,.0f} MB/s",
    )  # fmt: skip


def _open(path: Path, config: LogConfig) -> tuple[LogManager, float]:
    gc.collect()
    started = time.perf_counter()
    manager = logs_in(path, config)
    return manager, time.perf_counter() - started


# --- compaction -----------------------------------------------------------------------------------


def _compactions(path: Path, megabytes: int, rounds: int) -> Iterator[Row]:
    for order in KEY_ORDERS:
        folder = path / order.replace(" ", "-")
        folder.mkdir()
        yield from _compaction(folder, order, megabytes, rounds)
        shutil.rmtree(folder)


def _compaction(path: Path, order: str, megabytes: int, rounds: int) -> Iterator[Row]:
    config = LogConfig(
        cleanup_policy=(COMPACT,), segment_bytes=COMPACT_SEGMENT_BYTES,
        min_cleanable_dirty_ratio=0.01,
    )  # fmt: skip
    written, records = _write_keyed(path / "original", config, order, megabytes)
    ours, kept = [], 0
    for number in range(rounds):
        shutil.copytree(path / "original", path / f"ours-{number}")
        took, kept = _clean(path / f"ours-{number}", config)
        ours.append(written / took / MEGA)
    copies = [path / f"theirs-{number}" / "t-0" for number in range(rounds + 1)]
    for copy in copies:
        shutil.copytree(path / "original" / "t-0", copy)
    theirs, kept_there = _clean_with_kafka(path, copies)
    assert abs(kept - kept_there) < written / 100, (kept, kept_there)
    yield Row(
        SUITE,
        f"compaction of {written / MEGA:.0f} MB, {records:,} records of {KEYS:,} keys {order}",
        "MB/s", ours, theirs,
        note=f"to {kept / MEGA:.0f} MB; without the pauses that leave half of the time to clients",
    )  # fmt: skip


def _write_keyed(
    path: Path, config: LogConfig, order: str, megabytes: int
) -> tuple[int, int]:
    path.mkdir()
    manager = logs_in(path, config)
    log = manager.create("t", 0, TOPIC_ID)
    written = number = 0
    while written < megabytes * MEGA:
        builder = BatchBuilder()
        for _ in range(100):
            builder.append(NOW_MS, b"key-%d" % KEY_ORDERS[order](number), os.urandom(100))
            number += 1
        data = builder.build(0)
        log.append_as_leader(memoryview(data), 0)
        written += len(data)
    log.roll()
    log.replicated(log.log_end_offset)
    manager.close()
    return written, number


def _clean(path: Path, config: LogConfig) -> tuple[float, int]:
    """Seconds, and the bytes that are left."""
    manager = logs_in(path, config)
    clock = manager.env.clock
    assert isinstance(clock, ManualClock)
    started = time.perf_counter()
    manager.periodic.cleaner.run()
    while manager.periodic.cleaner.is_running:
        clock.advance(1)
    took = time.perf_counter() - started
    log = manager.get("t", 0)
    assert log is not None
    manager.close()
    return took, log.size


def _clean_with_kafka(path: Path, copies: list[Path]) -> tuple[list[float], int]:
    """The same by Apache Kafka; the first copy warms its JVM up and is not counted."""
    classes = path / "classes"
    classes.mkdir()
    compile_classes([CLEANING], classes, ("reference",))
    class_path = f"{classes}:{jars.class_path('reference')}"
    command = java.command(class_path, "Cleaning", *map(str, copies), heap="1G")
    command.insert(1, f"-Dsegment.bytes={COMPACT_SEGMENT_BYTES}")
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if line[:1].isdigit()]
    assert len(rows) == len(copies), done.stdout + done.stderr
    return [int(size) / float(took) / MEGA for size, _, took in rows[1:]], int(rows[-1][1])


# --- many partitions ------------------------------------------------------------------------------


def _partitions(path: Path, count: int) -> Iterator[Row]:
    manager = logs_in(path)
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for partition in range(count):
        manager.create("topic", partition, TOPIC_ID)
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    yield Row(
        SUITE, f"partition, idle, one of {count:,}", "bytes", [(after - before) / count],
        limit=PARTITION_LIMIT_BYTES, is_rate=False,
    )  # fmt: skip
    costs = []
    for start in range(count, 2 * count, count // 10):
        started = time.process_time()
        for partition in range(start, start + count // 10):
            manager.create("topic", partition, TOPIC_ID)
        costs.append((time.process_time() - started) / (count // 10) * 1e6)
    yield Row(
        SUITE, "partition, created", "CPU us", costs, limit=CREATION_LIMIT_US, is_rate=False,
        note=f"a bare directory with its files: {_bare_creation(path):.0f} us",
    )  # fmt: skip
    started = time.perf_counter()
    manager.close()
    closed = time.perf_counter() - started
    manager, opened = _open(path, LogConfig())
    manager.close()
    yield Row(
        SUITE, f"partitions, {2 * count:,} opened after a clean stop", "s", [opened],
        is_rate=False, note=f"closed in {closed:.1f} s",
    )  # fmt: skip


def _bare_creation(path: Path, count: int = 1000) -> float:
    """The processor time of the system calls alone that make a partition's directory."""
    started = time.process_time()
    for number in range(count):
        folder = f"{path}/bare-{number}"
        os.mkdir(folder)
        for name in ("0.log", "0.index", "0.timeindex", "partition.metadata.tmp"):
            descriptor = os.open(f"{folder}/{name}", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
            if name.endswith("tmp"):
                os.pwrite(descriptor, b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", 0)
            os.close(descriptor)
        os.replace(f"{folder}/partition.metadata.tmp", f"{folder}/partition.metadata")
    took = time.process_time() - started
    for number in range(count):
        shutil.rmtree(f"{path}/bare-{number}")
    return took / count * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description="The log alone.")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="append, open, compaction or partition")
    parser.add_argument("--gigabytes", type=float, default=10.0)
    parser.add_argument("--compact-megabytes", type=int, default=120)
    parser.add_argument("--partitions", type=int, default=10_000)
    given = parser.parse_args()
    run = Run(given.quick, given.rounds, given.only)
    for row in measure(
        run,
        gigabytes=given.gigabytes,
        megabytes=given.compact_megabytes,
        partitions=given.partitions,
    ):
        print(report.line(row), f"({row.note})" if row.note else "", flush=True)


if __name__ == "__main__":
    main()
