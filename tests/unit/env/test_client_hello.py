"""Where a hello ends, however it is cut into records and pieces, and what is seen to be none."""

from __future__ import annotations

import ssl
import struct
from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.env.client_hello import (
    HELLO_BYTES,
    RECORD_BYTES,
    ClientHello,
    is_slow,
    record_size,
)


def message(size: int, kind: int = 1) -> bytes:
    return bytes([kind]) + size.to_bytes(3, "big") + bytes(size)


def records(said: bytes, cuts: list[int]) -> bytes:
    """The same in as many records, of which none is empty."""
    edges = sorted({0, len(said), *(cut % len(said) for cut in cuts)})
    pieces = [said[start:stop] for start, stop in pairwise(edges)]
    return b"".join(struct.pack(">BBBH", 22, 3, 1, len(piece)) + piece for piece in pieces)


@given(
    size=st.integers(0, 2_000),
    cuts=st.lists(st.integers(0, 3_000), max_size=6),
    step=st.integers(1, 700),
)
def test_it_is_settled_with_its_last_byte(size: int, cuts: list[int], step: int) -> None:
    whole = records(message(size), cuts)
    hello, said = ClientHello(), bytearray()
    for start in range(0, len(whole) - 1, step):
        assert not hello.is_settled(said), f"{len(said)} of {len(whole)}"
        said += whole[start : min(start + step, len(whole) - 1)]
    assert not hello.is_settled(said)
    said += whole[-1:]
    assert hello.is_settled(said)
    assert not hello.is_too_large


@pytest.mark.parametrize(
    "said",
    [
        b"G",
        b"\x16\x02",
        b"\0\0\0\x10",
        b"\x80\x2e\x01",
        b"\x15\x03\x01\0\x02",
        b"\x16\x03\x01\0\0",
        b"\x16\x03\x01\xff\xff",
        records(message(10, kind=2), []),
    ],
)
def test_what_is_none_is_seen_at_once(said: bytes) -> None:
    assert ClientHello().is_settled(bytearray(said))


def test_a_claim_is_too_large_before_it_has_come() -> None:
    hello = ClientHello()
    said = bytearray(records(message(HELLO_BYTES), [])[: 5 + RECORD_BYTES])
    said[3:5] = RECORD_BYTES.to_bytes(2, "big")
    assert not hello.is_settled(said)
    assert hello.is_too_large


GROUPS = ("X25519", "X448", "prime256v1", "secp384r1", "secp521r1", "ffdhe2048", "ffdhe3072")
SLOW_GROUPS = ("ffdhe4096", "ffdhe6144", "ffdhe8192")


def hello_with(group: str) -> bytes:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_ecdh_curve(group)
    said = ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), said, server_hostname="localhost").do_handshake()
    return said.read()


@pytest.mark.parametrize("group", GROUPS + SLOW_GROUPS)
def test_a_slow_exchange_of_keys_is_seen(group: str) -> None:
    whole = hello_with(group)
    assert is_slow(whole) is (group in SLOW_GROUPS)
    assert is_slow(records(whole[5:], [3, 7, 90, 200])) is (group in SLOW_GROUPS)


def test_who_could_do_otherwise_may_offer_it() -> None:
    whole = hello_with("ffdhe8192")
    share, large, fast = b"\0\x33\x04\x06\x04\x04", b"\x01\x04", b"\0\x1d"
    offer = b"\0\x0a\0\x04\0\x02"
    assert (whole.count(share + large), whole.count(offer + large)) == (1, 1)
    without_share = whole.replace(share + large, share + b"\0\0")
    assert is_slow(without_share), "it can do nothing else"
    assert not is_slow(without_share.replace(offer + large, offer + fast))


@given(st.binary(max_size=400))
def test_garbage_is_left_to_openssl(body: bytes) -> None:
    is_slow(records(message(0) + body, []))
    is_slow(body)


@pytest.mark.parametrize(
    ("head", "size"),
    [
        (b"\x17\x03\x03\0\x10", 21),
        (b"\x17\x03\x03\x48\0", 5 + RECORD_BYTES),
        (b"\x17\x03\x03\x48\x01", 5),
        (b"\x19\x03\x03\0\x10", 5),
        (b"\x17\x02\x03\0\x10", 5),
    ],
)
def test_of_what_is_no_record_the_head_alone_is_shown(head: bytes, size: int) -> None:
    assert record_size(head) == size
