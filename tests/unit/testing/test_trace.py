"""The lines of a trace say again, byte for byte, what was said; and whatever is no line is told."""

from __future__ import annotations

import io
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.client.secrets import without_secrets
from kafkalite.client.wire import request_frame
from kafkalite.protocol import spec
from kafkalite.protocol.messages import (
    ListGroupsRequest,
    MetadataRequest,
    MetadataResponse,
    message_class,
)
from kafkalite.testing.recording import trace
from kafkalite.testing.recording.conversation import Conversation, Peer
from kafkalite.testing.recording.said import RESPONSE, Said, frame_of
from tests.unit.protocol.random_messages import random_message

ODD_TEXTS = ["a\u2028b", "a\u2029b", "a\x85b", "\x7f\x9f", "\x00\x1c\x1d\x1e\x0b\x0c\r\n", "é漢😀"]


def again(said: Said) -> Said:
    """From the bytes of a file, between two other lines."""
    other = trace.to_json(Said("request", 1, 1, "h:1", None, reason="no request"))
    file = "\n".join([other, trace.to_json(said), other]) + "\n"
    _, read, _ = trace.read(io.BytesIO(file.encode()))
    return read


def bytes_said(said: Said) -> bytes:
    return said.frame or frame_of(said)


def heard(frame: bytes) -> Said:
    return Conversation(1, Peer("h", 1)).request(frame, 5)


@pytest.mark.parametrize("text", [*ODD_TEXTS, "half a \ud83d pair", "\udc80"])
def test_any_text_is_read_as_it_was_written(text: str) -> None:
    response = MetadataResponse(cluster_id=text)
    said = Said(RESPONSE, 5, 1, "h:1", None, "Metadata", 9, 2, text, response)
    read = again(said)
    assert (read.client_id, read.message) == (text, response)


@pytest.mark.parametrize("text", ODD_TEXTS)
def test_a_trace_with_such_characters_unescaped_is_read(text: str) -> None:
    """As earlier versions wrote it."""
    said = heard(request_frame(MetadataRequest(), 9, 3, text))
    line = json.dumps(json.loads(trace.to_json(said)), ensure_ascii=False)
    [read] = trace.read(io.BytesIO(f"{line}\n".encode()))
    assert read.client_id == text


@given(st.binary(max_size=20), st.binary(max_size=20))
def test_text_that_is_no_utf8_is_kept_in_its_bytes(client: bytes, state: bytes) -> None:
    frame = request_frame(ListGroupsRequest(states_filter=["S" * len(state)]), 4, 3, "")
    frame = frame.replace(b"S" * len(state), state) if state else frame
    frame = frame[:8] + len(client).to_bytes(2, "big") + client + frame[10:]
    said = heard(frame)
    assert said.message is not None
    assert bytes_said(again(said)) == frame


@pytest.mark.parametrize("key", sorted(spec.api_files()))
def test_any_request_is_read_in_its_own_bytes(key: int) -> None:
    api, rng = spec.api(key), random.Random(key)
    for version in api.versions:
        message = random_message(rng, message_class(f"{api.name}Request"), version)
        without_secrets(message)  # which are not written down
        frame = request_frame(message, version, 7, "me")
        read = again(heard(frame))
        assert bytes_said(read) == frame
        assert (read.frame == b"") == (frame_of(read) == frame)


def test_unknown_tagged_fields_are_kept_in_their_bytes() -> None:
    frame = request_frame(MetadataRequest(), 9, 7, "me")
    assert frame.endswith(b"\0")
    frame = frame[:-1] + b"\1\x63\3new"
    said = heard(frame)
    assert said.message is not None
    assert bytes_said(again(said)) == frame


FIELDS = {"topics": None, "allow_auto_topic_creation": True}
FIELDS |= {"include_cluster_authorized_operations": False}
FIELDS |= {"include_topic_authorized_operations": False}
HEAD = {
    "kind": "request", "time_ms": 1, "connection": 1, "broker": "h:1", "node_id": None,
    "api": "Metadata", "version": 9, "correlation_id": 1, "client_id": "me",
}  # fmt: skip


def test_a_line_by_hand_is_read() -> None:
    [read] = trace.read([json.dumps(HEAD | {"fields": FIELDS})])
    assert read.message == MetadataRequest(topics=None)


@pytest.mark.parametrize(
    "line",
    [
        b"{}", b"[]", b"5", b"null", b"{", b"\xff\xfe", b'"text"', b"[" * 100_000,
        json.dumps(HEAD | {"fields": FIELDS, "version": 99}).encode(),
        json.dumps(HEAD | {"fields": FIELDS, "version": None}).encode(),
        json.dumps(HEAD | {"fields": FIELDS, "api": "Nothing"}).encode(),
        json.dumps(HEAD | {"fields": FIELDS, "api": None}).encode(),
        json.dumps(HEAD | {"fields": FIELDS, "kind": 5}).encode(),
        json.dumps(HEAD | {"fields": FIELDS, "kind": "question"}).encode(),
        json.dumps(HEAD | {"fields": []}).encode(),
        json.dumps(HEAD | {"fields": {}}).encode(),
        json.dumps(HEAD | {"fields": FIELDS | {"topics": 5}}).encode(),
        json.dumps(HEAD | {"fields": FIELDS, "connection": []}).encode(),
        json.dumps(HEAD | {"fields": FIELDS, "connection": None}).encode(),
        json.dumps(HEAD | {"fields": FIELDS, "correlation_id": "1"}).encode(),
        json.dumps(HEAD | {"fields": FIELDS, "correlation_id": None}).encode(),
        json.dumps(HEAD | {"fields": FIELDS, "client_id": 7}).encode(),
        json.dumps(HEAD | {"fields": FIELDS, "time_ms": "now"}).encode(),
        json.dumps(HEAD | {"frame": "", "reason": "", "kind": 5}).encode(),
        json.dumps(HEAD | {"frame": "not base64!", "reason": ""}).encode(),
        json.dumps(HEAD | {"frame": 5, "reason": ""}).encode(),
    ],
)  # fmt: skip
def test_what_is_no_line_is_told_by_its_number(line: bytes) -> None:
    good = trace.to_json(heard(request_frame(MetadataRequest(), 9, 3, "me"))).encode()
    with pytest.raises(ValueError, match="line 2: "):
        list(trace.read([good, line]))
