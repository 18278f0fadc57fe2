"""The worked examples do what they say, run as they stand: nothing lost, and nothing there twice.

What they wrote is counted by confluent-kafka and pyarrow where those can read it.
"""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from examples import hourly_load, stream_join
from kafkalite.pipelines.common.files import Folder
from kafkalite.pipelines.common.running import lease_of
from kafkalite.pipelines.to_lake import bronze
from tests.compat import brokers, example_shell
from tests.compat.example_shell import Done
from tests.compat.spark_connector import (
    SPARK_MARKS,
    WAIT_S,
    Connector,
    connector,
    numbers,
    spark,
)
from tests.compat.test_spark_truth import count, rows

__all__ = ["connector", "spark"]
pytestmark = [
    *(mark for mark in SPARK_MARKS if mark.name != "timeout"),
    pytest.mark.full,
    pytest.mark.timeout(1_200),
]

FIVE_MS = int(datetime(2026, 1, 1, 5, tzinfo=UTC).timestamp() * 1000)
MINUTE_MS = 60_000


def run(connector: Connector, script: str, *words: Any) -> Done:
    address = {"KAFKALITE_BOOTSTRAP_SERVERS": connector.broker.bootstrap}
    return example_shell.run(script, *words, folder=connector.folder, environment=address)


def at(minute: int, value: Any, **more: Any) -> dict[str, Any]:
    """A record of so many minutes after five."""
    text = value if isinstance(value, str) else json.dumps(value)
    return {"value": text, "timestamp": FIVE_MS + minute * MINUTE_MS, **more}


