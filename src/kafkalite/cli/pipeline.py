"""`kafkalite pipeline NAME`: the pipelines of `kafkalite.pipelines`, on Spark, for any Kafka."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from kafkalite.cli._pipeline_options import (
    ADOPT,
    Reading,
    Running,
    check_settings,
    decoding,
    explained,
    open_session,
    pairs,
    progress_option,
    run_options,
    source_options,
    spark_options,
    take,
    target_options,
    value_options,
)
from kafkalite.cli._pipeline_progress import watching, working
from kafkalite.cli._pipeline_screen import (
    OUT,
    say,
    show_dry_run,
    show_lag,
    show_ledger,
    show_progress,
    show_report,
)
from kafkalite.cli._spark_log import SparkLog
from kafkalite.pipelines.common.outcomes import DIFFERENT, DONE, STOPPED, epilog

if TYPE_CHECKING:
    from kafkalite.pipelines.audit import Report
    from kafkalite.pipelines.common.ledger import Ledger
    from kafkalite.pipelines.common.progress import Progress

TABLE_FORMAT = click.option(
    "--format",
    "table_format",
    default="delta",
    show_default=True,
    type=click.Choice(["delta", "parquet"]),
)
CHECKPOINT = click.option("--checkpoint", default="", help="Default: <path>/_checkpoint.")
EPILOG = epilog()
NEEDED_CHECKPOINT = click.option("--checkpoint", required=True, help="Where progress is kept.")


@click.group()
def command() -> None:
    """Move records between topics and tables with Spark, each exactly once."""


@command.command("to-lake", epilog=EPILOG)
@source_options
@click.option("--path", required=True, help="Where the table is.")
@TABLE_FORMAT
@CHECKPOINT
@value_options
@click.option("--partition-by-date", is_flag=True, help="Partition the table by log date.")
@click.option("--target-file-mb", type=int, help="Fewer, larger files: this size each.")
@ADOPT
@run_options
@spark_options
def to_lake(**given: Any) -> None:
    """Load TOPICS into a Delta or Parquet table."""
    call = _common(given)
    with call.explained("to-lake"):
        from kafkalite.pipelines.to_lake import ToLake

        megabytes = given["target_file_mb"]
        source = call.reading.source()
        values = decoding(given["value_format"], given["value_schema"])
        pipeline = ToLake(
            call.session(),
            source,
            given["path"],
            given["table_format"],
            given["checkpoint"],
            values,
            given["schema_registry"],
            given["partition_by_date"],
            megabytes * 1024 * 1024 if megabytes else None,
            call.running.trigger(),
            call.running.keep_going,
            given["adopt"],
        )
        _run("to-lake", pipeline, pipeline.run, call)


@command.command(epilog=EPILOG)
@source_options
@click.option("--dead-letters", required=True, metavar="TOPIC", help="Where bad records go.")
@click.option(
    "--rule",
    "rules",
    multiple=True,
    metavar="NAME=SQL",
    help="What a good record fulfils, such as positive='data.amount > 0'.",
)
@click.option(
    "--max-error-rate",
    type=float,
    default=1.0,
    show_default=True,
    help="Stop, writing nothing, when more of a batch than this is bad.",
)
@click.option(
    "--retry-topic",
    default="",
    metavar="TOPIC",
    help="Bad records go here first, and are judged again by the next batch.",
)
@click.option(
    "--max-retries",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    envvar="MAX_RETRIES",
    help="How often each does, before it is a dead letter; also $MAX_RETRIES.",
)
@NEEDED_CHECKPOINT
@target_options
@value_options
@run_options
@spark_options
def dlq(**given: Any) -> None:
    """Send records of TOPICS that do not decode or break a rule to a dead letter topic."""
    call = _common(given)
    with call.explained("dlq"):
        from kafkalite.pipelines.dlq import DeadLetters
        from kafkalite.pipelines.retries import Retries

        source = call.reading.source()
        values = decoding(given["value_format"], given["value_schema"])
        rules = pairs(given["rules"], "--rule")
        again = given["retry_topic"]
        pipeline = DeadLetters(
            call.session(),
            source,
            given["dead_letters"],
            given["checkpoint"],
            values,
            rules,
            given["schema_registry"],
            target=call.reading.target(given["dead_letters"], "", given["to_options"]),
            max_error_rate=given["max_error_rate"],
            retries=Retries(again, given["max_retries"]) if again else None,
            trigger=call.running.trigger(),
            keep_going=call.running.keep_going,
        )
        _run("dlq", pipeline, pipeline.run, call)


@command.command(epilog=EPILOG)
@source_options
@click.option("--path", default="", help="Replay from this table instead of from TOPICS.")
@TABLE_FORMAT
@click.option("--to", "to_topic", required=True, help="The topic to write to.")
@click.option("--to-bootstrap-servers", default="", help="Its cluster, if another.")
@click.option("--state", required=True, help="A folder: the same replay writes each record once.")
@click.option("--from-time", default="", help="Log time, such as '2024-01-31 12:00:00'.")
@click.option("--to-time", default="", help="Before this log time.")
@click.option("--from-offset", type=int)
@click.option("--to-offset", type=int, help="Before this offset.")
@click.option("--where", default="", help="An SQL predicate over the record's columns.")
@click.option("--rate", type=int, help="Records per second of each executor, at most.")
@click.option("--keep-partitions", is_flag=True, help="Write to the partition it came from.")
@target_options
@progress_option
@spark_options
def replay(**given: Any) -> None:
    """Write records of TOPICS, or of a table, to a topic again."""
    call = _common(given)
    with call.explained("replay"):
        from kafkalite.pipelines.common import dry_run
        from kafkalite.pipelines.replay import Choice, Replay

        topics = call.reading.topics if given["path"] else ()
        choice = Choice(
            topics,
            given["from_time"],
            given["to_time"],
            given["from_offset"],
            given["to_offset"],
            given["where"],
        )
        servers = given["to_bootstrap_servers"]
        target = call.reading.target(given["to_topic"], servers, given["to_options"])
        source = None if given["path"] else call.reading.source()
        pipeline = Replay(
            call.session(),
            target,
            given["state"],
            given["path"],
            given["table_format"],
            source,
            choice,
            given["rate"],
            given["keep_partitions"],
        )
        check_settings(pipeline.spark, source, target)
        if not call.dry:
            with working("replay", call.progress_kind, pipeline.spark):
                ledger = pipeline.run()
            _close(call, ledger)
        else:
            rows = pipeline.rows()
            OUT.print(f"would write {rows.count():,} records to {given['to_topic']}")
            OUT.print(
                f"{dry_run.tree(rows)}\n{dry_run.plan(rows)}",
                highlight=False,
                markup=False,
                soft_wrap=True,
            )


@command.command(epilog=EPILOG)
@source_options
@click.option("--path", required=True, help="The table to hold against the topics.")
@TABLE_FORMAT
@CHECKPOINT
@click.option(
    "--producer-counts",
    default="",
    metavar="TOPIC",
    help="Where producers send the events of their ProducerCounts.",
)
@click.option("--report", default="", help="Append the buckets to this Delta table.")
@click.option("--report-topic", default="", help="Send the buckets to this topic.")
@click.option("--plot", default="", help="Draw a picture: a name ending in .png or .svg.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@ADOPT
@progress_option
@spark_options
def audit(**given: Any) -> None:
    """Compare TOPICS with the table loaded from them; exits with 3 when they differ."""
    call = _common(given)
    with call.explained("audit"):
        from kafkalite.pipelines.audit import Audit
        from kafkalite.pipelines.common import dry_run

        counts = given["producer_counts"]
        counted = call.reading.target(counts, "", ()) if counts else None
        pipeline = Audit(
            call.session(),
            call.reading.source(),
            given["path"],
            given["table_format"],
            given["checkpoint"],
            counted,
        )
        check_settings(pipeline.spark, pipeline.source)
        if call.dry:
            show_dry_run(dry_run.dry_run(pipeline.spark, pipeline.source, pipeline.step))
            return
        with working("audit", call.progress_kind, pipeline.spark):
            report = pipeline.run()
        _hand_out(pipeline, report, given, call.ledger)
    if report.faults:
        raise SystemExit(DIFFERENT)


def _hand_out(pipeline: Any, report: Report, given: dict[str, Any], ledger: str) -> None:
    """What is printed comes last: it says how the whole has ended."""
    from kafkalite.pipelines import reporting

    if given["report"]:
        reporting.to_table(pipeline.spark, report, given["report"], given["adopt"])
    if given["report_topic"]:
        reporting.to_topic(pipeline.spark, report, pipeline.source, given["report_topic"])
    if given["plot"]:
        reporting.plot(report, given["plot"])
    if given["as_json"]:
        click.echo(json.dumps(reporting.as_json(report), indent=1))
    elif ledger == "json":
        click.echo(json.dumps(reporting.as_ledger(report)))
    else:
        show_report(report)


@command.command(epilog=EPILOG)
@source_options
@click.option("--path", required=True, help="Where the table is.")
@TABLE_FORMAT
@CHECKPOINT
@click.option("--follow", is_flag=True, help="Keep the table up, batch by batch, deletes included.")
@click.option(
    "--envelope", default="none", show_default=True, type=click.Choice(["none", "debezium"])
)
@click.option(
    "--null-keys",
    default="fail",
    show_default=True,
    type=click.Choice(["fail", "drop"]),
    help="What to do with records without a key.",
)
@click.option("--keep-tombstones", is_flag=True, help="Keep deleted keys as rows without a value.")
@ADOPT
@value_options
@run_options
@spark_options
def snapshot(**given: Any) -> None:
    """Keep the latest value of each key of TOPICS as a table.

    At an offset or a time: --option endingOffsets=…, --option endingTimestamp=….
    """
    call = _common(given)
    with call.explained("snapshot"):
        from kafkalite.pipelines.snapshot import Snapshot

        source = call.reading.source()
        values = decoding(given["value_format"], given["value_schema"])
        pipeline = Snapshot(
            call.session(),
            source,
            given["path"],
            given["table_format"],
            given["checkpoint"],
            values,
            given["envelope"],
            given["null_keys"],
            given["keep_tombstones"],
            call.running.trigger(),
            call.running.keep_going,
            given["schema_registry"],
            given["adopt"],
        )
        check_settings(pipeline.spark, source)
        if call.dry or given["follow"]:
            _run("snapshot", pipeline, pipeline.follow, call)
        else:
            with working("snapshot", call.progress_kind, pipeline.spark):
                ledger = pipeline.once()
            _close(call, ledger)


@command.command(epilog=EPILOG)
@source_options
@click.option("--to-bootstrap-servers", required=True, help="The cluster to copy to.")
@target_options
@click.option("--rename", default="{topic}", show_default=True, help="Names of the copies.")
@click.option("--group", "groups", multiple=True, help="A group whose offsets move over; repeat.")
@click.option(
    "--sync-settings/--no-sync-settings",
    default=True,
    show_default=True,
    help="Set copies that are there already as their sources are set.",
)
@ADOPT
@NEEDED_CHECKPOINT
@run_options
@spark_options
def mirror(**given: Any) -> None:
    """Copy TOPICS to another cluster: partitions, headers, timestamps and groups."""
    call = _common(given)
    with call.explained("mirror"):
        from kafkalite.pipelines.mirror import Mirror

        source = call.reading.source()
        target = call.reading.target("*", given["to_bootstrap_servers"], given["to_options"])
        pipeline = Mirror(
            call.session(),
            source,
            target,
            given["checkpoint"],
            given["rename"],
            given["groups"],
            call.running.trigger(),
            call.running.keep_going,
            given["adopt"],
            given["sync_settings"],
        )
        check_settings(pipeline.spark, target)
        _run("mirror", pipeline, pipeline.run, call)


@command.command(epilog=EPILOG)
@source_options
@NEEDED_CHECKPOINT
@click.option("--group", default="", help="Commit what is done as this group.")
@spark_options
def lag(**given: Any) -> None:
    """Show how far the query of a checkpoint is behind, and commit it as a group's offsets."""
    call = _common(given)
    with call.explained("lag"):
        from kafkalite.pipelines.common.source import KafkaSource
        from kafkalite.pipelines.lag import Lag, as_ledger

        options = pairs(call.reading.options, "--option")
        # The checkpoint knows the topics.
        source = KafkaSource(call.reading.bootstrap_servers, pattern=".*", options=options)
        pipeline = Lag(call.session(), source, given["checkpoint"], given["group"])
        is_committing = given["group"] and not call.dry
        measured = pipeline.commit() if is_committing else pipeline.measure()
        if call.ledger == "json":
            click.echo(json.dumps(as_ledger(measured, given["group"] if is_committing else "")))
        else:
            show_lag(measured)


