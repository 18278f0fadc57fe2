"""What counts as a failure, and that nothing is lost with a topic."""

from __future__ import annotations

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.replication.traffic import Traffic, Traffics


@pytest.mark.parametrize(
    ("code", "failed", "rejected"),
    [
        (Error.NOT_LEADER_OR_FOLLOWER, 0, 0),
        (Error.UNKNOWN_TOPIC_OR_PARTITION, 0, 0),
        (Error.MESSAGE_TOO_LARGE, 0, 70),
        (Error.CORRUPT_MESSAGE, 0, 0),
        (Error.INVALID_RECORD, 1, 0),
        (Error.NOT_ENOUGH_REPLICAS, 1, 0),
    ],
)
def test_an_append_that_was_refused(code: int, failed: int, rejected: int) -> None:
    traffic = Traffic()
    traffic.refused_produce(code, 70)
    assert (traffic.failed_produces, traffic.bytes_rejected) == (failed, rejected)


@pytest.mark.parametrize(
    ("code", "failed"),
    [
        (Error.OFFSET_OUT_OF_RANGE, 0),
        (Error.FENCED_LEADER_EPOCH, 0),
        (Error.UNKNOWN_SERVER_ERROR, 1),
    ],
)
def test_a_read_that_was_refused(code: int, failed: int) -> None:
    traffic = Traffic()
    traffic.refused_fetch(code)
    assert traffic.failed_fetches == failed


def test_a_topic_that_is_gone_counts_for_its_broker() -> None:
    traffics = Traffics()
    traffics.of(b"1", "t").bytes_in += 5
    traffics.of(b"2", "t").bytes_in += 7  # the next of that name
    traffics.forget(b"1")
    traffics.forget(b"1")
    assert [(name, each.bytes_in) for name, each in traffics.by_topic()] == [("t", 7)]
    assert traffics.total().bytes_in == 12
