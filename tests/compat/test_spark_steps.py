"""The pure steps of the pipelines, DataFrame to DataFrame: decoding, judging, folding, comparing.

They need a session and no broker.
"""

import json
import sys
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.avro.functions import to_avro

from kafkalite.pipelines.audit import differences, producer_sums, sums
from kafkalite.pipelines.common.copies import Copies
from kafkalite.pipelines.common.decode import Decoding, decode
from kafkalite.pipelines.common.outcomes import PipelineError
from kafkalite.pipelines.counts import ProducerCounts
from kafkalite.pipelines.dlq import PREFIX, dead_letters, judge
from kafkalite.pipelines.dlq import leave_out_landed as leave_out_dead
from kafkalite.pipelines.mirror import copies, leave_out_landed_of_compacted, runs
from kafkalite.pipelines.mirror import leave_out_landed as leave_out_mirrored
from kafkalite.pipelines.replay import Choice, again
from kafkalite.pipelines.snapshot import latest_per_key, unwrap
from kafkalite.pipelines.to_lake import bronze
from tests.compat.spark_connector import SPARK_MARKS, spark

__all__ = ["spark"]
pytestmark = SPARK_MARKS

SCHEMA = (
    "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, key BINARY, value BINARY, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
NOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
V1 = json.dumps({"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]})
V2 = json.dumps(
    {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "note", "type": ["null", "string"], "default": None},
        ],
    }
)


def records(spark: SparkSession, values: list[Any], **fixed: Any) -> DataFrame:
    """Records of `t-0`; a tuple is a key and a value."""
    rows = []
    for offset, each in enumerate(values):
        key, value = each if isinstance(each, tuple) else (b"k", each)
        rows.append(("t", 0, offset, NOON, key, value, fixed.get("headers")))
    return spark.createDataFrame(rows, SCHEMA)


def one_by_one(df: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in df.orderBy("offset").select(*columns).collect()]


def test_json_that_fits_is_decoded(spark: SparkSession) -> None:
    df = decode(
        records(spark, [b'{"id": 7, "name": "x"}']), Decoding("json", "id INT, name STRING")
    )
    assert one_by_one(df, "data.id", "data.name", "rescued", "error") == [(7, "x", None, None)]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (b'{"id": 1, "new": {"a": 2}}', (1, '{"new":"{\\"a\\":2}"}', None)),
        (b'{"id": "seven"}', (None, '{"id": "seven"}', "does not fit the schema")),
        (b"\xff\xfe", (None, "��", "not a JSON object")),
        (b"{", (None, "{", "not a JSON object")),
        (b"", (None, "", "not a JSON object")),
        (None, (None, None, None)),
    ],
    ids=["drifted", "other-type", "not-text", "cut", "empty", "tombstone"],
)
def test_json_that_does_not_fit_is_kept_and_told(
    spark: SparkSession, value: bytes | None, found: tuple[Any, ...]
) -> None:
    df = decode(records(spark, [value]), Decoding("json", "id INT"))
    assert one_by_one(df, "data.id", "rescued", "error") == [found]
    assert [row["value"] for row in df.collect()] == [value]


def test_json_without_a_schema_becomes_a_variant(spark: SparkSession) -> None:
    df = decode(records(spark, [b'{"a": [1, 2]}', b"nope", None]), Decoding("json"))
    first = sf.variant_get("data", "$.a[1]", "int").alias("a")
    rows = df.orderBy("offset").select(first, "error").collect()
    assert [tuple(row) for row in rows] == [(2, None), (None, "not JSON"), (None, None)]


def _avro(spark: SparkSession, schema: str, sql: str) -> bytes:
    row = spark.sql(f"SELECT {sql} AS r").select(to_avro("r", schema).alias("b")).first()
    assert row is not None
    return bytes(row["b"])


def test_avro_is_decoded_and_damage_is_told(spark: SparkSession) -> None:
    good = _avro(spark, V1, "named_struct('id', 300L)")
    df = decode(records(spark, [good, b"\x80", b"", None]), Decoding("avro", V1))
    assert one_by_one(df, "data.id", "error") == [
        (300, None),
        (None, "not Avro of the schema"),
        (None, "not Avro of the schema"),
        (None, None),
    ]


