"""Decodes values into columns: JSON, Avro and Protobuf, also framed with a schema id. Drops no row.

Owns the pure steps from bytes to a struct. Invariant: each row keeps its bytes, and one that does
not decode says why in `error`; what a schema does not name is kept as text in `rescued`.

Spark's parsers stop when they have had enough. So each value is followed by a mark made of itself,
which only a parser that has taken exactly the value finds where it looks for it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from kafkalite.pipelines.common import protobuf
from kafkalite.pipelines.common.json_schema import misfit
from kafkalite.pipelines.common.outcomes import UNKNOWN_SCHEMA

FORMATS = ("raw", "json", "avro", "confluent-avro", "confluent-json", "confluent-protobuf")
# Their values are held against the very schema that they name.
_BY_ITS_OWN_SCHEMA = ("confluent-json", "confluent-protobuf")

# The frame: a zero byte, the schema's id in four bytes, then the value.
FRAME_BYTES = 5

NOT_JSON = "not JSON"
NOT_OBJECT = "not a JSON object"
NOT_OF_SCHEMA = "does not fit the schema"
NOT_AVRO = "not Avro of the schema"
NOT_FRAMED = "no schema id before the Avro"
NOT_FRAMED_JSON = "no schema id before the JSON"
NOT_FRAMED_PROTOBUF = "no schema id before the Protobuf"

_CORRUPT, _TEXT, _PARSED, _FIELDS = "__corrupt", "__text", "__parsed", "__fields"
_MISFIT, _READ = "__misfit", "__read"
_VALUE, _END = "value", "end"

# Spark's own are wider than JSON is.
_STRICT = {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false"}


@dataclass(frozen=True, slots=True)
class Decoding:
    """A format of values and its schema: DDL or Spark's JSON for JSON, an .avsc text for Avro.

    For `confluent-avro`, `schema` is the reader's and `schemas` the writers' by id; `refused` says
    of ids that cannot be decoded why.
    """

    format: str = "raw"
    schema: str | None = None
    schemas: Mapping[int, str] = field(default_factory=dict)
    refused: Mapping[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise ValueError(f"no value format {self.format!r}; there are {', '.join(FORMATS)}")
        if self.format == "avro" and self.schema is None:
            raise ValueError("plain Avro does not say its schema: give one")
        if self.format in _BY_ITS_OWN_SCHEMA and self.schema is not None:
            kind = "JSON" if self.format == "confluent-json" else "Protobuf"
            raise ValueError(f"framed {kind} is held against the schema that it names: give none")


def decode(df: DataFrame, decoding: Decoding) -> DataFrame:
    """Adds `data` (struct or variant), `rescued` and `error` to rows with a `value`.

    A null value, which is a tombstone, decodes to nothing and is no error.
    """
    match decoding.format:
        case "raw":
            return df
        case "json" if decoding.schema is None:
            return _decode_any_json(df)
        case "json":
            return _decode_json(df, ddl(decoding.schema or ""))
        case "avro":
            return _decode_avro(df, decoding.schema or "")
        case "confluent-json":
            return _decode_framed_json(df, decoding)
        case "confluent-protobuf":
            return _decode_framed_protobuf(df, decoding)
        case _:
            return _decode_framed(df, decoding)


def ddl(text: str) -> StructType:
    """A schema from DDL (`id BIGINT, name STRING`) or from Spark's own JSON."""
    if text.lstrip().startswith("{"):
        return StructType.fromJson(json.loads(text))
    parsed = StructType.fromDDL(text)
    assert isinstance(parsed, StructType)
    return parsed


def schema_id(value: Column) -> Column:
    """The id in the frame, null for a value that has none."""
    framed = (sf.substring(value, 1, 1) == sf.lit(b"\x00")) & (sf.length(value) >= FRAME_BYTES)
    number = sf.conv(sf.hex(sf.substring(value, 2, 4)), 16, 10).cast("int")
    return sf.when(framed, number)


