"""What bad input comes to in the pipelines: a named outcome each, never silence."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafkalite.pipelines.common import schemas
from kafkalite.pipelines.common.decode import Decoding
from kafkalite.pipelines.common.losses import EXPIRED, EXPIRING, RECREATED, RecordsLost
from kafkalite.pipelines.common.outcomes import PipelineError
from kafkalite.pipelines.common.running import Batch, Trigger
from kafkalite.pipelines.common.stopping import StopRequest
from kafkalite.pipelines.mirror import Mirror
from kafkalite.pipelines.to_lake import ToLake
from tests.compat.schema_registry import SchemaRegistry, schema_registry
from tests.compat.spark_connector import (
    SPARK_MARKS,
    Connector,
    connector,
    numbers,
    spark,
    values,
)
from tests.compat.spark_jobs import (
    dead_letters_of,
    fill_changelog,
    lake_of,
    lost_ranges,
    snapshot_of,
    source_of,
)
from tests.compat.test_spark_read import delete_before

__all__ = ["connector", "spark"]
pytestmark = [*SPARK_MARKS, pytest.mark.theirs_in_full]

FRAME = b"\x00\x00\x00\x00"
V1 = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}
NOTE = {"name": "note", "type": ["null", "string"], "default": None}
V2 = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}, NOTE]}
# Zigzag, as Avro writes a number: 2 is 1. A union begins with the number of its branch.
ONE, TWO = b"\x02", b"\x04"
NULL, N = b"\x00", b"\x02\x02n"


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with schema_registry() as registry:
        yield registry


def test_lake_keeps_bytes_that_do_not_decode_and_keys_and_values_that_are_null(
    connector: Connector, topic: str
) -> None:
    connector.create(topic)
    tombstone: Any = (b"k", None)
    connector.produce(topic, ['{"id": 1}', '{"id": 2, "new": true}', b"\xff", tombstone])
    lake = lake_of(connector, topic, decoding=Decoding("json", "id INT"))
    lake.run()
    columns = ["data.id", "rescued", "error", "key", "value"]
    rows = lake.table().read().orderBy("offset").select(*columns)
    assert [tuple(row) for row in rows.collect()] == [
        (1, None, None, None, b'{"id": 1}'),
        (2, '{"new":"true"}', None, None, b'{"id": 2, "new": true}'),
        (None, "�", "not a JSON object", None, b"\xff"),
        (None, None, None, b"k", None),
    ]


@pytest.mark.full
def test_lake_reads_framed_avro_from_schema_files(connector: Connector, topic: str) -> None:
    connector.create(topic)
    (connector.folder / "7.avsc").write_text(json.dumps(V1))
    connector.produce(topic, [FRAME + b"\x07" + ONE, FRAME + b"\x08" + ONE])
    decoding, folder = Decoding("confluent-avro"), str(connector.folder)
    lake = lake_of(connector, topic, decoding=decoding, schema_registry=folder)
    lake.run()
    rows = lake.table().read().orderBy("offset").select("data.id", "error").collect()
    assert [tuple(row) for row in rows] == [(1, None), (None, "unknown schema id 8")]


@pytest.mark.full
def test_lake_follows_a_schema_that_grows(
    connector: Connector, topic: str, registry: SchemaRegistry
) -> None:
    """Batch by batch: the second schema is not known yet when the first rows are written."""
    connector.create(topic)
    registry.has(1, V1)
    registry.has(2, V2)
    connector.produce(topic, [FRAME + b"\x01" + ONE, FRAME + b"\x02" + TWO + N])
    lake = lake_of(
        connector,
        topic,
        decoding=Decoding("confluent-avro"),
        schema_registry=registry.url,
        options={"maxOffsetsPerTrigger": "1"},
    )
    assert lake.run().batches == 2
    rows = lake.table().read().orderBy("offset").select("data.id", "data.note", "error").collect()
    assert [tuple(row) for row in rows] == [(1, None, None), (2, "n", None)]
    assert registry.asked == {1: 1, 2: 1}


@pytest.mark.full
def test_lake_refuses_a_schema_that_changes_a_type(
    connector: Connector, topic: str, registry: SchemaRegistry
) -> None:
    connector.create(topic)
    registry.has(1, V1)
    text = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "string"}]}
    registry.has(2, text)
    connector.produce(topic, [FRAME + b"\x01" + ONE, FRAME + b"\x02" + b"\x02x"])
    lake = lake_of(
        connector,
        topic,
        decoding=Decoding("confluent-avro"),
        schema_registry=registry.url,
        options={"maxOffsetsPerTrigger": "1"},
    )
    with pytest.raises(PipelineError, match=r"columns of other types .*Failed to merge"):
        lake.run()
    assert lake.table().read().count() == 1


@pytest.mark.full
def test_framed_json_is_held_against_its_schema(
    connector: Connector, topic: str, registry: SchemaRegistry
) -> None:
    connector.create(topic)
    properties = {"id": {"type": "integer", "minimum": 1}}
    registry.has(1, {"type": "object", "properties": properties}, schemaType="JSON")
    registry.has(2, V1)
    bodies = [b'{"id": 1}', b'{"id": 0}', b'{"id": 1} x', b"[1]", b'{"id": NaN}']
    values = [FRAME + b"\x01" + body for body in bodies]
    values += [FRAME + b"\x02" + ONE, FRAME + b"\x09{}", b'{"id": 1}']
    connector.produce(topic, [*values, ("k", None)])
    lake = lake_of(
        connector, topic, decoding=Decoding("confluent-json"), schema_registry=registry.url
    )
    assert lake.run().ledger.faults == []
    columns = ["CAST(data AS STRING)", "error"]
    rows = lake.table().read().orderBy("offset").selectExpr(*columns).collect()
    assert [tuple(row) for row in rows] == [
        ('{"id":1}', None),
        (None, "does not fit the schema: $.id: 0 is less than the minimum of 1"),
        (None, "not JSON"),
        (None, "does not fit the schema: $: [1] is not of type 'object'"),
        (None, "not JSON"),
        (None, "schema id 2 is AVRO, not JSON Schema"),
        (None, "unknown schema id 9"),
        (None, "no schema id before the JSON"),
        (None, None),
    ]


@pytest.mark.full
def test_framed_protobuf_is_held_against_its_schema(
    connector: Connector, topic: str, registry: SchemaRegistry
) -> None:
    """In the lake with what it says, else with why not; the same records as dead letters."""
    connector.create(topic)
    connector.create(f"{topic}-dead")
    text = 'import "part.proto"; message Order { int64 id = 1; Part part = 2; message Line {} }'
    reference = registry.has_subject("part", 1, None, schemaType="PROTOBUF")
    registry.subjects["part", 1]["schema"] = 'syntax = "proto3"; message Part { string name = 1; }'
    orders = {"schema": f'syntax = "proto3"; {text}', "schemaType": "PROTOBUF"}
    registry.answers[1] = {**orders, "references": [{**reference, "name": "part.proto"}]}
    registry.has(2, V1)
    registry.answers[3] = {"schema": "message", "schemaType": "PROTOBUF"}
    good = [FRAME + b"\x01\x00\x08\x07\x12\x03\x0a\x01x", FRAME + b"\x01\x00"]
    bad = {
        FRAME + b"\x01\x00\x08": "not Protobuf of the schema",
        FRAME + b"\x01\x04\x00\x00\x08\x01": (
            "not Protobuf of the schema: it has fields that its schema does not name"
        ),
        FRAME + b"\x01\x02\x04": "no message 2 in its schema",
        FRAME + b"\x01": "no message index before the Protobuf",
        FRAME + b"\x02" + ONE: "schema id 2 is AVRO, not Protobuf",
        FRAME + b"\x03\x00": (
            "schema id 3 is no Protobuf schema: value.proto:1:8: Expected message name."
        ),
        FRAME + b"\x09\x00": "unknown schema id 9",
        b"x": "no schema id before the Protobuf",
    }
    connector.produce(topic, [*good, *bad, ("k", None)])
    decoding = Decoding("confluent-protobuf")
    lake = lake_of(connector, topic, decoding=decoding, schema_registry=registry.url)
    assert lake.run().ledger.faults == []
    found = lake.table().read().orderBy("offset").selectExpr("CAST(data AS STRING)", "error")
    assert [tuple(row) for row in found.collect()] == [
        ('{"id":"7","part":{"name":"x"}}', None),
        ('{"id":"0"}', None),
        *((None, reason) for reason in bad.values()),
        (None, None),
    ]
    letters = dead_letters_of(connector, topic, decoding=decoding, schema_registry=registry.url)
    letters.rules = {}
    assert letters.run().ledger.written == len(bad)
    rows = connector.read("batch", {"subscribe": f"{topic}-dead", "includeHeaders": "true"})
    assert {bytes(row["value"]): _message(row) for row in rows} == bad


def test_framed_avro_that_cannot_be_read_is_a_dead_letter(
    connector: Connector, topic: str, registry: SchemaRegistry
) -> None:
    connector.create(topic)
    connector.create(f"{topic}-dead")
    registry.has(1, V1)
    registry.has(3, "syntax", schemaType="PROTOBUF")
    good, bad = FRAME + b"\x01" + ONE, [b"\x01raw", FRAME + b"\x01\x80"]
    unknown = [FRAME + b"\x03" + ONE, FRAME + b"\x09" + ONE]
    # In two batches: what a schema would give is not known in the first.
    connector.produce(topic, [*unknown, good, *bad])
    pipeline = dead_letters_of(
        connector,
        topic,
        decoding=Decoding("confluent-avro"),
        schema_registry=registry.url,
        rules={"small": "data.id < 100"},
    )
    pipeline.source = pipeline.source.with_options(maxOffsetsPerTrigger="2")
    pipeline.run()
    assert (pipeline.good, pipeline.bad) == (1, 4)
    rows = connector.read("batch", {"subscribe": f"{topic}-dead", "includeHeaders": "true"})
    assert {bytes(row["value"]): _message(row) for row in rows} == {
        unknown[0]: "schema id 3 is PROTOBUF, not Avro",
        unknown[1]: "unknown schema id 9",
        bad[0]: "no schema id before the Avro",
        bad[1]: "not Avro of the schema",
    }


def _message(row: Any) -> str:
    headers = {each["key"]: bytes(each["value"]).decode() for each in row["headers"]}
    return headers["__connect.errors.exception.message"]


@pytest.mark.full
def test_broken_registry_stops_the_run_and_loses_nothing(
    connector: Connector,
    topic: str,
    registry: SchemaRegistry,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(schemas, "PAUSE_S", 0)
    connector.create(topic)
    registry.has(1, V1)
    registry.trouble = lambda: (500, b"")
    connector.produce(topic, [FRAME + b"\x01" + ONE])
    decoding = Decoding("confluent-avro")
    lake = lake_of(connector, topic, decoding=decoding, schema_registry=registry.url)
    with pytest.raises(PipelineError, match="did not answer in 3 attempts: HTTP 500"):
        lake.run()
    registry.trouble = lambda: None
    lake.run()
    (row,) = lake.table().read().select("data.id", "error").collect()
    assert tuple(row) == (1, None)


def test_expired_records_fail_with_their_range(connector: Connector, topic: str) -> None:
    connector.create(topic)
    connector.produce(topic, numbers(0, 5))
    lake = lake_of(connector, topic)
    lake.run()
    connector.produce(topic, numbers(5, 20))
    delete_before(connector, topic, 12)
    with pytest.raises(RecordsLost, match=rf"{topic}-0 offsets 5\.\.11: expired"):
        lake.run()
    assert lost_ranges(lake) == [(5, 12, EXPIRED)]
    lake.keep_going = True
    assert [str(loss) for loss in lake.run().losses] == []
    rows = lake.table().read().select("value").collect()
    assert values(rows) == numbers(0, 5) + numbers(12, 20)


class Script:
    """Does things when a run comes to a step of a batch; ends it after the second batch."""

    def __init__(self, acts: list[tuple[str, int, Callable[[], None]]]) -> None:
        self.stop = StopRequest()
        self._acts = acts

    def __call__(self, step: str, batch: Batch) -> None:
        for at, batch_id, act in self._acts:
            if (at, batch_id) == (step, batch.id):
                act()
        if (step, batch.id) == ("noted", 1):
            self.stop.request()


def _running_lake(connector: Connector, topic: str, **more: Any) -> ToLake:
    """A job that goes on, over five records."""
    connector.create(topic)
    connector.produce(topic, numbers(0, 5))
    # No fetch is parked at the broker between batches: it would bring what expires meanwhile.
    options = {"kafka.fetch.max.wait.ms": "1"}
    trigger = Trigger("continuous")
    return lake_of(connector, topic, format="parquet", options=options, trigger=trigger, **more)


@pytest.mark.parametrize("keep_going", [False, True], ids=["fail", "record"])
@pytest.mark.parametrize(
    ("when", "reason"),
    [
        pytest.param(("noted", 0), EXPIRED, id="between", marks=pytest.mark.full),
        pytest.param(("planned", 1), EXPIRING, id="within"),
    ],
)
def test_records_that_expire_under_a_running_job_are_named(
    connector: Connector, topic: str, keep_going: bool, when: tuple[str, int], reason: str
) -> None:
    """Between two batches, or after a batch was planned and before Spark reads it."""
    lake = _running_lake(connector, topic, keep_going=keep_going)

    def produce() -> None:
        connector.produce(topic, numbers(5, 20))

    def expire() -> None:
        delete_before(connector, topic, 12)

    script = Script([("noted", 0, produce), (*when, expire)])
    if keep_going:
        losses = lake.run(stop=script.stop, observe=script).losses
        assert [str(loss) for loss in losses] == [f"{topic}-0 offsets 5..11: {reason}"]
        assert lost_ranges(lake) == [(5, 12, reason)]
        assert values(lake.table().read().collect()) == numbers(0, 5) + numbers(12, 20)
    else:
        with pytest.raises(RecordsLost, match=rf"{topic}-0 offsets 5\.\.11: {EXPIRED}"):
            lake.run(stop=script.stop, observe=script)
        assert lost_ranges(lake) == [(5, 12, EXPIRED)]
        assert values(lake.table().read().collect()) == numbers(0, 5)


@pytest.mark.parametrize("records", [3, 10, 25], ids=["fewer", "as-many", "more"])
def test_recreated_topic_fails_by_name(connector: Connector, topic: str, records: int) -> None:
    """Spark notices only when the new topic is shorter; the topic's id tells always."""
    connector.create(topic)
    connector.produce(topic, numbers(0, 10))
    lake = lake_of(connector, topic)
    lake.run()
    connector.delete(topic)
    connector.create(topic)
    connector.produce(topic, numbers(0, records))
    with pytest.raises(RecordsLost, match=f"{topic}-0 from offset 10: topic deleted and recre"):
        lake.run()


