"""Frames are cut alike however the bytes arrive, and a claimed size costs nothing."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.protocol.errors import MalformedFrame
from kafkalite.protocol.framing import FrameCutter, frame_size


def all_frames(cutter: FrameCutter) -> list[bytearray]:
    frames = []
    while (frame := cutter.take()) is not None:
        frames.append(frame)
    return frames


def framed(content: bytes) -> bytes:
    return frame_size([content]) + content


@given(st.lists(st.binary(max_size=50)), st.lists(st.integers(1, 40), min_size=1))
def test_frames_do_not_depend_on_how_the_bytes_arrive(
    contents: list[bytes], chunk_bytes: list[int]
) -> None:
    stream = b"".join(map(framed, contents))
    cutter, frames, turn = FrameCutter(1000), [], 0
    while stream:
        size = chunk_bytes[turn % len(chunk_bytes)]
        cutter.feed(stream[:size])
        frames += all_frames(cutter)
        stream, turn = stream[size:], turn + 1
    assert frames == contents
    assert cutter.held_bytes == 0


def test_frames_are_apart_and_can_be_written_to() -> None:
    cutter = FrameCutter(1000)
    cutter.feed(framed(b"one") + framed(b"two"))
    first, second = all_frames(cutter)
    view = memoryview(first)
    view[0:1] = b"O"
    cutter.feed(framed(b"three"))
    assert [bytes(frame) for frame in (first, second, *all_frames(cutter))] == [
        b"One", b"two", b"three",
    ]  # fmt: skip


@pytest.mark.parametrize("size", ["ffffffff", "80000000", "000003e9", "7fffffff"])
def test_an_impossible_size_is_refused_after_the_frames_before_it(size: str) -> None:
    cutter = FrameCutter(1000)
    cutter.feed(framed(b"good") + bytes.fromhex(size))
    assert bytes(cutter.take() or b"") == b"good"
    with pytest.raises(MalformedFrame):
        cutter.take()


def test_the_largest_frame_is_taken() -> None:
    cutter = FrameCutter(1000)
    cutter.feed(framed(bytes(1000)))
    assert bytes(cutter.take() or b"") == bytes(1000)


def test_a_claim_allocates_nothing() -> None:
    tracemalloc.start()
    try:
        cutter = FrameCutter(2**31)
        cutter.feed(bytes.fromhex("7fffffff") + b"x")
        assert cutter.take() is None
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 10_000


def test_the_size_of_parts() -> None:
    assert frame_size([b"abc", memoryview(b"de")]) == bytes((0, 0, 0, 5))
    with pytest.raises(ValueError, match="no size on the wire"):
        frame_size([range(2**31)])