@dataclass(frozen=True, slots=True)
class Call:
    """What commands share of what was given."""

    reading: Reading
    running: Running
    session: Callable[[], Any]
    dry: bool
    ledger: str
    progress_kind: str
    log: SparkLog

    def explained(self, command: str) -> AbstractContextManager[None]:
        return explained(command, self.ledger, self.log, str(self.reading))


def _common(given: dict[str, Any]) -> Call:
    """The options that commands share, taken out of what was given."""
    reading = take(given, Reading)
    running = take(given, Running) if "trigger_kind" in given else Running()
    master, confs, dry = given.pop("master"), given.pop("confs"), given.pop("dry_run")
    log = SparkLog(given.pop("spark_log"))
    return Call(
        reading,
        running,
        lambda: open_session(master, confs, log),
        dry,
        given.pop("ledger"),
        given.pop("progress_kind", "none"),
        log,
    )


def _run(name: str, pipeline: Any, run: Callable[..., Progress], call: Call) -> None:
    """Runs a streaming pipeline under a bar until its trigger or a signal ends it."""
    from kafkalite.pipelines.common import dry_run
    from kafkalite.pipelines.common.stopping import stop_on_signals
    from kafkalite.pipelines.lag import CommitOffsetsListener, Lag

    spark, source = pipeline.spark, pipeline.source
    check_settings(spark, source)
    if call.dry:
        show_dry_run(dry_run.dry_run(spark, source, pipeline.step, pipeline.checkpoint))
        return
    group = call.running.commit_group
    if group:
        spark.streams.addListener(CommitOffsetsListener(spark, source, group))
    with stop_on_signals(say) as stop, watching(name, call.progress_kind) as watch:
        progress = run(watch, stop)
    if group and progress.reached:
        # The listener hears of the last batch some time later, perhaps after this process.
        Lag(spark, source, pipeline.checkpoint, group).commit()
    moved = getattr(pipeline, "moved", {})
    if call.ledger == "table":
        show_progress(name, progress, moved)
    early = progress.was_stopped and call.running.trigger_kind == "available-now"
    _close(call, progress.ledger, STOPPED if early and progress.is_behind else DONE)


def _close(call: Call, ledger: Ledger, exit_code: int = DONE) -> None:
    """Shows the account, and ends with what it proves."""
    exit_code = DIFFERENT if ledger.faults else exit_code
    if call.ledger == "json":
        click.echo(json.dumps({**ledger.as_json(), "exit_code": exit_code}))
    else:
        show_ledger(ledger)
    if exit_code:
        raise SystemExit(exit_code)
