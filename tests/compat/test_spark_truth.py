"""Pipelines tell the truth: nothing lost, doubled or written over with exit code 0.

What they wrote is counted by confluent-kafka and pyarrow, which share no code with them.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import ConfigResource, ResourceType

from kafkalite.pipelines import Audit, KafkaSource, Mirror, Replay, reporting
from kafkalite.pipelines.common.decode import Decoding
from kafkalite.pipelines.common.files import Folder
from kafkalite.pipelines.common.lake import MARKS
from kafkalite.pipelines.common.outcomes import Different, HeldElsewhere, PipelineError
from kafkalite.pipelines.common.ownership import held
from kafkalite.pipelines.common.running import Trigger, lease_of
from kafkalite.pipelines.common.stopping import StopRequest
from kafkalite.pipelines.common.translation import BEHIND
from kafkalite.pipelines.lag import Lag
from tests.compat.schema_registry import schema_registry
from tests.compat.spark_connector import (
    SPARK_MARKS,
    WAIT_S,
    Connector,
    connector,
    numbers,
    spark,
)
from tests.compat.spark_jobs import (
    commit,
    committed,
    dead_letters_of,
    fill_changelog,
    fill_timed,
    lake_of,
    snapshot_of,
    source_of,
)
from tests.compat.test_spark_bad_input import FRAME, ONE, TWO, V1
from tests.compat.test_spark_read import delete_before

__all__ = ["connector", "spark"]
pytestmark = [*SPARK_MARKS, pytest.mark.theirs_in_full]

UNCOMMITTED = {"kafka.isolation.level": "read_uncommitted"}


def count(connector: Connector, topic: str) -> int:
    """Records that a consumer of committed records finds."""
    consumer = Consumer(
        {
            "bootstrap.servers": connector.broker.bootstrap,
            "group.id": "count",
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    numbers = consumer.list_topics(topic, WAIT_S).topics[topic].partitions
    consumer.assign([TopicPartition(topic, number, 0) for number in numbers])
    found, open_ones = 0, set(numbers)
    while open_ones:
        message = consumer.poll(WAIT_S)
        assert message is not None, "nothing for long"
        if message.error():
            open_ones.discard(message.partition())
        else:
            found += 1
    consumer.close()
    return found


def rows(path: str) -> int:
    """Rows of the Parquet files of a table, by their footers."""
    files = Path(path).glob("**/*.parquet")
    return sum(pyarrow.parquet.read_metadata(file).num_rows for file in files)


def mirror_of(connector: Connector, *topics: str, folder: str = "mirror", **more: Any) -> Mirror:
    source = more.pop("source", None) or source_of(connector, *topics, **more.pop("options", {}))
    target = KafkaSource(connector.broker.bootstrap, ("*",))
    checkpoint = str(connector.folder / folder)
    return Mirror(connector.spark, source, target, checkpoint, "{topic}-copy", **more)


def settings(connector: Connector, topic: str) -> dict[str, str]:
    asked = ConfigResource(ResourceType.TOPIC, topic)
    found = connector.admin().describe_configs([asked])[asked].result(WAIT_S)
    return {name: entry.value for name, entry in found.items()}


def test_a_copy_keeps_what_its_source_keeps(connector: Connector, topic: str) -> None:
    """Records of long ago, in a topic that keeps them for ever."""
    connector.create(topic, config={"retention.ms": "-1", "max.message.bytes": "2000000"})
    old = [{"value": value, "timestamp": 1_000_000_000_000} for value in numbers(0, 20)]
    connector.produce(topic, old)
    assert mirror_of(connector, topic).run().ledger.faults == []
    copy = settings(connector, f"{topic}-copy")
    assert (copy["retention.ms"], copy["max.message.bytes"]) == ("-1", "2000000")
    assert copy["message.timestamp.type"] == "CreateTime"
    assert count(connector, f"{topic}-copy") == 20


def test_a_snapshot_does_not_write_over_a_lake(connector: Connector, topic: str) -> None:
    fill_changelog(connector, topic)
    lake = lake_of(connector, topic)
    lake.run()
    snapshot = snapshot_of(connector, topic)
    snapshot.path = lake.path
    for write in (snapshot.once, snapshot.follow):
        with pytest.raises(HeldElsewhere, match="is of command to-lake, not of command snapshot"):
            write()
    assert rows(lake.path) == 5
    snapshot = snapshot_of(connector, topic, format="parquet")
    assert snapshot.once().faults == snapshot.once().faults == []
    assert rows(snapshot.path) == 2
    other = lake_of(connector, topic, format="parquet")
    other.path, other.checkpoint = snapshot.path, str(connector.folder / "other")
    with pytest.raises(HeldElsewhere, match="no to-lake wrote"):
        other.run()
    assert rows(snapshot.path) == 2


def test_a_checkpoint_is_of_one_sink(connector: Connector, topic: str) -> None:
    """Where another has been says nothing of what is there."""
    connector.create(topic)
    connector.create(f"{topic}-dead")
    connector.create(f"{topic}-other")
    connector.produce(topic, ["x"] * 3)
    pipeline = dead_letters_of(connector, topic)
    assert pipeline.run().ledger.written == 3
    pipeline.topic = f"{topic}-other"
    with pytest.raises(HeldElsewhere, match=f"not of command dlq, sink {topic}-other"):
        pipeline.run()
    mirror = mirror_of(connector, topic, folder="dlq")
    with pytest.raises(HeldElsewhere, match=f"is of command dlq, sink {topic}-dead"):
        mirror.run()


def test_what_cannot_be_parsed_deletes_nothing(connector: Connector, topic: str) -> None:
    connector.create(topic)
    change = '{"op":"c","before":null,"after":{"id":1}}'
    connector.produce(topic, [("a", change), ("b", change), ("c", change)])
    snapshot = snapshot_of(connector, topic, envelope="debezium")
    assert snapshot.follow().ledger.written == 3
    connector.produce(topic, [("a", "garbage"), ("b", '{"op":"d","after":null}'), ("c", None)])
    ledger = snapshot.follow().ledger
    assert (ledger.written, ledger.left_out["deleted"], ledger.faults) == (1, 2, [])
    found = connector.spark.read.format("delta").load(snapshot.path).collect()
    assert [(bytes(row["key"]), bytes(row["value"]), row["error"]) for row in found] == [
        (b"a", b"garbage", "not a Debezium envelope")
    ]


def test_a_second_copy_is_told_who_holds_the_checkpoint(connector: Connector, topic: str) -> None:
    connector.create(topic)
    connector.produce(topic, numbers(0, 5))
    told: list[str] = []

    def start_another(step: str, batch: Any) -> None:
        with pytest.raises(HeldElsewhere) as held:
            mirror_of(connector, topic).run()
        told.append(str(held.value))

    mirror_of(connector, topic).run(observe=start_another)
    assert all("is held by mirror {topic}-copy at" in each for each in told)
    assert len(told) == 3
    assert count(connector, f"{topic}-copy") == 5
    mirror_of(connector, topic).run()
    assert count(connector, f"{topic}-copy") == 5


def test_a_copy_that_another_checkpoint_made_is_refused(connector: Connector, topic: str) -> None:
    connector.create(topic)
    connector.produce(topic, numbers(0, 5))
    mirror_of(connector, topic).run()
    with pytest.raises(HeldElsewhere, match="holds 5 records that this checkpoint did not write"):
        mirror_of(connector, topic, folder="other").run()
    assert count(connector, f"{topic}-copy") == 5
    assert mirror_of(connector, topic, folder="third", adopt=True).run().ledger.faults == []
    assert count(connector, f"{topic}-copy") == 10
    # The first one sees it, and does not go on as if nothing had been.
    connector.produce(topic, numbers(5, 6))
    with pytest.raises(Different, match="ends at 10, this mirror left it at 5"):
        mirror_of(connector, topic).run()


def test_a_group_is_moved_over_what_the_source_forgot_and_never_back(
    connector: Connector, topic: str
) -> None:
    fill_timed(connector, topic, 10)
    connector.transaction(topic, numbers(10, 14), "abort", f"{topic}-1")
    connector.transaction(topic, numbers(20, 24), "commit", f"{topic}-2")
    group, copy = f"{topic}-group", f"{topic}-copy"
    commit(connector, group, topic, 17)
    mirror_of(connector, topic).run()
    delete_before(connector, topic, 19)
    # Offsets 10 to 13 were aborted and 14 is a marker: 17 is the third of the last four.
    mirror_of(connector, topic, groups=(group,)).run()
    assert committed(connector, group, copy) == 12
    commit(connector, group, copy, 13)
    mirror = mirror_of(connector, topic, groups=(group,))
    mirror.run()
    assert mirror.moved[group].left == {(copy, 0): BEHIND}
    assert committed(connector, group, copy) == 13
    with pytest.raises(PipelineError, match="no group nobody at "):
        mirror_of(connector, topic, groups=("nobody",)).run()


def test_what_was_aborted_is_nowhere(connector: Connector, topic: str) -> None:
    connector.create(topic)
    connector.transaction(topic, numbers(0, 3), "commit", f"{topic}-1")
    connector.transaction(topic, numbers(3, 7), "abort", f"{topic}-2")
    lake = lake_of(connector, topic, format="parquet")
    ledger = lake.run().ledger
    assert (ledger.read, ledger.written, ledger.without_record) == (3, 3, 6)
    assert rows(lake.path) == 3
    mirror_of(connector, topic).run()
    assert count(connector, f"{topic}-copy") == 3
    assert Audit(connector.spark, lake.source, lake.path, "parquet").run().compared == 3
    dirty = lake_of(connector, topic, format="parquet", options=UNCOMMITTED)
    dirty.path, dirty.checkpoint = (str(connector.folder / name) for name in ("dirty", "done"))
    dirty.run()
    assert rows(dirty.path) == 7
    report = Audit(connector.spark, lake.source, dirty.path, "parquet", dirty.checkpoint).run()
    assert report.faults == [f"{topic}-0 offsets 4..7 not committed, but in the lake (4 rows)"]


@pytest.mark.full
def test_two_reports_into_one_table_come_one_after_the_other(
    connector: Connector, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_timed(connector, topic, 5)
    lake = lake_of(connector, topic)
    lake.run()
    report = Audit(connector.spark, lake.source, lake.path).run()
    path = str(connector.folder / "reports")
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: reporting.to_table(connector.spark, report, path), range(2)))
    assert connector.spark.read.format("delta").load(path).count() == 2
    marks = Folder(connector.spark, f"{path}/{MARKS}")
    monkeypatch.setattr(reporting, "WAIT_S", 0.1)
    with (
        held(lease_of(connector.spark, marks, "somebody's")),
        pytest.raises(HeldElsewhere, match="held by somebody's"),
    ):
        reporting.to_table(connector.spark, report, path)


def test_an_audit_of_nothing_does_not_pass(connector: Connector, topic: str) -> None:
    for name in (topic, f"{topic}-other", f"{topic}-empty"):
        connector.create(name)
    connector.produce(topic, numbers(0, 5))
    connector.produce(f"{topic}-other", numbers(0, 5))
    lake = lake_of(connector, topic, format="parquet")
    lake.run()

    def audit(*topics: str) -> Any:
        return Audit(connector.spark, source_of(connector, *topics), lake.path, "parquet").run()

    assert audit(topic).faults == []
    with pytest.raises(PipelineError, match=f"no topic {topic}x at .*do you mean"):
        audit(topic, f"{topic}x")
    for name in (f"{topic}-other", f"{topic}-empty"):
        with pytest.raises(PipelineError, match="nothing was compared"):
            audit(name)
    assert audit(topic, f"{topic}-other").faults == [
        f"{topic}-other: nothing was compared, no batch was loaded"
    ]


def test_a_snapshot_reads_framed_avro_and_keeps_tombstones(
    connector: Connector, topic: str
) -> None:
    connector.create(topic)
    records: list[Any] = [
        (b"a", FRAME + b"\x01" + ONE),
        (b"b", FRAME + b"\x01" + TWO),
        (b"b", None),
    ]
    connector.produce(topic, records)
    with schema_registry() as registry:
        registry.has(1, V1)
        snapshot = snapshot_of(
            connector,
            topic,
            decoding=Decoding("confluent-avro"),
            schema_registry=registry.url,
            keep_tombstones=True,
        )
        assert snapshot.follow().ledger.written == 2
    found = connector.spark.read.format("delta").load(snapshot.path).orderBy("key")
    assert [tuple(row) for row in found.select("data.id", "value").collect()] == [
        (1, FRAME + b"\x01" + ONE),
        (None, None),
    ]


def test_a_replay_counts_what_it_wrote_and_takes_large_records(
    connector: Connector, topic: str
) -> None:
    large = {"max.message.bytes": "4000000"}
    connector.create(topic, config=large)
    connector.create(f"{topic}-again", config=large)
    big = b"x" * 3_000_000
    connector.produce(topic, [*numbers(0, 5), big], **{"message.max.bytes": 4_000_000})
    replay = Replay(
        connector.spark,
        source_of(connector, f"{topic}-again"),
        str(connector.folder / "replay"),
        source=source_of(connector, topic),
    )
    ledger = replay.run()
    assert (ledger.read, ledger.written, ledger.faults) == (6, 6, [])
    assert count(connector, f"{topic}-again") == 6


def test_a_recreated_topic_is_not_taken_for_the_old_one(connector: Connector, topic: str) -> None:
    """As many records, at the same offsets, and others: an audit, a replay and a group."""
    connector.create(topic)
    connector.create(f"{topic}-again")
    connector.produce(topic, numbers(0, 5))
    lake = lake_of(connector, topic, format="parquet")
    lake.run()
    target, state = source_of(connector, f"{topic}-again"), str(connector.folder / "state")
    replay = Replay(connector.spark, target, state, source=lake.source)
    assert replay.run().written == 5
    audit = Audit(connector.spark, lake.source, lake.path, "parquet")
    assert audit.run().faults == []
    connector.delete(topic)
    connector.create(topic)
    connector.produce(topic, numbers(100, 105))
    said = f"{topic}: deleted and recreated since it was loaded, its records are others"
    assert said in audit.run().faults
    with pytest.raises(Different, match=f"{topic} was deleted and recreated since this replay"):
        replay.run()
    with pytest.raises(Different, match=f"{topic} was deleted and recreated since "):
        Lag(connector.spark, lake.source, lake.checkpoint, f"{topic}-group").commit()
    assert count(connector, f"{topic}-again") == 5


@pytest.mark.full
def test_a_replay_writes_nothing_of_a_topic_that_took_the_place_of_its_own(
    connector: Connector, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After it was planned, and before it is read."""
    connector.create(topic)
    connector.create(f"{topic}-again")
    connector.produce(topic, numbers(0, 5))
    rows = Replay.rows

    def rows_of_another(self: Replay) -> Any:
        planned = rows(self)
        connector.delete(topic)
        connector.create(topic)
        connector.produce(topic, numbers(100, 105))
        return planned

    monkeypatch.setattr(Replay, "rows", rows_of_another)
    target, state = source_of(connector, f"{topic}-again"), str(connector.folder / "state")
    with pytest.raises(Different, match=f"{topic} was deleted and recreated since this replay"):
        Replay(connector.spark, target, state, source=source_of(connector, topic)).run()
    assert count(connector, f"{topic}-again") == 0