@pytest.mark.parametrize(
    "records",
    [pytest.param(3, id="fewer", marks=pytest.mark.full), pytest.param(25, id="more")],
)
def test_topic_recreated_under_a_running_job_fails_by_name(
    connector: Connector, topic: str, records: int
) -> None:
    lake = _running_lake(connector, topic)

    def recreate() -> None:
        connector.delete(topic)
        connector.create(topic)
        connector.produce(topic, numbers(100, 100 + records))

    script = Script([("noted", 0, recreate)])
    with pytest.raises(RecordsLost, match=f"{topic}-0 from offset 5: topic deleted and recre"):
        lake.run(stop=script.stop, observe=script)
    assert values(lake.table().read().collect()) == numbers(0, 5)


@pytest.mark.full
def test_topic_recreated_under_a_batch_is_told_from_where_on(
    connector: Connector, topic: str
) -> None:
    """Spark goes on in the new one, and takes its records for those that it planned."""
    lake = _running_lake(connector, topic)

    def produce() -> None:
        connector.produce(topic, numbers(5, 10))

    def recreate() -> None:
        connector.delete(topic)
        connector.create(topic)
        connector.produce(topic, numbers(100, 125))

    script = Script([("noted", 0, produce), ("planned", 1, recreate)])
    with pytest.raises(RecordsLost, match=f"{topic}-0 from offset 5: {RECREATED}"):
        lake.run(stop=script.stop, observe=script)
    assert [(start, end) for start, end, _ in lost_ranges(lake)] == [(5, None)]
    with pytest.raises(RecordsLost, match=f"{topic}-0 from offset 5: {RECREATED}"):
        lake.run()


