"""Apicurio Registry: a real schema registry, its schemas in topics of the broker.

confluent-kafka's serializers and the pipelines use it as they use Confluent's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.serialization import MessageField, SerializationContext

from kafkalite.pipelines.common.decode import Decoding
from tests.compat import client_builds
from tests.compat.apicurio import Registry
from tests.compat.brokers import Broker
from tests.compat.conftest import StartBroker
from tests.compat.spark_connector import SPARK_MARKS, Connector, connector, spark
from tests.compat.spark_jobs import lake_of
from tests.compat.test_spark_commands import Call, call
from tests.compat.transactional_clients import gather

__all__ = ["call", "connector", "spark"]
# All in the worker that has the Spark session, so that one registry for each broker will do. The
# first may have to fetch it.
pytestmark = [
    pytest.mark.full, pytest.mark.timeout(client_builds.BUILD_TIMEOUT_S), *SPARK_MARKS
]

WAIT_S = 20
MANY = 20

StartRegistry = Callable[..., Registry]
Record = dict[str, Any]


def record(name: str, *fields: Record, **more: Any) -> str:
    return json.dumps({"type": "record", "name": name, "fields": fields, **more})


ID = {"name": "id", "type": "long"}
NOTE = {"name": "note", "type": "string"}
OPTIONAL_NOTE = {"name": "note", "type": ["null", "string"], "default": None}
KEY = record("Key", ID)
FIRST = record("Event", ID)
SECOND = record("Event", ID, OPTIONAL_NOTE)

ITEM = {"type": "record", "name": "Item", "fields": [{"name": "sku", "type": "string"}]}
AMOUNT = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
MOMENT = {"type": "long", "logicalType": "timestamp-millis"}
# A field of each kind that Avro has.
ORDER = record(
    "Order",
    ID,
    OPTIONAL_NOTE,
    {"name": "paid", "type": "boolean"},
    {"name": "count", "type": "int"},
    {"name": "weight", "type": "double"},
    {"name": "photo", "type": "bytes"},
    {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "SENT"]}},
    {"name": "items", "type": {"type": "array", "items": ITEM}},
    {"name": "labels", "type": {"type": "map", "values": "string"}},
    {"name": "amount", "type": AMOUNT},
    {"name": "moment", "type": MOMENT},
    namespace="shop",
)
PLACE = record("Place", {"name": "at", "type": "string"}, namespace="maps")
PERSON = record("Person", {"name": "home", "type": "maps.Place"}, namespace="people")
TEAM = record(
    "Team",
    {"name": "office", "type": "maps.Place"},
    {"name": "members", "type": {"type": "array", "items": "people.Person"}},
)


def order(number: int) -> Record:
    return {
        "id": number,
        "note": None if number % 2 else f"note {number}, ünï",
        "paid": number % 3 == 0,
        "count": -number,
        "weight": number / 8,
        "photo": bytes(range(number % 256)),
        "state": "NEW" if number % 2 else "SENT",
        "items": [{"sku": f"sku-{each}"} for each in range(number % 4)],
        "labels": {"lot": str(number)} if number % 2 else {},
        "amount": Decimal(number) / 4,
        "moment": datetime(2026, 1, 1, tzinfo=UTC) + timedelta(milliseconds=number),
    }


@pytest.fixture
def start_registry(tmp_path: Path) -> Iterator[StartRegistry]:
    """Starts registries for one test: `start_registry(bootstrap, name)`."""
    started: list[Registry] = []

    def start(bootstrap: str, name: str) -> Registry:
        started.append(Registry(tmp_path / f"registry-{len(started)}", bootstrap, name))
        started[-1].start()
        return started[-1]

    yield start
    for each in started:
        each.kill()


@pytest.fixture(scope="session")
def registry(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """One that all tests share."""
    folder = tmp_path_factory.mktemp("registry")
    registry = Registry(folder / "process", broker.bootstrap, folder.name)
    try:
        registry.start()
        yield registry
    finally:
        registry.kill()


@pytest.fixture
def client(registry: Registry) -> Iterator[SchemaRegistryClient]:
    with registry.client() as client:
        yield client


class Channel:
    """A topic of one partition and the two serializers of its values."""

    def __init__(self, broker: Broker, registry: Registry, topic: str) -> None:
        self.broker, self.registry, self.topic = broker, registry, topic
        self.subject = f"{topic}-value"

    def write(self, schema: str | Schema, values: Sequence[Record]) -> None:
        """Registers the schema, if need be, and produces values of it with their number as key."""
        producer = Producer({"bootstrap.servers": self.broker.bootstrap})
        with self.registry.client() as client:
            key, value = AvroSerializer(client, KEY), AvroSerializer(client, schema)
            for number, each in enumerate(values):
                producer.produce(
                    self.topic,
                    key=key({"id": number}, self._place(MessageField.KEY)),
                    value=value(each, self._place(MessageField.VALUE)),
                    partition=0,
                )
        assert producer.flush(WAIT_S) == 0

    def read(self, count: int, schema: str | None = None) -> list[tuple[Any, Any]]:
        """Keys and values as a reader has them that asks the registry for all it needs."""
        with self.registry.client() as client:
            key, value = AvroDeserializer(client), AvroDeserializer(client, schema)
            return [
                (
                    key(message.key(), self._place(MessageField.KEY)),
                    value(message.value(), self._place(MessageField.VALUE)),
                )
                for message in self.messages(count)
            ]

    def values(self, count: int, schema: str | None = None) -> list[Any]:
        return [value for _, value in self.read(count, schema)]

    def messages(self, count: int) -> list[Any]:
        """At least so many, and what comes with them."""
        settings = {"bootstrap.servers": self.broker.bootstrap, "group.id": "none"}
        consumer = Consumer(settings)
        consumer.assign([TopicPartition(self.topic, 0, 0)])
        try:
            return gather(lambda: consumer.consume(1_000, 0.2), count)
        finally:
            consumer.close()

    def _place(self, field: str) -> SerializationContext:
        return SerializationContext(self.topic, field)


@pytest.fixture
def channel(broker: Broker, registry: Registry, topic: str) -> Channel:
    return Channel(broker, registry, topic)


def schema_id(framed: bytes) -> int:
    """What a serializer puts before its bytes."""
    assert framed[0] == 0
    return int.from_bytes(framed[1:5], "big")


def avro(schema: str, *references: tuple[str, str]) -> Schema:
    """A schema, and what it refers to: full names, and the subjects that have them first."""
    return Schema(schema, "AVRO", [SchemaReference(name, at, 1) for name, at in references])


def team_of(client: SchemaRegistryClient, topic: str) -> Schema:
    """A schema that refers to two others, which are registered, and by one of them again."""
    place, person = f"{topic}-place", f"{topic}-person"
    client.register_schema(place, avro(PLACE))
    client.register_schema(person, avro(PERSON, ("maps.Place", place)))
    return avro(TEAM, ("maps.Place", place), ("people.Person", person))


def teams(count: int) -> list[Record]:
    return [
        {
            "office": {"at": f"office {number}"},
            "members": [{"home": {"at": f"home {each}"}} for each in range(number)],
        }
        for number in range(count)
    ]


def test_records_come_back_as_they_were_written(
    channel: Channel, client: SchemaRegistryClient
) -> None:
    orders = [order(number) for number in range(300)]
    channel.write(ORDER, orders)
    assert channel.read(300) == [({"id": number}, each) for number, each in enumerate(orders)]
    values = {schema_id(message.value()) for message in channel.messages(300)}
    assert values == {client.get_latest_version(channel.subject).schema_id}
    keys = {schema_id(message.key()) for message in channel.messages(300)}
    assert keys == {client.get_latest_version(f"{channel.topic}-key").schema_id}


def test_a_reader_of_any_schema_reads_a_topic_whose_schema_grew(
    channel: Channel, client: SchemaRegistryClient
) -> None:
    channel.write(FIRST, [{"id": 1}])
    channel.write(SECOND, [{"id": 2, "note": "n"}, {"id": 3, "note": None}])
    channel.write(FIRST, [{"id": 4}])
    assert client.get_versions(channel.subject) == [1, 2]
    noted = [{"id": 2, "note": "n"}, {"id": 3, "note": None}]
    assert channel.values(4) == [{"id": 1}, *noted, {"id": 4}]
    assert channel.values(4, FIRST) == [{"id": number} for number in (1, 2, 3, 4)]
    bare = {"id": 1, "note": None}, {"id": 4, "note": None}
    assert channel.values(4, SECOND) == [bare[0], *noted, bare[1]]


@pytest.mark.parametrize(
    ("rule", "refused", "taken"),
    [
        ("BACKWARD", record("Event", ID, NOTE), record("Event", OPTIONAL_NOTE)),
        ("FORWARD", record("Event", OPTIONAL_NOTE), record("Event", ID, NOTE)),
    ],
)
def test_a_schema_that_breaks_the_rule_is_refused(
    channel: Channel, client: SchemaRegistryClient, rule: str, refused: str, taken: str
) -> None:
    channel.write(FIRST, [{"id": 1}])
    client.set_compatibility(channel.subject, rule)
    assert not client.test_compatibility(channel.subject, avro(refused))
    with pytest.raises(SchemaRegistryError) as refusal:
        channel.write(refused, [{"id": 2, "note": "n"}])
    assert refusal.value.http_status_code == 409
    assert client.get_versions(channel.subject) == [1]
    assert client.test_compatibility(channel.subject, avro(taken))
    channel.write(taken, [{"id": 3, "note": "n"}])
    assert client.get_versions(channel.subject) == [1, 2]
    assert len(channel.messages(2)) == 2


def test_schemas_refer_to_others(channel: Channel, client: SchemaRegistryClient) -> None:
    written = teams(5)
    channel.write(team_of(client, channel.topic), written)
    assert channel.values(5) == written


def fill(registry: Registry) -> None:
    """Versions, references, rules and deletions."""
    with registry.client() as client:
        client.register_schema("events", avro(FIRST))
        client.set_compatibility("events", "FULL")
        client.register_schema("events", avro(SECOND))
        client.register_schema("teams", team_of(client, "teams"))
        client.register_schema("gone", avro(KEY))
        client.register_schema("orders", avro(KEY))
        client.register_schema("orders", avro(ORDER))
        client.set_compatibility("orders", "BACKWARD")
        client.delete_version("orders", 1)
        client.delete_subject("gone")


SUBJECTS = ["events", "orders", "teams", "teams-person", "teams-place"]


def test_started_again_it_knows_what_it_knew(
    broker: Broker, start_registry: StartRegistry, unique: Callable[[str], str]
) -> None:
    registry = start_registry(broker.bootstrap, unique("registry"))
    fill(registry)
    known = registry.contents()
    assert list(known) == SUBJECTS
    registry.stop()
    registry.start()
    assert registry.contents() == known
    with registry.client() as client:
        with pytest.raises(SchemaRegistryError, match="ncompatible"):
            client.register_schema("events", avro(record("Event", ID, NOTE)))
        # Its ids go on where they were.
        new = client.register_schema("new", avro(record("New", ID)))
        old = [client.get_version(each, "latest").schema_id for each in SUBJECTS]
    assert new not in old


def test_it_outlives_a_killed_broker_and_a_kill_of_its_own(
    start_broker: StartBroker, start_registry: StartRegistry
) -> None:
    broker = start_broker()
    registry = start_registry(broker.bootstrap, "registry")
    fill(registry)
    known = registry.contents()
    broker.kill()
    start_broker(folder=broker.folder, port=broker.port)
    with registry.client() as client:
        client.register_schema("after", avro(record("After", ID)))
    assert {name: each for name, each in registry.contents().items() if name != "after"} == known
    known = registry.contents()
    registry.kill()
    registry.start()
    assert registry.contents() == known


def test_two_registries_are_one(
    broker: Broker, start_registry: StartRegistry, unique: Callable[[str], str]
) -> None:
    name = unique("registry")
    one, other = (start_registry(broker.bootstrap, name) for _ in range(2))
    fill(one)
    one.until(lambda: other.contents() == one.contents())
    assert list(other.contents()) == SUBJECTS
    with other.client() as client, pytest.raises(SchemaRegistryError, match="ncompatible"):
        client.register_schema("events", avro(record("Event", ID, NOTE)))
    with ThreadPoolExecutor(2) as pool:
        ids = [*pool.map(_register_many, (one, other), ("One", "Other"))]
    assert len({*ids[0], *ids[1]}) == 2 * MANY
    one.until(lambda: other.contents() == one.contents())
    assert len(one.contents()) == len(SUBJECTS) + 2 * MANY


def _register_many(registry: Registry, name: str) -> list[int]:
    """Their ids."""
    with registry.client() as client:
        names = [f"{name}{number}" for number in range(MANY)]
        return [client.register_schema(name, avro(record(name, ID))) for name in names]


def test_lake_has_what_the_serializer_wrote(
    channel: Channel, connector: Connector, call: Call
) -> None:
    """By the command, with fields of each kind; the second schema comes with a second run."""
    connector.create(channel.topic)
    lake = str(connector.folder / "lake")
    arguments = [channel.topic, "--path", lake, "--value-format", "confluent-avro"]
    arguments += ["--schema-registry", channel.registry.url]
    orders = [order(number) for number in range(300)]
    channel.write(ORDER, orders[:200])
    done = call("to-lake", *arguments)
    assert done.output.splitlines()[0] == "to-lake: 200 rows in 1 batches, lag 0", done.output
    grown = json.loads(ORDER)
    grown["fields"].append({"name": "gift", "type": "boolean", "default": False})
    channel.write(json.dumps(grown), [{**each, "gift": True} for each in orders[200:]])
    done = call("to-lake", *arguments)
    assert done.output.splitlines()[0] == "to-lake: 100 rows in 1 batches, lag 0", done.output
    rows = connector.spark.read.format("delta").load(lake).orderBy("offset").collect()
    assert {row["error"] for row in rows} == {None}
    gifts = [None] * 200 + [True] * 100
    expected = [{**each, "gift": gift} for each, gift in zip(orders, gifts, strict=True)]
    assert [_as_avro_has_it(row["data"].asDict(recursive=True)) for row in rows] == expected


def _as_avro_has_it(data: Record) -> Record:
    """A row's data in the types that a deserializer gives: Spark's times are of no zone."""
    return {**data, "photo": bytes(data["photo"]), "moment": data["moment"].astimezone(UTC)}


def test_lake_has_schemas_that_refer_to_others(
    channel: Channel, client: SchemaRegistryClient, connector: Connector
) -> None:
    connector.create(channel.topic)
    written = teams(5)
    channel.write(team_of(client, channel.topic), written)
    decoding, url = Decoding("confluent-avro"), channel.registry.url
    lake = lake_of(connector, channel.topic, decoding=decoding, schema_registry=url)
    lake.run()
    rows = lake.table().read().orderBy("offset").collect()
    assert [(row["error"], row["data"].asDict(recursive=True)) for row in rows] == [
        (None, each) for each in written
    ]


def test_lake_has_what_the_serializer_of_protobuf_wrote(
    channel: Channel, client: SchemaRegistryClient, connector: Connector
) -> None:
    """Messages at the top of a file and within others, with what the file imports."""
    from confluent_kafka.schema_registry.protobuf import ProtobufSerializer

    connector.create(channel.topic)
    classes = shop_messages()
    values = []
    for number in range(50):
        message = classes["Order"](id=number, note="ünï" * (number % 3))
        message.at.FromSeconds(number)
        line = classes["Order.Line"](sku=f"sku-{number}")
        for each in (message, line):
            serializer = ProtobufSerializer(type(each), client, {"use.deprecated.format": False})
            place = SerializationContext(channel.topic, MessageField.VALUE)
            values.append(serializer(each, place))
    connector.produce(channel.topic, values)
    decoding, url = Decoding("confluent-protobuf"), channel.registry.url
    lake = lake_of(connector, channel.topic, decoding=decoding, schema_registry=url)
    assert lake.run().ledger.faults == []
    rows = lake.table().read().orderBy("offset").selectExpr("CAST(data AS STRING)", "error")
    found = [(row[1], json.loads(row[0] or "null")) for row in rows.collect()]
    expected: list[Record] = []
    for number in range(50):
        at = f"1970-01-01T00:00:{number:02d}Z"
        expected += [
            {"id": str(number), "note": "ünï" * (number % 3), "at": at},
            {"sku": f"sku-{number}"},
        ]
    assert found == [(None, each) for each in expected]


def shop_messages() -> dict[str, Any]:
    """Classes of messages of one file, made as protoc's would be."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

    file = descriptor_pb2.FileDescriptorProto(
        name="shop.proto", package="shop", syntax="proto3", dependency=[STAMPS]
    )
    first = file.message_type.add(name="Other")
    _field(first, "name", 1, "TYPE_STRING")
    order = file.message_type.add(name="Order")
    _field(order, "id", 1, "TYPE_INT64")
    _field(order, "note", 2, "TYPE_STRING")
    _field(order, "at", 3, "TYPE_MESSAGE", ".google.protobuf.Timestamp")
    _field(order.nested_type.add(name="Line"), "sku", 1, "TYPE_STRING")
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    names = ("Order", "Order.Line")
    found = {name: pool.FindMessageTypeByName(f"shop.{name}") for name in names}
    return {name: message_factory.GetMessageClass(each) for name, each in found.items()}


