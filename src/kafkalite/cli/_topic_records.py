"""`kafkalite topic copy` and `topic stat`: what is done with all records of a topic."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from kafkalite.cli._as_program import Addresses
from kafkalite.cli._output import (
    moment,
    output_option,
    tell,
    tell_missing,
    timeout_option,
    with_cluster,
)
from kafkalite.cli._starts import WHERE, begin_at
from kafkalite.cli._topic_name import TopicName
from kafkalite.cli._where import Servers, Settings, SettingsFile, Where, cluster_options
from kafkalite.cli.produce import CODECS, codec_option

if TYPE_CHECKING:
    from kafkalite.client.cluster import Cluster
    from kafkalite.client.consuming import Reader
    from kafkalite.client.producing import Producer
    from kafkalite.records.batch import BatchHeader
    from kafkalite.records.record import Record

COLUMNS = (
    "partition", "records", "with_key", "tombstones", "key_bytes", "value_bytes", "largest",
    "batches", "codecs", "first", "last",
)  # fmt: skip

begin_option = click.option(
    "--from", "begin", metavar="WHERE", default="beginning", show_default=True, help=WHERE
)
until_option = click.option(
    "--until", metavar="WHERE",
    help="End there, in the same words [where the partitions end when it begins].",
)  # fmt: skip


def _reader(
    cluster: Cluster, topic: str, begin: str, until: str | None, timeout_s: float
) -> Reader:
    from kafkalite.client.consuming import Reader

    return Reader(
        cluster, topic, partitions=(), start=begin_at(begin, "--from"), follows=False,
        is_committed=True, timeout_s=timeout_s, tell=lambda text: tell_missing([text]),
        until=None if until is None else begin_at(until, "--until"),
    )  # fmt: skip


# --- copy -----------------------------------------------------------------------------------------


@click.command()
@click.argument("source", type=TopicName(), metavar="FROM")
@click.argument("target", type=TopicName(), metavar="TO")
@cluster_options
@click.option("--to-bootstrap", "servers", type=Addresses(),
              help="Some broker of the cluster that TO is in [the same cluster].")
@click.option("--to-config", "file", type=SettingsFile(),
              help="How to get there, as --config has it.")
@begin_option
@until_option
@click.option("--same-partitions", "keeps_partitions", is_flag=True,
              help="Each record into the partition of its number [that of its key, or any].")
@codec_option
@timeout_option
def copy(
    source: str, target: str, where: Where, servers: Servers | None, file: Settings | None,
    begin: str, until: str | None, keeps_partitions: bool, codec: str, timeout_s: float,
) -> None:  # fmt: skip
    """Copy the records of one topic to another one: keys, values, headers and times, each once.

    Aborted transactions are left out. TO is created where topics are made on demand.
    """
    there = where if servers is None and file is None else (file or Settings("", {})).where(servers)
    if there is where and source == target:
        raise click.UsageError(f"{source} would be copied to itself, without an end to it")

    def act(cluster: Cluster) -> None:
        from kafkalite.client.cluster import ClientFailed
        from kafkalite.client.producing import Producer

        reader = _reader(cluster, source, begin, until, timeout_s)
        with closing(there.connect()) as other:
            if source == target and (here := _id(cluster)) and here == _id(other):
                raise ClientFailed(f"{source} would be copied to itself: both are one cluster")
            producer = Producer(
                other, target, partition=None, headers=(), codec=CODECS.index(codec),
                timeout_s=timeout_s,
            )  # fmt: skip
            _copy(reader, producer, keeps_partitions)
        click.echo(f"{target}: {producer.written} records are copied from {source}")

    with_cluster(where, act)


def _id(cluster: Cluster) -> str | None:
    from kafkalite.protocol.messages import MetadataRequest

    answer = cluster.ask_any(MetadataRequest(topics=[], allow_auto_topic_creation=False))
    found: str | None = answer.cluster_id
    return found


def _copy(reader: Reader, producer: Producer, keeps_partitions: bool) -> None:
    from kafkalite.records.batch import NO_TIMESTAMP

    try:
        for index, record in reader.records():
            producer.add(
                record.key, record.value, record.headers, max(record.timestamp, NO_TIMESTAMP),
                index if keeps_partitions else None,
            )  # fmt: skip
            if producer.is_full:
                producer.flush()
        producer.flush()
    except KeyboardInterrupt:
        click.echo(f"kafkalite: interrupted; {producer.so_far}", err=True)
        raise


# --- stat -----------------------------------------------------------------------------------------


@dataclass(slots=True)
class Sums:
    """Of one partition."""

    records: int = 0
    with_key: int = 0
    tombstones: int = 0
    key_bytes: int = 0
    value_bytes: int = 0
    largest: int = 0
    batches: int = 0
    codecs: dict[str, None] = field(default_factory=dict)
    first_ms: int = -1
    last_ms: int = -1

    def add(self, header: BatchHeader, records: Iterable[Record]) -> None:
        """A batch."""
        for record in records:
            self._add(record)
        self.batches += 1
        self.codecs[CODECS[header.compression]] = None

    def _add(self, record: Record) -> None:
        self.records += 1
        key, value = len(record.key or b""), len(record.value or b"")
        self.with_key += record.key is not None
        self.tombstones += record.value is None
        self.key_bytes += key
        self.value_bytes += value
        self.largest = max(self.largest, key + value)
        self.last_ms = max(self.last_ms, record.timestamp)
        is_first = self.first_ms < 0 or 0 <= record.timestamp < self.first_ms
        self.first_ms = record.timestamp if is_first else self.first_ms

    def row(self, topic: str, index: int) -> dict[str, Any]:
        return {
            "partition": index, "topic": topic, "records": self.records,
            "with_key": self.with_key, "tombstones": self.tombstones,
            "key_bytes": self.key_bytes, "value_bytes": self.value_bytes,
            "largest": self.largest, "batches": self.batches, "codecs": list(self.codecs),
            "first": moment(self.first_ms), "last": moment(self.last_ms),
        }  # fmt: skip


@click.command()
@click.argument("topic", type=TopicName())
@cluster_options
@begin_option
@until_option
@output_option
@timeout_option
def stat(
    topic: str, where: Where, begin: str, until: str | None, shape: str, timeout_s: float
) -> None:
    """Read a topic, and tell what is in it: records, tombstones, sizes, codecs and times."""

    def act(cluster: Cluster) -> None:
        reader = _reader(cluster, topic, begin, until, timeout_s)
        sums = {index: Sums() for index in reader.ends}
        for batches in reader.rounds():
            for index, header, records in batches:
                sums[index].add(header, records)
        tell(shape, [sums[index].row(topic, index) for index in sums], COLUMNS)

    with_cluster(where, act)

