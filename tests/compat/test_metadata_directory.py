"""The metadata log on disk: Apache Kafka's tool reads ours, each starts on what the other wrote.

These tests are of files, so they do not run twice: they name the brokers they start.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kafkalite.jvm import jars, java
from kafkalite.protocol.errors import Error
from tests.compat import brokers
from tests.compat.admin_peer import SET, TOPIC, Admin
from tests.compat.brokers import APACHE_KAFKA, KAFKALITE

DUMP = "org.apache.kafka.tools.DumpLogSegments"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "broker"
    brokers.end(tmp_path / "broker", signal.SIGTERM)


def write_something(admin: Admin) -> bytes:
    """A topic with a setting and more partitions than it began with, and one that is gone."""
    topic_id = admin.create("kept", 3, settings={"retention.ms": "777000"}).topic_id
    admin.create("gone")
    answer = admin.alter(TOPIC, "kept", ("segment.ms", SET, "555000"))
    assert answer.error_code == Error.NONE
    assert isinstance(topic_id, bytes)
    return topic_id


def dumped(path: Path) -> str:
    """What kafka-dump-log says of a log or a snapshot."""
    call = java.command(
        jars.class_path(brokers.JAR_GROUPS[APACHE_KAFKA]),
        DUMP,
        "--cluster-metadata-decoder",
        "--files",
        str(path),
        heap="128M",
    )
    done = subprocess.run(call, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_apache_kafkas_tool_reads_our_log_and_our_snapshot(folder: Path) -> None:
    broker = brokers.start(KAFKALITE, folder)
    with closing(Admin(broker)) as admin:
        write_something(admin)
    directory = folder / "data" / "__cluster_metadata-0"
    text = dumped(directory / f"{0:020d}.log")
    broker.stop()
    for word in (
        'LeaderChange: {"version":0,"leaderId":1',
        '"type":"REGISTER_BROKER_RECORD","version":4',
        '"type":"TOPIC_RECORD","version":0,"data":{"name":"kept"',
        '"type":"PARTITION_RECORD","version":2',
        '"name":"segment.ms","value":"555000"',
    ):
        assert word in text
    assert "isvalid: false" not in text
    (snapshot,) = directory.glob("*.checkpoint")
    text = dumped(snapshot)
    assert "SnapshotHeader" in text
    assert "SnapshotFooter" in text
    assert text.count("PARTITION_RECORD") == 4
    assert "isvalid: false" not in text


@pytest.mark.parametrize(
    ("first", "second"), [(KAFKALITE, APACHE_KAFKA), (APACHE_KAFKA, KAFKALITE)]
)
def test_one_starts_on_what_the_other_wrote(folder: Path, first: str, second: str) -> None:
    with closing(Admin(brokers.start(first, folder))) as admin:
        topic_id = write_something(admin)
    admin.broker.stop()
    with closing(Admin(brokers.start(second, folder))) as admin:
        settings = admin.describe(TOPIC, "kept", "retention.ms", "segment.ms")
        assert {name: each.value for name, each in settings.items()} == {
            "retention.ms": "777000",
            "segment.ms": "555000",
        }
        assert admin.create("kept").error_code == Error.TOPIC_ALREADY_EXISTS
        assert admin.create("new").error_code == Error.NONE
    admin.broker.stop()
    with closing(Admin(brokers.start(first, folder))) as admin:
        assert admin.knows("new")
        assert admin.topic_id("kept") == topic_id
        assert admin.create("kept").error_code == Error.TOPIC_ALREADY_EXISTS
