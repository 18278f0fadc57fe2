"""Quotas held against requests: what each counts for, what its reply says, what goes on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    AlterClientQuotasRequest,
    ApiVersionsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    FetchRequest,
    MetadataRequest,
    WriteTxnMarkersRequest,
)
from tests.unit.handlers.producing import batch_of, only, request
from tests.unit.handlers.whole_broker import WholeBroker

PRODUCED, FETCHED = "producer_byte_rate", "consumer_byte_rate"
TIME, MUTATIONS = "request_percentage", "controller_mutation_rate"
ANONYMOUS = {"user": "ANONYMOUS"}


@pytest.fixture
def broker() -> Iterator[WholeBroker]:
    broker = WholeBroker({"auto.create.topics.enable": "true"})
    broker.create("t")
    yield broker
    broker.close()


def limit(broker: WholeBroker, key: str, value: float | None, **entity: str | None) -> None:
    """None takes the limit away."""
    asked = AlterClientQuotasRequest
    entry = asked.Entry(
        entity=[
            asked.Entity(entity_type=kind.replace("_", "-"), entity_name=name)
            for kind, name in (entity or ANONYMOUS).items()
        ],
        ops=[asked.Op(key=key, value=value or 0.0, remove=value is None)],
    )
    (answer,) = broker.ask(asked(entries=[entry], validate_only=False), 1).entries
    assert answer.error_code == Error.NONE, answer


def produce(broker: WholeBroker, size: int, version: int = 9, acks: int = -1) -> Any:
    return broker.ask(request(batch_of(broker, b"v" * size), acks=acks), version)


def fetch(broker: WholeBroker, version: int = 12, **fields: Any) -> Any:
    partition = FetchRequest.Partition(partition=0, partition_max_bytes=1 << 20)
    topics = [FetchRequest.Topic(topic="t", partitions=[partition])]
    given = {"max_wait_ms": 0, "max_bytes": 1 << 20, "session_epoch": -1, "topics": topics}
    return broker.ask(FetchRequest(**{**given, **fields}), version)


def creation(*names: str, partitions: int = 1) -> CreateTopicsRequest:
    topic = CreateTopicsRequest.Topic
    return CreateTopicsRequest(
        topics=[topic(name=each, num_partitions=partitions, replication_factor=1) for each in names]
    )


def codes(answers: list[Any]) -> list[Error]:
    return [Error(each.error_code) for each in answers]


def test_a_produce_beyond_its_rate_is_done_and_its_client_waits(broker: WholeBroker) -> None:
    limit(broker, PRODUCED, 1_000.0)
    first = produce(broker, 5_000)
    assert (first.throttle_time_ms, broker.muted_ms) == (0, 0)
    second = produce(broker, 15_000)
    assert only(second).error_code == Error.NONE
    assert broker.partition().log.log_end_offset == 2
    asked = (request(batch_of(broker, b"v" * size)) for size in (5_000, 15_000))
    sizes = [len(broker.frame(each, 9)) for each in asked]
    assert second.throttle_time_ms == broker.muted_ms == sum(sizes) - 10_000
    broker.clock.advance(11_000)
    assert produce(broker, 1).throttle_time_ms == 0


def test_a_batch_larger_than_a_whole_window_is_taken_and_waited_for(broker: WholeBroker) -> None:
    limit(broker, PRODUCED, 1_024.0)
    answer = produce(broker, 900_000)
    assert only(answer).error_code == Error.NONE
    assert 860_000 < answer.throttle_time_ms == broker.muted_ms < 880_000


def test_a_produce_that_nobody_answers_mutes_its_client(broker: WholeBroker) -> None:
    limit(broker, PRODUCED, 1_000.0)
    assert produce(broker, 30_000, acks=0) is None
    assert broker.muted_ms > 20_000


def test_a_produce_worked_on_in_slices_is_charged_once(broker: WholeBroker) -> None:
    limit(broker, PRODUCED, 10_000.0)
    batch = batch_of(broker, *([b"v" * 100] * 3_000))
    size = len(broker.frame(request(batch), 9))
    answer = broker.ask(request(batch), 9)
    assert answer.throttle_time_ms == round((size / 10 - 10_000) / 10_000 * 10_000)


def test_a_fetch_is_given_what_a_whole_window_allows_and_then_nothing(broker: WholeBroker) -> None:
    for _ in range(40):
        broker.append(b"v" * 1_000)
    limit(broker, FETCHED, 1_000.0)
    first = fetch(broker)
    assert (first.responses, first.throttle_time_ms < 200) == ([], True), "it would be all of it"
    broker.clock.advance(first.throttle_time_ms)
    second = fetch(broker)
    assert 9_000 < len(second.responses[0].partitions[0].records) <= 10_000
    third = fetch(broker)
    assert third.responses == []
    assert third.throttle_time_ms == broker.muted_ms > 8_000
    broker.clock.advance(12_000)
    broker.clock.advance(fetch(broker).throttle_time_ms)
    again = fetch(broker)
    assert again.throttle_time_ms == 0
    assert again.responses[0].partitions[0].records


def test_a_session_is_told_another_time_of_what_it_did_not_get(broker: WholeBroker) -> None:
    broker.append(b"v" * 9_000)
    begun = fetch(broker, session_epoch=0)
    assert begun.session_id
    broker.append(b"v" * 900)
    limit(broker, FETCHED, 100.0)
    silent = fetch(broker, session_id=begun.session_id, session_epoch=1, topics=[])
    assert (silent.session_id, silent.responses) == (begun.session_id, [])
    assert silent.throttle_time_ms > 0
    limit(broker, FETCHED, None)
    told = fetch(broker, session_id=begun.session_id, session_epoch=2, topics=[])
    assert told.responses[0].partitions[0].high_watermark == 2


def test_no_session_begins_with_an_empty_answer(broker: WholeBroker) -> None:
    broker.append(b"v" * 9_000)
    limit(broker, FETCHED, 1.0)
    silent = fetch(broker, session_epoch=0)
    assert (silent.session_id, silent.responses) == (0, [])
    assert silent.throttle_time_ms > 0
    assert len(broker.context.fetch_sessions) == 0


@pytest.mark.parametrize("version", [4, 11, 17])
def test_what_brokers_fetch_is_nobodys(broker: WholeBroker, version: int) -> None:
    broker.append(b"v" * 90_000)
    limit(broker, FETCHED, 1.0)
    limit(broker, TIME, 0.001)
    replica = FetchRequest.ReplicaState(replica_id=2)
    fields: dict[str, Any] = {"replica_id": 2} if version < 15 else {"replica_state": replica}
    for _ in range(3):
        broker.clock.spend(50)
        answer = fetch(broker, version, topics=[], **fields)
        assert (answer.throttle_time_ms, broker.muted_ms) == (0, 0)


def spending(broker: WholeBroker, duration_ms: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every request takes so long."""
    answer = broker.broker.dispatcher.answer

    def slow(frame: memoryview, connection: Any, meter: Any = None) -> Any:
        if meter is not None:
            broker.clock.spend(duration_ms)
        return answer(frame, connection, meter)

    monkeypatch.setattr(broker.broker.dispatcher, "answer", slow)