def _decode_any_json(df: DataFrame) -> DataFrame:
    # Without a schema nothing can drift: a variant holds whatever comes.
    text = sf.col("value").cast("string")
    data = sf.when(is_json(text), sf.try_parse_json(text))
    error = sf.when(sf.col("value").isNotNull() & data.isNull(), NOT_JSON)
    return df.select("*", data.alias("data"), _no_text("rescued"), error.alias("error"))


def is_json(text: Column) -> Column:
    """Whether a text is one JSON document, in UTF-8, and nothing behind it."""
    mark = _mark(text)
    marked = sf.concat(sf.lit("["), text, sf.lit(',"'), mark, sf.lit('"]'))
    items = sf.from_json(marked, "array<string>", _STRICT)
    is_whole = (sf.size(items) == 2) & (sf.try_element_at(items, sf.lit(2)) == mark)
    return sf.coalesce(sf.is_valid_utf8(text) & is_whole, sf.lit(False))


def json_object(text: Column) -> Column:
    """The fields of a text that is one JSON object and nothing behind it, as texts; else null."""
    mark = _mark(text)
    marked = sf.concat(sf.lit("["), text, sf.lit(',{"'), mark, sf.lit('":""}]'))
    items = sf.from_json(marked, "array<map<string,string>>", _STRICT)
    last = sf.map_keys(sf.try_element_at(items, sf.lit(2)))
    is_whole = (sf.size(items) == 2) & (sf.try_element_at(last, sf.lit(1)) == mark)
    return sf.when(sf.is_valid_utf8(text) & is_whole, sf.try_element_at(items, sf.lit(1)))


def _mark(text: Column) -> Column:
    # Nobody writes a text that holds its own checksum.
    return sf.hex(sf.xxhash64(text))


def _decode_json(df: DataFrame, schema: StructType) -> DataFrame:
    text = sf.col("value").cast("string")
    wide = StructType([*schema.fields]).add(_CORRUPT, "string")
    # Columns of their own, so that Spark parses each value once for all that follows.
    parsed_once = df.withColumns(
        {
            _TEXT: text,
            _PARSED: sf.from_json(text, wide, {"columnNameOfCorruptRecord": _CORRUPT, **_STRICT}),
            _FIELDS: json_object(text),
        }
    )
    parsed, fields, text = sf.col(_PARSED), sf.col(_FIELDS), sf.col(_TEXT)
    broken = fields.isNull()
    corrupt = parsed[_CORRUPT].isNotNull() | parsed.isNull() | broken
    error = sf.when(text.isNull(), None).when(broken, NOT_OBJECT).when(corrupt, NOT_OF_SCHEMA)
    data = sf.struct(*[parsed[name].alias(name) for name in schema.fieldNames()])
    # Fields that the schema does not name, and the whole text when it names them otherwise.
    drifted = sf.map_filter(fields, lambda key, _: ~key.isin(schema.fieldNames()))
    rescued = sf.when(corrupt, text).when(sf.size(drifted) > 0, sf.to_json(drifted))
    return parsed_once.select(
        *df.columns,
        sf.when(text.isNotNull() & ~broken, data).alias("data"),
        rescued.alias("rescued"),
        error.alias("error"),
    )


def _decode_avro(df: DataFrame, schema: str) -> DataFrame:
    data, failed = _from_avro(sf.col("value"), schema, schema)
    error = sf.when(sf.col("value").isNotNull() & failed, NOT_AVRO)
    return _with_data(df, data, error)


def _decode_framed_json(df: DataFrame, decoding: Decoding) -> DataFrame:
    """Each row held against the schema that its frame names; `data` is whatever it holds."""
    number, body = schema_id(sf.col("value")), sf.expr(f"substring(value, {FRAME_BYTES + 1})")
    text = body.cast("string")
    known = number.isin(sorted(decoding.schemas))
    fits = sf.udf(misfit(decoding.schemas), "string")
    # A column of its own, so that each value is looked at once for all that follows.
    looked_at = df.withColumn(_MISFIT, fits(number, sf.when(known & is_json(text), text)))
    error = _fault_of_frame(decoding, NOT_FRAMED_JSON).when(~is_json(text), NOT_JSON)
    misfits = sf.concat(sf.lit(f"{NOT_OF_SCHEMA}: "), sf.col(_MISFIT))
    error = error.when(sf.col(_MISFIT).isNotNull(), misfits)
    found = looked_at.withColumn("error", error)
    data = sf.when(sf.col("error").isNull() & number.isNotNull(), sf.try_parse_json(text))
    return found.select(*df.columns, data.alias("data"), _no_text("rescued"), "error")


