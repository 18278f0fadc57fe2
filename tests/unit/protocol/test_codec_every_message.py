"""Every message in every version: the compiled functions against construct, and against lies.

KAFKALITE_MUTATIONS is how many frames are damaged in a run (10 000 when it is not set).
KAFKALITE_SEED makes it another ten thousand.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkalite.env.slicing import finish
from kafkalite.protocol import codec, interpreted, spec
from kafkalite.protocol.errors import MalformedFrame
from kafkalite.protocol.messages import message_class
from kafkalite.protocol.runtime import ManyElements
from kafkalite.protocol.wheel_building import kinds_of
from tests.unit.protocol.random_messages import every_message, every_version, random_message

SEED = int(os.environ.get("KAFKALITE_SEED", "20"))
MUTATIONS = int(os.environ.get("KAFKALITE_MUTATIONS", "10000"))
ALL_VERSIONS = list(every_version())
MOST_PREFIXES = 400

every = pytest.mark.parametrize(
    "message", [pytest.param(message, id=message.name) for message in every_message()]
)


def chance_for(message: spec.Message, version: int) -> random.Random:
    return random.Random(f"{SEED} {message.name} {version}")


@every
def test_compiled_and_interpreted_agree_in_every_version(message: spec.Message) -> None:
    cls = message_class(message.name)
    for version in message.versions:
        chance = chance_for(message, version)
        for made in (cls(), *(random_message(chance, cls, version) for _ in range(3))):
            assert_same(made, version)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(ALL_VERSIONS), st.randoms(use_true_random=False))
def test_compiled_and_interpreted_agree_on_any_message(
    cls_version: tuple[type[Any], int], chance: random.Random
) -> None:
    cls, version = cls_version
    assert_same(random_message(chance, cls, version), version)


def assert_same(made: Any, version: int) -> None:
    frame = codec.encode(made, version)
    assert frame == interpreted.encode(made, version)
    decoded = codec.decode(type(made), version, frame)
    assert decoded == made
    assert decoded == interpreted.decode(type(made), version, frame)
    assert codec.decode(type(made), version, bytearray(b"head" + frame), 4) == made
    assert codec.decode(type(made), version, memoryview(frame)) == made
    assert codec.decode_prefix(type(made), version, frame + b"tail") == (made, len(frame))
    in_steps = codec.decoder_in_steps(type(made), version)
    assert finish(in_steps(frame + b"tail")) == (made, len(frame))
    if "decode_few" in kinds_of(spec.message(type(made).__name__)):
        with suppress(ManyElements):
            assert codec.few_decoder(type(made), version)(frame + b"tail") == (made, len(frame))
    parts: list[Any] = []
    finish(codec.encoder_in_steps(type(made), version)(made, parts))
    assert b"".join(map(bytes, parts)) == frame


@every
def test_every_strict_prefix_is_refused(message: spec.Message) -> None:
    cls = message_class(message.name)
    for version in message.versions:
        chance = chance_for(message, version)
        frame = codec.encode(random_message(chance, cls, version), version)
        ends = range(len(frame))
        for end in ends if len(ends) < MOST_PREFIXES else chance.sample(ends, MOST_PREFIXES):
            for decode in (codec.decoder(cls, version), codec.prefix_decoder(cls, version)):
                assert is_refused(decode, frame[:end]), frame[:end].hex()


def is_refused(decode: Callable[[bytes], Any], frame: bytes) -> bool:
    try:
        decode(frame)
    except MalformedFrame:
        return True
    return False


@every
def test_damaged_frames_decode_alike_or_are_refused_alike(message: spec.Message) -> None:
    cls = message_class(message.name)
    per_version = -(-MUTATIONS // len(ALL_VERSIONS))
    for version in message.versions:
        chance = chance_for(message, version)
        frame = codec.encode(random_message(chance, cls, version), version)
        for _ in range(per_version):
            damaged = damage(chance, frame)
            assert outcome(codec, cls, version, damaged) == outcome(
                interpreted, cls, version, damaged
            ), damaged.hex()


def damage(chance: random.Random, frame: bytes) -> bytearray:
    damaged = bytearray(frame)
    for _ in range(chance.choice([1, 1, 1, 2, 8])):
        at = chance.randrange(len(damaged) + 1)
        kind = chance.randrange(4)
        value = chance.choice([0, 1, 2, 0x7F, 0x80, 0xFF, chance.randrange(256)])
        if kind == 0:
            damaged.insert(at, value)
        elif kind == 1:
            del damaged[at : at + chance.choice([1, 1, 4])]
        else:
            damaged[at : at + 1] = bytes((value,))
    return damaged


def outcome(module: Any, cls: type[Any], version: int, frame: bytearray) -> str:
    try:
        return comparable(module.decode(cls, version, frame))
    except MalformedFrame:
        return "refused"


def comparable(value: Any) -> str:
    """The value as text: unlike ==, it finds a NaN equal to itself, and True not equal to 1."""
    if isinstance(value, list):
        return f"[{', '.join(map(comparable, value))}]"
    if isinstance(value, memoryview):
        return bytes(value).hex()
    if hasattr(value, "__slots__"):
        fields = (f"{name}={comparable(getattr(value, name))}" for name in value.__slots__)
        return f"{type(value).__qualname__}({', '.join(fields)})"
    return repr(value)