def test_nothing_is_written_to_where_it_is_read(connector: Connector, topic: str) -> None:
    connector.create(topic)
    connector.produce(topic, numbers(0, 5))
    source = source_of(connector, topic)
    state = str(connector.folder / "state")
    replay = Replay(connector.spark, source_of(connector, topic), state, source=source)
    letters = dead_letters_of(connector, topic)
    letters.topic = topic
    for run in (replay.run, letters.run):
        with pytest.raises(ValueError, match=f"{topic} would be read and written"):
            run()
    by_pattern = KafkaSource(connector.broker.bootstrap, pattern=f"{topic}.*")
    mirror_of(connector, source=by_pattern, folder="first").run()
    with pytest.raises(PipelineError, match=f"{topic}-copy would be mirrored and is a copy"):
        mirror_of(connector, source=by_pattern, folder="first").run()
    assert count(connector, topic) == 5


def test_a_pattern_takes_in_what_spark_takes_in(connector: Connector, topic: str) -> None:
    """Spark finds it anywhere in a name."""
    for name in (f"{topic}-a", f"{topic}-a-more"):
        connector.create(name)
        connector.produce(name, numbers(0, 3))
    lake = lake_of(connector, topic, format="parquet")
    lake.source = KafkaSource(connector.broker.bootstrap, pattern=f"{topic}-[ab]")
    progress = lake.run()
    assert (progress.total, progress.ledger.read) == (6, 6)
    lake.source = KafkaSource(connector.broker.bootstrap, pattern="(")
    with pytest.raises(ValueError, match="the pattern '\\(' is none of Java's"):
        lake.run()


