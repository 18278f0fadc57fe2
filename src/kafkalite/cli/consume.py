"""`kafkalite consume`: the records of a topic on standard output."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

import click

from kafkalite.cli._as_program import FAILED
from kafkalite.cli._output import Seconds, tell_missing, timeout_option, with_cluster
from kafkalite.cli._starts import WHERE, begin_at
from kafkalite.cli._topic_name import TopicName
from kafkalite.cli._where import Where, cluster_options

if TYPE_CHECKING:
    from kafkalite.cli._registry import Fields
    from kafkalite.client.cluster import Cluster
    from kafkalite.client.consuming import Reader
    from kafkalite.client.shown import Shown
    from kafkalite.records.batch import BatchHeader
    from kafkalite.records.record import Record

COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"

Line = Callable[[str, int, "Record", "BatchHeader"], bytes]
Lines = Callable[["Shown"], bytes | None]  # all of a batch, where that can be had at once


def _decoded(
    ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]
) -> dict[str, str]:
    found = {}
    for text in texts:
        field, _, kind = text.partition("=")
        if field not in ("key", "value") or kind not in ("avro", "json"):
            raise click.BadParameter(f"{text!r}: expected key or value, = and avro or json")
        found[field] = kind
    return found


@click.command()
@click.argument("topic", type=TopicName())
@cluster_options
@click.option("-o", "--offset", "begin", metavar="WHERE", default="beginning", show_default=True,
              help=WHERE)
@click.option("--until", metavar="WHERE",
              help="End there, in the same words [where the partitions end when it begins].")
@click.option("-p", "partitions", type=click.IntRange(min=0), multiple=True,
              help="Only this partition; may be repeated.")
@click.option("-n", "-c", "--count", "count", type=click.IntRange(0, sys.maxsize),
              help="End after so many records.")
@click.option("-f", "--format", "form", metavar="FORMAT",
              help=r"How to print a record ['%s\n']: %t topic, %p partition, %o offset, %k key, "
                   r"%s value, %T time, %h headers, %K and %S lengths, %R length in four bytes, "
                   r"\n \t \xHH.")
@click.option("-J", "--json", "as_json", is_flag=True,
              help="Print each record as a line of JSON, as `kafkalite produce -J` takes it.")
@click.option("-s", "--as", "decoded", multiple=True, metavar="key|value=avro|json",
              callback=_decoded,
              help="Print the key or the value as JSON, by the schema whose id stands before it; "
                   "may be repeated.")
@click.option("-r", "--schema-registry", "registry", metavar="URL",
              help="Where schemas are: a registry, or a folder of <id>.avsc and <id>.json.")
@click.option("-K", "key_delimiter", metavar="DELIMITER", help="Print the key too, before this.")
@click.option("-Z", "shows_null", is_flag=True, help="Print NULL for a key or value of null.")
@click.option("--raw", is_flag=True,
              help="Give a terminal the bytes as they are, also those that are no text.")
@click.option("--follow", is_flag=True, help="Go on with what comes, instead of ending.")
@click.option("--exit-idle", "idle_s", type=Seconds(0), metavar="SECONDS",
              help="Go on with what comes, and end when nothing has come for so long.")
@click.option("--isolation", type=click.Choice([COMMITTED, UNCOMMITTED]), default=COMMITTED,
              show_default=True, help="Whether open and aborted transactions are left out.")
@timeout_option
def command(
    topic: str,
    where: Where,
    begin: str,
    until: str | None,
    partitions: tuple[int, ...],
    count: int | None,
    form: str | None,
    as_json: bool,
    decoded: dict[str, str],
    registry: str | None,
    key_delimiter: str | None,
    shows_null: bool,
    raw: bool,
    follow: bool,
    idle_s: float | None,
    isolation: str,
    timeout_s: float,
) -> None:
    """Print the records of TOPIC, to where its partitions now end.

    \b
        kafkalite consume greetings
        kafkalite consume -o -5 -f '%t %p %o %k %s %T %h\\n' --follow greetings
        kafkalite consume -o @2026-01-31T12:00:00 --until @2026-01-31T13:00:00 greetings
    """
    follows = follow or idle_s is not None
    if follows and until is not None:
        raise click.UsageError("--until ends, --follow and --exit-idle go on: give one of them")
    if as_json and (form or key_delimiter):
        raise click.UsageError("-J has a form of its own: leave -f and -K out")
    start = begin_at(begin, "-o")
    end = None if until is None else begin_at(until, "--until")
    if bool(decoded) is not bool(registry):
        raise click.UsageError("-s and --schema-registry belong together")
    is_shown = sys.stdout.isatty() and not raw
    fields = _fields(decoded, registry)
    null = b"NULL" if shows_null else b""
    text = _usual_form(key_delimiter) if form is None else form
    show = _as_json(fields, is_shown) if as_json else _printer(text, null, is_shown, fields)
    is_plain = not (as_json or is_shown or fields or count)
    show_all = _at_once(text, null) if is_plain else _one_by_one

    def act(cluster: Cluster) -> None:
        from kafkalite.client.consuming import Reader

        if count == 0:
            return
        reader = Reader(
            cluster, topic, partitions=partitions, start=start, follows=follows, until=end,
            is_committed=isolation == COMMITTED, timeout_s=timeout_s,
            tell=lambda text: tell_missing([text]),
        )  # fmt: skip
        lines = _lines(reader, idle_s, topic, show, show_all)
        sys.stdout.buffer.writelines(islice(lines, count))
        sys.stdout.buffer.flush()
        if fields is not None and fields.failures:
            sys.exit(FAILED)

    with_cluster(where, act)


def _lines(
    reader: Reader, idle_s: float | None, topic: str, show: Line, show_all: Lines
) -> Iterator[bytes]:
    """What is written is also shown before anything is waited for."""
    for batches in reader.rounds(idle_s):
        for index, header, records in batches:
            whole = show_all(records)
            if whole is not None:
                yield whole
                continue
            for record in records:
                yield show(topic, index, record, header)
        sys.stdout.buffer.flush()


def _one_by_one(records: Shown) -> None:
    """Nothing is had at once."""


def _at_once(form: str, null: bytes) -> Lines:
    from kafkalite.cli._record_format import around_value

    around = around_value(form)
    if around is None:
        return _one_by_one
    before, behind = around
    between = behind + before

    def show_all(records: Shown) -> bytes | None:
        values = records.values(null)
        if not values:
            return None
        return b"%b%b%b" % (before, between.join(values), behind)

    return show_all


def _fields(decoded: dict[str, str], registry: str | None) -> Fields | None:
    if registry is None:
        return None
    from kafkalite.cli._registry import fields_of

    return fields_of(decoded, registry)


def _as_json(fields: Fields | None, is_shown: bool) -> Line:
    from kafkalite.cli._record_format import readable
    from kafkalite.cli._record_json import as_line, plain

    def show(topic: str, partition: int, record: Record, header: BatchHeader) -> bytes:
        if fields is None:
            key, value = plain(record.key), plain(record.value)
        else:
            key, value = fields.plain(topic, partition, record)
        line = as_line(topic, partition, record, header, key, value)
        return readable(line) if is_shown else line

    return show


def _usual_form(key_delimiter: str | None) -> str:
    before = "" if key_delimiter is None else "%k" + key_delimiter.replace("%", "%%")
    return f"{before}%s\\n"


def _printer(form: str, null: bytes, is_shown: bool, fields: Fields | None) -> Line:
    from kafkalite.cli._record_format import BadFormat, printer, readable

    try:
        show = printer(form, null, readable if is_shown else None)
    except BadFormat as error:
        raise click.BadParameter(str(error), param_hint="-f") from None
    if fields is None:
        return show
    return lambda topic, partition, record, header: show(
        topic, partition, fields.as_text(topic, partition, record), header
    )