@pytest.fixture(autouse=True)
def address(connector: Connector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKALITE_BOOTSTRAP_SERVERS", connector.broker.bootstrap)


def test_each_example_is_told_of_and_run() -> None:
    there = {path.name for path in example_shell.EXAMPLES.iterdir() if path.suffix != ".md"}
    told = (example_shell.EXAMPLES / "README.md").read_text()
    here = Path(__file__).read_text()
    for name in there - {"__pycache__"}:
        assert f"]({name})" in told
        assert name in here or name.removesuffix(".py") in here


def test_an_hour_is_loaded_audited_and_loaded_again_with_what_came_late(
    connector: Connector, topic: str
) -> None:
    connector.create(topic, 2)
    connector.produce(topic, [at(minute, "x") for minute in range(-30, 90, 10)])
    connector.produce(topic, [at(minute, "x") for minute in (59, 65, 1)], partition=1)
    words = ["--topic", topic, "--hour", "2026-01-01T05", "--path", str(connector.folder)]
    hour = connector.folder / topic / "hour=2026-01-01T05"
    for _ in range(2):
        assert hourly_load.main(words) == 0
        assert rows(str(hour)) == 8
    connector.produce(topic, [at(30, "late")])
    assert hourly_load.main(words) == 0
    assert rows(str(hour)) == 9
    assert json.loads((hour / "_AUDITED").read_text())["rows"] == 9


def test_an_hour_with_a_hole_is_not_called_audited(
    connector: Connector, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connector.create(topic)
    connector.produce(topic, [at(minute, "x") for minute in range(5)])
    words = ["--topic", topic, "--hour", "2026-01-01T05", "--path", str(connector.folder)]
    assert hourly_load.main(words) == 0
    monkeypatch.setattr(hourly_load, "bronze", lambda df: bronze(df).where("offset != 3"))
    assert hourly_load.main(words) == 3
    assert not (connector.folder / topic / "hour=2026-01-01T05" / "_AUDITED").exists()


def change(operation: str, key: int, name: str | None) -> tuple[str, str]:
    after = None if name is None else {"id": key, "name": name}
    return str(key), json.dumps({"op": operation, "before": None, "after": after})


def test_change_events_are_a_table(connector: Connector, topic: str) -> None:
    connector.create(topic)
    table = connector.folder / "customers"
    words = [topic, table, "id BIGINT, name STRING"]

    def names() -> dict[str, Any]:
        found = connector.spark.read.format("delta").load(str(table)).collect()
        return {
            bytes(row["key"]).decode(): (row["data"] and row["data"]["name"], row["error"])
            for row in found
        }

    connector.produce(topic, [change("r", 1, "a"), change("c", 2, "b"), change("u", 2, "c")])
    assert run(connector, "change_events.sh", *words).code == 0
    assert names() == {"1": ("a", None), "2": ("c", None)}
    connector.produce(topic, [change("d", 1, None), ("1", None), change("c", 3, "d"), ("2", "?")])
    assert run(connector, "change_events.sh", *words).code == 0
    # What cannot be read deletes nothing, and says so.
    assert names() == {"3": ("d", None), "2": (None, "not a Debezium envelope")}


def test_payments_find_their_orders_also_when_they_are_late(
    connector: Connector, topic: str
) -> None:
    orders, payments, path = f"{topic}-orders", f"{topic}-payments", connector.folder / "paid"
    for name in (orders, payments):
        connector.create(name)
    words = ["--orders", orders, "--payments", payments, "--path", str(path), "--per-batch", "4"]

    def join() -> dict[int, float | None]:
        assert stream_join.main(words) == 0
        files = sorted(path.glob("part-*.parquet"))
        found = [row for file in files for row in pyarrow.parquet.read_table(file).to_pylist()]
        paid = {row["order_id"]: row["paid_amount"] for row in found}
        assert len(paid) == len(found), "an order twice"
        return paid

    connector.produce(orders, [at(minute, {"id": minute, "amount": 9.5}) for minute in range(8)])
    connector.produce(payments, [at(2, {"id": 1, "amount": 9.5}), at(61, {"id": 7, "amount": 1})])
    assert join() == {1: 9.5, 7: 1.0}
    # Late by less than ten minutes, which is in time; then the day goes on without payments.
    connector.produce(payments, [at(53, {"id": 2, "amount": 5})])
    later = [at(minute, {"id": minute, "amount": 1}) for minute in range(300, 308)]
    connector.produce(orders, later)
    connector.produce(payments, [at(301, {"id": 300, "amount": 1})])
    assert {number: join().get(number) for number in (2, 300)} == {2: 5.0, 300: 1.0}
    # Of an order for which nobody waits any more.
    connector.produce(payments, [at(30, {"id": 3, "amount": 1}), at(400, {"id": 301, "amount": 1})])
    connector.produce(orders, [at(700, {"id": 700, "amount": 1})])
    connector.produce(payments, [at(700, {"id": 700, "amount": 1})])
    paid = join()
    assert [paid[number] for number in range(8)] == [None, 9.5, 5.0, None, None, None, None, 1.0]
    assert join() == paid


def test_dead_letters_come_back_after_a_fix_once(connector: Connector, topic: str) -> None:
    connector.create(topic)
    large = [json.dumps({"id": 2**40 + number}) for number in range(5)]
    connector.produce(topic, [json.dumps({"id": number}) for number in range(20)])
    connector.produce(topic, [*large, "not json"])
    state = connector.folder / "state"
    for _ in range(2):
        done = run(connector, "dead_letters.sh", "check", topic, state, "id INT")
        assert done.code == 0, done.said
        assert count(connector, f"{topic}.dead") == 6
    for _ in range(2):
        done = run(connector, "dead_letters.sh", "again", topic, state, "id BIGINT")
        assert done.code == 0, done.said
        assert count(connector, f"{topic}.again") == 6
        assert count(connector, f"{topic}.still-dead") == 1


def test_a_night_that_is_run_twice_changes_nothing(connector: Connector, topic: str) -> None:
    connector.create(topic, 2)
    schema, lake = "id BIGINT, amount DOUBLE", connector.folder / "lake"
    good = [json.dumps({"id": number, "amount": 1.5}) for number in range(40)]
    connector.produce(topic, good)
    connector.produce(topic, ["not json"] * 3, partition=1)
    for _ in range(2):
        done = run(connector, "nightly.sh", topic, lake, schema)
        assert done.code == 0, done.said
        table = connector.spark.read.format("delta").load(str(lake / topic))
        assert (table.count(), count(connector, f"{topic}.dead")) == (43, 3)
    journal = [json.loads(line) for line in (lake / "nightly.jsonl").read_text().splitlines()]
    assert [each["command"] for each in journal] == ["to-lake", "audit", "dlq"] * 2
    assert [each["exit_code"] for each in journal] == [0] * 6
    assert [each["written"] for each in journal if each["command"] == "to-lake"] == [43, 0]


def test_a_second_night_at_once_is_told_to_come_later(connector: Connector, topic: str) -> None:
    connector.create(topic)
    connector.produce(topic, ['{"id": 1, "amount": 1}'])
    lake = connector.folder / "lake"
    notes = Folder(connector.spark, f"{lake}/{topic}/_checkpoint/kafkalite")
    lease = lease_of(connector.spark, notes, "to-lake")
    lease.take()
    try:
        done = run(connector, "nightly.sh", topic, lake, "id BIGINT, amount DOUBLE")
    finally:
        lease.release()
    assert done.code == 75
    (said,) = [json.loads(line) for line in (lake / "nightly.jsonl").read_text().splitlines()]
    assert (said["command"], said["exit_code"]) == ("to-lake", 4)
    assert run(connector, "nightly.sh", topic, lake, "id BIGINT, amount DOUBLE").code == 0


def consume(bootstrap: str, group: str, topic: str, how_many: int) -> list[str]:
    """The next records of a group, which are committed; a consumer that comes and goes."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "error",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    found: list[str] = []
    while len(found) < how_many:
        message = consumer.poll(WAIT_S)
        assert message is not None, f"no more than {len(found)}"
        assert not message.error(), message.error()
        found.append(message.value().decode())
        consumer.commit(message, asynchronous=False)
    consumer.close()
    return found


def begin(bootstrap: str, group: str, topic: str) -> None:
    """A group at the very beginning of the topic."""
    from confluent_kafka import TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, n, 0) for n in (0, 1)], asynchronous=False)
    consumer.close()


def send(bootstrap: str, topic: str, values: list[str]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for place, value in enumerate(values):
        producer.produce(topic, value, partition=place % 2)
    assert producer.flush(WAIT_S) == 0


def test_consumers_move_to_another_cluster_and_back_without_a_gap(
    connector: Connector, topic: str, run_folder: Path
) -> None:
    """From one kind of broker to the other."""
    kinds = {brokers.KAFKALITE, brokers.APACHE_KAFKA} - {connector.broker.kind}
    old, new = connector.broker.bootstrap, brokers.shared(kinds.pop(), run_folder).bootstrap
    state, group = connector.folder / "state", f"{topic}-billing"
    admin = AdminClient({"bootstrap.servers": old})
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(WAIT_S)
    values = numbers(0, 200)

    def step(name: str, code: int = 0) -> None:
        done = run(connector, "migration.sh", name, old, new, state, topic, group)
        assert done.code == code, done.said

    send(old, topic, values[:80])
    begin(old, group, topic)
    found = consume(old, group, topic, 30)
    step("copy")
    send(old, topic, values[80:120])
    found += consume(old, group, topic, 30)
    for _ in range(2):
        step("move")
    found += consume(new, group, topic, 30)
    # One partition at least is not read up to where it was when they moved.
    step("back", code=1)
    send(new, topic, values[120:160])
    found += consume(new, group, topic, 70)
    for _ in range(2):
        step("back")
    send(old, topic, values[160:])
    found += consume(old, group, topic, 40)
    assert sorted(found) == values
    assert count(connector, topic) == 200