@pytest.mark.full
def test_deleted_topic_fails_by_name(connector: Connector, topic: str) -> None:
    connector.create(f"{topic}-a")
    connector.create(f"{topic}-b")
    connector.produce(f"{topic}-a", numbers(0, 10))
    lake = lake_of(connector, f"{topic}-a", f"{topic}-b", format="parquet")
    lake.run()
    connector.delete(f"{topic}-a")
    for gone in ("", f"{topic}-b"):
        if gone:
            connector.delete(gone)
        with pytest.raises(RecordsLost, match=f"{topic}-a-0 from offset 10: topic deleted"):
            lake.run()


def test_missing_topic_is_told(connector: Connector, topic: str) -> None:
    with pytest.raises(PipelineError, match=f"no topic {topic} at "):
        lake_of(connector, topic).run()


def test_record_without_a_key_has_no_place_in_a_snapshot(connector: Connector, topic: str) -> None:
    fill_changelog(connector, topic)
    connector.produce(topic, ["keyless"])
    with pytest.raises(PipelineError, match=f"{topic}-0 offset 5 has no key"):
        snapshot_of(connector, topic).once()
    ledger = snapshot_of(connector, topic, null_keys="drop").once()
    assert (ledger.written, ledger.left_out["without a key"], ledger.faults) == (2, 1, [])


@pytest.mark.full
def test_null_keys_and_tombstones_are_mirrored_as_they_are(
    connector: Connector, topic: str
) -> None:
    connector.create(topic)
    records: list[Any] = [(b"k", b"v"), (b"k", None), (None, b"v"), (b"", b""), (None, b"\xff")]
    connector.produce(topic, records)
    source, folder = source_of(connector, topic), str(connector.folder / "mirror")
    Mirror(connector.spark, source, source_of(connector, "*"), folder, "{topic}-copy").run()
    rows = connector.read("batch", {"subscribe": f"{topic}-copy"})
    rows.sort(key=lambda row: row["offset"])
    assert [(row["key"], row["value"]) for row in rows] == records
