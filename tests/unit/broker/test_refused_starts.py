"""Directories that a broker must not go on with: it says why in one sentence, names the way out,
and leaves every byte as it was."""

import json
from collections.abc import Callable, Iterator

import pytest

from kafkalite.coordinators.cluster.records import encode_record
from kafkalite.coordinators.cluster.snapshots import SnapshotId, SnapshotWriter
from kafkalite.env.disk import Disk, read_whole, replace_file
from kafkalite.env.slicing import finish
from kafkalite.log.checkpoints import read_properties, write_properties
from kafkalite.log.directory import WrongDirectory
from kafkalite.protocol import codec
from kafkalite.protocol.messages import (
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    KRaftVersionRecord,
    RemoveTopicRecord,
    TopicRecord,
    VotersRecord,
)
from kafkalite.records.batch import iterate_headers
from kafkalite.records.control import ControlRecord, ControlType, encode_key
from kafkalite.records.record import BatchBuilder
from tests.unit.handlers.whole_broker import WholeBroker

METADATA = "/data/__cluster_metadata-0"
NEWER = "go on with the Apache Kafka that wrote it, or with a newer kafkalite"
Deed = Callable[[Disk], None]


def appended(*values: bytes) -> Deed:
    """Records that another controller has written at the log's end."""

    def append(disk: Disk) -> None:
        builder = BatchBuilder()
        for value in values:
            builder.append(0, None, value)
        _append(disk, lambda base_offset: builder.build(base_offset, 1))

    return append


def controlled(*records: ControlRecord | tuple[int, bytes]) -> Deed:
    def append(disk: Disk) -> None:
        def build(base_offset: int) -> bytearray:
            builder = BatchBuilder()
            for kind, value in records:
                key = encode_key(ControlType.ABORT)[:2] + kind.to_bytes(2, "big")
                builder.append(0, key, value)
            return builder.build(base_offset, 1, is_control=True)

        _append(disk, build)

    return append


def _append(disk: Disk, build: Callable[[int], bytearray]) -> None:
    name = max(name for name in disk.list_directory(METADATA) if name.endswith(".log"))
    data = read_whole(disk, f"{METADATA}/{name}")
    headers = [*iterate_headers(data)]
    end_offset = headers[-1].next_offset if headers else int(name.removesuffix(".log"))
    replace_file(disk, f"{METADATA}/{name}", data + build(end_offset))


def feature(name: str, level: int) -> bytes:
    return encode_record(FeatureLevelRecord(name=name, feature_level=level), 30)


def with_tag(value: bytes) -> bytes:
    """The record with one more tagged field at its end."""
    assert value[-1] == 0
    return value[:-1] + b"\x01\x63\x02xy"


def voters(*ids: int) -> tuple[ControlRecord, ControlRecord]:
    version = codec.encode(KRaftVersionRecord(version=0, k_raft_version=1), 0)
    each = [VotersRecord.Voter(voter_id=one, voter_directory_id=b"\1" * 16) for one in ids]
    record = codec.encode(VotersRecord(version=0, voters=each), 0)
    return (ControlType.KRAFT_VERSION, version), (ControlType.KRAFT_VOTERS, record)


def static_voters(*ids: int) -> Deed:
    def write(disk: Disk) -> None:
        state = json.loads(read_whole(disk, f"{METADATA}/quorum-state"))
        state["currentVoters"] = [{"voterId": each} for each in ids]
        replace_file(disk, f"{METADATA}/quorum-state", json.dumps(state).encode())

    return write


def snapshot_of(name: str, level: int) -> Deed:
    def write(disk: Disk) -> None:
        record = FeatureLevelRecord(name=name, feature_level=level)
        finish(SnapshotWriter(disk, METADATA, 30, 0).write(SnapshotId(1_000, 1), [], [record]))()

    return write


def properties(**changes: str) -> Deed:
    def write(disk: Disk) -> None:
        found = read_properties(disk, "/data/meta.properties")
        changed = {name.replace("_", "."): value for name, value in changes.items()}
        write_properties(disk, "/data/meta.properties", {**found, **changed})

    return write


def malformed(disk: Disk) -> None:
    replace_file(disk, "/data/meta.properties", b"cluster.id=\\u12\n")


