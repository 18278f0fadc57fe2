"""`kafkalite serve` as a process: what it prints, how it stops, what keeps it from starting."""

from __future__ import annotations

import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bench.raw_client import (
    FETCH_VERSION,
    Fetch,
    Produce,
    RawClient,
    fetch_request,
    frame_of,
    make_batch,
    run,
)
from kafkalite.cli._properties import topic
from kafkalite.config import InvalidSetting
from kafkalite.protocol.messages import (
    ApiVersionsRequest,
    DeleteTopicsRequest,
    MetadataRequest,
    message_class,
)

START_SECONDS = 30


# As where there is no uvloop: Windows, PyPy, a build without it.
WITHOUT_UVLOOP = """
import sys
sys.modules["uvloop"] = None
from kafkalite.cli.main import main
main(sys.argv[1:])
"""
# Says at its end how many objects the collector of garbage leaves alone, and that it was tended.
COUNTING_SETTLED = """
import gc, sys
from kafkalite.cli.main import main
from kafkalite.env import collector
collector.TEND_S, tended = 0.01, []
tend = collector.Collector.tend
collector.Collector.tend = lambda self: tended.append(tend(self))
collector.Collector.unsettle = lambda self: print("settled", gc.get_freeze_count(), len(tended))
main(sys.argv[1:])
"""
# Says at its end what was imported that nobody asked for, and how soon threads give way.
COUNTING_PREPARED = """
import sys
from kafkalite.cli.main import main
from kafkalite.env import collector
from kafkalite.server import preparing
preparing.BEGIN_MS = preparing.PAUSE_MS = 0
def told(self):
    is_ready = "kafkalite.handlers.write_txn_markers" in sys.modules
    print("prepared", is_ready, sys.getswitchinterval())
collector.Collector.unsettle = told
main(sys.argv[1:])
"""
# What Apache Kafka ships as config/server.properties, with ports that are free.
COMBINED = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@localhost:9093
listeners=PLAINTEXT://127.0.0.1:0,INSIDE://127.0.0.1:0,CONTROLLER://127.0.0.1:0
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:0,INSIDE://inside.example:9999
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT
num.network.threads=3
num.io.threads=8
log.dirs={data}
num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
log.retention.hours=168
"""


def command(folder: Path, *arguments: str) -> list[str]:
    return [
        sys.executable, "-m", "kafkalite", "serve", "--data-dir", str(folder / "data"),
        "--port-file", str(folder / "port"), *arguments,
    ]


@contextmanager
def serving(
    folder: Path,
    *arguments: str,
    call: list[str] | None = None,
    prepare: Callable[[], None] | None = None,
) -> Iterator[tuple[subprocess.Popen[str], int]]:
    call = call or command(folder, "--listen", "127.0.0.1:0", *arguments)
    process = subprocess.Popen(
        call, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, preexec_fn=prepare
    )
    try:
        deadline = time.monotonic() + START_SECONDS
        while not (folder / "port").exists():
            assert process.poll() is None, process.communicate()[0]
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield process, int((folder / "port").read_text())
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_it_says_where_it_is_and_stops_when_told(
    tmp_path: Path, how: signal.Signals
) -> None:
    with serving(tmp_path, "--topic", "orders:3") as (process, port):
        socket.create_connection(("127.0.0.1", port), 5).close()
        process.send_signal(how)
        begun = time.monotonic()
        said = process.stdout.read() if process.stdout else ""
        assert process.wait(20) == 0
        assert time.monotonic() - begun < 5
    assert f"PLAINTEXT://localhost:{port}" in said
    for line in (
        "[KafkaServer id=1] started\n",
        "[KafkaRaftServer nodeId=1] Kafka Server started\n",
        "The broker has been unfenced. Transitioning from RECOVERY to RUNNING.\n",
    ):
        assert said.count(line) == 1
    assert str(tmp_path / "data") in said
    assert (tmp_path / "data" / "orders-2").is_dir()
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()


@pytest.mark.parametrize("is_deleted", [False, True])
def test_what_a_start_has_made_is_left_alone_by_the_collector(
    tmp_path: Path, is_deleted: bool
) -> None:
    arguments = command(tmp_path, "--listen", "127.0.0.1:0", "--topic", "orders:30")[3:]
    call = [sys.executable, "-c", COUNTING_SETTLED, *arguments]
    with serving(tmp_path, call=call) as (process, port):
        line_with("started", process)
        if is_deleted:
            request = DeleteTopicsRequest(topic_names=["orders"], timeout_ms=5_000)
            assert asked(port, request, 5).responses[0].error_code == 0
        time.sleep(0.2)  # as long as twenty of its thoughts
        process.send_signal(signal.SIGTERM)
        settled, tended = (int(text) for text in line_with("settled", process).split()[1:])
    assert settled > 10_000
    assert tended > 1


def test_handlers_are_ready_and_threads_give_way_before_anybody_asks(tmp_path: Path) -> None:
    arguments = command(tmp_path, "--listen", "127.0.0.1:0")[3:]
    call = [sys.executable, "-c", COUNTING_PREPARED, *arguments]
    with serving(tmp_path, call=call) as (process, _):
        line_with("started", process)
        time.sleep(3)
        process.send_signal(signal.SIGTERM)
        is_ready, switch_s = line_with("prepared", process).split()[1:]
    assert is_ready == "True"
    assert float(switch_s) <= 0.001


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells how large the table is")
def test_the_table_of_open_files_need_not_grow_while_it_serves(tmp_path: Path) -> None:
    with serving(tmp_path) as (process, _):
        status = Path(f"/proc/{process.pid}/status").read_text()
    size = int(status.partition("FDSize:")[2].split()[0])
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    most = hard if hard != resource.RLIM_INFINITY else 1 << 16
    assert size >= min(most, 1 << 16)


def asked(port: int, request: Any, version: int) -> Any:
    client = RawClient("127.0.0.1", port)
    try:
        name = f"{type(request).SPEC.api.name}Response"
        return client.call(request, version, message_class(name))
    finally:
        client.close()


def line_with(words: str, process: subprocess.Popen[str]) -> str:
    """The next line that a process says with these words in it."""
    assert process.stdout is not None
    found = next((line for line in process.stdout if words in line), None)
    assert found is not None, f"it ended without {words!r}"
    return found


def test_a_properties_file_for_broker_and_controller_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(COMBINED.format(data=tmp_path / "data"))
    call = [
        sys.executable, "-m", "kafkalite", "serve", "-c", str(file),
        "--port-file", str(tmp_path / "port"),
    ]
    with serving(tmp_path, call=call) as (process, port):
        (node,) = asked(port, MetadataRequest(topics=[]), 12).brokers
        assert (node.node_id, node.host, node.port) == (1, "localhost", port)
        inside = int(line_with("INSIDE://", process).rpartition(":")[2])
        (node,) = asked(inside, MetadataRequest(topics=[]), 12).brokers
        assert (node.host, node.port) == ("inside.example", 9999)
    assert (tmp_path / "data" / "__cluster_metadata-0").is_dir()


def test_it_serves_without_uvloop(tmp_path: Path) -> None:
    call = [
        sys.executable, "-c", WITHOUT_UVLOOP,
        *command(tmp_path, "--listen", "127.0.0.1:0", "--topic", "t")[3:],
    ]
    with serving(tmp_path, call=call) as (process, port):
        client = RawClient("127.0.0.1", port)
        batch, records = make_batch(1_000, 100)
        run(client, Produce("t", batch, records), in_flight=5, requests=100)
        run(client, Fetch("t", len(batch), records, 10, 100), in_flight=2, requests=10)
        client.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


def test_a_second_signal_stops_at_once(tmp_path: Path) -> None:
    with serving(tmp_path, "--topic", "t") as (process, port):
        client = RawClient("127.0.0.1", port)
        # A poll that is owed an answer keeps the broker until the grace is over.
        waiting = fetch_request("t", 0, 0, 1_000)
        waiting.max_wait_ms, waiting.min_bytes = 60_000, 1
        client.send(frame_of(waiting, FETCH_VERSION, 1))
        for _ in range(2):  # once others are answered twice, the poll has been taken
            asked(port, MetadataRequest(topics=[]), 12)
        process.send_signal(signal.SIGTERM)
        line_with("is stopping", process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 1
        client.close()


def refusal(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        command(folder, *arguments), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    return done.stderr


def test_a_directory_in_use_is_refused_with_the_process(tmp_path: Path) -> None:
    with serving(tmp_path) as (process, _):
        said = refusal(tmp_path, "--listen", "127.0.0.1:0")
        assert f"process {process.pid}" in said


def test_a_port_in_use_is_refused(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert "choose another --listen" in refusal(tmp_path, "--listen", f"127.0.0.1:{port}")


def test_an_unknown_setting_is_refused_with_the_nearest(tmp_path: Path) -> None:
    said = refusal(tmp_path, "--listen", "127.0.0.1:0", "--override", "log.retention.hous=1")
    assert "log.retention.hours" in said


def test_a_bad_topic_keeps_it_from_starting(tmp_path: Path) -> None:
    said = refusal(tmp_path, "--listen", "127.0.0.1:0", "--topic", "t:1:no.such=1")
    assert "no.such" in said


def test_a_cluster_begins_with_the_features_that_are_named(tmp_path: Path) -> None:
    words = ("--feature", "group.version=0", "--feature", "transaction.version=1")
    with serving(tmp_path, *words) as (_, port):
        answer = asked(port, ApiVersionsRequest(client_software_name="a",
                                                client_software_version="1"), 4)  # fmt: skip
    levels = {each.name: each.max_version_level for each in answer.finalized_features}
    assert "group.version" not in levels
    assert (levels["transaction.version"], levels["share.version"]) == (1, 1)


def test_a_feature_that_there_is_not_keeps_it_from_starting(tmp_path: Path) -> None:
    said = refusal(tmp_path, "--listen", "127.0.0.1:0", "--feature", "grup.version=0")
    assert "unsupported feature grup.version" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("text", "name", "partitions", "configs"),
    [
        ("a", "a", -1, {}),
        ("a:3", "a", 3, {}),
        ("a::k=v", "a", -1, {"k": "v"}),
        ("a:2:cleanup.policy=compact,delete,retention.ms=5", "a", 2,
         {"cleanup.policy": "compact,delete", "retention.ms": "5"}),
    ],
)
def test_a_topic_is_a_name_a_count_and_settings(
    text: str, name: str, partitions: int, configs: dict[str, str]
) -> None:
    wanted = topic(text)
    assert (wanted.name, wanted.partitions, wanted.configs) == (name, partitions, configs)


@pytest.mark.parametrize("text", ["a:x", "a:1:novalue"])
def test_a_topic_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(InvalidSetting):
        topic(text)