@pytest.mark.pure  # it takes the place of something compiled
@pytest.mark.parametrize(
    ("asked", "version"),
    [
        (ApiVersionsRequest(), 4), (MetadataRequest(topics=None), 13),
        (MetadataRequest(topics=[]), 4), (MetadataRequest(topics=None), 2),
    ],
)  # fmt: skip
def test_any_request_takes_time_and_its_reply_says_so(
    broker: WholeBroker, monkeypatch: pytest.MonkeyPatch, asked: Any, version: int
) -> None:
    broker.ask(asked, version)
    limit(broker, TIME, 1.0)
    spending(broker, 60, monkeypatch)
    assert (broker.ask(asked, version).throttle_time_ms, broker.muted_ms) == (0, 0)
    told = broker.ask(asked, version)
    assert broker.muted_ms == 1_000 if version > 2 else broker.muted_ms > 0
    assert told.throttle_time_ms == (broker.muted_ms if version > 2 else 0)
    limit(broker, TIME, None)
    assert (broker.ask(asked, version).throttle_time_ms, broker.muted_ms) == (0, 0)


@pytest.mark.pure  # it takes the place of something compiled
def test_what_coordinators_say_to_each_other_takes_nobodys_time(
    broker: WholeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(broker, TIME, 0.01)
    spending(broker, 100, monkeypatch)
    for _ in range(3):
        broker.ask(WriteTxnMarkersRequest(), 1)
        assert broker.muted_ms == 0


def test_a_client_that_cannot_read_of_quotas_gets_its_topics_and_waits(
    broker: WholeBroker,
) -> None:
    limit(broker, MUTATIONS, 1.0)
    answer = broker.ask(creation("a", "b", partitions=10), 5)
    assert codes(answer.topics) == [Error.NONE, Error.NONE]
    assert answer.throttle_time_ms == broker.muted_ms == 9_000


def test_one_that_can_is_refused_topic_by_topic(broker: WholeBroker) -> None:
    limit(broker, MUTATIONS, 1.0)
    answer = broker.ask(creation("a", "b", "c", partitions=10), 6)
    assert codes(answer.topics) == [Error.NONE, Error.NONE, Error.THROTTLING_QUOTA_EXCEEDED]
    assert answer.topics[2].error_message is None
    assert answer.throttle_time_ms == broker.muted_ms == 9_000
    assert set(broker.context.metadata.image.topics) >= {"a", "b"}
    broker.clock.advance(9_000)
    assert codes(broker.ask(creation("c"), 7).topics) == [Error.NONE]


def test_deletions_and_more_partitions_need_permits_too(broker: WholeBroker) -> None:
    broker.create("many", 20)
    limit(broker, MUTATIONS, 1.0)
    more = CreatePartitionsRequest.Topic(name="t", count=4, assignments=None)
    asked = CreatePartitionsRequest(topics=[more], timeout_ms=1_000)
    assert codes(broker.ask(asked, 3).results) == [Error.NONE]
    deletion = DeleteTopicsRequest(topic_names=["many"], timeout_ms=1_000)
    assert codes(broker.ask(deletion, 5).responses) == [Error.NONE]
    more.count = 5
    refused = broker.ask(asked, 3)
    assert codes(refused.results) == [Error.THROTTLING_QUOTA_EXCEEDED]
    assert refused.throttle_time_ms == 12_000
    deletion.topic_names = ["t"]
    refused = broker.ask(deletion, 5)
    assert codes(refused.responses) == [Error.THROTTLING_QUOTA_EXCEEDED]
    assert "t" in broker.context.metadata.image.topics
    assert codes(broker.ask(deletion, 4).responses) == [Error.NONE]
    assert broker.muted_ms == 16_000


def test_a_topic_that_comes_by_being_asked_for_needs_a_permit(broker: WholeBroker) -> None:
    limit(broker, MUTATIONS, 1.0)
    broker.ask(creation("a", partitions=12), 5)
    topics = [MetadataRequest.Topic(name="missing")]
    answer = broker.ask(MetadataRequest(topics=topics), 12)
    assert codes(answer.topics) == [Error.UNKNOWN_TOPIC_OR_PARTITION]
    assert broker.muted_ms == 0
    broker.clock.advance(2_000)
    answer = broker.ask(MetadataRequest(topics=topics), 12)
    assert codes(answer.topics) == [Error.NONE]


def test_limits_are_of_users_and_client_ids(broker: WholeBroker) -> None:
    limit(broker, PRODUCED, 100.0, client_id="hasty")
    limit(broker, PRODUCED, 1_000_000.0, user="alice")
    broker.client_id = "hasty"
    produce(broker, 2_000)
    assert broker.muted_ms > 0
    broker.client_id = "calm"
    produce(broker, 2_000)
    assert broker.muted_ms == 0
    broker.client_id, broker.connection.principal = "hasty", "User:alice"
    produce(broker, 2_000)
    assert broker.muted_ms == 0


def test_a_change_is_felt_by_who_is_connected(broker: WholeBroker) -> None:
    limit(broker, PRODUCED, 1_000_000.0)
    produce(broker, 5_000)
    assert broker.muted_ms == 0
    limit(broker, PRODUCED, 100.0)
    assert produce(broker, 1).throttle_time_ms > 40_000
    limit(broker, PRODUCED, None)
    produce(broker, 50_000)
    assert broker.muted_ms == 0


def test_quotas_hold_after_a_start(broker: WholeBroker) -> None:
    limit(broker, PRODUCED, 100.0)
    broker.close()
    again = broker.started_again()
    produce(again, 5_000)
    assert again.muted_ms > 0
    again.close()


def test_nobody_is_charged_before_having_logged_in(broker: WholeBroker) -> None:
    limit(broker, TIME, 0.001, user=None)
    broker.connection.protocol = "SASL_PLAINTEXT"
    broker.clock.spend(5_000)
    for _ in range(2):
        broker.ask(ApiVersionsRequest(), 3)
        assert broker.muted_ms == 0
    assert broker.connection.is_logging_in
    broker.connection.principal = "User:alice"
    assert not broker.connection.is_logging_in
