"""Failures as Java tells them: the exceptions of error codes, stacks, what no broker says."""

from __future__ import annotations

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.tools.failures import Failure, exception_of, refused


@pytest.mark.parametrize(("code", "exception"), [
    ("UNKNOWN_TOPIC_OR_PARTITION", "UnknownTopicOrPartitionException"),
    ("TOPIC_ALREADY_EXISTS", "TopicExistsException"),
    ("GROUP_AUTHORIZATION_FAILED", "GroupAuthorizationException"),
    ("KAFKA_STORAGE_ERROR", "KafkaStorageException"),
    ("INVALID_TOPIC_EXCEPTION", "InvalidTopicException"),
])
def test_exceptions_of_codes(code: str, exception: str) -> None:
    assert exception_of(code) == exception


@pytest.mark.parametrize("code", [code for code in Error if code != Error.NONE])
def test_every_code_has_words(code: int) -> None:
    assert refused(code).message
    assert refused(code, "a broker's words").message == "a broker's words"


def test_a_stack_tells_causes() -> None:
    failure = Failure("a.B", "one", Failure("c.D", "two"))
    assert failure.stack() == "a.B: one\nCaused by: c.D: two\n"