def test_framed_avro_is_read_by_the_schema_of_each_record(spark: SparkSession) -> None:
    old = b"\x00\x00\x00\x00\x01" + _avro(spark, V1, "named_struct('id', 1L)")
    new = b"\x00\x00\x00\x00\x02" + _avro(spark, V2, "named_struct('id', 2L, 'note', 'n')")
    stranger = b"\x00\x00\x00\x00\x09" + b"\x02"
    values = [old, new, stranger, b"\x01raw", b"\x00\x00\x00\x00\x01\x80", None]
    df = decode(records(spark, values), Decoding("confluent-avro", None, {1: V1, 2: V2}))
    assert one_by_one(df, "data.id", "data.note", "error") == [
        (1, None, None),
        (2, "n", None),
        (None, None, "unknown schema id 9"),
        (None, None, "no schema id before the Avro"),
        (None, None, "not Avro of the schema"),
        (None, None, None),
    ]


def test_avro_of_nothing_but_nulls_is_no_damage(spark: SparkSession) -> None:
    field = {"name": "a", "type": ["null", "long"], "default": None}
    schema = json.dumps({"type": "record", "name": "R", "fields": [field]})
    value = _avro(spark, schema, "named_struct('a', CAST(NULL AS BIGINT))")
    df = decode(records(spark, [value, b"\x07\x07"]), Decoding("avro", schema))
    assert one_by_one(df, "error") == [(None,), ("not Avro of the schema",)]


def test_bronze_keeps_where_a_record_came_from(spark: SparkSession) -> None:
    (row,) = bronze(records(spark, [b"v"], headers=[("h", b"1")])).collect()
    assert (row["topic"], row["partition"], row["offset"]) == ("t", 0, 0)
    assert (bytes(row["key"]), bytes(row["value"])) == (b"k", b"v")
    assert row["headers"] == [Row(key="h", value=bytearray(b"1"))]
    assert str(row["date"]) == "2026-05-04"
    assert row["ingested_at"] is not None


def test_rules_judge_what_decodes(spark: SparkSession) -> None:
    values = [b'{"n": 1}', b'{"n": -1}', b"x", b'{"m": 1}']
    rules = {"positive": "data.n > 0", "small": "data.n < 100"}
    judged = judge(records(spark, values), Decoding("json", "n INT"), rules)
    assert one_by_one(judged, "error", "stage") == [
        (None, None),
        ("rule positive broken: data.n > 0", "TRANSFORMATION"),
        ("not a JSON object", "VALUE_CONVERTER"),
        ("rule positive broken: data.n > 0", "TRANSFORMATION"),
    ]


def test_dead_letters_carry_connects_headers_and_the_bytes(spark: SparkSession) -> None:
    bad = records(spark, [(b"\x00k", b"\xff")], headers=[("mine", b"1")])
    (row,) = dead_letters(judge(bad, Decoding("json", "n INT"), {}), "dead").collect()
    assert (bytes(row["key"]), bytes(row["value"]), row["topic"]) == (b"\x00k", b"\xff", "dead")
    headers = {each["key"]: bytes(each["value"]) for each in row["headers"]}
    assert headers["mine"] == b"1"
    assert headers[f"{PREFIX}topic"] == b"t"
    assert headers[f"{PREFIX}partition"] == b"0"
    assert headers[f"{PREFIX}offset"] == b"0"
    assert headers[f"{PREFIX}stage"] == b"VALUE_CONVERTER"
    assert headers[f"{PREFIX}exception.message"] == b"not a JSON object"


def test_dead_letters_that_landed_are_left_out(spark: SparkSession) -> None:
    rows = dead_letters(judge(records(spark, [b"a", b"b"]), Decoding("json", "n INT"), {}), "dead")
    left = leave_out_dead(rows, rows.where("from_offset = 0").drop("offset"))
    assert [row["from_offset"] for row in left.collect()] == [1]
    assert leave_out_dead(rows, records(spark, [b"stranger"])).count() == 2


