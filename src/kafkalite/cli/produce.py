"""`kafkalite produce`: lines of standard input, each a record of a topic."""

from __future__ import annotations

import os
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import click

from kafkalite.cli._as_program import Text, bootstrap_option, ending_well, security_option

if TYPE_CHECKING:
    from kafkalite.security.client_login import Security

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

Headers = tuple[tuple[str, bytes | None], ...]


def _headers(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> Headers:
    found = []
    for text in texts:
        name, has_value, value = text.partition("=")
        found.append((
            Text().convert(name, param, ctx), os.fsencode(value) if has_value else None
        ))  # fmt: skip
    return tuple(found)


@click.command()
@click.argument("topic", type=Text())
@bootstrap_option
@security_option
@click.option("-K", "key_delimiter", metavar="DELIMITER",
              help="What stands between key and value; a line without it has no key.")
@click.option("-k", "key", metavar="KEY", help="The key of all records.")
@click.option("-H", "headers", metavar="NAME=VALUE", multiple=True, callback=_headers,
              help="A header of all records; may be repeated. NAME alone is a header of null.")
@click.option("-p", "partition", type=click.IntRange(min=0),
              help="The partition; else that of the key, or any.")
@click.option("-z", "codec", type=click.Choice(CODECS), default="none", show_default=True,
              help="How batches are compressed.")
@click.option("-D", "delimiter", metavar="DELIMITER", default=r"\n",
              help=r"What ends a record in place of a new line: ';', '\0', '\x1e'.")
@click.option("-Z", "empty_is_null", is_flag=True,
              help="An empty value (or key) is null: a tombstone.")
@click.option("--timeout", "timeout_s", type=click.FloatRange(min=0), default=30.0,
              show_default=True, help="Seconds for which a record is tried again.")
def command(
    topic: str,
    bootstrap: list[tuple[str, int]],
    security: Security | None,
    key_delimiter: str | None,
    key: str | None,
    headers: Headers,
    partition: int | None,
    codec: str,
    delimiter: str,
    empty_is_null: bool,
    timeout_s: float,
) -> None:
    """Write each line of standard input to TOPIC as a record.

    \b
        kafkalite produce greetings <<< hello
        kafkalite produce -K : ages < lines-with-names-and-ages

    Returns when all is acknowledged, each line written once. Exits with 1, and says which lines are
    not written, when some are not.
    """
    from kafkalite.client.cluster import Cluster
    from kafkalite.client.producing import Producer
    from kafkalite.client.typed import pieces_of_input, split
    from kafkalite.security.client_login import OPEN

    end, separator = _bytes(delimiter, "-D"), _bytes(key_delimiter or "", "-K")
    if not end:
        raise click.BadParameter("a record ends in a byte at least", param_hint="-D")
    with ending_well(), closing(Cluster(bootstrap, security=security or OPEN)) as cluster:
        producer = Producer(
            cluster, topic, partition=partition, headers=headers,
            codec=CODECS.index(codec), timeout_s=timeout_s,
        )  # fmt: skip
        if sys.stdin.isatty():
            click.echo("one record per line; Ctrl-D ends", err=True)
        try:
            for line in split(pieces_of_input(), end):
                if line is None or producer.is_full:
                    producer.flush()
                if line is not None:
                    producer.add(*_fields(line, separator, key, empty_is_null))
            producer.flush()
        except KeyboardInterrupt:
            click.echo(f"kafkalite: interrupted; {producer.written} records are written", err=True)
            raise


def _bytes(text: str, option: str) -> bytes:
    from kafkalite.cli._record_format import BadFormat, unescaped

    try:
        return unescaped(text)
    except BadFormat as error:
        raise click.BadParameter(str(error), param_hint=option) from None


def _fields(
    line: bytes, separator: bytes, key: str | None, empty_is_null: bool
) -> tuple[bytes | None, bytes | None]:
    """Key and value of a line."""
    found, value = None if key is None else os.fsencode(key), line
    if separator and separator in line:
        found, _, value = line.partition(separator)
    if empty_is_null:
        return found or None, value or None
    return found, value

