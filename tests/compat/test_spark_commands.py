"""The pipeline commands: what each prints, where it stops, and with which exit code."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kafkalite.cli.pipeline import command
from kafkalite.pipelines.common.progress import Progress
from tests.compat.brokers import Broker
from tests.compat.spark_connector import (
    SPARK_MARKS,
    WAIT_S,
    Connector,
    connector,
    numbers,
    spark,
    values,
    wait_for,
)
from tests.compat.spark_jobs import commit, committed, fill_changelog, lake_of
from tests.compat.test_spark_read import delete_before

__all__ = ["connector", "spark"]
pytestmark = [*SPARK_MARKS, pytest.mark.theirs_in_full]

Call = Callable[..., Result]


@pytest.fixture
def call(connector: Connector) -> Call:
    """Runs a command in this process, with the session that is there."""

    def call(*arguments: str) -> Result:
        environment = {"KAFKALITE_BOOTSTRAP_SERVERS": connector.broker.bootstrap}
        found = CliRunner().invoke(command, [*map(str, arguments)], env=environment)
        if found.exception is not None and not isinstance(found.exception, SystemExit):
            raise found.exception
        return found

    return call


def _fill(connector: Connector, topic: str, count: int = 5) -> str:
    connector.create(topic)
    connector.produce(topic, numbers(0, count))
    return str(connector.folder / "lake")


DRY_RUNS = {
    "to-lake": ["{topic}", "--path", "{folder}/lake"],
    "dlq": ["{topic}", "--dead-letters", "{topic}-dead", "--checkpoint", "{folder}/dlq"],
    "snapshot": ["{topic}", "--path", "{folder}/snapshot"],
    "mirror": "{topic} --to-bootstrap-servers {address} --rename copy-{topic} "
    "--checkpoint {folder}/mirror".split(),
    "audit": ["{topic}", "--path", "{folder}/lake"],
}


@pytest.mark.parametrize("name", DRY_RUNS)
def test_dry_run_tells_plan_schema_offsets_and_rows_and_does_nothing(
    connector: Connector, topic: str, call: Call, name: str
) -> None:
    _fill(connector, topic, 7)
    words = {"topic": topic, "folder": connector.folder, "address": connector.broker.bootstrap}
    done = call(name, *[each.format(**words) for each in DRY_RUNS[name]], "--dry-run")
    assert done.exit_code == 0
    assert "would read at most 7 rows:" in done.output
    (row,) = [line for line in done.output.splitlines() if topic in line and "│" in line]
    assert [cell.strip() for cell in row.split("│")[1:-1]] == [topic, "0", "0", "7", "7"]
    assert "schema\nroot\n" in done.output
    assert "== Physical Plan ==" in done.output
    assert list(connector.folder.iterdir()) == []
    topics = connector.admin().list_topics(timeout=WAIT_S).topics
    assert not {f"copy-{topic}", f"{topic}-dead"} & topics.keys()


@pytest.mark.full
def test_dry_run_of_a_replay_tells_its_records(
    connector: Connector, topic: str, call: Call
) -> None:
    _fill(connector, topic, 7)
    state = connector.folder / "state"
    arguments = ["--to", f"{topic}-again", "--state", state, "--from-offset", "2"]
    done = call("replay", topic, *arguments, "--dry-run")
    assert f"would write 5 records to {topic}-again" in done.output
    assert "== Physical Plan ==" in done.output
    assert not state.exists()
    assert f"{topic}-again" not in connector.admin().list_topics(timeout=WAIT_S).topics


def test_lake_is_loaded_tried_and_loaded_on(connector: Connector, topic: str, call: Call) -> None:
    lake = _fill(connector, topic)
    options = ["--option", "maxOffsetsPerTrigger=2", "--commit-group", f"{topic}-group"]
    done = call("to-lake", topic, "--path", lake, "--format", "parquet", *options)
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        "to-lake: 5 rows in 3 batches, lag 0",
        f"  {topic}-0 up to offset 5",
        f"  read          5 records of {topic} (read_committed)",
        f"  written       5 to {lake}",
        f"  committed     {lake}/_checkpoint",
    ]
    assert committed(connector, f"{topic}-group", topic) == 5
    connector.produce(topic, numbers(5, 8))
    done = call("to-lake", topic, "--path", lake, "--format", "parquet", "--dry-run")
    assert "would read at most 3 rows, from where the checkpoint is:" in done.output
    done = call("lag", "--checkpoint", f"{lake}/_checkpoint", "--group", f"{topic}-lag")
    (row,) = [line for line in done.output.splitlines() if topic in line]
    assert [cell.strip() for cell in row.split("│")[1:-1]] == [topic, "0", "5", "8", "3"]
    assert committed(connector, f"{topic}-lag", topic) == 5


@pytest.mark.parametrize(
    ("trigger", "number"),
    [
        ("interval", signal.SIGTERM),
        pytest.param("interval", signal.SIGINT, marks=pytest.mark.full),
        pytest.param("continuous", signal.SIGTERM, marks=pytest.mark.full),
        pytest.param("continuous", signal.SIGINT, marks=pytest.mark.full),
    ],
)
def test_a_signal_ends_a_running_job_and_it_goes_on_when_started_again(
    connector: Connector, topic: str, call: Call, trigger: str, number: signal.Signals
) -> None:
    lake = _fill(connector, topic, 9)
    arguments = [topic, "--path", lake, "--format", "parquet", "--trigger", trigger]
    arguments += ["--interval", "100 milliseconds", "--option", "maxOffsetsPerTrigger=3"]

    def interrupt() -> None:
        wait_for((Path(lake) / "_checkpoint/commits/1").exists)
        os.kill(os.getpid(), number)

    interrupter = threading.Thread(target=interrupt)
    interrupter.start()
    done = call("to-lake", *arguments)
    interrupter.join()
    assert done.exit_code == 0
    assert done.stdout.startswith("to-lake: ")
    heard = f"{number.name}: ends after the batch under way; another signal ends it at once"
    assert heard in done.stderr.splitlines()
    # Nothing is left half done: every batch that was written is committed.
    batches = {path.name.removeprefix("batch=") for path in Path(lake).glob("batch=*")}
    commits = {path.name for path in Path(lake, "_checkpoint/commits").glob("[0-9]*")}
    assert batches == commits
    call("to-lake", topic, "--path", lake, "--format", "parquet")
    rows = connector.spark.read.parquet(lake).select("value").collect()
    assert values(rows) == numbers(0, 9)


def test_lost_records_are_exit_code_3(connector: Connector, topic: str, call: Call) -> None:
    lake = _fill(connector, topic)
    arguments = ["to-lake", topic, "--path", lake, "--format", "parquet"]
    assert call(*arguments).exit_code == 0
    connector.produce(topic, numbers(5, 10))
    delete_before(connector, topic, 7)
    done = call(*arguments)
    assert done.exit_code == 3
    assert done.output.splitlines()[-1] == f"  {topic}-0 offsets 5..6: expired before it was read"
    done = call(*arguments, "--on-data-loss", "record")
    assert done.exit_code == 0
    assert done.stdout.splitlines()[0] == "to-lake: 3 rows in 1 batches, lag 0"


@pytest.mark.full
def test_a_missing_topic_is_one_sentence(connector: Connector, topic: str, call: Call) -> None:
    done = call("to-lake", topic, "--path", connector.folder / "lake")
    assert done.exit_code == 1
    assert done.stderr == f"Error: no topic {topic} at {connector.broker.bootstrap}\n"


@pytest.mark.full
def test_dead_letters_are_counted_and_break_the_run(
    connector: Connector, topic: str, call: Call
) -> None:
    connector.create(topic)
    connector.create(f"{topic}-dead")
    connector.produce(topic, ['{"n": 1}'] * 80 + ["x"] * 40)
    arguments = [topic, "--dead-letters", f"{topic}-dead", "--value-format", "json"]
    arguments += ["--value-schema", "n INT", "--rule", "positive=data.n > 0"]
    arguments += ["--checkpoint", f"{connector.folder}/dlq"]
    done = call("dlq", *arguments, "--max-error-rate", "0.1")
    assert done.exit_code == 1
    assert "Error: 40 of 120 records are bad, more than 10%: nothing of" in done.output
    done = call("dlq", *arguments)
    assert done.exit_code == 0
    assert f"  written       40 to {topic}-dead" in done.output.splitlines()
    assert "  left out      80 good" in done.output.splitlines()


@pytest.mark.full
def test_audit_tells_a_hole_and_hands_its_report_on(
    connector: Connector, topic: str, call: Call
) -> None:
    lake = _fill(connector, topic, 9)
    connector.batch({"subscribe": topic}).where("offset != 4").write.parquet(lake)
    connector.create(f"{topic}-report")
    pictures = [connector.folder / "audit.svg", connector.folder / "audit.png"]
    arguments = ["audit", topic, "--path", lake, "--format", "parquet"]
    done = call(*arguments, "--report-topic", f"{topic}-report", "--plot", pictures[0])
    assert done.exit_code == 3
    assert done.stdout.splitlines()[-2:] == [f"{topic}-0 offsets 4 missing (1 rows)", "1 faults"]
    done = call(*arguments, "--json", "--plot", pictures[1])
    assert json.loads(done.stdout)["faults"] == [f"{topic}-0 offsets 4 missing (1 rows)"]
    (record,) = connector.read("batch", {"subscribe": f"{topic}-report"})
    assert json.loads(record["value"])["broker"] == 9
    assert pictures[0].read_text().startswith("<?xml")
    assert pictures[1].read_bytes().startswith(b"\x89PNG")


@pytest.mark.full
def test_replay_by_time_offset_and_predicate(connector: Connector, topic: str, call: Call) -> None:
    connector.create(topic)
    connector.create(f"{topic}-again")
    start_ms = 1_767_225_600_000  # the first of January 2026
    connector.produce(
        topic,
        [
            {"key": "k", "value": value, "timestamp": start_ms + 60_000 * number}
            for number, value in enumerate(numbers(0, 10))
        ],
    )
    arguments = ["replay", topic, "--to", f"{topic}-again", "--state", connector.folder / "state"]
    arguments += ["--from-time", "2026-01-01 00:02:00", "--to-time", "2026-01-01 00:09:00"]
    arguments += ["--to-offset", "8", "--where", "value != '00005'"]
    for written, there_already in [(5, 0), (0, 5)]:
        said = json.loads(call(*arguments, "--ledger", "json").stdout)
        assert (said["written"], said["there_already"]) == (written, there_already)
        assert said["proven"] is True
    rows = connector.read("batch", {"subscribe": f"{topic}-again"})
    assert values(rows) == [f"{number:05d}" for number in (2, 3, 4, 6, 7)]


@pytest.mark.full
def test_snapshot_once_and_followed(connector: Connector, topic: str, call: Call) -> None:
    fill_changelog(connector, topic)
    once, live = connector.folder / "once", connector.folder / "live"
    ends = json.dumps({topic: {"0": 2}})
    done = call("snapshot", topic, "--path", once, "--option", f"endingOffsets={ends}")
    assert f"  written       2 to {once}" in done.output.splitlines()
    done = call("snapshot", topic, "--path", live, "--follow")
    assert done.stdout.splitlines()[0] == "snapshot: 5 rows in 1 batches, lag 0"
    found = {
        path: connector.spark.read.format("delta").load(str(path)).select("key", "value").collect()
        for path in (once, live)
    }
    assert {bytes(row["key"]): bytes(row["value"]) for row in found[once]} == {
        b"a": b"1",
        b"b": b"2",
    }
    assert {bytes(row["key"]): bytes(row["value"]) for row in found[live]} == {
        b"a": b"3",
        b"c": b"4",
    }


@pytest.mark.full
def test_mirror_renames_and_moves_a_group(connector: Connector, topic: str, call: Call) -> None:
    _fill(connector, topic, 8)
    group = f"{topic}-group"
    commit(connector, group, topic, 6)
    address = ["--to-bootstrap-servers", connector.broker.bootstrap, "--group", group]
    checkpoint = ["--checkpoint", connector.folder / "mirror"]
    done = call("mirror", topic, *address, "--rename", "{topic}.copy", *checkpoint)
    assert done.exit_code == 0
    assert f"  group {group}: 1 offsets moved" in done.output.splitlines()
    assert committed(connector, group, f"{topic}.copy") == 6


@pytest.mark.full
def test_a_first_batch_tells_how_far_it_is(connector: Connector, topic: str) -> None:
    connector.create(topic, 2)
    for partition in range(2):
        connector.produce(topic, ["x" * 100] * 20_000, partition)
    slowly = {"kafka.max.partition.fetch.bytes": "3000", "kafka.fetch.max.bytes": "3000"}
    seen: list[Progress] = []
    lake = lake_of(connector, topic, format="parquet", options=slowly)
    progress = lake.run(watch=lambda progress: seen.append(replace(progress)))
    first = [each for each in seen if each.batch == 0 and each.reading]
    assert first, [(each.batch, each.reading) for each in seen]
    assert all(0 < each.reading <= 40_000 and each.rows_per_s > 0 for each in first)
    assert first[0].batches == 0
    assert first[0].behind == {(topic, 0): 20_000, (topic, 1): 20_000}
    # A record takes more than its value on a disk, and is not compressed here.
    assert 100 < (first[0].bytes_per_row or 0) < 200
    assert (progress.lag, progress.rows) == (0, 40_000)


@pytest.mark.full
def test_what_spark_says_is_in_a_file_that_a_failure_names(broker: Broker, topic: str) -> None:
    """As people start it: a process with a JVM of its own."""
    environment = {**os.environ, "KAFKALITE_BOOTSTRAP_SERVERS": broker.bootstrap}
    words = ["pipeline", "audit", topic, "--path", "/nowhere", "--conf", "spark.driver.memory=1g"]
    done = subprocess.run(
        [sys.executable, "-m", "kafkalite", *words],
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    error, named = done.stderr.splitlines()
    assert error == f"Error: no topic {topic} at {broker.bootstrap}"
    path = Path(named.removeprefix("Spark's own log: "))
    assert "WARN" in path.read_text()
    path.unlink()
