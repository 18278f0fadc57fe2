"""The log alone, without network: append, open, compaction, memory. `python -m bench.log`

Each line compares in one run: an append with a bare `pwrite` of the same bytes, compaction with
Apache Kafka's own cleaner over the same files where the jars are there.
"""

from __future__ import annotations

import argparse
import gc
import os
import shutil
import struct
import tempfile
import time
import tracemalloc
from pathlib import Path

from kafkalite.env import Env
from kafkalite.env.background import InlineBackground
from kafkalite.env.clock import ManualClock
from kafkalite.env.disk import RealDisk
from kafkalite.env.randomness import seeded_random
from kafkalite.log.config import COMPACT, LogConfig, LogSettings
from kafkalite.log.manager import LogManager
from kafkalite.records.record import BatchBuilder

NOW_MS = 1_700_000_000_000
QUIET = LogSettings(log_cleaner_enable=False)
MEGA = 1_000_000


def logs_in(path: str, config: LogConfig | None = None) -> LogManager:
    clock = ManualClock(NOW_MS)
    env = Env(clock, RealDisk(), InlineBackground(), seeded_random(1))
    manager = LogManager(
        env, [path], node_id=1, cluster_id="bench", settings=QUIET,
        config_of=lambda topic: config or LogConfig(),
    )  # fmt: skip
    manager.start()
    return manager


def batch_of(records: int, size: int) -> bytearray:
    builder = BatchBuilder()
    for _ in range(records):
        builder.append(NOW_MS, None, os.urandom(size))
    return builder.build(0)


def append(path: str) -> None:
    print("append, against a bare pwrite of the same bytes (best of 5)")
    manager = logs_in(path)
    for records, size in ((1, 950), (10, 85), (1, 65_400), (64, 990), (640, 90)):
        data = batch_of(records, size)
        count = min(20_000, 200 * MEGA // len(data))
        ours = bare = float("inf")
        for attempt in range(5):
            ours = min(ours, _append_once(manager, data, count, f"t{records}-{size}-{attempt}"))
            bare = min(bare, _pwrite_once(path, data, count))
        rate = len(data) * count / MEGA
        print(
            f"  {len(data):6} B of {records:3} records:"
            f" {ours / count * 1e6:6.1f} us {rate / ours:5.0f} MB/s,"
            f" pwrite {bare / count * 1e6:6.1f} us {rate / bare:5.0f} MB/s, {bare / ours:4.0%}"
        )
    manager.close()


def _append_once(manager: LogManager, data: bytearray, count: int, topic: str) -> float:
    log = manager.create(topic, 0, bytes(16))
    view = memoryview(data)
    started = time.perf_counter()
    for _ in range(count):
        struct.pack_into(">q", data, 0, 0)
        log.append_as_leader(view, 0)
    took = time.perf_counter() - started
    manager.delete(topic, 0)
    shutil.rmtree(log.directory)
    return took


def _pwrite_once(path: str, data: bytearray, count: int) -> float:
    name = f"{path}/bare"
    descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    position = 0
    started = time.perf_counter()
    for _ in range(count):
        os.pwrite(descriptor, data, position)
        position += len(data)
    took = time.perf_counter() - started
    os.close(descriptor)
    os.unlink(name)
    return took


def opening(path: str, gigabytes: float) -> None:
    segments = 100
    config = LogConfig(segment_bytes=int(gigabytes * 1e9 / segments))
    manager = logs_in(path, config)
    log = manager.create("t", 0, bytes(16))
    data = batch_of(64, 990)
    while len(log.segments) < segments or log.active.size < config.segment_bytes // 2:
        struct.pack_into(">q", data, 0, 0)
        log.append_as_leader(memoryview(data), 0)
    manager.close()
    size = log.size
    started = time.perf_counter()
    manager = logs_in(path, config)
    clean = time.perf_counter() - started
    manager.periodic.stop()
    for directory in manager.directories:
        directory.release()
    started = time.perf_counter()
    manager = logs_in(path, config)  # the recovery point says that all but the last is synced
    crash = time.perf_counter() - started
    manager.periodic.stop()
    for directory in manager.directories:
        directory.release()
    os.unlink(f"{path}/recovery-point-offset-checkpoint")
    started = time.perf_counter()
    manager = logs_in(path, config)
    whole = time.perf_counter() - started
    manager.close()
    print(
        f"open {size / 1e9:.1f} GB in {segments} segments: {clean * 1e3:.0f} ms after a clean stop,"
        f" {crash * 1e3:.0f} ms after a crash, {whole:.2f} s with all of it to check"
        f" ({size / whole / MEGA:.0f} MB/s)"
    )


def compaction(path: str, megabytes: int) -> None:
    config = LogConfig(
        cleanup_policy=(COMPACT,), segment_bytes=16 * MEGA, min_cleanable_dirty_ratio=0.01
    )
    manager = logs_in(path, config)
    log = manager.create("t", 0, bytes(16))
    keys = 100_000
    written = number = 0
    while written < megabytes * MEGA:
        builder = BatchBuilder()
        for _ in range(100):
            builder.append(NOW_MS, b"key-%d" % (number * 7919 % keys), os.urandom(100))
            number += 1
        data = builder.build(0)
        log.append_as_leader(memoryview(data), 0)
        written += len(data)
    log.roll()
    log.high_watermark = log.log_end_offset
    clock = manager.env.clock
    assert isinstance(clock, ManualClock)
    started = time.perf_counter()
    manager.periodic.cleaner.run()
    while manager.periodic.cleaner.is_running:
        clock.advance(1)
    took = time.perf_counter() - started
    print(
        f"compaction: {written / MEGA:.0f} MB of {number} records, {keys} keys, to"
        f" {log.size / MEGA:.0f} MB: {took:.1f} s, {written / took / MEGA:.1f} MB/s"
    )
    manager.close()


def memory(path: str, count: int) -> None:
    manager = logs_in(path)
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    started = time.process_time()
    for partition in range(count):
        manager.create("topic", partition, bytes(16))
    took = time.process_time() - started
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    used = (after - before) / count
    started = time.process_time()
    for partition in range(count, count + 1000):
        manager.create("topic", partition, bytes(16))
    untraced = (time.process_time() - started) / 1000
    print(
        f"{count} idle partitions: {used:.0f} bytes of memory each,"
        f" {untraced * 1e6:.0f} us of CPU to create one ({took / count * 1e6:.0f} us traced)"
    )
    started = time.perf_counter()
    manager.close()
    closed = time.perf_counter() - started
    started = time.perf_counter()
    manager = logs_in(path)
    opened = time.perf_counter() - started
    print(f"  closed in {closed:.1f} s, opened again in {opened:.1f} s")
    manager.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", default=None, help="where to write")
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--compact-megabytes", type=int, default=60)
    parser.add_argument("--partitions", type=int, default=10_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory) as root:
        for name in ("append", "open", "compaction", "memory"):
            Path(root, name).mkdir()
        append(f"{root}/append")
        opening(f"{root}/open", options.gigabytes)
        shutil.rmtree(f"{root}/open")
        compaction(f"{root}/compaction", options.compact_megabytes)
        memory(f"{root}/memory", options.partitions)


if __name__ == "__main__":
    main()
