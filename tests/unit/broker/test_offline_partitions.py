"""A log that cannot be opened makes its partition offline, and nothing else."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from kafkalite.coordinators.shards import partition_of
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    DescribeTopicPartitionsRequest,
    FindCoordinatorRequest,
    MetadataRequest,
    OffsetCommitRequest,
)
from tests.unit.handlers import test_fetch as fetching
from tests.unit.handlers.producing import by_producer, produce
from tests.unit.handlers.whole_broker import WholeBroker, all_records

LOG = "00000000000000000000.log"
OFFSETS = "__consumer_offsets"


def two_topics(**settings: str) -> WholeBroker:
    """One whose log will be damaged, and one beside it."""
    broker = WholeBroker(settings)
    for topic in ("bad", "good"):
        broker.create(topic)
        broker.append(b"a", b"b", topic=topic)
    return broker


def put_in_the_way(broker: WholeBroker, directory: str) -> None:
    """A directory where a file should be, so that the log cannot be opened."""
    disk = broker.env.disk
    disk.rename(f"{directory}/{LOG}", f"{directory}/kept")
    disk.make_directory(f"{directory}/{LOG}")


def take_away(broker: WholeBroker, directory: str) -> None:
    disk = broker.env.disk
    disk.remove_tree(f"{directory}/{LOG}")
    disk.rename(f"{directory}/kept", f"{directory}/{LOG}")


def damaged(
    broker: WholeBroker, directory: str = "/data/bad-0", *, is_clean: bool = True
) -> WholeBroker:
    """The broker started again after a log of its own was damaged."""
    broker.close()
    put_in_the_way(broker, directory)
    if not is_clean:
        broker.env.disk.remove("/data/.kafka_cleanshutdown")
    return broker.started_again()


def read(broker: WholeBroker, topic: str, offset: int = 0) -> Any:
    return fetching.only(broker.ask(fetching.request(offset, topics=[topic]), 12))


def names(broker: WholeBroker) -> list[str]:
    return [name for name in broker.env.disk.list_directory("/data") if name.startswith("bad-")]


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_log_that_cannot_be_opened_is_named_and_the_others_are_served(
    is_clean: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        broker = damaged(two_topics(), is_clean=is_clean)
        assert broker.started.value is None
        assert produce(broker, by_producer(broker, 0), topic="good").error_code == Error.NONE
        records = all_records(bytes(read(broker, "good").records))
        assert [record.value for record in records] == [b"a", b"b", b"0"]
        bad = produce(broker, by_producer(broker, 0), topic="bad")
        assert bad.error_code == read(broker, "bad").error_code == Error.KAFKA_STORAGE_ERROR
    [line] = caplog.messages
    assert "bad-0 is offline" in line
    assert f"/data/bad-0/{LOG}" in line
    assert "each start tries again" in line


def test_metadata_says_that_it_has_no_leader() -> None:
    broker = damaged(two_topics())
    response = broker.ask(MetadataRequest(topics=None), 12)
    [bad, good] = [topic.partitions[0] for topic in response.topics]
    assert (bad.error_code, bad.leader_id, bad.offline_replicas) == (
        Error.LEADER_NOT_AVAILABLE, -1, [1],
    )  # fmt: skip
    assert (good.error_code, good.leader_id, good.offline_replicas) == (Error.NONE, 1, [])
    response = broker.ask(DescribeTopicPartitionsRequest(topics=[]), 0)
    [bad, good] = [topic.partitions[0] for topic in response.topics]
    assert (bad.leader_id, bad.offline_replicas) == (-1, [1])
    assert (good.leader_id, good.offline_replicas) == (1, [])


@pytest.mark.parametrize("is_clean", [True, False])
def test_nothing_of_it_is_touched_and_the_next_start_tries_again(is_clean: bool) -> None:
    broker = two_topics()
    broker.partition("bad").log.delete_records_before(1)
    broker = damaged(broker, is_clean=is_clean)
    before = broker.env.disk.list_directory("/data/bad-0")
    broker.clock.advance(600_000)  # every checkpoint is written meanwhile
    broker.close()
    assert names(broker) == ["bad-0"]
    assert broker.env.disk.list_directory("/data/bad-0") == before
    # The log may need recovery still: that this stop was clean says nothing of it.
    assert broker.env.disk.exists("/data/.kafka_cleanshutdown") == is_clean
    take_away(broker, "/data/bad-0")
    broker = broker.started_again()
    assert broker.partition("bad").log.log_start_offset == 1
    records = all_records(bytes(read(broker, "bad", 1).records))
    assert [record.value for record in records] == [b"a", b"b"]
    assert produce(broker, by_producer(broker, 0), topic="bad").base_offset == 2


@pytest.mark.parametrize("durability", ["page-cache", "fsync"])
def test_with_its_topic_its_directory_goes_too(durability: str) -> None:
    broker = damaged(two_topics(**{"kafkalite.durability": durability}))
    broker.delete("bad")
    assert [name.rpartition("-")[2] for name in names(broker)] == ["delete"]
    broker.create("bad")
    assert produce(broker, by_producer(broker, 0), topic="bad").base_offset == 0
    broker.clock.advance(600_000)
    assert names(broker) == ["bad-0"]
    broker.close()
    broker = broker.started_again()
    assert read(broker, "bad").high_watermark == 1


def test_of_a_topic_that_nobody_knows_it_is_set_aside() -> None:
    broker = two_topics()
    broker.delete("bad")
    broker.clock.advance(600_000)
    broker.close()
    for path in ("/data/bad-0", f"/data/bad-0/{LOG}"):
        broker.env.disk.make_directory(path)
    broker = broker.started_again()
    assert [name.rpartition("-")[2] for name in names(broker)] == ["stray"]
    broker.create("bad")
    assert produce(broker, by_producer(broker, 0), topic="bad").base_offset == 0


def test_of_an_earlier_topic_of_the_name_it_is_set_aside() -> None:
    broker = two_topics()
    broker.close()
    path = "/data/bad-0/partition.metadata"
    broker.env.disk.create(path).write_at(0, b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ")
    put_in_the_way(broker, "/data/bad-0")
    broker = broker.started_again()
    assert sorted(name.rpartition("-")[2] for name in names(broker)) == ["0", "stray"]
    assert produce(broker, by_producer(broker, 0), topic="bad").base_offset == 0


def test_groups_of_an_offline_coordinator_wait_and_others_work() -> None:
    broker = two_topics()
    groups = [next(f"g{n}" for n in range(9) if partition_of(f"g{n}", 2) == i) for i in (0, 1)]
    assert find(broker, groups[0]) == find(broker, groups[1]) == Error.NONE
    assert commit(broker, groups[0]) == commit(broker, groups[1]) == Error.NONE
    broker = damaged(broker, f"/data/{OFFSETS}-1")
    assert find(broker, groups[1]) == Error.COORDINATOR_NOT_AVAILABLE
    assert commit(broker, groups[1]) == Error.NOT_COORDINATOR
    assert find(broker, groups[0]) == commit(broker, groups[0]) == Error.NONE
    broker.close()


def find(broker: WholeBroker, group: str) -> int:
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
    code: int = broker.ask(request, 4).coordinators[0].error_code
    return code


def commit(broker: WholeBroker, group: str) -> int:
    topic, partition = OffsetCommitRequest.Topic, OffsetCommitRequest.Partition
    asked = topic(name="good", partitions=[partition(partition_index=0, committed_offset=1)])
    request = OffsetCommitRequest(group_id=group, topics=[asked])
    code: int = broker.ask(request, 8).topics[0].partitions[0].error_code
    return code
