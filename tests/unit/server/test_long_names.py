"""Names as long as any may be: an answer whose sentence quotes one has no room for the sentence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafkalite import handlers
from kafkalite.client.wire import NoReply, Wire, decode_response, request_frame
from kafkalite.config.listeners import BROKER
from kafkalite.handlers.api_set import ApiSet
from kafkalite.protocol import spec
from kafkalite.protocol.messages import message_class
from kafkalite.protocol.primitives import MAX_STRING_BYTES
from kafkalite.testing.embedded import EmbeddedKafka

LONGEST = "a" * MAX_STRING_BYTES
# A Produce that fails as a whole ends its connection: its producer would write twice.
NAMES = sorted(api.name for api in ApiSet(BROKER).apis if api.name != "Produce")
A_KIND = 3  # of resources, patterns, operations and permissions of access rules


@pytest.fixture(scope="module")
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(topics=["t"]) as broker:
        yield broker


def filled(cls: type[Any], made: Any, struct: spec.Struct, version: int) -> Any:
    """A message with the longest text in each field of text, and one entry in each list."""
    for field in struct.fields:
        if version not in field.versions:
            continue
        if field.struct is not None:
            inner = filled(cls, getattr(cls, field.struct.name)(), field.struct, version)
            setattr(made, field.name, [inner] if field.is_array else inner)
        elif field.type == "string":
            setattr(made, field.name, [LONGEST] if field.is_array else LONGEST)
        elif field.type == "int8" and cls.__name__.endswith("AclsRequest"):
            setattr(made, field.name, A_KIND)
    return made


@pytest.mark.parametrize("name", NAMES)
def test_whoever_says_the_longest_name_has_an_answer(kafka: EmbeddedKafka, name: str) -> None:
    cls = message_class(f"{name}Request")
    for version in handlers.versions(cls.SPEC.api):
        wire = Wire("127.0.0.1", kafka.port)
        wire.send(request_frame(filled(cls, cls(), cls.SPEC.root, version), version, 7, "me"))
        frame = wire.receive(10)
        wire.close()
        assert not isinstance(frame, NoReply), version
        decode_response(frame, cls.API_KEY, version)
