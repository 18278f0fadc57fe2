"""The error codes and the exceptions."""

from __future__ import annotations

from kafkalite.protocol import codec
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import HeartbeatResponse


def test_codes_run_without_a_gap_from_the_unknown_one() -> None:
    assert sorted(Error) == list(range(-1, 134))


def test_each_code_has_its_own_message() -> None:
    messages = {error.message for error in Error}
    assert len(messages) == len(Error)


def test_which_errors_may_pass() -> None:
    assert Error.NOT_LEADER_OR_FOLLOWER.is_retriable
    assert Error.COORDINATOR_LOAD_IN_PROGRESS.is_retriable
    assert not Error.OFFSET_OUT_OF_RANGE.is_retriable
    assert not Error.NONE.is_retriable
    assert sum(error.is_retriable for error in Error) == 32


def test_a_kafka_error_carries_its_code_and_maybe_words_of_its_own() -> None:
    plain = KafkaError(Error.INVALID_GROUP_ID)
    assert (plain.code, plain.message) == (Error.INVALID_GROUP_ID, None)
    assert str(plain) == "INVALID_GROUP_ID: the group id may not be used"
    assert str(KafkaError(Error.INVALID_CONFIG, "retention.ms is no number")).endswith("number")


def test_an_error_is_its_code_on_the_wire() -> None:
    frame = codec.encode(HeartbeatResponse(error_code=Error.UNKNOWN_MEMBER_ID), 0)
    assert frame == b"\x00\x19"
    assert codec.decode(HeartbeatResponse, 0, frame).error_code == Error.UNKNOWN_MEMBER_ID
