"""Log directories as Apache Kafka's StorageTool leaves them, and what Apache Kafka would find in
them later: its own way through control records and versions, written down once more."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from kafkalite.config import BrokerConfig
from kafkalite.coordinators.cluster.brokers import RegisterBroker
from kafkalite.coordinators.cluster.events import CreateTopics
from kafkalite.coordinators.cluster.local_controller import LocalController
from kafkalite.coordinators.cluster.metadata import Metadata
from kafkalite.coordinators.cluster.snapshots import SnapshotId, SnapshotWriter, list_snapshots
from kafkalite.coordinators.cluster.states import EndPoint
from kafkalite.env import Env, manual_env
from kafkalite.env.disk import Disk, read_whole, replace_file
from kafkalite.env.slicing import finish
from kafkalite.log.config import LogSettings
from kafkalite.log.home import LogHome
from kafkalite.log.names import parse_uuid
from kafkalite.protocol.messages import CreateTopicsRequest, FeatureLevelRecord
from kafkalite.records.batch import BatchHeader, iterate_headers, verify
from kafkalite.records.control import ControlType, read_type
from kafkalite.records.record import BatchBuilder, Record, iterate_records

DIRECTORY = "/data/__cluster_metadata-0"
DIRECTORY_ID = parse_uuid("De8RggNJSwekeVfG4JJe9g")
# 00000000000000000000-0000000000.checkpoint as `format --standalone` of release 4.3.1 wrote it: the
# header of a snapshot, kraft.version 1, the voters, and the footer.
CHECKPOINT = bytes.fromhex(
    "00000000000000000000009a0000000002c5b59773002000000002000001a1f2234447000001a1f2234447ffff"
    "ffffffffffffffffffffffff000000032a0000000800000003160000000001a1f223443f00001e000002080000"
    "00050a000000010000820100000408000000066e000002000000010def118203494b07a47957c6e0925ef6020b"
    "434f4e54524f4c4c45520a3132372e302e302e315b6a00000000010000000000000000000000030000003f0000"
    "000002a1832e5d002000000000000001a1f2234454000001a1f2234454ffffffffffffffffffffffffffff0000"
    "00011a00000008000000040600000000"
)


def formatted(level: int = 30, *, is_standalone: bool = True, features: Any = None) -> Env:
    """A world whose directory was formatted for a level of metadata.version and never served."""
    env = manual_env(3)
    env.disk.make_directory(DIRECTORY if is_standalone else "/data")
    if is_standalone:
        replace_file(env.disk, f"{DIRECTORY}/{SnapshotId(0, 0).file_name}", CHECKPOINT)
    levels = {"metadata.version": level, **(features or {})}
    records = [FeatureLevelRecord(name=name, feature_level=levels[name]) for name in levels]
    write_bootstrap(env, *records)
    return env


def write_bootstrap(env: Env, *records: Any) -> None:
    """The file in which formatting leaves what the cluster shall begin with."""
    finish(SnapshotWriter(env.disk, "/data", 30, 0).write(SnapshotId(0, 0), [], records))()
    env.disk.rename(f"/data/{SnapshotId(0, 0).file_name}", "/data/bootstrap.checkpoint")


def open_controller(env: Env, settings: dict[str, str] | None = None) -> LocalController:
    """The controller over it, and its own broker."""
    home = LogHome(env, "/data", LogSettings())
    config = BrokerConfig({"node.id": "1", **(settings or {})})
    controller = LocalController(env, home, config, Metadata("a-cluster"), DIRECTORY_ID)
    controller.read()
    controller.open()
    endpoint = EndPoint("PLAINTEXT", "", 9092, 0)
    controller.decide(RegisterBroker(1, [endpoint], None, [DIRECTORY_ID], True))
    return controller


def create(controller: LocalController, name: str) -> None:
    topic = CreateTopicsRequest.Topic(name=name, num_partitions=2, replication_factor=1)
    (answer,) = controller.decide(CreateTopics(CreateTopicsRequest(topics=[topic]))).topics
    assert answer.error_code == 0, answer


def append_raw(env: Env, *values: bytes) -> None:
    """Records that some other controller has written at the end of the log."""
    path = f"{DIRECTORY}/{sorted(_names(env.disk, '.log'))[-1]}"
    data = read_whole(env.disk, path)
    last = [*iterate_headers(data)][-1]
    builder = BatchBuilder()
    for value in values:
        builder.append(0, None, value)
    replace_file(env.disk, path, data + builder.build(last.next_offset, 1))


def _names(disk: Disk, end: str) -> list[str]:
    return [name for name in disk.list_directory(DIRECTORY) if name.endswith(end)]


@dataclass
class Found:
    """What a controller of Apache Kafka knows after it has read everything."""

    end_offset: int = 0
    kraft_version: int = 0
    voters: bytes | None = None
    level: int | None = None
    is_in_transaction: bool = False
    # Type and version of each record, and the level that was finalized when it was read.
    written: list[tuple[int, int, int]] = field(default_factory=list)
    state: dict[str, Any] = field(default_factory=dict)

    def take(self, header: BatchHeader, record: Record) -> None:
        if header.is_control:
            kind = read_type(record.key)
            assert record.value is not None
            if kind == ControlType.KRAFT_VERSION:
                self.kraft_version = int.from_bytes(record.value[2:4], "big")
            elif kind == ControlType.KRAFT_VOTERS:
                self.voters = record.value
            return
        assert record.value is not None
        _, number, version = record.value[:3]
        if number == 12 and b"metadata.version" in record.value:
            self.level = int.from_bytes(record.value[-3:-1], "big")
        self.is_in_transaction = number == 23 or (self.is_in_transaction and number not in (24, 25))
        assert self.level is not None or number == 23
        self.written.append((number, version, self.level or 0))


def apache_kafka_finds(env: Env) -> Found:
    """Reads the newest snapshot and the log behind it."""
    found = Found()
    snapshots = list_snapshots(env.disk, DIRECTORY)
    if snapshots:
        data = read_whole(env.disk, f"{DIRECTORY}/{snapshots[-1].file_name}")
        _take_all(found, data, 0)
        assert not found.is_in_transaction, "a snapshot has no transactions"
        found.end_offset = snapshots[-1].end_offset
    for name in sorted(_names(env.disk, ".log")):
        _take_all(found, read_whole(env.disk, f"{DIRECTORY}/{name}"), found.end_offset)
    found.state = json.loads(read_whole(env.disk, f"{DIRECTORY}/quorum-state"))
    return found


def _take_all(found: Found, data: bytes, start: int) -> None:
    for header in iterate_headers(data):
        verify(data, header)
        if header.next_offset <= start:
            continue
        for record in iterate_records(data, header):
            found.take(header, record)
        found.end_offset = header.next_offset
