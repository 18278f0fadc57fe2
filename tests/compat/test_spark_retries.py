"""Bad records come again as often as they are told to, counted, before they are dead letters."""

import shutil
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Message, TopicPartition

from kafkalite.pipelines import DeadLetters
from kafkalite.pipelines.common.decode import Decoding
from kafkalite.pipelines.dlq import GOOD, GOOD_AGAIN, PREFIX
from kafkalite.pipelines.retries import RETRY_COUNT, Retries
from tests.compat.spark_connector import SPARK_MARKS, WAIT_S, Connector, connector, spark
from tests.compat.spark_jobs import dead_letters_of

__all__ = ["connector", "spark"]
pytestmark = [*SPARK_MARKS, pytest.mark.full]

HEADERS = [("trace", b"7"), (RETRY_COUNT, b"somebody else's")]


def messages(connector: Connector, topic: str) -> list[Message]:
    """All that is in partition 0."""
    settings = {"bootstrap.servers": connector.broker.bootstrap, "group.id": "read"}
    consumer = Consumer({**settings, "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[Message] = []
    while True:
        message = consumer.poll(WAIT_S)
        assert message is not None, "nothing for long"
        if message.error():
            consumer.close()
            return found
        found.append(message)


def last(message: Message, name: str) -> str:
    return [value for key, value in message.headers() if key == name][-1].decode()


def retrying(connector: Connector, topic: str, schema: str = "n INT") -> DeadLetters:
    retries = Retries(f"{topic}-retry", 2)
    return dead_letters_of(
        connector, topic, retries=retries, rules={}, decoding=Decoding("json", schema)
    )


def filled(connector: Connector, topic: str) -> None:
    for name in (topic, f"{topic}-retry", f"{topic}-dead"):
        connector.create(name)
    connector.produce(topic, ['{"n": 1}', {"value": "bad", "key": "k", "headers": HEADERS}])
    connector.produce(topic, ['{"n": 5000000000}'])


def test_a_bad_record_is_retried_so_often_and_then_dead(connector: Connector, topic: str) -> None:
    filled(connector, topic)
    for attempt in (1, 2):
        ledger = retrying(connector, topic).run().ledger
        assert (ledger.written, ledger.faults) == (2, [])
        retried = messages(connector, f"{topic}-retry")[-2:]
        assert [last(each, RETRY_COUNT) for each in retried] == [str(attempt)] * 2
        assert messages(connector, f"{topic}-dead") == []
    # A fix comes for one of them.
    ledger = retrying(connector, topic, "n BIGINT").run().ledger
    assert (ledger.written, ledger.left_out[GOOD_AGAIN], ledger.faults) == (1, 1, [])
    (dead,) = messages(connector, f"{topic}-dead")
    assert (dead.key(), dead.value(), last(dead, RETRY_COUNT)) == (b"k", b"bad", "2")
    # Its own headers as they were, and one account of its error, with where it was read first.
    assert dead.headers()[:2] == HEADERS
    told = [key for key, _ in dead.headers() if key.startswith(PREFIX)]
    assert len(told) == len(set(told)) == 9
    assert (last(dead, f"{PREFIX}topic"), last(dead, f"{PREFIX}offset")) == (topic, "1")
    assert retrying(connector, topic).run().ledger.read == 0


def test_a_batch_that_comes_again_retries_nothing_twice(connector: Connector, topic: str) -> None:
    filled(connector, topic)
    pipeline = retrying(connector, topic)
    assert pipeline.run().ledger.left_out[GOOD] == 1
    # As a driver that was killed before Spark's own commit leaves it.
    commits = Path(pipeline.checkpoint, "commits")
    shutil.rmtree(commits)
    commits.mkdir()
    ledger = retrying(connector, topic).run().ledger
    assert (ledger.there_already, ledger.faults) == (2, [])
    # What it wrote before is read by the batch behind it, once.
    counts = [last(each, RETRY_COUNT) for each in messages(connector, f"{topic}-retry")]
    assert counts == ["1", "1", "2", "2"]


def test_retries_need_topics_by_name(connector: Connector, topic: str) -> None:
    source = connector.broker.bootstrap
    with pytest.raises(ValueError, match="one retry at least"):
        Retries("t", 0)
    from kafkalite.pipelines import KafkaSource

    with pytest.raises(ValueError, match="name the topics"):
        DeadLetters(
            connector.spark, KafkaSource(source, pattern=".*"), "dead", "x", retries=Retries("t")
        )
