"""Clients of other languages: one set of scenarios, on both brokers.

franz-go, sarama, kafka-go, KafkaJS and rdkafka, and old versions of Python's aiokafka and
confluent-kafka, run as programs that are told what to do; see other_clients.py for which can do
what.
"""

import re
import time
from typing import Any

import pytest

from tests.compat.brokers import Broker
from tests.compat.conftest import MakeTopic, StartProgram
from tests.compat.other_clients import Program, Record, Refused
from tests.compat.waiting import eventually

LATEST, EARLIEST = -1, -2
SHARE_TIMEOUT_S = 40
# All at one time, so that no client's clock matters.
NOW_MS = int(time.time() * 1000)
MORE_CODECS = ("none", "snappy", "lz4")



def refusal(program: Program, do: str, **fields: Any) -> str:
    """What a library says of a refused command, without what differs between libraries."""
    with pytest.raises(Refused) as refused:
        program.ask(do, **fields)
    return re.sub(r"[^a-z]", "", str(refused.value).lower())


def numbered(count: int, first: int = 0) -> list[Record]:
    return [Record(b"value-%d" % number) for number in range(first, first + count)]


def values(records: list[Record]) -> list[bytes | None]:
    return [record.value for record in records]


# --- records --------------------------------------------------------------------------------------


@pytest.mark.clients_with
@pytest.mark.parametrize(
    "codec", ["gzip", *(pytest.param(codec, marks=pytest.mark.full) for codec in MORE_CODECS)]
)
def test_codecs(codec: str, program: Program, make_topic: MakeTopic) -> None:
    write_and_read(program, make_topic(), codec)


@pytest.mark.full
@pytest.mark.clients_with("zstd")
def test_zstd(program: Program, make_topic: MakeTopic) -> None:
    write_and_read(program, make_topic(), "zstd")


def write_and_read(program: Program, topic: str, codec: str) -> None:
    sent = [Record(b"value %d " % number * 50) for number in range(100)]
    program.ask("produce", topic=topic, partition=0, codec=codec, records=sent)
    found = program.records("read", topic=topic, partition=0, count=100)
    assert values(found) == values(sent)
    assert [record.offset for record in found] == list(range(100))


@pytest.mark.clients_with("partitioner", "placed")
def test_keys_choose_partitions_as_java_does(program: Program, make_topic: MakeTopic) -> None:
    topic = make_topic(7)
    # What murmur2 in Apache Kafka's own client gives for these keys, modulo 7.
    expected = {b"alpha": 1, b"gamma": 6, b"\xff\x00\x01": 5}
    records = [Record(b"value", key) for key in expected]
    placed = program.records("produce", topic=topic, records=records)
    assert {record.key: record.partition for record in placed} == expected


@pytest.mark.clients_with
def test_keys_headers_tombstones_and_times(program: Program, make_topic: MakeTopic) -> None:
    topic = make_topic()
    sent = [
        Record(b"value", b"key", (("trace", b"1"), ("other", b"2")), NOW_MS - 5_000),
        Record(None, b"key", timestamp=NOW_MS - 4_000),
        Record(b"value", None, timestamp=NOW_MS - 3_000),
        Record(b"\x00\xff", b"\xfe", (("trace", b"\x00"),), timestamp=NOW_MS - 4_500),
    ]
    program.ask("produce", topic=topic, partition=0, records=sent)
    found = program.records("read", topic=topic, partition=0, count=4)
    assert [(each.key, each.value, each.headers) for each in found] == [
        (each.key, each.value, each.headers) for each in sent
    ]
    assert [each.timestamp for each in found] == [each.timestamp for each in sent]


@pytest.mark.full
@pytest.mark.clients_with
def test_acknowledged_by_the_leader_alone(program: Program, make_topic: MakeTopic) -> None:
    topic = make_topic()
    program.ask("produce", topic=topic, partition=0, acks="1", records=numbered(5))
    found = program.records("read", topic=topic, partition=0, count=5)
    assert values(found) == values(numbered(5))


@pytest.mark.full
@pytest.mark.clients_with
def test_large_messages(program: Program, make_topic: MakeTopic) -> None:
    topic = make_topic(max_message_bytes="6000000")
    large = Record(bytes(range(256)) * 12_000)
    send: dict[str, Any] = {"topic": topic, "partition": 0, "records": [large]}
    program.ask("produce", **send, max_bytes=5_000_000)
    [found] = program.records("read", topic=topic, partition=0, count=1)
    assert found.value == large.value


@pytest.mark.full
@pytest.mark.clients_with
def test_message_over_the_limit_is_refused(program: Program, make_topic: MakeTopic) -> None:
    topic = make_topic(max_message_bytes="1000")
    send = {"topic": topic, "partition": 0}
    said = refusal(program, "produce", **send, records=[Record(b"x" * 2000)])
    assert "toolarge" in said
    program.ask("produce", **send, records=[Record(b"x" * 500)])
    [found] = program.records("read", topic=topic, partition=0, count=1)
    assert found.value == b"x" * 500


