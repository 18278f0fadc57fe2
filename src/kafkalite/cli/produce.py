"""`kafkalite produce`: lines of standard input, each a record of a topic."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING

import click

from kafkalite.cli._as_program import Text
from kafkalite.cli._output import timeout_option, with_cluster
from kafkalite.cli._topic_name import TopicName
from kafkalite.cli._where import Where, cluster_options

if TYPE_CHECKING:
    from kafkalite.client.cluster import Cluster
    from kafkalite.client.producing import Producer

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

Headers = tuple[tuple[str, bytes | None], ...]
Add = Callable[["Producer", list[bytes]], None]

codec_option = click.option(
    "-z", "codec", type=click.Choice(CODECS), default="none", show_default=True,
    help="How batches are compressed.",
)  # fmt: skip


def _headers(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> Headers:
    found = []
    for text in texts:
        name, has_value, value = text.partition("=")
        found.append((
            Text().convert(name, param, ctx), os.fsencode(value) if has_value else None
        ))  # fmt: skip
    return tuple(found)


@click.command()
@click.argument("topic", type=TopicName())
@cluster_options
@click.option("-K", "key_delimiter", metavar="DELIMITER",
              help="What stands between key and value; a line without it has no key.")
@click.option("-k", "key", metavar="KEY", help="The key of all records.")
@click.option("-H", "headers", metavar="NAME=VALUE", multiple=True, callback=_headers,
              help="A header of all records; may be repeated. NAME alone is a header of null.")
@click.option("-p", "partition", type=click.IntRange(min=0),
              help="The partition; else that of the key, or any.")
@codec_option
@click.option("-D", "delimiter", metavar="DELIMITER", default=r"\n",
              help=r"What ends a record in place of a new line: ';', '\0', '\x1e'.")
@click.option("-Z", "empty_is_null", is_flag=True,
              help="An empty value (or key) is null: a tombstone.")
@click.option("-J", "--json", "from_json", is_flag=True,
              help="Each line is a record as `kafkalite consume -J` and kcat -J print it: key, "
                   "payload, headers and ts count.")
@click.option("--same-partitions", "keeps_partitions", is_flag=True,
              help="With -J the partition counts, too.")
@timeout_option
def command(
    topic: str,
    where: Where,
    key_delimiter: str | None,
    key: str | None,
    headers: Headers,
    partition: int | None,
    codec: str,
    delimiter: str,
    empty_is_null: bool,
    from_json: bool,
    keeps_partitions: bool,
    timeout_s: float,
) -> None:
    """Write each line of standard input to TOPIC as a record.

    \b
        kafkalite produce greetings <<< hello
        kafkalite produce -K : ages < lines-with-names-and-ages

    Returns when all is acknowledged, each line written once. Exits with 1, and says which lines are
    not written, when some are not.
    """
    if from_json and (key_delimiter or key is not None or empty_is_null):
        raise click.UsageError("with -J lines have keys of their own: leave -K, -k and -Z out")
    if keeps_partitions and (not from_json or partition is not None):
        raise click.UsageError("--same-partitions is for -J without -p")
    end, separator = _bytes(delimiter, "-D"), _bytes(key_delimiter or "", "-K")
    if not end:
        raise click.BadParameter("a record ends in a byte at least", param_hint="-D")
    if from_json:
        add = _adding_json(keeps_partitions)
    elif separator or key is not None or empty_is_null:
        add = _adding(separator, key, empty_is_null)
    else:
        add = _adding_values

    def act(cluster: Cluster) -> None:
        from kafkalite.client.producing import Producer

        producer = Producer(
            cluster, topic, partition=partition, headers=headers,
            codec=CODECS.index(codec), timeout_s=timeout_s,
        )  # fmt: skip
        _write(producer, end, add)

    with_cluster(where, act)


def _write(producer: Producer, end: bytes, add: Add) -> None:
    from kafkalite.client.typed import pieces_of_input, split_pieces

    if sys.stdin.isatty():
        click.echo("one record per line; Ctrl-D ends", err=True)
    try:
        for lines in split_pieces(pieces_of_input(), end):
            if lines is None:
                producer.flush()
            else:
                add(producer, lines)
                producer.push()
        producer.flush()
    except KeyboardInterrupt:
        click.echo(f"kafkalite: interrupted; {producer.so_far}", err=True)
        raise


def _bytes(text: str, option: str) -> bytes:
    from kafkalite.cli._record_format import BadFormat, unescaped

    try:
        return unescaped(text)
    except BadFormat as error:
        raise click.BadParameter(str(error), param_hint=option) from None


def _adding_values(producer: Producer, lines: list[bytes]) -> None:
    producer.add_values(lines)


def _each(add: Callable[[Producer, bytes], None]) -> Add:
    def add_all(producer: Producer, lines: list[bytes]) -> None:
        for line in lines:
            if producer.is_full:
                producer.flush()
            add(producer, line)

    return add_all


def _adding(separator: bytes, key: str | None, empty_is_null: bool) -> Add:
    """Key and value of a line."""
    of_all = None if key is None else os.fsencode(key)

    def add(producer: Producer, line: bytes) -> None:
        found, value = of_all, line
        if separator and separator in line:
            found, _, value = line.partition(separator)
        if empty_is_null:
            producer.add(found or None, value or None)
        else:
            producer.add(found, value)

    return _each(add)


def _adding_json(keeps_partitions: bool) -> Add:
    from kafkalite.cli._record_json import BadLine, from_line
    from kafkalite.client.cluster import ClientFailed

    numbers = count(1)

    def add(producer: Producer, line: bytes) -> None:
        number = next(numbers)
        if not line.strip():
            return
        try:
            typed = from_line(line)
        except BadLine as wrong:
            producer.flush()
            raise ClientFailed(
                f"line {number}: {wrong}; {producer.written} records before it are written"
            ) from None
        producer.add(
            typed.key, typed.value, typed.headers, typed.timestamp,
            typed.partition if keeps_partitions else None,
        )  # fmt: skip

    return _each(add)
