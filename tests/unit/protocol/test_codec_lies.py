"""Every way in which a peer can lie ends as MalformedFrame, soon and without much memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from kafkalite.protocol import codec, interpreted
from kafkalite.protocol.errors import MalformedFrame
from kafkalite.protocol.messages import (
    ApiVersionsRequest,
    BrokerRegistrationRequest,
    ConsumerGroupHeartbeatResponse,
    CreateTopicsRequest,
    DescribeGroupsRequest,
    FetchRequest,
    MetadataRequest,
    OffsetCommitValue,
    ProduceRequest,
    StopReplicaRequest,
)

LIES = {
    "nothing at all": (MetadataRequest, 1, ""),
    "negative count": (MetadataRequest, 1, "fffffffe"),
    "null where none may be": (MetadataRequest, 0, "ffffffff"),
    "huge count": (MetadataRequest, 1, "7fffffff0000"),
    "count of more than the bytes left": (MetadataRequest, 1, "00000002000161"),
    "huge compact count": (MetadataRequest, 9, "ffffffff0f000000"),
    "compact null where none may be": (DescribeGroupsRequest, 5, "000000"),
    "count of numbers beyond the end": (FetchRequest, 7, "00" * 22 + "7fffffff"),
    "negative string length": (MetadataRequest, 1, "00000001fffe"),
    "null string where none may be": (MetadataRequest, 1, "00000001ffff"),
    "string beyond the end": (MetadataRequest, 1, "00000001000561"),
    "compact string beyond the end": (ApiVersionsRequest, 3, "7f6d65"),
    "compact string too long": (ApiVersionsRequest, 3, "818002" + "61" * 32_768 + "0100"),
    "null compact string": (ApiVersionsRequest, 3, "000100"),
    "varint of six bytes": (ApiVersionsRequest, 3, "81808080800000" + "0100"),
    "varint of 33 bits": (ApiVersionsRequest, 3, "ffffffff1f" + "0100"),
    "tag of 33 bits": (ApiVersionsRequest, 3, "010101ffffffff1f00"),
    "varint that does not end": (ApiVersionsRequest, 3, "ff"),
    "bytes after the end": (ApiVersionsRequest, 3, "01010000"),
    "more tags than bytes": (ApiVersionsRequest, 3, "0101ffffffff0f"),
    "tag that does not end": (ApiVersionsRequest, 3, "010101ff"),
    "tag without a size": (ApiVersionsRequest, 3, "01010105"),
    "tag of more bytes than are left": (ApiVersionsRequest, 3, "0101010502aa"),
    "the same tag twice": (ApiVersionsRequest, 3, "010102050005" + "00"),
    "tags that fall": (ApiVersionsRequest, 3, "0101020500" + "0400"),
    "known tag with less than its size": (OffsetCommitValue, 4, "00" * 8 + "ff" * 4 + "01"
        + "00" * 8 + "010011" + "00" * 17),
    "known tag with more than its size": (OffsetCommitValue, 4, "00" * 8 + "ff" * 4 + "01"
        + "00" * 8 + "01000f" + "00" * 16),
    "marker that is none before a struct": (
        ConsumerGroupHeartbeatResponse, 0, "00000000000000026d00000003000000000200"),
    "records beyond the end": (ProduceRequest, 3, "ffff0001000000000000000100017400000001"
        "0000000000000064aabb"),
    "negative size of records": (ProduceRequest, 3, "ffff0001000000000000000100017400000001"
        "00000000fffffffe"),
    "short bool": (CreateTopicsRequest, 1, "0000000000000000"),
}  # fmt: skip


@pytest.mark.parametrize("module", [codec, interpreted])
@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_a_malformed_frame(lie: str, module) -> None:
    cls, version, frame = LIES[lie]
    with pytest.raises(MalformedFrame, match=f"{cls.__name__} v{version}|varint|tag"):
        module.decode(cls, version, bytes.fromhex(frame))


@pytest.mark.parametrize("module", [codec, interpreted])
def test_what_only_looks_like_a_lie(module) -> None:
    decode = module.decode
    plain = ApiVersionsRequest(client_software_name="m")
    for name, frame in {
        "a varint with needless bytes": "8280006d" "01" "00",
        "an unknown tag with a content": "026d01" "01" "2a03aabbcc",
        "unknown tags without content": "026d01" "02" "0500" "0600",
        "a tag of five bytes": "026d01" "01" "ffffffff0f00",
    }.items():
        assert decode(ApiVersionsRequest, 3, bytes.fromhex(frame)) == plain, name
    stop = decode(StopReplicaRequest, 1, bytes(16) + b"\x07" + bytes(4))
    assert stop.delete_partitions is True, "a bool is whatever is not zero"


@pytest.mark.parametrize(
    ("cls", "version", "frame"),
    [
        (MetadataRequest, 1, "7fffffff" + "00" * 64),
        (MetadataRequest, 9, "ffffffff0f" + "00" * 64),
        (FetchRequest, 7, "00" * 22 + "7ffffff0" + "00" * 64),
        (BrokerRegistrationRequest, 2, "00000001" "0261" + "11" * 16 + "01010000ffffff0f"),
        (ProduceRequest, 9, "00" * 7 + "ffffffff0f" + "00" * 64),
        (ApiVersionsRequest, 3, "ffffffff07" + "61" * 64),
        (ApiVersionsRequest, 3, "0101" + "ffffffff0f" + "00" * 64),
    ],
)
def test_claims_cost_no_memory(cls: type, version: int, frame: str) -> None:
    decode: Callable[..., Any] = codec.decoder(cls, version)
    data = bytes.fromhex(frame)
    tracemalloc.start()
    try:
        with pytest.raises(MalformedFrame):
            decode(data)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 100_000


def test_memory_is_in_proportion_to_the_frame() -> None:
    """The densest lie that is none: elements of the fewest bytes, as many as were really sent."""
    count = 200_000
    data = count.to_bytes(4, "big") + b"\x00\x00" * count
    decode = codec.decoder(MetadataRequest, 1)
    tracemalloc.start()
    try:
        assert len(decode(data).topics or ()) == count
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 80 * len(data)