def test_a_mirror_takes_up_topics_and_partitions_while_it_runs(
    connector: Connector, topic: str
) -> None:
    connector.create(f"{topic}-a")
    connector.produce(f"{topic}-a", numbers(0, 5))
    stop = StopRequest()
    pattern = KafkaSource(
        connector.broker.bootstrap,
        pattern=f"{topic}-[ab]$",
        options={"kafka.metadata.max.age.ms": "200"},
    )

    def grow(step: str, batch: Any) -> None:
        if (step, batch.id) == ("noted", 0):
            connector.create(f"{topic}-b", 2)
            connector.add_partitions(f"{topic}-a", 3)
            connector.produce(f"{topic}-a", numbers(5, 9), partition=2)
            connector.produce(f"{topic}-b", numbers(0, 7), partition=1)
        if step == "noted" and seen(batch) == {f"{topic}-a", f"{topic}-b"}:
            stop.request()

    topics: set[str] = set()

    def seen(batch: Any) -> set[str]:
        topics.update(each.topic for each in batch.ranges if batch.id)
        return topics

    mirror = mirror_of(connector, source=pattern, trigger=Trigger("continuous"))
    assert mirror.run(stop=stop, observe=grow).ledger.faults == []
    mirror_of(connector, source=pattern).run()
    assert count(connector, f"{topic}-a-copy") == 9
    assert count(connector, f"{topic}-b-copy") == 7