TOPIC = encode_record(TopicRecord(name="new", topic_id=b"\7" * 16), 30)
BEGIN, END = (
    encode_record(each, 30) for each in (BeginTransactionRecord(), EndTransactionRecord())
)
NO_TOPIC = encode_record(RemoveTopicRecord(topic_id=b"\5" * 16), 30)
UNUSABLE: dict[str, tuple[Deed, str]] = {
    "type": (appended(b"\x01\x1d\x00"), f"a metadata record of type 29.*{NEWER}"),
    "version": (appended(b"\x01\x02\x01" + TOPIC[3:]), f"type 2, version 1.*{NEWER}"),
    "frame": (appended(b"\x02" + TOPIC[1:]), f"frame of version 2.*{NEWER}"),
    "tag": (
        appended(with_tag(TOPIC)),
        f"a TopicRecord of version 0 with a tagged field 99.*{NEWER}",
    ),
    "feature": (appended(feature("new.version", 1)), f"feature new.version at level 1.*{NEWER}"),
    "level": (appended(feature("group.version", 2)), f"feature group.version at level 2.*{NEWER}"),
    "share": (appended(feature("share.version", 2)), f"feature share.version at level 2.*{NEWER}"),
    "release": (
        appended(feature("metadata.version", 31)),
        f"metadata.version at level 31.*{NEWER}",
    ),
    "snapshot": (snapshot_of("metadata.version", 31), f"metadata.version at level 31.*{NEWER}"),
    "control": (controlled((7, b"\0\0\0")), f"a control record of type 7.*{NEWER}"),
    "kraft": (controlled((5, b"\0\0\0\2\0")), f"kraft.version 2.*{NEWER}"),
    "nested": (appended(BEGIN, BEGIN), "is damaged.*begins within another"),
    "unbegun": (appended(END), "is damaged.*that has not begun"),
    "conflict": (appended(NO_TOPIC), "is damaged.*no topic has the id"),
    "short": (appended(b"\x01\x02"), "is damaged.*shorter"),
    "voters": (controlled(*voters(1, 2, 3)), "of the controllers 1, 2 and 3.*only controller"),
    "voter": (controlled(*voters(2)), "of controller 2.*only controller"),
    "directory": (controlled(*voters(1)), "has the directory.id AQEBAQEBAQEBAQEBAQEBAQ"),
    "static": (static_voters(1, 2, 3), "of the controllers 1, 2 and 3.*only controller"),
    "observer": (static_voters(3000), "of controller 3000.*only controller"),
    "node": (properties(node_id="2"), "says node.id=2, but this broker has 1"),
    "older-node": (properties(version="0", broker_id="2"), "says broker.id=2"),
    "malformed": (malformed, "meta.properties: .*: bring it back from a copy"),
    "properties": (properties(version="2"), f"is of version 2.*{NEWER}"),
}


def everything(disk: Disk, path: str) -> Iterator[tuple[str, bytes]]:
    """Every file; that somebody locked the directory is no trace of a start."""
    for name in disk.list_directory(path):
        child = f"{path}/{name}"
        if disk.is_directory(child):
            yield from everything(disk, child)
        elif name != ".lock":
            yield child, read_whole(disk, child)


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("why", UNUSABLE)
def test_a_refused_start_leaves_every_byte_as_it_was(why: str, is_clean: bool) -> None:
    deed, sentence = UNUSABLE[why]
    broker = WholeBroker()
    broker.create("t")
    broker.append(b"value")
    if is_clean:
        broker.close()
    else:
        broker.broker.logs.abandon()
    disk = broker.env.disk
    deed(disk)
    before = dict(everything(disk, "/data"))
    for _ in range(2):
        with pytest.raises(WrongDirectory, match=sentence) as refusal:
            broker.started_again()
        assert "\n" not in str(refusal.value)
        assert dict(everything(disk, "/data")) == before


def test_what_others_keep_in_meta_properties_stays() -> None:
    broker = WholeBroker()
    broker.close()
    disk = broker.env.disk
    found = read_properties(disk, "/data/meta.properties")
    mine = {**found, "version": "0", "broker.id": "1", "their.key": "a = b: ü # \\"}
    del mine["node.id"]
    write_properties(disk, "/data/meta.properties", mine)
    again = broker.started_again()
    assert again.broker.cluster_id == found["cluster.id"]
    assert read_properties(disk, "/data/meta.properties") == {**mine, **found}


@pytest.mark.parametrize("cluster_id", ["MkU3OEVBNTcwNTJENDM2Qg==", "a:b"])
def test_a_cluster_id_is_read_as_java_wrote_it(cluster_id: str) -> None:
    broker = WholeBroker()
    broker.close()
    properties(cluster_id=cluster_id)(broker.env.disk)
    escaped = cluster_id.replace("=", "\\=").replace(":", "\\:")
    assert f"cluster.id={escaped}\n".encode() in read_whole(
        broker.env.disk, "/data/meta.properties"
    )
    assert broker.started_again().broker.cluster_id == cluster_id
