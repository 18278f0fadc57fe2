"""What the pipeline commands share: options of sources and runs, and errors in one sentence.

Imports Spark only inside of functions, so that `--help` answers at once.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from kafkalite.cli._pipeline_progress import KINDS
from kafkalite.cli._spark_log import SparkLog
from kafkalite.pipelines.common import option_names
from kafkalite.pipelines.common.causes import cause_of, cure_of
from kafkalite.pipelines.common.outcomes import FAILED, STOPPED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kafkalite.pipelines.common.decode import Decoding
    from kafkalite.pipelines.common.running import Trigger
    from kafkalite.pipelines.common.source import KafkaSource

# As `decode` has them, which cannot be imported without Spark.
VALUE_FORMATS = ("raw", "json", "avro", "confluent-avro", "confluent-json", "confluent-protobuf")

_UNHEARD = logging.NullHandler()

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
        click.option(
            "--isolation",
            default="read_committed",
            show_default=True,
            type=click.Choice(["read_committed", "read_uncommitted"]),
            help="Whether records of transactions that were aborted, or are open, are read.",
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
        progress_option,
    )


def progress_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return _all(
        command,
        click.option(
            "--progress",
            "progress_kind",
            default="auto",
            show_default=True,
            type=click.Choice(KINDS),
            help="A live table on a terminal, else a line each ten seconds; lines anywhere; such "
            "lines as JSON; or nothing.",
        ),
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
        click.option(
            "--spark-log",
            default="",
            metavar="FILE",
            help="What Spark itself says; else a file that is named when something fails.",
        ),
        click.option(
            "--ledger",
            default="table",
            show_default=True,
            type=click.Choice(["table", "json"]),
            help="The account at the end: for people, or one line of JSON.",
        ),
    )


def target_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The cluster that is written to."""
    return _all(
        command,
        click.option(
            "--to-option",
            "to_options",
            multiple=True,
            metavar="NAME=VALUE",
            help="Settings of the client that writes, such as kafka.compression.type=zstd. On the "
            "same cluster those of --option count as well.",
        ),
    )


ADOPT = click.option(
    "--adopt", is_flag=True, help="Take over what is there and was made by somebody else."
)


def value_options(command: Callable[..., Any]) -> Callable[..., Any]:
    return _all(
        command,
        click.option(
            "--value-format",
            default="raw",
            show_default=True,
            type=click.Choice(VALUE_FORMATS),
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
            help="Where confluent-avro, -json and -protobuf find schemas: a registry, or files "
            "<id>.avsc, <id>.json and <id>.proto.",
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
    isolation: str = "read_committed"

    def __str__(self) -> str:
        """What is read, and where; nothing for a table."""
        what = self.pattern or self.assign or ", ".join(self.topics)
        return f"{what} at {self.bootstrap_servers}" if what else ""

    def source(self) -> KafkaSource:
        from kafkalite.pipelines.common.source import ISOLATION, KafkaSource

        given = checked(self.options, "--option")
        options = {**given, ISOLATION: self.isolation}
        return KafkaSource(self.bootstrap_servers, self.topics, self.pattern, self.assign, options)

    def target(self, topic: str, servers: str, to_options: tuple[str, ...]) -> KafkaSource:
        """A topic that is written to, here or at other servers."""
        from kafkalite.pipelines.common.source import KafkaSource

        given = checked(to_options, "--to-option", source=False)
        if not servers or servers == self.bootstrap_servers:
            given = {**self._reaching(), **given}
        return KafkaSource(servers or self.bootstrap_servers, (topic,), options=given)

    def _reaching(self) -> dict[str, str]:
        """What reaches this cluster, whoever asks."""
        given = checked(self.options, "--option")
        return {name: value for name, value in given.items() if name.startswith("kafka.")}


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


def checked(given: tuple[str, ...], option: str, source: bool = True) -> dict[str, str]:
    """Options of Spark's connector, none of which it would pass over."""
    found = pairs(given, option)
    wrong = option_names.wrong(found, source)
    if wrong is not None:
        raise click.BadParameter(wrong, param_hint=option)
    return found


def check_settings(spark: SparkSession, *clusters: KafkaSource | None) -> None:
    """The `kafka.` options against the settings that the clients of this session know."""
    jvm: Any = spark.sparkContext._jvm
    clients = jvm.org.apache.kafka.clients
    kinds = (
        clients.consumer.ConsumerConfig,
        clients.producer.ProducerConfig,
        clients.admin.AdminClientConfig,
    )
    known = {name for kind in kinds for name in kind.configNames()}
    for cluster in clusters:
        wrong = option_names.wrong_setting(cluster.options if cluster else (), known)
        if wrong is not None:
            raise ValueError(wrong)


def open_session(master: str | None, confs: tuple[str, ...], log: SparkLog) -> SparkSession:
    from kafkalite import spark

    app, config = "kafkalite pipeline", pairs(confs, "--conf")
    session = spark.session(app=app, master=master, config=config, log=log.open)
    # Errors of a query come back to the command, which explains them.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    # Else stacks of Python go to the terminal when the JVM ends.
    logging.getLogger().addHandler(_UNHEARD)
    return session


@contextmanager
def explained(
    command: str, ledger: str, log: SparkLog | None = None, where: str = ""
) -> Iterator[None]:
    """Turns what can go wrong into one sentence and an exit code; for machines into a ledger."""
    log = log or SparkLog()
    try:
        with _as_sentence(where):
            yield
        log.forget()
    except click.ClickException as told:
        if ledger == "json":
            said = {"command": command, "error": told.message, "exit_code": told.exit_code}
            click.echo(json.dumps({**said, "proven": False}))
        if not log.hint():
            raise
        raise _Ending(told.message + log.hint(), told.exit_code) from None


@contextmanager
def _as_sentence(where: str) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        said = "interrupted: nothing is half done, start it again to go on"
        raise _Ending(said, STOPPED) from None
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "pyspark":
            raise
        raise click.ClickException(
            "pyspark is not installed: pip install 'kafkalite[spark]'"
        ) from None
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    except RuntimeError as error:
        raise _Ending(str(error), getattr(error, "exit_code", FAILED)) from None
    except Exception as error:
        if _is_of_a_dead_jvm(error):
            said = "Spark's JVM has ended under it, as for want of memory"
            raise click.ClickException(said + cure_of("OutOfMemoryError")) from None
        if not type(error).__module__.startswith(("pyspark.", "py4j.")):
            raise
        cause = cause_of(str(error))
        at = f" ({where})" if where else ""
        raise click.ClickException(f"Spark: {cause}{at}{cure_of(cause)}") from None


def _is_of_a_dead_jvm(error: Exception) -> bool:
    """Brokers are asked by the JVM, and who asks a registry tells what became of it."""
    return isinstance(error, ConnectionError) or type(error).__name__ == "Py4JNetworkError"


class _Ending(click.ClickException):
    """A sentence, and the exit code of its kind of failure."""

    def __init__(self, said: str, exit_code: int) -> None:
        super().__init__(said)
        self.exit_code = exit_code  # type: ignore[misc]