STAMPS = "google/protobuf/timestamp.proto"


def _field(message: Any, name: str, number: int, kind: str, of: str = "") -> None:
    added = message.field.add(name=name, number=number, label="LABEL_OPTIONAL", type=kind)
    if of:
        added.type_name = of


def test_lake_tells_which_schema_it_cannot_read(
    channel: Channel, client: SchemaRegistryClient, connector: Connector
) -> None:
    topic = connector.create(channel.topic)
    draft = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}
    json_schema = client.register_schema(f"{topic}-json", Schema(json.dumps(draft), "JSON"))
    text = 'syntax = "proto3"; message Event { int64 id = 1; }'
    protobuf = client.register_schema(f"{topic}-protobuf", Schema(text, "PROTOBUF"))
    ids = [json_schema, protobuf, 9_999]
    connector.produce(topic, [b"\0" + number.to_bytes(4, "big") + b"\x02" for number in ids])
    channel.write(FIRST, [{"id": 1}])
    decoding, url = Decoding("confluent-avro"), channel.registry.url
    lake = lake_of(connector, topic, decoding=decoding, schema_registry=url)
    lake.run()
    rows = lake.table().read().orderBy("offset").select("error", "data.id").collect()
    assert [tuple(row) for row in rows] == [
        (f"schema id {json_schema} is JSON, not Avro", None),
        (f"schema id {protobuf} is PROTOBUF, not Avro", None),
        ("unknown schema id 9999", None),
        (None, 1),
    ]