def test_latest_per_key_is_by_offset_and_partition(spark: SparkSession) -> None:
    df = records(spark, [(b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (b"b", None)])
    found = latest_per_key(df)
    assert one_by_one(found, "key", "value", "offset") == [(b"a", b"3", 2), (b"b", None, 3)]
    other = df.withColumn("partition", sf.lit(1))
    assert latest_per_key(df.union(other)).count() == 4


@pytest.mark.parametrize("wrapped", ['{"payload":%s}', "%s"], ids=["with-schema", "bare"])
def test_debezium_changes_are_unwrapped(spark: SparkSession, wrapped: str) -> None:
    values = [
        wrapped % '{"op":"c","before":null,"after":{"id":1}}',
        wrapped % '{"op":"d","before":{"id":1},"after":null}',
    ]
    df = unwrap(records(spark, [value.encode() for value in values]), "debezium")
    assert one_by_one(df, "value", "envelope_error") == [(b'{"id":1}', None), (None, None)]


@pytest.mark.parametrize(
    "value",
    [
        b"garbage",
        b"",
        b'{"op":"u"}',
        b'{"op":"t","after":null}',
        b'{"op":"u","after":null}',
        b'{"op":"d","after":null} and more',
        b'{"after":{"id":1}}',
        b"null",
        b"[]",
        b'{"payload":null}',
        b'{"payload":"text"}',
        b"\xff",
    ],
)
def test_what_is_no_envelope_is_no_tombstone(spark: SparkSession, value: bytes) -> None:
    df = unwrap(records(spark, [value]), "debezium")
    assert one_by_one(df, "value", "envelope_error") == [(value, "not a Debezium envelope")]


@pytest.mark.parametrize(
    "value",
    [
        b'{"id": 1} {"id": 2}',
        b'{"id": 1},{"id": 2}',
        b'{"id": 1}]x[',
        b'{"id": 1} trailing',
        b"{'id': 1}",
        b'{"id": NaN}',
        b'{"id": 1, "a": "\xff"}',
        b'{"id": 1',
    ],
)
@pytest.mark.parametrize("schema", [None, "id DOUBLE"], ids=["any", "schema"])
def test_one_json_document_and_nothing_behind_it(
    spark: SparkSession, value: bytes, schema: str | None
) -> None:
    good = b' {"id": 1, "a": "x\\"y", "b": [{"c": null}]} '
    df = decode(records(spark, [value, good]), Decoding("json", schema))
    said = "not JSON" if schema is None else "not a JSON object"
    assert one_by_one(df, "error") == [(said,), (None,)]


def test_avro_is_taken_to_its_very_end(spark: SparkSession) -> None:
    nothing = json.dumps(
        {
            "type": "record",
            "name": "N",
            "fields": [{"name": "a", "type": ["null", "long"]}, {"name": "b", "type": "null"}],
        }
    )
    for schema, good in [(V1, b"\x02"), (nothing, b"\x00"), ('"string"', b"\x04ab")]:
        values = [good, good + b"\x00", good + good, good[:-1]]
        df = decode(records(spark, values), Decoding("avro", schema))
        assert one_by_one(df, "error") == [(None,), *[("not Avro of the schema",)] * 3]
    framed = [b"\x00\x00\x00\x00\x01" + each for each in (b"\x02", b"\x02\x00")]
    df = decode(records(spark, framed), Decoding("confluent-avro", None, {1: V1}))
    assert one_by_one(df, "error") == [(None,), ("not Avro of the schema",)]


def test_what_landed_before_a_compaction_is_not_written_again(spark: SparkSession) -> None:
    """Four of six landed; then compaction took two of these from the source."""
    whole = records(spark, [(b"k%d" % number, b"v") for number in range(6)])
    landed = whole.where("offset < 4").withColumn("offset", sf.col("offset") + 100)
    left = leave_out_landed_of_compacted(whole.where("offset NOT IN (0, 2)"), landed)
    assert sorted(row["offset"] for row in left.collect()) == [4, 5]
    with pytest.raises(PipelineError, match="did not write"):
        leave_out_mirrored(whole.where("offset NOT IN (0, 2)"), landed)


def test_runs_are_offsets_without_a_gap(spark: SparkSession) -> None:
    rows = runs(records(spark, [b"v"] * 9).where("offset NOT IN (2, 3, 7)")).collect()
    assert [(row["first"], row["length"]) for row in rows] == [(0, 2), (4, 3), (8, 1)]


def test_what_was_aborted_is_told_from_what_expired(spark: SparkSession) -> None:
    everything = records(spark, [b"v"] * 10)
    committed, lake = everything.where("offset < 6"), everything
    rows = differences(committed, lake, everything.where("offset < 8")).collect()
    assert [(row["first"], row["last"], row["what"]) for row in rows] == [
        (6, 7, "not committed, but in the lake"),
        (8, 9, "only in the lake"),
    ]


def test_differences_are_ranges_of_offsets(spark: SparkSession) -> None:
    topic = records(spark, [b"v"] * 20)
    table = topic.where("offset NOT IN (3, 4, 5, 9)").union(topic.where("offset IN (12, 13)"))
    rows = differences(topic.where("offset != 19"), table).collect()
    found = [(row["first"], row["last"], row["rows"], row["what"]) for row in rows]
    assert found == [
        (3, 5, 3, "missing"),
        (9, 9, 1, "missing"),
        (12, 13, 4, "duplicated"),
        (19, 19, 1, "only in the lake"),
    ]


def test_sums_tell_swapped_records_apart(spark: SparkSession) -> None:
    """As many records, but not the same: the checksum differs."""
    topic = records(spark, [b"v"] * 10)
    swapped = topic.where("offset != 3").union(topic.where("offset = 4"))
    (left,), (right,) = sums(topic).collect(), sums(swapped).collect()
    assert left["rows"] == right["rows"] == 10
    assert left["checksum"] != right["checksum"]
    assert left["bucket"] == NOON.replace(tzinfo=None)


def test_producers_counts_are_summed(spark: SparkSession) -> None:
    events: list[Any] = []
    for name in ("one", "two"):
        counts = ProducerCounts(name)
        for _ in range(3):
            counts.count("orders", int(NOON.timestamp() * 1000) + 5)
        events += counts.events()
    (row,) = producer_sums(records(spark, events)).collect()
    assert (row["topic"], row["bucket"], row["rows"]) == ("orders", NOON.replace(tzinfo=None), 6)


def test_choices_narrow_a_replay(spark: SparkSession) -> None:
    df = records(spark, [b"0", b"1", b"2", b"3"])
    later = df.withColumn("timestamp", sf.expr("timestamp + make_interval(0,0,0,0,0,offset)"))
    choices = {
        Choice(from_offset=1, to_offset=3): [1, 2],
        Choice(from_time="2026-05-04 12:02:00"): [2, 3],
        Choice(to_time="2026-05-04 12:02:00"): [0, 1],
        Choice(where="value = X'33'"): [3],
        Choice(topics=("u",)): [],
    }
    for choice, offsets in choices.items():
        rows = choice.of(later).orderBy("offset").collect()
        assert [row["offset"] for row in rows] == offsets, choice


def test_a_replayed_record_says_where_it_came_from(spark: SparkSession) -> None:
    (row,) = again(records(spark, [b"v"], headers=[("h", b"1")]), "out", Choice()).collect()
    assert row["topic"] == "out"
    assert [(each["key"], bytes(each["value"])) for each in row["headers"]] == [
        ("h", b"1"),
        ("kafkalite.replay.origin", b"t/0/0"),
    ]


def test_copies_have_other_names_and_nothing_else(spark: SparkSession) -> None:
    df = records(spark, [b"v"])
    (row,) = copies(df, "eu.{topic}.copy").drop("from_topic").collect()
    (original,) = df.collect()
    assert row.asDict() == {**original.asDict(), "topic": "eu.t.copy"}


@pytest.mark.parametrize(
    ("rename", "name"),
    [("{topic}", "t"), ("a.{topic}.b", "a.t.b"), ("copy", "copy"), ("{topic}-{topic}", "t-t")],
)
def test_a_record_goes_to_the_very_copy_that_was_made(
    spark: SparkSession, rename: str, name: str
) -> None:
    """One topic may have a copy of any name, which need not have its own in it."""
    (row,) = copies(spark.sql("SELECT 't' AS topic"), rename).collect()
    assert (row["topic"], row["from_topic"]) == (name, "t")
    notes: Any = SimpleNamespace(read=lambda name: None)
    assert Copies(notes, rename, True, False, set()).name("t") == name


def test_tasks_in_python_have_the_interpreter_of_the_driver(spark: SparkSession) -> None:
    """Not the one that is on the path: it need not have what a pipeline needs."""

    def interpreter(number: int) -> str:
        import sys

        return sys.executable

    (row,) = spark.range(1).select(sf.udf(interpreter, "string")("id")).collect()
    assert row[0] == sys.executable
