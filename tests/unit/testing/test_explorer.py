"""What an explorer chooses, of what is legal; that it chooses the same again, and does it again."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from hypothesis import HealthCheck, Phase, find, settings

from kafkalite.client.wire import decode_response
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import FetchRequest, FetchResponse
from kafkalite.testing.chosen import Explored
from kafkalite.testing.embedded import EmbeddedKafka
from kafkalite.testing.explorer import KINDS, Explorer, Schedule, Step, check, run, schedules
from kafkalite.testing.schedule import Place
from tests.unit.testing.between import asked

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


@pytest.fixture
def replicated() -> Iterator[EmbeddedKafka]:
    of_several = {"default.replication.factor": 3, "min.insync.replicas": 2}
    with EmbeddedKafka(brokers=3, topics={"orders": 1}, settings=of_several) as kafka:
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
    with kafka.explore(1, kinds=["moved-leader"], rate=1) as explorer:
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
        ({"seed": 1, "kinds": []}, "nothing could be chosen"),
        ({"schedule": [{"kind": "delays"}]}, "'delays' is no kind"),
        ({"schedule": [{"kind": "delay", "number": 0}]}, "expected 1 or more"),
        ({"schedule": [{"kind": "delay", "api": "produce"}]}, "expected 'Produce'"),
    ],
)
def test_what_cannot_be_meant_is_refused(kafka, asked, words) -> None:
    with pytest.raises(ValueError, match=words):
        kafka.explore(**asked)


def test_what_is_chosen_depends_little_on_how_much_is_there_by_then() -> None:
    """A fetch is given one batch or two, as fast as the machine is."""
    place = Place("Fetch", "orders-0@0", "clerk")
    several = [name for name, kind in KINDS.items() if "Fetch" in kind.apis]
    one = [name for name in several if name != "short-fetch"]

    def chosen(seed: int, kinds: list[str]) -> str | None:
        return Explorer(Explored(), seed, rate=1)._drawn(place, kinds)

    for seed in range(100):
        kind = chosen(seed, several)
        assert kind in ("short-fetch", chosen(seed, one))
    assert {chosen(seed, several) for seed in range(100)} == set(several)


def test_nothing_passes_for_not_having_been_run(kafka) -> None:
    with pytest.raises(ValueError, match="nothing would be run"):
        check(kafka, lambda it: it.produce("orders", "one"), runs=0)
    with pytest.raises(ValueError, match="nothing would be run"):
        check(kafka, lambda it: it.produce("orders", "one"), seeds=[])
    with pytest.raises(ValueError, match="'delays' is no kind"):
        schedules(kinds=["delay", "delays"])


def test_a_step_names_its_client_as_the_client_does(kafka) -> None:
    """Also where a number of a sequence is left out."""
    with kafka.explore(schedule=[Step(kind="delay", api="Produce", by="shop-2")]) as explorer:
        send(kafka, **{"client.id": "shop-2"})
    assert len(explorer.schedule) == 1


def test_what_fails_by_chance_is_said_to(kafka) -> None:
    runs = iter(range(100))

    def program(it: EmbeddedKafka) -> None:
        send(it)
        assert next(runs) > 0

    with pytest.raises(AssertionError) as failed:
        check(kafka, program, seeds=[1], rate=0.2, kinds=["delay"])
    assert any("once more it did not fail" in note for note in failed.value.__notes__)


# --- what is legal --------------------------------------------------------------------------------


OF_REPLICAS = ("not-enough-replicas", "not-enough-replicas-after-append", "timed-out-after-append")


@pytest.mark.parametrize("kind", OF_REPLICAS)
def test_replicas_are_asked_about_only_by_who_waits_for_all(replicated, kind) -> None:
    with replicated.explore(1, kinds=[kind], rate=1) as explorer:
        send(replicated, acks=1, **{"enable.idempotence": False})
    assert not explorer.schedule
    with replicated.explore(1, kinds=[kind], rate=1) as explorer:
        send(replicated, acks="all")
    assert explorer.schedule


@pytest.mark.parametrize(
    ("replicas", "least", "kinds"),
    [(1, 1, ()), (1, 2, ()), (2, 1, OF_REPLICAS[2:]), (2, 2, OF_REPLICAS)],
)
def test_no_leader_lacks_replicas_that_there_are_not(replicas, least, kinds) -> None:
    """What Apache Kafka waits for is the lesser of the two, and the leader counts."""
    own = {"default.replication.factor": replicas, "min.insync.replicas": least}
    with EmbeddedKafka(brokers=2, topics=["orders"], settings=own) as kafka:
        for kind in OF_REPLICAS:
            with kafka.explore(1, kinds=[kind], rate=1) as explorer:
                send(kafka)
            assert bool(explorer.schedule) == (kind in kinds)


@pytest.mark.parametrize(
    ("kind", "error", "is_there"),
    [
        ("moved-leader", Error.NOT_LEADER_OR_FOLLOWER, False),
        ("not-enough-replicas", Error.NOT_ENOUGH_REPLICAS, False),
        ("not-enough-replicas-after-append", Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND, True),
        ("timed-out-after-append", Error.REQUEST_TIMED_OUT, True),
    ],
)
def test_what_a_producer_is_told(replicated, kind, error, is_there) -> None:
    kafka = replicated
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


def test_an_empty_fetch_hides_nothing_that_a_session_does_not_tell_again(kafka) -> None:
    """A high watermark without records: those of a transaction that is open."""
    kafka.create_topic("open")
    producer = shop(kafka, **{"transactional.id": "till"})
    producer.init_transactions(20)
    producer.begin_transaction()

    def ask(link: socket.socket, number: int, session_id: int, *topics: str) -> FetchResponse:
        part = FetchRequest.Partition(partition=0, fetch_offset=0, partition_max_bytes=10_000)
        link.sendall(asked(FetchRequest(
            replica_id=-1, max_wait_ms=10, min_bytes=0, max_bytes=10_000, isolation_level=1,
            session_id=session_id, session_epoch=number,
            topics=[FetchRequest.Topic(topic=name, partitions=[part]) for name in topics],
        ), 12))  # fmt: skip
        with link.makefile("rb") as replies:
            frame = replies.read(int.from_bytes(replies.read(4)))
        return decode_response(frame, FetchRequest.API_KEY, 12)

    steps = [Step(kind="empty-fetch", number=number) for number in (1, 2, 3)]
    with (
        kafka.explore(schedule=steps) as explorer,
        socket.create_connection(("127.0.0.1", kafka.port), 10) as link,
    ):
        session_id = ask(link, 0, 0, "orders", "open").session_id
        producer.produce("open", "one")
        assert producer.flush(10) == 0
        kafka.produce("orders", "one")
        told = [ask(link, number, session_id) for number in (1, 2)]
    marks = {
        topic.topic: topic.partitions[0].high_watermark
        for each in told
        for topic in each.responses
    }
    assert marks == {"orders": 1, "open": 1}
    assert [step.number for step in explorer.schedule] == [1]  # when it is about records alone
    producer.abort_transaction(10)


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


def test_nobody_joins_a_group_that_is_gone(kafka) -> None:
    """A client that was a member of one, and asks for something else by the same name."""
    config = {**kafka.client_config("confluent"), "client.id": "clerk"}
    consumer = Consumer({
        **config, "group.id": "staff", "group.instance.id": "one",  # so it leaves without a word
        "auto.offset.reset": "earliest",
    })  # fmt: skip
    consumer.subscribe(["orders"])
    steps = [Step(kind="rebalance", number=number, api="Fetch") for number in range(2, 9)]
    with kafka.explore(schedule=steps) as explorer:
        kafka.produce("orders", "one")
        assert consumer.poll(20) is not None
        consumer.close()
        kafka.reset()
        kafka.produce("orders", "one", "two")
        read(kafka, 2)
        assert not explorer.schedule
    assert kafka.wait_for_group("staff", state=None, timeout=1).state == "Dead"


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