def _decode_framed_protobuf(df: DataFrame, decoding: Decoding) -> DataFrame:
    """Each row by the message that its frame names; `data` is it as JSON says it."""
    number, body = schema_id(sf.col("value")), sf.expr(f"substring(value, {FRAME_BYTES + 1})")
    read = sf.udf(protobuf.reader(decoding.schemas), "text string, fault string")
    # A column of its own, so that each value is looked at once for all that follows.
    looked_at = df.withColumn(_READ, read(number, body))
    error = _fault_of_frame(decoding, NOT_FRAMED_PROTOBUF)
    error = error.when(sf.col(_READ)["fault"].isNotNull(), sf.col(_READ)["fault"])
    data = sf.try_parse_json(sf.col(_READ)["text"])
    return looked_at.select(
        *df.columns, data.alias("data"), _no_text("rescued"), error.alias("error")
    )


def _fault_of_frame(decoding: Decoding, not_framed: str) -> Column:
    """Why a value has no schema to be held against; null for none, to go on with `when`."""
    number = schema_id(sf.col("value"))
    error = sf.when(sf.col("value").isNull(), None).when(number.isNull(), not_framed)
    for each, reason in sorted(decoding.refused.items()):
        error = error.when(number == each, reason)
    unknown = ~number.isin(sorted(decoding.schemas))
    return error.when(unknown, sf.concat(sf.lit(f"{UNKNOWN_SCHEMA} "), number))


def _decode_framed(df: DataFrame, decoding: Decoding) -> DataFrame:
    """Each row by the schema that its frame names, read as the reader's schema."""
    number = schema_id(sf.col("value"))
    body = sf.expr(f"substring(value, {FRAME_BYTES + 1})")
    newest = decoding.schemas[max(decoding.schemas)] if decoding.schemas else None
    reader = decoding.schema or newest
    error = _fault_of_frame(decoding, NOT_FRAMED)
    if reader is None:
        # Nothing says what `data` would be made of; no row has any.
        return df.select("*", _no_text("rescued"), error.alias("error"))
    # The first branch is of no row: it gives the column its type where no schema is known yet.
    nothing, _ = _from_avro(sf.lit(None).cast("binary"), reader, reader)
    data = sf.when(sf.lit(False), nothing)
    for each, writer in sorted(decoding.schemas.items()):
        decoded, failed = _from_avro(sf.when(number == each, body), writer, reader)
        data = data.when(number == each, decoded)
        error = error.when((number == each) & failed, NOT_AVRO)
    return _with_data(df, data, error)


def _from_avro(value: Column, writer: str, reader: str) -> tuple[Column, Column]:
    """What was decoded, and whether the bytes are not exactly one value of the writer's schema."""
    from pyspark.sql.avro.functions import from_avro

    mark = sf.unhex(sf.md5(value))
    options = {"mode": "PERMISSIVE", "avroSchema": marked(reader)}
    found = from_avro(sf.concat(value, mark), marked(writer), options)
    return found[_VALUE], ~sf.coalesce(found[_END] == mark, sf.lit(False))


def marked(schema: str) -> str:
    """The schema of a value with a mark behind it."""
    end = {"type": "fixed", "name": "__kafkalite_mark", "size": 16}
    fields = [{"name": _VALUE, "type": json.loads(schema)}, {"name": _END, "type": end}]
    return json.dumps({"type": "record", "name": "__kafkalite_marked", "fields": fields})


def _with_data(df: DataFrame, data: Column, error: Column) -> DataFrame:
    return df.select(
        "*",
        sf.when(error.isNull() & sf.col("value").isNotNull(), data).alias("data"),
        _no_text("rescued"),
        error.alias("error"),
    )


def _no_text(name: str) -> Column:
    return sf.lit(None).cast("string").alias(name)
