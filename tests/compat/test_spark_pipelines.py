"""The pipelines end to end: what they are for, and what they promise besides."""

import json
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from kafkalite.pipelines import (
    Audit,
    CommitOffsetsListener,
    KafkaSource,
    Mirror,
    Replay,
    Snapshot,
    reporting,
)
from kafkalite.pipelines.common.outcomes import PipelineError
from kafkalite.pipelines.common.running import Trigger
from kafkalite.pipelines.common.stopping import StopRequest
from kafkalite.pipelines.common.translation import Moves
from kafkalite.pipelines.counts import ProducerCounts
from kafkalite.pipelines.lag import Lag
from kafkalite.pipelines.replay import Choice
from kafkalite.testing.spark import assert_exactly_once
from tests.compat import brokers
from tests.compat.spark_connector import (
    SPARK_MARKS,
    WAIT_S,
    Connector,
    connector,
    numbers,
    spark,
    values,
    wait_for,
)
from tests.compat.spark_jobs import (
    BASE_MS,
    commit,
    committed,
    dead_letters_of,
    fill_changelog,
    fill_timed,
    lake_of,
    snapshot_of,
    source_of,
)

__all__ = ["connector", "spark"]
pytestmark = [*SPARK_MARKS, pytest.mark.theirs_in_full]


@pytest.mark.parametrize("table_format", ["delta", pytest.param("parquet", marks=pytest.mark.slow)])
def test_lake_grows_with_its_topics(connector: Connector, topic: str, table_format: str) -> None:
    for name in (f"{topic}-a", f"{topic}-b"):
        connector.create(name, 2)
        connector.produce(name, numbers(0, 20), 1)
    lake = lake_of(
        connector, f"{topic}-a", f"{topic}-b", format=table_format, partition_by_date=True
    )
    assert lake.run().rows == 40
    connector.produce(f"{topic}-a", numbers(20, 30), 0)
    assert lake.run().rows == 10
    table = lake.table().read()
    assert_exactly_once(table, connector.batch({"subscribe": f"{topic}-a,{topic}-b"}))
    assert {"date", "ingested_at", "headers", "key"} <= set(table.columns)
    assert list(Path(lake.path).glob("**/date=*"))


@pytest.mark.slow
def test_lake_writes_fewer_files_when_told_their_size(connector: Connector, topic: str) -> None:
    connector.create(topic, 4)
    for partition in range(4):
        connector.produce(topic, numbers(0, 50), partition)
    lake = lake_of(connector, topic, format="parquet", target_file_bytes=10_000_000)
    lake.run()
    assert len(list(Path(lake.path, "batch=0").glob("*.parquet"))) == 1


@pytest.mark.full
def test_lake_is_partitioned_by_log_date(connector: Connector, topic: str) -> None:
    """By the record's date, not by that of the run."""
    connector.create(topic)
    day_ms = 86_400_000
    records = [{"value": "x", "timestamp": BASE_MS + number * day_ms} for number in range(3)]
    connector.produce(topic, records)
    lake = lake_of(connector, topic, format="parquet", partition_by_date=True)
    lake.run()
    folders = {path.name for path in Path(lake.path, "batch=0").glob("date=*")}
    assert folders == {f"date=2026-01-0{number}" for number in (1, 2, 3)}


def test_second_query_on_the_same_records_is_refused(connector: Connector, topic: str) -> None:
    connector.create(topic)
    connector.produce(topic, numbers(0, 5))
    lake_of(connector, topic).run()
    other = str(connector.folder / "other")
    with pytest.raises(PipelineError, match=r"already holds .*give the checkpoint"):
        lake_of(connector, topic, checkpoint=other).run()


def test_stop_ends_after_the_batch(connector: Connector, topic: str) -> None:
    connector.create(topic)
    connector.produce(topic, numbers(0, 50))
    lake = lake_of(connector, topic, trigger=Trigger("continuous"), format="parquet")
    stop = StopRequest()
    # From another thread, as a signal comes, in the middle of the first batch.
    result = lake.run(stop=stop, observe=lambda step, batch: stop.request())
    assert result.rows == 50
    assert_exactly_once(lake.table().read(), connector.batch({"subscribe": topic}))