@pytest.mark.full
@pytest.mark.clients_with
def test_reading_starts_anywhere(program: Program, make_topic: MakeTopic) -> None:
    topic = make_topic(3)
    program.ask("produce", topic=topic, partition=2, codec="lz4", records=numbered(50))
    found = program.records("read", topic=topic, partition=2, offset=33, count=17)
    assert [record.offset for record in found] == list(range(33, 50))
    assert values(found) == values(numbered(17, 33))


@pytest.mark.full
@pytest.mark.clients_with
def test_reader_waits_for_what_is_written_later(
    start_program: StartProgram, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    writer, reader = start_program(), start_program()
    assert reader.records("read", topic=topic, partition=0, count=1, wait_ms=500) == []
    for number in range(10):
        writer.ask("produce", topic=topic, partition=0, records=numbered(1, number))
    assert len(reader.records("read", topic=topic, partition=0, count=10)) == 10


# --- groups ---------------------------------------------------------------------------------------


@pytest.mark.clients_with("groups")
def test_group_resumes_from_committed_offsets(
    start_program: StartProgram, make_topic: MakeTopic, unique
) -> None:
    topic, group = make_topic(), unique("group")
    first, second = start_program(), start_program()
    first.ask("produce", topic=topic, partition=0, records=numbered(10))
    first.ask("join", topic=topic, group=group)
    assert values(first.records("poll", count=4)) == values(numbered(4))
    first.ask("commit")
    first.ask("leave")
    second.ask("join", topic=topic, group=group)
    assert values(second.records("poll", count=6)) == values(numbered(6, 4))


def wait_until_shared(members: list[Program], topic: str, shares: list[int]) -> list[list[int]]:
    """Polls until the members have so many partitions each; gives which."""
    deadline = time.monotonic() + SHARE_TIMEOUT_S
    while True:
        for member in members:
            assert member.records("poll", count=1, wait_ms=50) == []
        owned = [sorted(member.ask("assignment", topic=topic)["partitions"]) for member in members]
        if sorted(map(len, owned)) == shares:
            return owned
        assert time.monotonic() < deadline, owned


def assert_each_record_comes_once(writer: Program, members: list[Program], topic: str) -> None:
    sent = []
    for partition in range(4):
        records = [Record(b"%d-%d" % (partition, number)) for number in range(5)]
        writer.ask("produce", topic=topic, partition=partition, records=records)
        sent += values(records)
    found: list[bytes | None] = []
    deadline = time.monotonic() + SHARE_TIMEOUT_S
    while len(found) < len(sent) and time.monotonic() < deadline:
        for member in members:
            found += values(member.records("poll", count=20, wait_ms=100))
    assert sorted(map(str, found)) == sorted(map(str, sent))
    for member in members:
        member.ask("commit")


def share(start_program: StartProgram, topic: str, **how: str) -> None:
    members = [start_program(), start_program()]
    for member in members:
        member.ask("join", topic=topic, **how)
    owned = wait_until_shared(members, topic, [2, 2])
    assert sorted(owned[0] + owned[1]) == [0, 1, 2, 3]
    assert_each_record_comes_once(start_program(), members, topic)
    members[0].ask("leave")
    assert wait_until_shared(members[1:], topic, [4]) == [[0, 1, 2, 3]]


@pytest.mark.clients_with("assignment")
def test_group_shares_partitions(
    start_program: StartProgram, make_topic: MakeTopic, unique
) -> None:
    share(start_program, make_topic(4), group=unique("group"))


@pytest.mark.full
@pytest.mark.clients_with("server")
def test_coordinator_assigns_partitions(
    start_program: StartProgram, make_topic: MakeTopic, unique
) -> None:
    share(start_program, make_topic(4), group=unique("group"), strategy="server")


@pytest.mark.full
@pytest.mark.clients_with("static")
def test_static_member_comes_back_to_its_partitions(
    start_program: StartProgram, make_topic: MakeTopic, unique
) -> None:
    leave_and_come_back(start_program, make_topic(4), group=unique("group"))


@pytest.mark.full
@pytest.mark.clients_with("static server")
def test_static_member_comes_back_to_what_the_coordinator_kept(
    start_program: StartProgram, make_topic: MakeTopic, unique
) -> None:
    leave_and_come_back(start_program, make_topic(4), group=unique("group"), strategy="server")


def leave_and_come_back(start_program: StartProgram, topic: str, **how: str) -> None:
    """A static member that leaves says so to nobody, or that it will be back."""
    how["topic"] = topic
    stays, goes = start_program(), start_program()
    stays.ask("join", instance="stays", **how)
    goes.ask("join", instance="goes", **how)
    had = wait_until_shared([stays, goes], topic, [2, 2])
    assigned = stays.ask("assignment", topic=topic)["assigned"]
    goes.ask("leave")
    comes = start_program()
    comes.ask("join", instance="goes", **how)
    assert wait_until_shared([stays, comes], topic, [2, 2]) == had
    assert stays.ask("assignment", topic=topic)["assigned"] == assigned


@pytest.mark.full
@pytest.mark.clients_with("cooperative")
def test_cooperative_members_keep_what_they_have(
    start_program: StartProgram, make_topic: MakeTopic, unique
) -> None:
    topic, group = make_topic(4), unique("group")
    first, second = start_program(), start_program()
    for count, member in enumerate((first, second)):
        member.ask("join", topic=topic, group=group, strategy="cooperative")
        wait_until_shared([first, second][: count + 1], topic, [[4], [2, 2]][count])
    assert first.ask("assignment", topic=topic)["assigned"] == 4


# --- administration -------------------------------------------------------------------------------


@pytest.mark.clients_with("admin")
def test_topics_and_their_configs(broker: Broker, program: Program, topic: str) -> None:
    create = {"topic": topic, "partitions": 3, "configs": {"retention.ms": "12345678"}}
    program.ask("create", **create)
    eventually(broker, lambda: topic in program.ask("topics"))
    eventually(broker, lambda: sorted(program.ask("partitions", topic=topic)) == [0, 1, 2])
    assert "alreadyexists" in refusal(program, "create", **create)
    assert program.ask("configs", topic=topic)["retention.ms"] == "12345678"
    program.ask("alter", topic=topic, configs={"retention.ms": "23456789"})
    eventually(
        broker, lambda: program.ask("configs", topic=topic)["retention.ms"] == "23456789"
    )
    program.ask("grow", topic=topic, partitions=5)
    eventually(broker, lambda: len(program.ask("partitions", topic=topic)) == 5)
    program.ask("delete", topic=topic)
    eventually(broker, lambda: topic not in program.ask("topics"))


@pytest.mark.full
@pytest.mark.clients_with("admin")
def test_bad_topics_and_configs_are_refused(
    program: Program, make_topic: MakeTopic, topic: str
) -> None:
    bad = {"retention.ms": "soon"}
    assert "config" in refusal(program, "create", topic=topic, partitions=1, configs=bad)
    assert "topic" in refusal(program, "create", topic="no spaces", partitions=1)
    assert "partition" in refusal(program, "create", topic=topic, partitions=0)
    assert "unknowntopic" in re.sub(
        "doesnotexist", "unknowntopic", refusal(program, "delete", topic=topic)
    )
    assert "partition" in refusal(program, "grow", topic=make_topic(3), partitions=2)


@pytest.mark.full
@pytest.mark.clients_with("look up")
def test_offset_look_ups(program: Program, make_topic: MakeTopic) -> None:
    topic = make_topic()
    for number in range(5):
        records = [Record(b"x", timestamp=NOW_MS + 100 * number)]
        program.ask("produce", topic=topic, partition=0, records=records)

    def look_up(timestamp: int) -> int:
        return int(program.ask("look_up", topic=topic, partition=0, timestamp=timestamp))

    assert look_up(LATEST) == 5
    assert look_up(EARLIEST) == 0
    assert look_up(NOW_MS + 150) == 2


@pytest.mark.full
@pytest.mark.clients_with("delete records")
def test_deleted_records(program: Program, make_topic: MakeTopic) -> None:
    topic = make_topic()
    program.ask("produce", topic=topic, partition=0, records=numbered(10))
    program.ask("trim", topic=topic, partition=0, offset=4)
    assert program.ask("look_up", topic=topic, partition=0, timestamp=EARLIEST) == 4
    found = program.records("read", topic=topic, partition=0, offset=4, count=6)
    assert values(found) == values(numbered(6, 4))


@pytest.mark.full
@pytest.mark.clients_with("admin", "delete groups", "groups")
def test_groups_are_listed_described_and_deleted(
    broker: Broker, start_program: StartProgram, make_topic: MakeTopic, unique
) -> None:
    topic, group = make_topic(), unique("group")
    member, admin = start_program(), start_program()
    member.ask("produce", topic=topic, partition=0, records=numbered(3))
    member.ask("join", topic=topic, group=group)
    assert len(member.records("poll", count=3)) == 3
    member.ask("commit")
    assert group in admin.ask("groups")
    assert admin.ask("group", group=group) == {"state": "Stable", "members": 1}
    member.ask("leave")
    eventually(broker, lambda: admin.ask("group", group=group)["state"] == "Empty")
    assert admin.ask("offset", group=group, topic=topic, partition=0) == 3
    admin.ask("forget", group=group)
    assert group not in admin.ask("groups")


@pytest.mark.full
@pytest.mark.clients_with("move offsets")
def test_offsets_of_an_empty_group_are_moved(
    program: Program, make_topic: MakeTopic, unique
) -> None:
    topic, group = make_topic(), unique("group")
    program.ask("produce", topic=topic, partition=0, records=numbered(9))
    program.ask("move", group=group, topic=topic, partition=0, offset=7)
    assert program.ask("offset", group=group, topic=topic, partition=0) == 7
    program.ask("join", topic=topic, group=group)
    assert values(program.records("poll", count=2)) == values(numbered(2, 7))
