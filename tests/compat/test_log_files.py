"""Apache Kafka's tools read our files, and we read Apache Kafka's; each goes on where the other
stopped, in one data directory."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kafkalite.env import manual_env
from kafkalite.env.clock import ManualClock
from kafkalite.env.disk import RealDisk
from kafkalite.jvm import jars, java
from kafkalite.log.checkpoints import read_properties
from kafkalite.log.config import COMPACT, LogConfig, LogSettings
from kafkalite.log.manager import LogManager
from kafkalite.log.partition_log import AppendOrigin, PartitionLog
from kafkalite.records.batch import Compression, iterate_headers
from tests.compat.brokers import APACHE_KAFKA, start
from tests.unit.log.making import START_MS, batch, keyed, marker, read_all

pytestmark = pytest.mark.compat

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
SMALL = {"log.segment.bytes": "1048576", "log.cleaner.backoff.ms": "200"}
QUIET = LogSettings(log_cleaner_enable=False)


def open_logs(path: Path, configs: dict[str, LogConfig] | None = None) -> LogManager:
    """Every log in a directory, whoever wrote it."""
    disk = RealDisk()
    known = path / "meta.properties"
    properties = read_properties(disk, str(known)) if known.exists() else {}
    env = manual_env(disk=disk)
    env.clock = ManualClock(time.time_ns() // 1_000_000)
    manager = LogManager(
        env,
        [str(path)],
        node_id=int(properties.get("node.id", 1)),
        cluster_id=properties.get("cluster.id", "a2Fma2FsaXRlLXRlc3QtMQ"),
        settings=QUIET,
        config_of=lambda topic: (configs or {}).get(topic, LogConfig()),
    )
    assert manager.start().is_resolved
    return manager


def dump(*options: str, files: list[Path]) -> str:
    """What `kafka-dump-log` prints."""
    call = java.command(
        jars.class_path("reference"),
        "org.apache.kafka.tools.DumpLogSegments",
        *options,
        "--files",
        ",".join(map(str, files)),
    )
    done = subprocess.run(call, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


COMPLAINTS = re.compile(
    r"mismatch|corrupt|not found|exception|isvalid: false|invalid", re.IGNORECASE
)
# The tool takes each file as if it began at offset 0.
GAP = re.compile(r"^  (?!-1 )\d+ is followed by \d+$", re.MULTILINE)


def files_of(log: PartitionLog) -> list[Path]:
    kinds = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
    return sorted(path for path in Path(log.directory).iterdir() if path.suffix in kinds)


def fill(log: PartitionLog) -> None:
    """Every codec, an idempotent producer, transactions of both ends, many segments."""
    sequence = 0
    for index in range(120):
        codec = Compression(index % 5)
        pairs = [
            (b"k%d" % (index % 7), b"value %d/%d " % (index, n) * 5) for n in range(1 + index % 4)
        ]
        log.append_as_leader(
            keyed(
                pairs, timestamp=START_MS + index * 10, step_ms=3, compression=codec,
                producer_id=4, producer_epoch=0, base_sequence=sequence,
            ),
            index // 40,
        )  # fmt: skip
        sequence += len(pairs)
        if index % 10 == 0:
            transactional = keyed(
                [(b"t", b"in a transaction")], timestamp=START_MS + index * 10, producer_id=9,
                producer_epoch=0, base_sequence=index // 10, is_transactional=True,
            )  # fmt: skip
            log.append_as_leader(transactional, index // 40)
            end = marker(9, 0, commit=index % 20 == 0, timestamp=START_MS + index * 10)
            log.append_as_leader(end, index // 40, AppendOrigin.COORDINATOR)
    log.replicated(log.log_end_offset)


@pytest.mark.parametrize("kind", ["plain", "compacted"])
def test_kafkas_tool_reads_every_file(kind: str, tmp_path: Path) -> None:
    config = LogConfig(
        cleanup_policy=(COMPACT,) if kind == "compacted" else ("delete",),
        segment_bytes=4000, index_interval_bytes=300, min_cleanable_dirty_ratio=0.01,
        delete_retention_ms=0,
    )  # fmt: skip
    manager = open_logs(tmp_path, {"t": config})
    log = manager.create("t", 0, bytes(range(16)))
    fill(log)
    if kind == "compacted":
        before = len(read_all(log))
        cleaner = manager.periodic.cleaner
        clock = manager.env.clock
        assert isinstance(clock, ManualClock)
        for _ in range(3):
            cleaner.run()
            clock.advance(10)
            clock.advance(100_000)
        assert len(read_all(log)) < before
    manager.close()
    files = files_of(log)
    assert {path.suffix for path in files} >= {".log", ".index", ".timeindex", ".snapshot"}
    assert any(path.suffix == ".txnindex" for path in files) or kind == "compacted"
    printed = dump("--deep-iteration", "--print-data-log", files=files)
    assert not COMPLAINTS.search(printed), COMPLAINTS.search(printed)
    assert kind == "compacted" or not GAP.search(printed)
    offsets = [int(found) for found in re.findall(r"^\| offset: (\d+) ", printed, re.MULTILINE)]
    assert offsets == [record.offset for record in read_all(open_logs(tmp_path).logs[0])]
    assert "producerId: 9" in printed
    indexes = [path for path in files if path.suffix in (".index", ".timeindex")]
    for option in ("--index-sanity-check", "--verify-index-only"):
        printed = dump(option, files=indexes)
        assert not COMPLAINTS.search(printed), printed
        assert option != "--index-sanity-check" or len(
            re.findall("passed sanity check|is empty", printed)
        ) == len(indexes)


def produce(
    bootstrap: str, values: list[bytes], topic: str, step_ms: int = 1, **settings: object
) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, **settings})
    start_ms = time.time_ns() // 1_000_000 - step_ms * len(values)
    for index, value in enumerate(values):
        timestamp = start_ms + step_ms * index
        producer.produce(topic, value, key=b"k%d" % (index % 10), partition=0, timestamp=timestamp)
        producer.poll(0)
    assert producer.flush(30) == 0


def consume(bootstrap: str, topic: str, **settings: object) -> list[bytes]:
    consumer = Consumer({
        "bootstrap.servers": bootstrap, "group.id": "reader", "auto.offset.reset": "earliest",
        "enable.partition.eof": True, "enable.auto.commit": False, **settings,
    })  # fmt: skip
    consumer.assign([TopicPartition(topic, 0, 0)])
    values = []
    while True:
        message = consumer.poll(20)
        assert message is not None
        if message.error():
            break
        values.append(message.value())
    consumer.close()
    return values


def fill_apache_kafka(bootstrap: str) -> list[bytes]:
    """Every codec, transactions of both ends, a compacted topic; returns what is committed."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    compacted = {
        "cleanup.policy": "compact", "segment.ms": "1000", "min.cleanable.dirty.ratio": "0.01",
        "index.interval.bytes": "100",
    }  # fmt: skip
    topics = [NewTopic("all", 1, 1), NewTopic("some", 1, 1, config=compacted)]
    for created in admin.create_topics(topics).values():
        created.result(30)
    written: list[bytes] = []
    dice = Random(1)
    for codec in CODECS:
        values = [codec.encode() + dice.randbytes(300) for _ in range(2000)]
        settings: dict[str, Any] = {"compression.type": codec, "enable.idempotence": True}
        produce(bootstrap, values, "all", **settings)
        written += values
    for outcome in ("commit", "abort", "commit"):
        transact(bootstrap, outcome)
        written += [b"commit"] if outcome == "commit" else []
    few: dict[str, Any] = {"batch.num.messages": 10}
    produce(bootstrap, [b"%d" % index for index in range(500)], "some", step_ms=50, **few)
    return written


