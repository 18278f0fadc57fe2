"""`kafkalite consume`: the records of a topic on standard output."""

from __future__ import annotations

import sys
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING

import click

from kafkalite.cli._as_program import Text, bootstrap_option, ending_well, security_option
from kafkalite.cli._starts import begin_at

if TYPE_CHECKING:
    from kafkalite.cli._record_format import Printed
    from kafkalite.security.client_login import Security

COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"


@click.command()
@click.argument("topic", type=Text())
@bootstrap_option
@security_option
@click.option("-o", "--offset", "begin", metavar="WHERE", default="beginning", show_default=True,
              help="beginning, end, an offset, -N (the last N of each partition), or @TIME: "
                   "milliseconds since 1970, or 2026-01-31T12:00:00+01:00.")
@click.option("-p", "partitions", type=click.IntRange(min=0), multiple=True,
              help="Only this partition; may be repeated.")
@click.option("-n", "-c", "--count", "count", type=click.IntRange(min=0),
              help="End after so many records.")
@click.option("-f", "--format", "shape", metavar="FORMAT",
              help=r"How to print a record ['%s\n']: %t topic, %p partition, %o offset, %k key, "
                   r"%s value, %T time, %h headers, %K and %S lengths, \n \t \xHH.")
@click.option("-K", "key_delimiter", metavar="DELIMITER", help="Print the key too, before this.")
@click.option("-Z", "shows_null", is_flag=True, help="Print NULL for a key or value of null.")
@click.option("--follow", is_flag=True, help="Go on with what comes, instead of ending.")
@click.option("--isolation", type=click.Choice([COMMITTED, UNCOMMITTED]), default=COMMITTED,
              show_default=True, help="Whether open and aborted transactions are left out.")
@click.option("--timeout", "timeout_s", type=click.FloatRange(min=0), default=30.0,
              show_default=True, help="Seconds for which brokers that do not answer are asked.")
def command(
    topic: str,
    bootstrap: list[tuple[str, int]],
    security: Security | None,
    begin: str,
    partitions: tuple[int, ...],
    count: int | None,
    shape: str | None,
    key_delimiter: str | None,
    shows_null: bool,
    follow: bool,
    isolation: str,
    timeout_s: float,
) -> None:
    """Print the records of TOPIC, to where its partitions now end.

    \b
        kafkalite consume greetings
        kafkalite consume -o -5 -f '%t %p %o %k %s %T %h\\n' --follow greetings
    """
    from kafkalite.client.cluster import Cluster
    from kafkalite.client.consuming import Reader
    from kafkalite.security.client_login import OPEN

    start, show = begin_at(begin, "-o"), _printer(shape, key_delimiter, shows_null)
    with ending_well(), closing(Cluster(bootstrap, security=security or OPEN)) as cluster:
        if count == 0:
            return
        reader = Reader(
            cluster, topic, partitions=partitions, start=start, follows=follow,
            is_committed=isolation == COMMITTED, timeout_s=timeout_s,
            tell=lambda text: click.echo(f"kafkalite: {text}", err=True),
        )  # fmt: skip
        out = sys.stdout.buffer
        for partition, record in islice(reader.records(), count):
            out.write(show(topic, partition, record))
            if follow:
                out.flush()
        out.flush()


def _printer(shape: str | None, key_delimiter: str | None, shows_null: bool) -> Printed:
    from kafkalite.cli._record_format import BadFormat, printer

    if shape is None:
        before = "" if key_delimiter is None else "%k" + key_delimiter.replace("%", "%%")
        shape = f"{before}%s\\n"
    try:
        return printer(shape, b"NULL" if shows_null else b"")
    except BadFormat as error:
        raise click.BadParameter(str(error), param_hint="-f") from None
