"""`kafkalite dump`: what it prints of frames, files and layouts made here."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalite.cli.main import main
from kafkalite.protocol import codec, headers
from kafkalite.protocol.messages import (
    ApiVersionsResponse,
    ConfigRecord,
    CreateDelegationTokenResponse,
    MetadataRequest,
    OffsetCommitKey,
    OffsetCommitValue,
    ProduceRequest,
    RequestHeader,
    SaslAuthenticateRequest,
    TopicRecord,
    UserScramCredentialRecord,
)
from kafkalite.records.control import ControlType, EndTransactionMarker, build_marker_batch
from kafkalite.records.record import BatchBuilder

TOPIC_ID = bytes(range(16))


def dump(*words: object, given: bytes | None = None) -> str:
    done = CliRunner().invoke(main, ["dump", *map(str, words)], input=given)
    assert done.exit_code == 0, done.output
    return done.output


def refused(*words: object, given: bytes | None = None) -> str:
    done = CliRunner().invoke(main, ["dump", *map(str, words)], input=given)
    assert done.exit_code != 0
    return done.output


def dump_rows(*words: object, given: bytes | None = None) -> list:
    text = dump(*words, "--format", "json", given=given)
    return [json.loads(line) for line in text.splitlines()]


def request_frame(message, version: int) -> bytes:
    header = RequestHeader(
        request_api_key=message.API_KEY,
        request_api_version=version,
        correlation_id=7,
        client_id="me",
    )
    header_version = headers.request_header_version(message.API_KEY, version)
    return codec.encode(header, header_version) + codec.encode(message, version)


def sized(frame: bytes) -> bytes:
    return len(frame).to_bytes(4, "big") + frame


def batch(*values: bytes | None, base_offset: int = 0) -> bytes:
    builder = BatchBuilder()
    for number, value in enumerate(values):
        builder.append(1000 + number, b"key", value, [("trace", b"\x00")])
    return bytes(builder.build(base_offset))


METADATA = MetadataRequest(topics=[MetadataRequest.Topic(name="orders")])


@pytest.mark.parametrize("form", ["bytes", "hexadecimal", "spaced"])
def test_request_is_shown_with_its_header(form: str) -> None:
    frame = sized(request_frame(METADATA, 9))
    forms = {
        "bytes": frame,
        "hexadecimal": frame.hex().encode(),
        "spaced": frame.hex(" ").encode() + b"\n",
    }
    [row] = dump_rows("frame", given=forms[form])
    assert row["request"] == "Metadata"
    assert (row["version"], row["correlation_id"], row["client_id"]) == (9, 7, "me")
    assert row["body"]["topics"] == [{"name": "orders"}]


def test_frames_without_sizes_and_several_with_sizes() -> None:
    frame = request_frame(METADATA, 9)
    assert len(dump_rows("frame", given=frame)) == 1
    assert len(dump_rows("frame", given=sized(frame) * 3)) == 3


def test_response_is_shown_for_its_api_and_version() -> None:
    body = ApiVersionsResponse(error_code=35)
    frame = headers.encode_response_header(18, 3, 7) + codec.encode(body, 3)
    for api in ("ApiVersions", "api_versions", "18"):
        [row] = dump_rows("frame", "--response", api, "--version", 3, given=frame)
        assert row["correlation_id"] == 7
        assert row["body"]["error_code"] == "UNSUPPORTED_VERSION"


def test_batches_inside_a_request_are_shown() -> None:
    partition = ProduceRequest.PartitionData(index=0, records=batch(b"hello", None))
    topic = ProduceRequest.TopicData(name="t", partition_data=[partition])
    request = ProduceRequest(topic_data=[topic])
    [row] = dump_rows("frame", given=request_frame(request, 9))
    [shown] = row["body"]["topic_data"][0]["partition_data"][0]["records"]
    assert [record["value"] for record in shown["records"]] == ["hello", None]


def test_what_is_secret_is_not_shown(tmp_path: Path) -> None:
    secret = "hunter2"
    password = ConfigRecord(resource_type=4, resource_name="1", name="ssl.key.password")
    password.value = secret
    records: list[Any] = [
        password,
        UserScramCredentialRecord(
            name="alice", mechanism=1, iterations=4096, salt=b"s", stored_key=secret.encode(),
            server_key=secret.encode(),
        ),
    ]  # fmt: skip
    values = [bytes([1, each.SPEC.type, 0]) + codec.encode(each, 0) for each in records]
    values += [values[0][:-1], b"\1\x7f\0" + secret.encode()]  # cut off, and of another kind
    path = tmp_path / "__cluster_metadata-0" / "00000000000000000000.log"
    path.parent.mkdir()
    path.write_bytes(batch(*values))
    assert secret in path.read_text("latin-1")
    shown = dump("segment", path)
    assert secret not in shown
    assert secret.encode().hex() not in shown
    assert "[hidden]" in shown
    assert "ssl.key.password" in shown
    token = SaslAuthenticateRequest(auth_bytes=b"\0alice\0" + secret.encode())
    assert dump_rows("frame", given=request_frame(token, 2))[0]["body"] == {"auth_bytes": ""}
    made = CreateDelegationTokenResponse(token_id="an-id", hmac=secret.encode())
    frame = headers.encode_response_header(38, 3, 7) + codec.encode(made, 3)
    told = dump("frame", "--response", "38", "--version", 3, given=frame)
    assert "an-id" in told
    assert secret not in told


def test_what_is_no_frame_is_refused_in_a_sentence() -> None:
    assert "not a frame" in refused("frame", given=b"\x7f\xff not a frame")
    assert "not a frame" in refused("frame", given=request_frame(METADATA, 9)[:-2])
    assert "--version" in refused("frame", "--response", "Metadata", given=b"")


def test_segment_shows_batches_and_records(tmp_path: Path) -> None:
    path = tmp_path / "orders-0" / "00000000000000000000.log"
    path.parent.mkdir()
    path.write_bytes(batch(b"a", b"b") + batch(b"c", base_offset=2))
    first, second = dump_rows("segment", path)
    assert (first["base_offset"], first["last_offset"], first["count"]) == (0, 1, 2)
    assert second["position"] == first["size"]
    [record] = second["records"]
    assert (record["offset"], record["timestamp"], record["value"]) == (2, 1000, "c")
    assert record["headers"] == [{"key": "trace", "value": "0x00"}]
    assert "records" not in dump_rows("segment", "--headers", path)[0]


def test_segment_is_shown_up_to_where_it_is_corrupt(tmp_path: Path) -> None:
    whole = batch(b"a") + batch(b"b", base_offset=1)
    path = tmp_path / "00000000000000000000.log"
    flipped = whole[:-1] + bytes([whole[-1] ^ 1])
    for damaged, reason in ((flipped, "crc"), (whole[:-1], "bytes")):
        path.write_bytes(damaged)
        good, bad = dump_rows("segment", path)
        assert good["base_offset"] == 0
        assert reason in bad["unreadable"]
        assert bad["position"] == good["size"]


def test_internal_topics_are_decoded(tmp_path: Path) -> None:
    key = OffsetCommitKey(group="g", topic="t", partition=3)
    value = OffsetCommitValue(offset=42, metadata="m")
    builder = BatchBuilder()
    encoded_key = key.TYPE.to_bytes(2, "big") + codec.encode(key, 0)
    builder.append(1000, encoded_key, (4).to_bytes(2, "big") + codec.encode(value, 4))
    builder.append(1001, encoded_key, None)
    builder.append(1002, b"\x7f\x7f", b"")
    path = tmp_path / "__consumer_offsets-7" / "00000000000000000000.log"
    path.parent.mkdir()
    path.write_bytes(builder.build())
    commit, deleted, unknown = dump_rows("segment", path)[0]["records"]
    assert commit["type"] == "OffsetCommit"
    assert commit["key"] == {"group": "g", "topic": "t", "partition": 3}
    assert commit["value"]["offset"] == 42
    assert deleted["value"] is None
    assert unknown["unreadable"]


def test_metadata_log_is_decoded(tmp_path: Path) -> None:
    record = codec.encode(TopicRecord(name="orders", topic_id=TOPIC_ID), 0)
    builder = BatchBuilder()
    builder.append(1000, None, bytes([1, TopicRecord().TYPE, 0]) + record)
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(builder.build())
    [row] = dump_rows("segment", "--as", "__cluster_metadata", path)[0]["records"]
    assert row["type"] == "TopicRecord"
    assert row["value"] == {"name": "orders", "topic_id": "AAECAwQFBgcICQoLDA0ODw"}


def test_transaction_marker_is_named(tmp_path: Path) -> None:
    marker = EndTransactionMarker(ControlType.ABORT, coordinator_epoch=5)
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(build_marker_batch(marker, producer_id=9, producer_epoch=1, timestamp=1000))
    [row] = dump_rows("segment", path)
    assert (row["is_control"], row["producer_id"]) == (True, 9)
    assert row["records"][0]["control"] == "ABORT"
    assert row["records"][0]["value"] == {"coordinator_epoch": 5}


@pytest.mark.parametrize(
    ("name", "data", "rows"),
    [
        (
            "00000000000000000100.index",
            bytes.fromhex("00000005 00001000 00000000 00000000"),
            [{"offset": 105, "position": 4096}],
        ),
        (
            "00000000000000000100.timeindex",
            bytes.fromhex("00000000000003e8 00000005"),
            [{"timestamp": 1000, "offset": 105}],
        ),
        ("leader-epoch-checkpoint", b"0\n1\n0 0\n", ["0", "1", "0 0"]),
    ],
)
def test_files_beside_segments(name: str, data: bytes, rows: list, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    assert dump_rows("segment", tmp_path / name) == rows


def test_aborted_transactions_and_producers(tmp_path: Path) -> None:
    aborted = tmp_path / "00000000000000000000.txnindex"
    aborted.write_bytes(bytes.fromhex("0000" + "".join(f"{n:016x}" for n in (9, 1, 4, 6))))
    [row] = dump_rows("segment", aborted)
    assert (row["producer_id"], row["first_offset"], row["last_stable_offset"]) == (9, 1, 6)
    producers = tmp_path / "00000000000000000000.snapshot"
    producers.write_bytes(bytes.fromhex("0001 00000000 00000000"))
    [head] = dump_rows("segment", producers)
    assert head == {"version": 1, "crc": 0, "crc_is_right": False, "count": 0}


def test_text_is_indented(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(batch(b"a"))
    lines = dump("segment", path).splitlines()
    assert lines[0] == "- base_offset: 0"
    assert "    - offset: 0" in lines


def test_spec_shows_one_version_or_all() -> None:
    old = dump("spec", "metadata", "--version", 0)
    assert "allow_auto_topic_creation" not in old
    assert "allow_auto_topic_creation: bool = true  @4-13" in dump("spec", "Metadata")
    assert dump("spec", "3", "--version", 0) == old
    assert dump("spec", "OffsetCommitKey").startswith("OffsetCommitKey type=1")
    assert "nothing" in refused("spec", "nothing")
    assert "no version 99" in refused("spec", "metadata", "--version", 99)
