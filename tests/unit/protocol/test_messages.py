"""The message classes: what a dataclass with slots is, and that the stubs say so."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from pathlib import Path

import pytest

from kafkalite.protocol import classes, messages, spec, stubs
from kafkalite.protocol.messages import (
    FetchResponse,
    JoinGroupRequest,
    MetadataRequest,
    OffsetCommitKey,
    OffsetCommitValue,
    ProduceRequest,
    TopicRecord,
    message_class,
)

HERE = Path(messages.__file__).parent


def test_attributes_are_set_by_keyword_and_have_defaults() -> None:
    request = JoinGroupRequest(group_id="g", session_timeout_ms=9)
    assert (request.group_id, request.session_timeout_ms) == ("g", 9)
    assert request.rebalance_timeout_ms == -1
    assert request.group_instance_id is None
    assert request.protocols == []


def test_every_object_has_its_own_lists_and_structs() -> None:
    first, second = FetchResponse.Partition(), FetchResponse.Partition()
    first.current_leader.leader_id = 7
    assert second.current_leader == FetchResponse.CurrentLeader(leader_id=-1, leader_epoch=-1)
    requests = MetadataRequest(), MetadataRequest()
    assert requests[0].topics is not requests[1].topics


def test_a_null_that_is_asked_for_stays_null() -> None:
    assert MetadataRequest(topics=None).topics is None


def test_there_are_no_other_attributes() -> None:
    with pytest.raises(TypeError):
        ProduceRequest(ack=1)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        ProduceRequest().ack = 1  # type: ignore[attr-defined]


def test_equal_when_of_the_same_class_with_equal_fields() -> None:
    assert ProduceRequest(acks=1) == ProduceRequest(acks=1)
    assert ProduceRequest(acks=1) != ProduceRequest(acks=2)
    other: object = JoinGroupRequest()
    assert ProduceRequest() != other
    with pytest.raises(TypeError):
        hash(ProduceRequest())


def test_repr_is_how_it_is_made() -> None:
    key = OffsetCommitKey(group="g", topic="t", partition=2)
    assert repr(key) == "OffsetCommitKey(group='g', topic='t', partition=2)"
    topic = ProduceRequest.TopicData()
    assert repr(topic).startswith("ProduceRequest.TopicData(name=''")


def test_the_tools_for_dataclasses_work() -> None:
    key = OffsetCommitKey(group="g", topic="t", partition=2)
    assert dataclasses.is_dataclass(OffsetCommitKey)
    assert [field.name for field in dataclasses.fields(key)] == ["group", "topic", "partition"]
    assert dataclasses.replace(key, partition=3).partition == 3
    assert dataclasses.asdict(key) == {"group": "g", "topic": "t", "partition": 2}
    match key:
        case OffsetCommitKey(group="g", partition=partition):
            assert partition == 2


def test_copies_are_equal() -> None:
    request = ProduceRequest(topic_data=[ProduceRequest.TopicData(name="t")])
    assert copy.deepcopy(request) == request
    assert copy.deepcopy(request).topic_data[0] is not request.topic_data[0]
    assert pickle.loads(pickle.dumps(request)) == request


def test_the_numbers_of_api_and_record() -> None:
    assert ProduceRequest.API_KEY == 0
    assert OffsetCommitValue.TYPE == 1
    assert TopicRecord.TYPE == 2
    assert TopicRecord.SPEC is spec.message("TopicRecord")


def test_names_without_a_message() -> None:
    with pytest.raises(AttributeError, match="no message is called NoSuchRequest"):
        _ = messages.NoSuchRequest  # type: ignore[attr-defined]
    assert message_class("ProduceRequest") is ProduceRequest


def test_the_zero_uuid() -> None:
    assert ProduceRequest.TopicData().topic_id == messages.ZERO_UUID == classes.ZERO_UUID


def test_the_stubs_are_fresh() -> None:
    hint = "run: python -m kafkalite.protocol.stubs"
    assert (HERE / "messages.pyi").read_text() == stubs.messages_stub(), hint
    assert (HERE / "errors.pyi").read_text() == stubs.errors_stub(), hint