def wait_for_compaction(data: Path) -> None:
    """Until Apache Kafka's cleaner has gone over the compacted topic."""
    deadline = time.monotonic() + 60
    path = data / "cleaner-offset-checkpoint"
    while not (path.exists() and "some 0 " in path.read_text()):
        assert time.monotonic() < deadline, "nothing was compacted"
        time.sleep(0.1)


def check_as_kafka_reads_it(log: PartitionLog) -> None:
    """Every record, as `kafka-dump-log` prints it, and each of them by the indexes."""
    records = read_all(log)
    files = [path for path in files_of(log) if path.suffix == ".log"]
    printed = dump("--deep-iteration", "--print-data-log", files=files)
    rows = re.findall(
        r"^\| offset: (\d+) CreateTime: (-?\d+) keySize: (-?\d+) valueSize: (-?\d+)", printed,
        re.MULTILINE,
    )  # fmt: skip
    sizes = [
        (
            one.offset,
            one.timestamp,
            *(-1 if part is None else len(part) for part in (one.key, one.value)),
        )
        for one in records
    ]
    assert [tuple(map(int, row)) for row in rows] == sizes
    for record in records[:: max(1, len(records) // 300)]:
        found = log.read(record.offset, 1).range
        assert found is not None
        header = next(iterate_headers(found.read()))
        assert header.base_offset <= record.offset <= header.last_offset
        at = log.offset_for_time(record.timestamp)
        assert at is not None
        assert at.offset == next(r.offset for r in records if r.timestamp >= record.timestamp)


def transact(bootstrap: str, outcome: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"x-{outcome}"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("all", outcome.encode(), partition=0)
    if outcome == "commit":
        producer.commit_transaction(30)
    else:
        producer.flush(30)
        producer.abort_transaction(30)


def found_log(manager: LogManager, topic: str) -> PartitionLog:
    log = manager.get(topic, 0)
    assert log is not None
    log.replicated(log.log_end_offset)
    return log


def check_and_write_on(folder: Path, written: list[bytes]) -> tuple[list[bytes], int]:
    """What Apache Kafka wrote is read here, and written on; returns what was added and the end."""
    manager = open_logs(folder)
    log = found_log(manager, "all")
    records = read_all(log)
    assert [r.value for r in records if r.value in set(written)] == written
    assert len(log.aborted_transactions(0, log.log_end_offset)) == 1
    assert log.last_stable_offset == log.log_end_offset
    assert len(log.segments) > 1
    assert len(log.active_producers()) >= 6
    newest = log.offset_for_time(-3)
    assert newest is not None
    assert newest.timestamp == max(record.timestamp for record in records)
    check_as_kafka_reads_it(log)
    some = found_log(manager, "some")
    check_as_kafka_reads_it(some)
    assert len(read_all(some)) < 400
    assert manager.periodic.cleaner.cleaned_to(some) > 0
    latest = {record.key: record.value for record in read_all(some)}
    assert latest == {b"k%d" % index: b"%d" % (490 + index) for index in range(10)}
    added = [b"written by the other broker %d" % index for index in range(50)]
    for value in added:
        log.append_as_leader(batch([value], timestamp=newest.timestamp), log.epochs.latest)
    log.roll()
    added.append(b"in a new segment")
    log.append_as_leader(batch(added[-1:], timestamp=newest.timestamp), log.epochs.latest)
    manager.close()
    return added, log.log_end_offset


@pytest.mark.timeout(240)
def test_both_brokers_go_on_where_the_other_stopped(tmp_path: Path) -> None:
    committed = {"isolation.level": "read_committed"}
    broker = start(APACHE_KAFKA, tmp_path, SMALL)
    written = fill_apache_kafka(broker.bootstrap)
    assert consume(broker.bootstrap, "all", **committed) == written
    wait_for_compaction(tmp_path / "data")
    broker.stop()
    added, end_offset = check_and_write_on(tmp_path / "data", written)

    broker = start(APACHE_KAFKA, tmp_path, SMALL)
    expected = [*written, *added]
    assert consume(broker.bootstrap, "all", **committed) == expected
    produce(broker.bootstrap, [b"and back"], "all")
    expected.append(b"and back")
    assert consume(broker.bootstrap, "all", **committed) == expected
    assert not re.search(r"ERROR|corrupt", broker.log()), broker.log()[-3000:]
    broker.kill()

    # After a kill the recovery is ours.
    manager = open_logs(tmp_path / "data")
    log = found_log(manager, "all")
    assert log.log_end_offset == end_offset + 1
    assert [r.value for r in read_all(log) if r.value in set(expected)] == expected
    manager.close()