def test_dead_letters_get_the_bad_records(connector: Connector, topic: str) -> None:
    connector.create(topic)
    connector.create(f"{topic}-dead")
    connector.produce(topic, ['{"n": 1}', '{"n": 0}', ("k", "x"), '{"n": 2}'])
    pipeline = dead_letters_of(connector, topic)
    pipeline.run()
    assert (pipeline.good, pipeline.bad) == (2, 2)
    options = {"subscribe": f"{topic}-dead", "includeHeaders": "true"}
    rows = sorted(connector.read("batch", options), key=lambda row: row["offset"])
    assert [row["value"] for row in rows] == [b'{"n": 0}', b"x"]
    headers = {each["key"]: bytes(each["value"]) for each in rows[1]["headers"]}
    assert headers["__connect.errors.offset"] == b"2"
    original = connector.read("batch", {"subscribe": topic})
    assert {row["timestamp"] for row in rows} <= {row["timestamp"] for row in original}


def test_too_many_bad_records_break_the_run(connector: Connector, topic: str) -> None:
    connector.create(topic)
    connector.create(f"{topic}-dead")
    connector.produce(topic, ['{"n": 1}'] * 6 + ["x"] * 4)
    pipeline = dead_letters_of(connector, topic, max_error_rate=0.3, breaker_from_rows=10)
    with pytest.raises(PipelineError, match=r"4 of 10 records are bad, more than 30%"):
        pipeline.run()
    assert connector.read("batch", {"subscribe": f"{topic}-dead"}) == []
    pipeline.max_error_rate = 0.5
    pipeline.run()
    assert len(connector.read("batch", {"subscribe": f"{topic}-dead"})) == 4


def test_replay_from_a_table_is_one_replay(connector: Connector, topic: str) -> None:
    fill_timed(connector, topic, 30)
    connector.create(f"{topic}-again")
    lake = lake_of(connector, topic)
    lake.run()
    choice = Choice(from_time="2026-01-01 00:00:10", to_offset=20, where="key != 'k15'")
    replay = Replay(
        connector.spark,
        source_of(connector, f"{topic}-again"),
        str(connector.folder / "replay"),
        path=lake.path,
        choice=choice,
    )
    first, second = replay.run(), replay.run()
    assert [(each.written, each.there_already) for each in (first, second)] == [(9, 0), (0, 9)]
    assert first.faults == second.faults == []
    options = {"subscribe": f"{topic}-again", "includeHeaders": "true"}
    rows = sorted(connector.read("batch", options), key=lambda row: row["offset"])
    chosen = [number for number in range(10, 20) if number != 15]
    assert [bytes(row["key"]).decode() for row in rows] == [f"k{number}" for number in chosen]
    assert [int(row["timestamp"].timestamp()) for row in rows] == [
        BASE_MS // 1000 + number for number in chosen
    ]
    assert [bytes(row["headers"][0]["value"]) for row in rows] == [
        str(number).encode() for number in chosen
    ]


@pytest.mark.slow
def test_replay_writes_what_an_earlier_one_left_out(connector: Connector, topic: str) -> None:
    """As after a crash: a part has landed, the note of the start is there."""
    fill_timed(connector, topic, 20)
    connector.create(f"{topic}-again")
    target = source_of(connector, f"{topic}-again")
    source = source_of(connector, topic)
    state = str(connector.folder / "replay")
    parts = [Choice(from_offset=5, to_offset=9), Choice()]
    for choice in parts:
        Replay(connector.spark, target, state, source=source, choice=choice).run()
    rows = connector.read("batch", {"subscribe": f"{topic}-again"})
    assert values(rows) == numbers(0, 20)


def test_replay_keeps_to_its_rate(connector: Connector, topic: str) -> None:
    fill_timed(connector, topic, 100)
    connector.create(f"{topic}-again")
    started = time.monotonic()
    Replay(
        connector.spark,
        source_of(connector, f"{topic}-again"),
        str(connector.folder / "replay"),
        source=source_of(connector, topic),
        rate=50,
    ).run()
    assert time.monotonic() - started > 1.9
    assert len(connector.read("batch", {"subscribe": f"{topic}-again"})) == 100


