"""Fetch at a controller's listener: the metadata log, as observers follow it."""

from typing import Any

import pytest

from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.fetch_metadata import fetch_metadata
from kafkalite.protocol import codec
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import FetchRequest, FetchResponse
from kafkalite.records.batch import iterate_headers
from tests.unit.handlers.world import CLUSTER_ID, encoded

LOG_ID = bytes(15) + b"\x01"


def begin(desk, offset, epoch, *, version=18, wait_ms=0, **changes) -> Any:
    fields = {
        "partition": 0,
        "fetch_offset": offset,
        "last_fetched_epoch": epoch,
        "current_leader_epoch": desk.world.controller.log.epoch,
        "high_watermark": desk.world.context.quorum.high_watermark,
        "partition_max_bytes": 1 << 20,
    }
    topic = FetchRequest.Topic(
        topic="__cluster_metadata",
        topic_id=LOG_ID,
        partitions=[FetchRequest.Partition(**{**fields, **changes})],
    )
    request = FetchRequest(
        replica_id=7,
        replica_state=FetchRequest.ReplicaState(replica_id=7),
        max_wait_ms=wait_ms,
        topics=[topic],
    )
    return ask(desk, request, version)


def ask(desk, request, version=18) -> Any:
    asked = codec.decode(FetchRequest, version, bytearray(codec.encode(request, version)))
    call = Call(1, version, 1, "c", desk.world.connection)
    return fetch_metadata(desk.world.context, call, asked)


def part(response, version=18):
    again = codec.decode(FetchResponse, version, encoded(response, version))
    return again.responses[0].partitions[0]


@pytest.mark.parametrize("version", [12, 13, 17, 18])
def test_the_log_is_read_from_its_beginning(desk, version):
    desk.world.create("t")
    found = part(begin(desk, 0, 0, version=version), version)
    headers = list(iterate_headers(bytes(found.records)))
    end = desk.world.controller.log.end_offset
    assert (headers[0].base_offset, headers[-1].next_offset) == (0, end)
    assert (found.high_watermark, found.current_leader.leader_id) == (end, 1)


def test_who_has_all_waits_for_more(desk):
    end, epoch = desk.world.controller.log.end_offset, desk.world.controller.log.epoch
    later = begin(desk, end, epoch, wait_ms=500)
    assert isinstance(later, Later)
    assert not later.is_resolved
    desk.world.create("t")
    desk.world.clock.advance(0)
    assert part(later.value).records
    silent = begin(desk, desk.world.controller.log.end_offset, epoch, wait_ms=500)
    desk.world.clock.advance(501)
    assert not part(silent.value).records


def test_who_does_not_know_what_is_committed_hears_of_it_at_once(desk):
    log = desk.world.controller.log
    answer = begin(desk, log.end_offset, log.epoch, wait_ms=500, high_watermark=-1)
    assert part(answer).high_watermark == log.end_offset


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"current_leader_epoch": 0}, Error.FENCED_LEADER_EPOCH),
        ({"current_leader_epoch": 99}, Error.UNKNOWN_LEADER_EPOCH),
        ({"current_leader_epoch": -1}, Error.INVALID_REQUEST),
        ({"last_fetched_epoch": -1}, Error.INVALID_REQUEST),
    ],
)
def test_another_epoch_is_told_which_it_is(desk, changes, error):
    found = part(begin(desk, 0, 0, **changes))
    assert found.error_code == error
    assert found.current_leader.leader_epoch == desk.world.controller.log.epoch


def test_where_two_logs_part(desk):
    log = desk.world.controller.log
    found = part(begin(desk, log.end_offset + 5, log.epoch))
    assert (found.diverging_epoch.epoch, found.diverging_epoch.end_offset) == (
        log.epoch, log.end_offset,
    )  # fmt: skip
    assert not found.records


def test_who_comes_after_a_snapshot_begins_with_it(desk):
    desk.world.create("t")
    desk.world.controller.write_snapshot()
    log = desk.world.controller.log
    found = part(begin(desk, 0, 0))
    assert (found.snapshot_id.end_offset, found.snapshot_id.epoch) == (log.end_offset, log.epoch)
    assert part(begin(desk, log.end_offset, log.epoch)).snapshot_id.end_offset == -1


def test_another_cluster_and_another_log_are_refused(desk):
    with pytest.raises(KafkaError) as refused:
        ask(desk, FetchRequest(cluster_id="another"))
    assert refused.value.code == Error.INCONSISTENT_CLUSTER_ID
    one = FetchRequest.Partition(partition=0, fetch_offset=0, current_leader_epoch=1)
    other = FetchRequest.Topic(topic_id=b"x" * 16, partitions=[one])
    refusal = ask(desk, FetchRequest(cluster_id=CLUSTER_ID, topics=[other]))
    assert refusal.error_code == Error.INVALID_REQUEST


def test_observers_are_known_by_their_last_question(desk):
    begin(desk, 3, 1)
    assert desk.world.context.quorum.observers[7].log_end_offset == 3
    end = desk.world.controller.log.end_offset
    begin(desk, end, 1)
    seen = desk.world.context.quorum.observers[7]
    assert (seen.log_end_offset, seen.caught_up_ms) == (end, seen.asked_ms)
