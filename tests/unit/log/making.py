"""Batches, logs and worlds for tests of the log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kafkalite.env import Env, manual_env
from kafkalite.env.clock import ManualClock
from kafkalite.env.disk import Disk
from kafkalite.log.config import LogConfig, LogSettings
from kafkalite.log.manager import LogManager
from kafkalite.log.partition_log import PartitionLog
from kafkalite.records.batch import iterate_headers
from kafkalite.records.control import (
    ControlType,
    EndTransactionMarker,
    build_marker_batch,
    read_batch_marker,
)
from kafkalite.records.convert import iterate_any
from kafkalite.records.record import BatchBuilder, Record

ROOT = "/data"
TOPIC_ID = bytes(range(16))
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
START_MS = 1_700_000_000_000


def batch(
    values: Iterable[bytes | None], *, keys: Iterable[bytes | None] | None = None,
    timestamp: int = START_MS, step_ms: int = 0, **fields: object,
) -> memoryview:  # fmt: skip
    """A batch of a client with these values."""
    builder = BatchBuilder()
    values = list(values)
    for index, (key, value) in enumerate(zip(keys or [None] * len(values), values, strict=True)):
        builder.append(timestamp + index * step_ms, key, value)
    return memoryview(builder.build(0, **fields))  # type: ignore[arg-type]


def keyed(pairs: Iterable[tuple[bytes, bytes | None]], **fields: object) -> memoryview:
    pairs = list(pairs)
    return batch(
        [value for _, value in pairs],
        keys=[key for key, _ in pairs],
        **fields,  # type: ignore[arg-type]
    )


def marker(
    producer_id: int,
    epoch: int,
    *,
    commit: bool,
    coordinator_epoch: int = 0,
    timestamp: int = START_MS,
) -> memoryview:
    kind = ControlType.COMMIT if commit else ControlType.ABORT
    return memoryview(
        build_marker_batch(
            EndTransactionMarker(kind, coordinator_epoch),
            producer_id=producer_id,
            producer_epoch=epoch,
            timestamp=timestamp,
        )
    )


def open_logs(
    env: Env, config: LogConfig | None = None, settings: LogSettings | None = None
) -> LogManager:
    """All logs of a broker that starts in this world."""
    manager = LogManager(
        env,
        [ROOT],
        node_id=1,
        cluster_id=CLUSTER_ID,
        settings=settings,
        config_of=lambda topic: config or LogConfig(),
        # As of a broker with one directory.
        named_directory=lambda topic, partition: manager.directories[0].directory_id,
    )
    loaded = manager.start()
    assert loaded.is_resolved
    return manager


def abandon(manager: LogManager) -> None:
    """The process dies: nothing is written any more, the locks are free."""
    manager.periodic.stop()
    for directory in manager.directories:
        directory.release()


class World:
    """A broker's logs on a disk that a test owns."""

    def __init__(
        self,
        config: LogConfig | None = None,
        disk: Disk | None = None,
        settings: LogSettings | None = None,
    ) -> None:
        self.config = config or LogConfig()
        self.settings = settings
        self.env = manual_env(disk=disk)
        assert isinstance(self.env.clock, ManualClock)
        self.clock: ManualClock = self.env.clock
        self.disk = self.env.disk
        self.manager = open_logs(self.env, self.config, settings)

    def log(self, topic: str = "t", partition: int = 0) -> PartitionLog:
        found = self.manager.get(topic, partition)
        return found or self.manager.create(topic, partition, TOPIC_ID, self.config)

    def restart(self, *, clean: bool) -> PartitionLog:
        if clean:
            self.manager.close()
        else:
            abandon(self.manager)
        self.manager = open_logs(self.env, self.config, self.settings)
        return self.log()

    def names(self, topic: str = "t") -> list[str]:
        return self.disk.list_directory(f"{ROOT}/{topic}-0")


def committed(log: PartitionLog) -> PartitionLog:
    log.replicated(log.log_end_offset)
    return log


def read_all(log: PartitionLog, max_bytes: int = 1 << 20) -> list[Record]:
    """Every record, control records too, read as a consumer does."""
    return list(iterate_log(log, max_bytes))


def iterate_log(log: PartitionLog, max_bytes: int = 1 << 20) -> Iterator[Record]:
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        found = log.read(offset, max_bytes)
        if found.range is None:
            return
        data = found.range.read()
        start = offset
        for header in iterate_headers(data):
            for record in iterate_any(data, header):
                if record.offset >= offset:
                    yield record
            offset = max(offset, header.next_offset)
        assert offset > start, "a read that brings nothing"


def fetched(log: PartitionLog, max_bytes: int, *, is_committed_only: bool) -> Iterator[Record]:
    """What a consumer of either kind is given, by Fetches of so many bytes or one batch."""
    offset = log.log_start_offset
    limit = log.last_stable_offset if is_committed_only else log.high_watermark
    while offset < limit and (found := log.read(offset, max_bytes, limit)).range is not None:
        data = found.range.read()
        pending = sorted(
            log.aborted_transactions(offset, found.end_offset), key=lambda each: each[1]
        )
        aborted: set[int] = set()
        start = offset
        for header in iterate_headers(data):
            while pending and pending[0][1] <= header.last_offset:
                aborted.add(pending.pop(0)[0])
            offset = header.next_offset
            if header.is_control:
                ending = read_batch_marker(data, header)
                if ending is not None and not ending.is_commit:
                    aborted.discard(header.producer_id)
                continue
            if is_committed_only and header.is_transactional and header.producer_id in aborted:
                continue
            yield from (r for r in iterate_any(data, header) if r.offset >= start)
        assert offset > start, "a read that brings nothing"
