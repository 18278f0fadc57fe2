"""A broker that speaks the versions of another release, frame by frame."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from kafkalite.client.wire import NoReply, Wire, decode_response, request_frame
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    DescribeClusterRequest,
    FetchRequest,
    MetadataRequest,
    ProduceRequest,
)
from kafkalite.testing import profiles
from kafkalite.testing.embedded import EmbeddedKafka
from tests.profiles import releases

APPLICATION = ApiVersionsRequest(client_software_name="test", client_software_version="1")
API_VERSIONS = 18


@pytest.fixture
def broker(request: pytest.FixtureRequest) -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(profile=request.param, topics=["orders"]) as broker:
        yield broker


def of(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("broker", names, indirect=True)


def replied(
    broker: EmbeddedKafka, request: Any, version: int, client_id: str | None = "application"
) -> bytes | NoReply:
    with closing(Wire("127.0.0.1", broker.port)) as wire:
        wire.send(request_frame(request, version, 7, client_id))
        return wire.receive(5)


def greeted(broker: EmbeddedKafka, version: int = 0, **more: Any) -> ApiVersionsResponse:
    frame = replied(broker, APPLICATION, version, **more)
    assert isinstance(frame, bytes)
    response: ApiVersionsResponse = decode_response(frame, API_VERSIONS, version)
    assert response.error_code == Error.NONE
    return response


def versions(response: ApiVersionsResponse) -> dict[int, range]:
    return {
        each.api_key: range(each.min_version, each.max_version + 1) for each in response.api_keys
    }


def test_the_table_is_as_it_was_written() -> None:
    assert releases.text(list(profiles.profiles().values())) == releases.TABLE.read_text()
    assert list(profiles.profiles()) == list(releases.releases())


@pytest.mark.parametrize("name", ["kafka-2.9", "2.8", "kafka-", "kafka-2.8.2", ""])
def test_an_unknown_profile_is_told_which_there_are(name: str) -> None:
    with pytest.raises(ValueError, match=r"kafka-0\.10\.0, .*kafka-2\.8, .*kafka-4\.3"):
        EmbeddedKafka(profile=name)


def test_a_profile_is_a_name() -> None:
    with pytest.raises(TypeError, match=r"profile=2\.8"):
        EmbeddedKafka(profile=2.8)  # type: ignore[arg-type]


@of(*(f"kafka-{release}" for release in profiles.profiles()))
def test_what_is_listed_is_what_both_serve(broker: EmbeddedKafka) -> None:
    """Nothing is served by that release in versions that are not served here, too."""
    assert broker._plan.profile is not None
    listed = broker._plan.profile.listed
    with EmbeddedKafka() as whole:
        served = versions(greeted(whole))
    for version in set(range(5)) & set(listed[API_VERSIONS]):
        told = versions(greeted(broker, version))
        assert told == {key: listed[key] for key in listed.keys() & served.keys()}
        assert len(told) >= 14


def test_the_newest_release_is_what_is_served() -> None:
    newest = profiles.named("kafka-4.3")
    with EmbeddedKafka() as broker:
        response = greeted(broker, 4)
    served = versions(response)
    assert {key: each.stop for key, each in served.items()} == {
        key: newest.listed[key].stop for key in served
    }
    levels = {each.name: each.max_version for each in response.supported_features}
    assert levels == {name: newest.features[name][-1] for name in levels}
    assert len(levels) == 7


@of("kafka-0.10.0", "kafka-2.3")
def test_an_unknown_greeting_is_told_nothing_by_old_ones(broker: EmbeddedKafka) -> None:
    assert unknown(broker) == {}


@of("kafka-2.4", "kafka-3.8")
def test_an_unknown_greeting_is_told_those_that_are_known(broker: EmbeddedKafka) -> None:
    assert unknown(broker) == {API_VERSIONS: range(4)}


def unknown(broker: EmbeddedKafka) -> dict[int, range]:
    frame = replied(broker, APPLICATION, 4)
    assert isinstance(frame, bytes)
    assert frame[:4] == (7).to_bytes(4)
    response: ApiVersionsResponse = decode_response(frame, API_VERSIONS, 0)
    assert response.error_code == Error.UNSUPPORTED_VERSION
    return versions(response)


@of("kafka-2.8")
def test_a_request_beyond_ends_its_connection(broker: EmbeddedKafka) -> None:
    broker.keep_exchanges()
    assert replied(broker, FetchRequest(), 13) is NoReply.CLOSED
    assert isinstance(replied(broker, FetchRequest(replica_id=-1), 12), bytes)
    assert "2.8" in broker.exchanges[0].outcome


@of("kafka-2.7")
def test_an_api_of_later_ends_its_connection(broker: EmbeddedKafka) -> None:
    assert replied(broker, DescribeClusterRequest(), 0) is NoReply.CLOSED


@of("kafka-4.0")
def test_what_was_dropped_ends_its_connection(broker: EmbeddedKafka) -> None:
    """Produce is listed from 0 on for the sake of librdkafka, and not answered."""
    assert versions(greeted(broker))[ProduceRequest.API_KEY] == range(13)
    assert replied(broker, ProduceRequest(acks=1), 2) is NoReply.CLOSED
    assert isinstance(replied(broker, ProduceRequest(acks=1), 3), bytes)


@pytest.mark.parametrize(
    ("broker", "epoch"), [("kafka-2.6", -1), ("kafka-2.8", 0), ("kafka-3.9", 0)],
    indirect=["broker"],
)  # fmt: skip
def test_brokers_with_a_zookeeper_have_no_features(broker: EmbeddedKafka, epoch: int) -> None:
    """The epochs are those that brokers of 2.8.2 and 3.9.2 told."""
    response = greeted(broker, 3)
    assert (response.supported_features, response.finalized_features) == ([], [])
    assert response.finalized_features_epoch == epoch


@of("kafka-4.0")
def test_levels_of_features_end_where_the_release_does(broker: EmbeddedKafka) -> None:
    response = greeted(broker, 4)
    supported = {each.name: each.max_version for each in response.supported_features}
    finalized = {each.name: each.max_version_level for each in response.finalized_features}
    assert supported["metadata.version"] == finalized["metadata.version"] == 25
    assert finalized["transaction.version"] == 2
    assert response.finalized_features_epoch >= 0


@of("kafka-0.10.0")
def test_the_helpers_of_tests_are_no_clients_of_old(broker: EmbeddedKafka) -> None:
    broker.produce("orders", "one", headers={"of": "format 2"})
    assert broker.records("orders").one().headers == {"of": b"format 2"}
    assert replied(broker, MetadataRequest(), 12) is NoReply.CLOSED
    assert replied(broker, MetadataRequest(), 12, None) is NoReply.CLOSED


@of("kafka-0.10.0")
def test_what_goes_wrong_on_purpose_is_for_what_is_known(broker: EmbeddedKafka) -> None:
    """A reply in a version that was not asked for is left as it is."""
    broker.keep_exchanges()
    with broker.throttle("ApiVersions", ms=1, times=None) as fault:
        assert unknown(broker) == {}
        assert fault.count == 0
        assert len(versions(greeted(broker))) == 15
        assert fault.count == 1
    [refused, _] = broker.exchanges
    assert refused.errors == [Error.UNSUPPORTED_VERSION]


@of("kafka-2.8")
def test_a_profile_outlives_a_restart_and_a_reset(broker: EmbeddedKafka) -> None:
    for again in (broker.restart, broker.reset):
        again()
        assert versions(greeted(broker))[1] == range(13)


@pytest.mark.parametrize("profile", ["kafka-2.8", "kafka-3.6", "kafka-4.0"])
def test_brokers_ask_each_other_as_ever(profile: str) -> None:
    """What they ask is newer than a release's clients know: partitions of a transaction that are
    looked at, and markers."""
    with EmbeddedKafka(profile=profile, brokers=3, topics={"spread": 6}) as kafka:
        config = kafka.client_config("confluent")
        producer = Producer({**config, "transactional.id": "over-all"})
        producer.init_transactions(20)
        producer.begin_transaction()
        for partition in range(6):
            producer.produce("spread", b"value", partition=partition)
        producer.commit_transaction(20)
        consumer = Consumer(
            {**config, "group.id": "readers", "auto.offset.reset": "earliest"}
        )
        consumer.subscribe(["spread"])
        found = [consumer.poll(15) for _ in range(6)]
        consumer.close()
    assert [message.value() for message in found if message] == [b"value"] * 6