def test_audit_compares_all_three_tiers(connector: Connector, topic: str) -> None:
    fill_timed(connector, topic, 700)
    counts = ProducerCounts("test")
    for number in range(700):
        counts.count(topic, BASE_MS + number * 1000)
    counts.count(topic, BASE_MS)  # one that the broker never got
    connector.create(f"{topic}-counts")
    connector.produce(f"{topic}-counts", counts.events())
    lake = lake_of(connector, topic)
    lake.run()
    connector.produce(topic, ["later"])
    report = Audit(
        connector.spark,
        lake.source,
        lake.path,
        producer_counts=source_of(connector, f"{topic}-counts"),
    ).run()
    assert [(each.producer, each.broker, each.lake) for each in report.buckets] == [
        (601, 600, 600),
        (100, 100, 100),
    ]
    assert report.not_yet_loaded == 1
    assert report.faults == [
        f"{topic} 2026-01-01 00:00: producers counted 601, the broker holds 600"
    ]
    assert report.buckets[0].latency_p50_ms is not None


@pytest.mark.slow
def test_audit_report_is_handed_on(connector: Connector, topic: str) -> None:
    fill_timed(connector, topic, 5)
    lake = lake_of(connector, topic)
    lake.run()
    report = Audit(connector.spark, lake.source, lake.path).run()
    table, picture = str(connector.folder / "report"), connector.folder / "audit.svg"
    reporting.to_table(connector.spark, report, table)
    reporting.to_topic(connector.spark, report, lake.source, f"{topic}-audit")
    reporting.plot(report, str(picture))
    (row,) = connector.spark.read.format("delta").load(table).collect()
    assert (row["topic"], row["broker"], row["lake"]) == (topic, 5, 5)
    (record,) = connector.read("batch", {"subscribe": f"{topic}-audit"})
    assert json.loads(record["value"])["lake"] == 5
    assert "<svg" in picture.read_text()


def _table(connector: Connector, snapshot: Snapshot) -> dict[bytes, bytes | None]:
    rows = connector.spark.read.format(snapshot.format).load(snapshot.path).collect()
    return {bytes(row["key"]): row["value"] for row in rows}


def test_snapshot_is_what_compaction_would_keep(connector: Connector, topic: str) -> None:
    fill_changelog(connector, topic)
    snapshot = snapshot_of(connector, topic)
    assert snapshot.once().written == 2
    assert _table(connector, snapshot) == {b"a": b"3", b"c": b"4"}


@pytest.mark.slow
def test_snapshot_of_an_earlier_offset(connector: Connector, topic: str) -> None:
    fill_changelog(connector, topic)
    ends = json.dumps({topic: {"0": 2}})
    snapshot = snapshot_of(connector, topic, format="parquet", options={"endingOffsets": ends})
    assert snapshot.once().written == 2
    assert _table(connector, snapshot) == {b"a": b"1", b"b": b"2"}


@pytest.mark.full
def test_snapshot_of_an_earlier_time(connector: Connector, topic: str) -> None:
    connector.create(topic)
    versions = [
        {"key": "a", "value": str(number), "timestamp": BASE_MS + number * 1000}
        for number in range(5)
    ]
    connector.produce(topic, versions)
    ends = {"endingTimestamp": str(BASE_MS + 3000)}
    snapshot = snapshot_of(connector, topic, format="parquet", options=ends)
    assert snapshot.once().written == 1
    assert _table(connector, snapshot) == {b"a": b"2"}


@pytest.mark.full
def test_followed_snapshot_takes_deletes_over(connector: Connector, topic: str) -> None:
    fill_changelog(connector, topic)
    snapshot = snapshot_of(connector, topic, options={"maxOffsetsPerTrigger": "2"})
    snapshot.follow()
    assert _table(connector, snapshot) == {b"a": b"3", b"c": b"4"}
    connector.produce(topic, [("c", None), ("b", "9")])
    snapshot.follow()
    assert _table(connector, snapshot) == {b"a": b"3", b"b": b"9"}