def test_a_stop_is_heard_after_one_batch_however_much_there_is(
    connector: Connector, topic: str
) -> None:
    connector.create(topic)
    connector.produce(topic, numbers(0, 30))
    lake = lake_of(connector, topic, format="parquet", options={"maxOffsetsPerTrigger": "1"})
    stop = StopRequest()

    def interrupt(step: str, batch: Any) -> None:
        if (step, batch.id) == ("planned", 1):
            stop.request()

    progress = lake.run(stop=stop, observe=interrupt)
    assert (progress.was_stopped, progress.is_behind) == (True, True)
    assert progress.ledger.faults == []
    assert (progress.ledger.written, rows(lake.path)) == (2, 2)
    assert lake.run().ledger.written == 28
    assert rows(lake.path) == 30


def test_a_table_that_lost_a_row_is_not_proven(
    connector: Connector, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step that drops a record without a word, as a wrong one would."""
    connector.create(topic)
    connector.produce(topic, numbers(0, 5))
    lake = lake_of(connector, topic)
    step = type(lake).step
    monkeypatch.setattr(type(lake), "step", lambda self, df: step(self, df).where("offset != 3"))
    assert lake.run().ledger.faults == [
        "5 records were read, but 4 are accounted for: 4 written, 0 there already, 0 left out"
    ]
    assert json.loads(json.dumps(lake.run().ledger.as_json()))["read"] == 0
