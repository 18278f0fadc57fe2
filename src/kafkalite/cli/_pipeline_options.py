"""What the pipeline commands share: options of sources and runs, and errors in one sentence.

Imports Spark only inside of functions, so that `--help` answers at once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kafkalite.pipelines.common.decode import Decoding
    from kafkalite.pipelines.common.running import Trigger
    from kafkalite.pipelines.common.source import KafkaSource

# Exit codes: 1 is any failure, 2 a wrong call, 3 records that are lost or doubled.
LOST = 3


class LostRecords(click.ClickException):
    exit_code = LOST


Decorate = Callable[[Callable[..., Any]], Callable[..., Any]]


def source_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Topics and how to read them."""
    return _all(
        command,
        click.argument("topics", nargs=-1),
        click.option(
            "-b",
            "--bootstrap-servers",
            default="localhost:9092",
            show_default=True,
            envvar="KAFKALITE_BOOTSTRAP_SERVERS",
            help="Any Kafka cluster; also $KAFKALITE_BOOTSTRAP_SERVERS.",
        ),
        click.option("--pattern", default="", help="Topics by a regular expression."),
        click.option("--assign", default="", help='Partitions as JSON: {"topic":[0,1]}.'),
        click.option(
            "--option",
            "options",
            multiple=True,
            metavar="NAME=VALUE",
            help="Any option of Spark's Kafka source, such as startingOffsets=latest, "
            "maxOffsetsPerTrigger=100000 or kafka.security.protocol=SSL.",
        ),
    )


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """When batches run, and what happens at trouble."""
    return _all(
        command,
        click.option(
            "--trigger",
            "trigger_kind",
            default="available-now",
            show_default=True,
            type=click.Choice(["available-now", "interval", "continuous"]),
            help="Once over what is there; every --interval; or batch after batch.",
        ),
        click.option(
            "--interval",
            default="10 seconds",
            show_default=True,
            help="Between batches of --trigger interval.",
        ),
        click.option(
            "--on-data-loss",
            default="fail",
            show_default=True,
            type=click.Choice(["fail", "record"]),
            help="When records expired before they were read: fail with the lost ranges "
            "written down, or write them down and go on.",
        ),
        click.option("--commit-group", default="", help="Commit progress as this consumer group."),
    )


def spark_options(command: Callable[..., Any]) -> Callable[..., Any]:
    return _all(
        command,
        click.option("--master", help="Spark's master; default local[*]."),
        click.option(
            "--conf", "confs", multiple=True, metavar="NAME=VALUE", help="Any setting of Spark."
        ),
        click.option(
            "--dry-run",
            is_flag=True,
            help="Print plan, schema, offsets and estimated rows; do nothing.",
        ),
    )


def value_options(command: Callable[..., Any]) -> Callable[..., Any]:
    return _all(
        command,
        click.option(
            "--value-format",
            default="raw",
            show_default=True,
            type=click.Choice(["raw", "json", "avro", "confluent-avro"]),
        ),
        click.option(
            "--value-schema",
            default="",
            metavar="TEXT|@FILE",
            help="DDL for JSON ('id BIGINT, name STRING'), an .avsc for Avro.",
        ),
        click.option(
            "--schema-registry",
            default="",
            metavar="URL|FOLDER",
            help="Where confluent-avro finds schemas: a registry, or files <id>.avsc.",
        ),
    )


def _all(command: Callable[..., Any], *options: Decorate) -> Callable[..., Any]:
    for option in reversed(options):
        command = option(command)
    return command


@dataclass(slots=True)
class Reading:
    """The source options as they were given."""

    topics: tuple[str, ...] = ()
    bootstrap_servers: str = ""
    pattern: str = ""
    assign: str = ""
    options: tuple[str, ...] = field(default=())

    def source(self) -> KafkaSource:
        from kafkalite.pipelines.common.source import KafkaSource

        return KafkaSource(
            self.bootstrap_servers,
            self.topics,
            self.pattern,
            self.assign,
            pairs(self.options, "--option"),
        )


@dataclass(slots=True)
class Running:
    """The run options as they were given."""

    trigger_kind: str = "available-now"
    interval: str = ""
    on_data_loss: str = "fail"
    commit_group: str = ""

    def trigger(self) -> Trigger:
        from kafkalite.pipelines.common.running import Trigger

        return Trigger(self.trigger_kind, self.interval)

    @property
    def keep_going(self) -> bool:
        return self.on_data_loss == "record"


def take(given: dict[str, Any], kind: type[Any]) -> Any:
    """The options of one of the classes above, taken out of all that were given."""
    return kind(**{name: given.pop(name) for name in kind.__dataclass_fields__})


def decoding(value_format: str, value_schema: str) -> Decoding:
    from kafkalite.pipelines.common.decode import Decoding

    return Decoding(value_format, read_text(value_schema) or None)


def read_text(given: str) -> str:
    """The text itself, or what is in the file that `@` points at."""
    if not given.startswith("@"):
        return given
    try:
        with open(given[1:], encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise click.BadParameter(f"{given[1:]}: {error.strerror}") from None


def pairs(given: tuple[str, ...], option: str) -> dict[str, str]:
    found = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals:
            raise click.BadParameter(f"{each!r} is not NAME=VALUE", param_hint=option)
        found[name] = value
    return found


def open_session(master: str | None, confs: tuple[str, ...]) -> SparkSession:
    from kafkalite import spark

    session = spark.session(app="kafkalite pipeline", master=master, config=pairs(confs, "--conf"))
    # Errors of a query come back to the command, which explains them.
    session.sparkContext.setLogLevel("OFF")
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    return session


@contextmanager
def explained() -> Iterator[None]:
    """Turns what can go wrong into one sentence and an exit code."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "pyspark":
            raise
        raise click.ClickException(
            "pyspark is not installed: pip install 'kafkalite[spark]'"
        ) from None
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    except RuntimeError as error:
        lost = type(error).__name__ == "RecordsLost"
        raise (LostRecords if lost else click.ClickException)(str(error)) from None
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark.", "py4j.")):
            raise
        raise click.ClickException(f"Spark: {str(error).splitlines()[0]}") from None