def test_mirror_copies_and_moves_groups(connector: Connector, topic: str) -> None:
    """Over an aborted transaction offsets differ, and groups still find their record."""
    fill_timed(connector, topic, 10)
    connector.transaction(topic, numbers(10, 14), "abort", f"{topic}-1")
    connector.transaction(topic, numbers(20, 24), "commit", f"{topic}-2")
    group = f"{topic}-group"
    first = connector.read("batch", {"subscribe": topic, **_COMMITTED})
    offset = next(row["offset"] for row in first if row["value"] == b"00022")
    commit(connector, group, topic, offset)
    source = source_of(connector, topic, **_COMMITTED)
    target = KafkaSource(connector.broker.bootstrap, ("*",))
    folder = str(connector.folder / "mirror")
    mirror = Mirror(connector.spark, source, target, folder, "{topic}-copy", (group,))
    mirror.run()
    rows = connector.read("batch", {"subscribe": f"{topic}-copy", "includeHeaders": "true"})
    rows.sort(key=lambda row: row["offset"])
    assert [row["value"].decode() for row in rows] == numbers(0, 10) + numbers(20, 24)
    assert [row["timestamp"] for row in rows] == [
        row["timestamp"] for row in sorted(first, key=lambda row: row["offset"])
    ]
    assert bytes(rows[3]["headers"][0]["value"]) == b"3"
    assert mirror.moved == {group: Moves({(f"{topic}-copy", 0): 12}, {})}
    assert rows[12]["value"] == b"00022"


_COMMITTED = {"kafka.isolation.level": "read_committed"}


@pytest.mark.full
def test_mirror_to_another_cluster_goes_on_where_it_was(
    connector: Connector, topic: str, run_folder: Path
) -> None:
    """From each kind of broker to the other, a few records at a time."""
    kind = next(each for each in brokers.BROKERS if each != connector.broker.kind)
    other = Connector(connector.spark, brokers.shared(kind, run_folder), connector.folder)
    fill_timed(connector, topic, 10)
    group, folder = f"{topic}-group", str(connector.folder / "mirror")
    commit(connector, group, topic, 7)
    target = source_of(other, "*")
    for count in (10, 15):
        connector.produce(topic, numbers(10, count))
        source = source_of(connector, topic, maxOffsetsPerTrigger="4")
        Mirror(connector.spark, source, target, folder, groups=(group,)).run()
    columns = ["offset", "key", "value", "timestamp", "headers"]
    here, there = (
        each.batch({"subscribe": topic, "includeHeaders": "true"}).select(*columns).collect()
        for each in (connector, other)
    )
    assert sorted(there) == sorted(here)
    assert committed(other, group, topic) == 7


def test_progress_is_seen_as_a_groups_offsets(connector: Connector, topic: str) -> None:
    connector.create(topic)
    connector.produce(topic, numbers(0, 8))
    source, group = source_of(connector, topic), f"{topic}-group"
    listener = CommitOffsetsListener(connector.spark, source, group, f"to-lake {topic}")
    connector.spark.streams.addListener(listener)
    try:
        df = source.stream(connector.spark)
        writer = df.writeStream.format("noop").queryName(f"to-lake {topic}")
        writer = writer.option("checkpointLocation", str(connector.checkpoint()))
        assert writer.trigger(availableNow=True).start().awaitTermination(WAIT_S)
        wait_for(lambda: committed(connector, group, topic) == 8)
    finally:
        connector.spark.streams.removeListener(listener)
        listener.close()


def test_lag_of_a_checkpoint(connector: Connector, topic: str) -> None:
    connector.create(topic)
    connector.produce(topic, numbers(0, 8))
    lake = lake_of(connector, topic, format="parquet")
    lake.run()
    connector.produce(topic, numbers(0, 5))
    lag = Lag(connector.spark, lake.source, lake.checkpoint, f"{topic}-group")
    assert [(each.done, each.end, each.lag) for each in lag.commit()] == [(8, 13, 5)]
    assert committed(connector, lag.group, topic) == 8


@pytest.mark.slow
def test_pipelines_leave_no_thread_behind(connector: Connector, topic: str) -> None:
    connector.create(topic)
    connector.produce(topic, numbers(0, 3))
    lake = lake_of(connector, topic, format="parquet")
    lake.run()

    def leaves_none() -> bool:
        before = Counter(type(each).__name__ for each in threading.enumerate())
        lake.run()
        return Counter(type(each).__name__ for each in threading.enumerate()) == before

    # py4j may start one for a connection more than it ever needed; a leak comes with each run.
    assert any(leaves_none() for _ in range(5))
