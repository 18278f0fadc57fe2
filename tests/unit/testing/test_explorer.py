"""What an explorer chooses, of what is legal; that it chooses the same again, and does it again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from hypothesis import HealthCheck, Phase, find, settings

from kafkalite.protocol.errors import Error
from kafkalite.testing.embedded import EmbeddedKafka
from kafkalite.testing.explorer import KINDS, Schedule, Step, run, schedules

SENT = [str(number) for number in range(5)]
OF_A_SHOP = {
    "client.id": "shop", "retry.backoff.ms": 20, "retry.backoff.max.ms": 50, "linger.ms": 0,
    "enable.idempotence": True,
}  # fmt: skip


@pytest.fixture
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(topics={"orders": 1}) as kafka:
        kafka.keep_exchanges()
        yield kafka


def shop(kafka: EmbeddedKafka, **more: Any) -> Producer:
    return Producer({**kafka.client_config("confluent"), **OF_A_SHOP, **more})


def send(kafka: EmbeddedKafka, **more: Any) -> None:
    producer = shop(kafka, **more)
    for value in SENT:
        producer.produce("orders", value, partition=0)
        assert producer.flush(20) == 0


def read(kafka: EmbeddedKafka, count: int = len(SENT)) -> list[str]:
    """By a consumer that is no member of its group."""
    consumer = Consumer({
        **kafka.client_config("confluent"), "group.id": "clerks", "client.id": "clerk",
    })  # fmt: skip
    consumer.assign([TopicPartition("orders", 0, OFFSET_BEGINNING)])
    found: list[str] = []
    while len(found) < count:
        message = consumer.poll(20)
        assert message is not None
        found.append(message.value().decode())
    consumer.close()
    return found


def told(kafka: EmbeddedKafka, api: str) -> list[Any]:
    return [each for each in kafka.exchanges if each.api == api]


# --- the same again -------------------------------------------------------------------------------


def test_a_seed_chooses_the_same_again_and_another_one_something_else(kafka) -> None:
    found = []
    for seed in (1, 1, 2):
        kafka.reset()
        with kafka.explore(seed, rate=0.5) as explorer:
            send(kafka)
        found.append(explorer.schedule)
        assert sorted(each.text for each in kafka.records("orders")) == SENT
    assert found[0] == found[1] != found[2]
    assert found[0]


def test_a_schedule_is_done_again(kafka) -> None:
    with kafka.explore("a name", rate=0.5) as explorer:
        send(kafka)
    for written in (explorer.schedule, [step.values() for step in explorer.schedule]):
        kafka.reset()
        with kafka.explore(schedule=written) as again:
            send(kafka)
        assert again.schedule == explorer.schedule


def test_a_schedule_is_shown_and_read(kafka) -> None:
    step = Step(kind="delay", number=2, api="Produce", of="orders-0", by="shop")
    assert str(step) == "delay at no. 2 of Produce of orders-0 by shop"
    assert str(Step(kind="delay")) == "delay at no. 1 of request"
    schedule = Schedule([step, {"kind": "throttle"}])
    assert eval(repr(schedule)) == schedule
    assert str(Schedule()) == "(nothing was done)"
    with pytest.raises(ValueError, match="is no step"):
        Schedule([{"kind": "delay", "on": "Produce"}])


def test_one_place_meets_two_in_a_row_at_most(kafka) -> None:
    with kafka.explore(1, kinds=["not-enough-replicas"], rate=1) as explorer:
        send(kafka)
    assert [step.number for step in explorer.schedule] == [1, 2, 4, 5, 7, 8, 10, 11, 13, 14]


def test_it_ends_with_its_block_and_with_the_next_one(kafka) -> None:
    first = kafka.explore(1, rate=1)
    with kafka.explore(1, kinds=["delay"], rate=1) as second:
        first.stop()
        send(kafka)
    assert not first.schedule
    assert len(second.schedule) > 1
    assert repr(second) == f"<Explorer by seed 1: {len(second.schedule)} acts so far>"
    before = second.schedule
    send(kafka)
    assert second.schedule == before


def test_helpers_of_tests_meet_nothing(kafka) -> None:
    with kafka.explore(1, rate=1) as explorer:
        kafka.produce("orders", *SENT)
        kafka.records("orders", count=5)
    assert not explorer.schedule


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({}, "one of the two"),
        ({"seed": 1, "schedule": []}, "one of the two"),
        ({"seed": 1, "rate": 1.5}, "expected 0 to 1"),
        ({"seed": 1, "kinds": "delays"}, "'delays' is no kind"),
        ({"schedule": [{"kind": "delays"}]}, "'delays' is no kind"),
        ({"schedule": [{"kind": "delay", "number": 0}]}, "expected 1 or more"),
        ({"schedule": [{"kind": "delay", "api": "produce"}]}, "expected 'Produce'"),
    ],
)
def test_what_cannot_be_meant_is_refused(kafka, asked, words) -> None:
    with pytest.raises(ValueError, match=words):
        kafka.explore(**asked)


# --- what is legal --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["not-enough-replicas", "not-enough-replicas-after-append",
                                  "timed-out-after-append"])  # fmt: skip
def test_replicas_are_asked_about_only_by_who_waits_for_all(kafka, kind) -> None:
    with kafka.explore(1, kinds=[kind], rate=1) as explorer:
        send(kafka, acks=1, **{"enable.idempotence": False})
    assert not explorer.schedule
    with kafka.explore(1, kinds=[kind], rate=1) as explorer:
        send(kafka, acks="all")
    assert explorer.schedule


@pytest.mark.parametrize(
    ("kind", "error", "is_there"),
    [
        ("moved-leader", Error.NOT_LEADER_OR_FOLLOWER, False),
        ("not-enough-replicas", Error.NOT_ENOUGH_REPLICAS, False),
        ("not-enough-replicas-after-append", Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND, True),
        ("timed-out-after-append", Error.REQUEST_TIMED_OUT, True),
    ],
)
def test_what_a_producer_is_told(kafka, kind, error, is_there) -> None:
    with kafka.explore(schedule=[Step(kind=kind)]):
        send(kafka)
    [refused] = told(kafka, "Produce")[0].response.responses[0].partition_responses
    assert refused.error_code == error
    assert refused.base_offset == (0 if is_there else -1)
    assert [each.text for each in kafka.records("orders")] == SENT


@pytest.mark.parametrize("api", ["Produce", "Fetch", "ListOffsets"])
def test_a_leader_that_moved_has_a_higher_epoch(kafka, api) -> None:
    kafka.produce("orders", *SENT)
    before = epoch(kafka)
    with kafka.explore(schedule=[Step(kind="moved-leader", api=api)]) as explorer:
        if api == "Produce":
            send(kafka)
        else:
            assert read(kafka) == SENT
    assert len(explorer.schedule) == 1
    assert epoch(kafka) == before + 1


def epoch(kafka: EmbeddedKafka) -> int:
    kafka.keep_exchanges()
    AdminClient(kafka.client_config("confluent")).list_topics("orders", 20)
    [topic] = told(kafka, "Metadata")[-1].response.topics
    found: int = topic.partitions[0].leader_epoch
    return found


def test_a_short_fetch_gives_one_batch_and_the_rest_comes_behind_it(kafka) -> None:
    for value in SENT:
        kafka.produce("orders", value)
    with kafka.explore(1, kinds=["short-fetch"], rate=1) as explorer:
        assert read(kafka) == SENT
    assert [step.of for step in explorer.schedule][:3] == ["orders-0@0", "orders-0@1", "orders-0@2"]
    sizes = {len(partition.records) for partition in fetched(kafka) if partition.records}
    assert len(sizes) == 1


def test_an_empty_fetch_is_that_of_a_quota(kafka) -> None:
    kafka.produce("orders", *SENT)
    with kafka.explore(schedule=[Step(kind="empty-fetch")]):
        assert read(kafka) == SENT
    first = told(kafka, "Fetch")[0].response
    assert (first.responses, first.session_id, first.throttle_time_ms) == ([], 0, 50)


def fetched(kafka: EmbeddedKafka) -> Iterator[Any]:
    for each in told(kafka, "Fetch"):
        if each.response is not None:
            for topic in each.response.responses:
                yield from topic.partitions


def test_markers_are_late_only_behind_a_transaction(kafka) -> None:
    producer = shop(kafka, **{"transactional.id": "till"})
    with kafka.explore(1, kinds=["late-markers"], rate=1) as explorer:
        producer.init_transactions(20)
        for value in ("one", "two"):
            producer.begin_transaction()
            producer.produce("orders", value)
            producer.commit_transaction(20)
    assert {(step.api, step.of) for step in explorer.schedule} == {("AddPartitionsToTxn", "till")}
    assert [each.errors for each in told(kafka, "AddPartitionsToTxn")] == [
        [], [Error.CONCURRENT_TRANSACTIONS], [Error.CONCURRENT_TRANSACTIONS], [],
    ]  # fmt: skip
    assert [each.text for each in kafka.records("orders")] == ["one", "two"]


def test_only_who_has_a_transactional_id_has_a_coordinator(kafka) -> None:
    with kafka.explore(1, kinds=["not-coordinator", "coordinator-loading"], rate=1) as explorer:
        send(kafka)
    assert not explorer.schedule


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_rebalances_and_its_member_goes_on(kafka, protocol) -> None:
    kafka.produce("orders", *SENT)
    consumer = Consumer({
        **kafka.client_config("confluent"), "group.id": "clerks", "client.id": "clerk",
        "auto.offset.reset": "earliest", "group.protocol": protocol,
        **({"heartbeat.interval.ms": 100} if protocol == "classic" else {}),
    })  # fmt: skip
    consumer.subscribe(["orders"])
    with kafka.explore(schedule=[Step(kind="rebalance", api="Fetch")]) as explorer:
        assert consumer.poll(20) is not None
        before = generation(kafka, protocol)
        for _ in range(400):
            consumer.poll(0.05)
            if generation(kafka, protocol) > before:
                break
        assert generation(kafka, protocol) > before
    assert len(explorer.schedule) == 1
    consumer.close()


def generation(kafka: EmbeddedKafka, protocol: str) -> int:
    """The last one that a member was told."""
    if protocol == "classic":
        joined = [each.response.generation_id for each in told(kafka, "JoinGroup")]
        return max(joined, default=-1)
    beaten = [each.response.member_epoch for each in told(kafka, "ConsumerGroupHeartbeat")
              if each.response is not None]  # fmt: skip
    return max(beaten, default=-1)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_its_reason_on_the_page(kind: str) -> None:
    from tests.unit.testing.test_testing_page import PAGE

    assert f"| `{kind}` |" in PAGE.read_text()


def test_several_brokers() -> None:
    with EmbeddedKafka(brokers=3, topics={"orders": 3}) as kafka:
        with kafka.explore(5, rate=0.4) as explorer:
            producer = shop(kafka)
            for number in range(12):
                producer.produce("orders", str(number), partition=number % 3)
                assert producer.flush(20) == 0
        assert explorer.schedule
        assert len(kafka.records("orders", count=12)) == 12


# --- hypothesis -----------------------------------------------------------------------------------


def test_hypothesis_finds_the_smallest_schedule(kafka) -> None:
    """That a producer without idempotence cannot stand."""

    def doubles(schedule: Schedule) -> bool:
        run(kafka, lambda it: send(it, **{"enable.idempotence": False}), schedule)
        return len(kafka.records("orders")) > len(SENT)

    strategy = schedules(kinds=["delay", "lost-acknowledgement", "moved-leader"], highest=6)
    found = find(
        strategy, doubles,
        settings=settings(
            max_examples=30, deadline=None, database=None, derandomize=True,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        ),
    )  # fmt: skip
    assert found == Schedule([Step(kind="lost-acknowledgement", number=1)])
