"""`kafkalite serve --control`: a broker that a suite in another process holds in its hands."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

PAGE = Path(__file__).parents[3] / "docs" / "testing.md"
START_SECONDS = 30
PROGRAM = [sys.executable, "-m", "kafkalite", "serve"]
LISTEN = ("--listen", "127.0.0.1:0")
CONTROL = ("--control", "127.0.0.1:0")
# As where the extra is not installed.
WITHOUT_WEB = """
import sys
sys.modules["{module}"] = None
from kafkalite.cli.main import main
main(sys.argv[1:])
"""
# Says at its end what was imported that a broker alone does without.
TELLING_IMPORTS = """
import atexit, sys
from kafkalite.cli.main import main
rooms = "kafkalite.testing", "starlette", "uvicorn", "kafkalite.cli._control"
atexit.register(lambda: print("imported", [each for each in sys.modules if each.startswith(rooms)]))
main(sys.argv[1:])
"""


@dataclass
class Served:
    """A broker in a process of its own."""

    process: subprocess.Popen[str]
    port: int
    control: int

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def ask(self, method: str, path: str, body: Any = None, token: str | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        url = f"http://127.0.0.1:{self.control}{path}"
        request = urllib.request.Request(url, data, method=method)
        if token is not None:
            request.add_header("authorization", f"Bearer {token}")
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read())

    def said_at_the_end(self, how: signal.Signals = signal.SIGTERM) -> str:
        self.process.send_signal(how)
        said = self.process.communicate(timeout=20)[0]
        assert self.process.returncode == 0, said
        return said


@contextmanager
def serving(
    folder: Path,
    *words: str,
    listen: tuple[str, ...] = LISTEN,
    environment: dict[str, str] | None = None,
) -> Iterator[Served]:
    port, control = folder / "port", folder / "control"
    for file in (port, control):
        file.unlink(missing_ok=True)
    files = ["--port-file", str(port), "--control-port-file", str(control)]
    process = subprocess.Popen(
        [*PROGRAM, *listen, *CONTROL, *files, *words], stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, env={**os.environ, **(environment or {})},
    )  # fmt: skip
    try:
        deadline = time.monotonic() + START_SECONDS
        while not port.exists():
            assert process.poll() is None, process.communicate()[0]
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield Served(process, int(port.read_text()), int(control.read_text()))
    finally:
        process.kill()
        process.communicate()


def refusal(*words: str, code: str | None = None) -> str:
    call = PROGRAM if code is None else [sys.executable, "-c", code, "serve"]
    done = subprocess.run(
        [*call, *words], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    return done.stderr


# --- a suite in another process -------------------------------------------------------------------


def test_a_stock_client_meets_faults_and_time_of_another_process(tmp_path: Path) -> None:
    with serving(tmp_path, "--memory", "--topic", "orders:1:retention.ms=86400000") as broker:
        assert broker.ask("GET", "/health")["bootstrap_servers"] == broker.bootstrap
        fault = {"api": "Produce", "act": "lose-reply", "where": {"client_id": "app"}}
        id_ = broker.ask("POST", "/faults", fault)["id"]
        settings = {"bootstrap.servers": broker.bootstrap, "client.id": "app", "linger.ms": 0,
                    "enable.idempotence": False}  # fmt: skip
        producer = Producer(settings)
        producer.produce("orders", b"twice")
        assert producer.flush(15) == 0
        assert broker.ask("GET", f"/faults/{id_}")["count"] == 1
        assert read(broker, 2) == [b"twice", b"twice"]
        errors = {"api": "Produce", "act": "refuse", "error": "TOPIC_AUTHORIZATION_FAILED"}
        broker.ask("POST", "/faults", errors)
        failed: list[Any] = []
        producer.produce("orders", b"never", on_delivery=lambda error, _: failed.append(error))
        assert producer.flush(15) == 0
        assert failed[0].name() == "TOPIC_AUTHORIZATION_FAILED"
        broker.ask("POST", "/clock/advance", {"days": 2})
        producer = Producer(settings)  # the other one remembers what it may not
        producer.produce("orders", b"new")
        assert producer.flush(15) == 0
        assert read(broker, 1) == [b"new"]
        said = broker.ask("GET", "/exchanges?api=Produce")["exchanges"]
        assert [each["errors"] for each in said if each["errors"]] == [
            ["TOPIC_AUTHORIZATION_FAILED"]
        ]


def read(broker: Served, count: int) -> list[bytes | None]:
    consumer = Consumer({
        "bootstrap.servers": broker.bootstrap, "group.id": f"of {count}",
        "auto.offset.reset": "earliest",
    })  # fmt: skip
    consumer.subscribe(["orders"])
    try:
        return [message.value() for message in consumer.consume(count, 15)]
    finally:
        consumer.close()


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_page_shows_what_curl_says(tmp_path: Path) -> None:
    page = PAGE.read_text()
    [serve] = re.findall(r"```sh serve\n(.*?)```", page, re.DOTALL)
    [calls] = re.findall(r"```sh control\n(.*?)```", page, re.DOTALL)
    words = serve.split()
    assert words[:2] == ["kafkalite", "serve"]
    options = [each for each in words[2:] if each not in ("--listen", "localhost:9092")]
    options = [each for each in options if each not in ("--control", "localhost:9093")]
    assert len(options) == len(words) - 6
    shown = re.findall(r"^(curl .*)\n#> (.*)$", calls, re.MULTILINE)
    assert len(shown) == calls.count("curl ") > 10
    with serving(tmp_path, *options) as broker:
        for call, expected in shown:
            here = call.replace("localhost:9093", f"127.0.0.1:{broker.control}")
            here = here.replace("curl ", "curl -sS ", 1)
            done = subprocess.run(
                here, shell=True, capture_output=True, text=True, timeout=30, check=False
            )
            assert done.stdout.strip() == expected, (call, done.stderr)


# --- the process ----------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_it_says_where_it_is_and_stops_in_order(tmp_path: Path, how: signal.Signals) -> None:
    data = tmp_path / "data"
    with serving(tmp_path, "--data-dir", str(data), "--topic", "orders:3") as broker:
        broker.ask("POST", "/produce", {"topic": "orders", "records": [{"value": "kept"}]})
        begun = time.monotonic()
        said = broker.said_at_the_end(how)
        assert time.monotonic() - begun < 5
    assert f"listen  PLAINTEXT://localhost:{broker.port}" in said
    assert f"control http://localhost:{broker.control}" in said
    assert "[KafkaServer id=1] started" in said
    assert (data / ".kafka_cleanshutdown").exists()
    with serving(tmp_path, "--data-dir", str(data)) as broker:
        found = broker.ask("GET", "/records?topic=orders&count=1")
        assert [each["value"] for each in found["records"]] == ["kept"]


def test_a_stop_waits_for_nobody_who_asks(tmp_path: Path) -> None:
    with serving(tmp_path, "--memory") as broker, socket.create_connection(
        ("127.0.0.1", broker.control)
    ) as link:
        wait = b"GET /records?topic=none&count=1&timeout=60 HTTP/1.1\r\nhost: localhost\r\n\r\n"
        link.sendall(wait)
        broker.ask("GET", "/health")
        begun = time.monotonic()
        broker.said_at_the_end()
        assert time.monotonic() - begun < 6


def test_a_file_and_overrides_are_as_for_serve(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(
        "process.roles=broker,controller\nnode.id=7\ncontroller.quorum.voters=7@localhost:9093\n"
        "listeners=PLAINTEXT://127.0.0.1:0,INSIDE://127.0.0.1:0,CONTROLLER://127.0.0.1:0\n"
        "controller.listener.names=CONTROLLER\ninter.broker.listener.name=PLAINTEXT\n"
        "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT\n"
        f"log.dirs={tmp_path / 'elsewhere'}\nnum.partitions=5\nbackground.threads=3\n"
    )
    words = ("-c", str(file), "--override", "num.partitions=2", "--topic", "orders")
    with serving(tmp_path, *words, listen=()) as broker:
        assert broker.ask("GET", "/health")["bootstrap_servers"] == broker.bootstrap
        said = broker.said_at_the_end()
    assert re.search(r"listen  INSIDE://localhost:\d+", said)
    assert "[KafkaServer id=7] started" in said
    assert (tmp_path / "elsewhere" / "orders-1").is_dir()
    assert not (tmp_path / "elsewhere" / "orders-2").exists()


def test_a_token_of_the_environment_is_required(tmp_path: Path) -> None:
    environment = {"KAFKALITE_CONTROL_TOKEN": "s3cret"}
    with serving(tmp_path, "--memory", environment=environment) as broker:
        with pytest.raises(urllib.error.HTTPError, match="401"):
            broker.ask("GET", "/health")
        assert broker.ask("GET", "/health", token="s3cret")["status"] == "serving"
        assert "s3cret" not in broker.said_at_the_end()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--control 0.0.0.0:0", "give --control-token"),
        ("--control :0", "not HOST:PORT"),
        ("--control 9093", "not HOST:PORT"),
        ("--control 127.0.0.1:0 --control-token=", "visible ASCII"),
        ("--control 127.0.0.1:0 --control-token=grün", "visible ASCII"),
        ("--control 127.0.0.1:{taken}", "choose another port, or 0"),
        ("--control 127.0.0.1:0 --listen 127.0.0.1:{taken}", "choose another --listen"),
        ("--control 127.0.0.1:0 --topic a/b", "a/b"),
        ("--control 127.0.0.1:0 --topic a:0", "at least one partition"),
        ("--control 127.0.0.1:0 --control-port-file /nowhere/port",
         "--control-port-file cannot be written"),
        ("--control-token=x", "need --control"),
        ("--control-port-file=x", "need --control"),
    ],
)  # fmt: skip
def test_what_keeps_it_from_starting(words: str, said: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        listen = () if "--listen" in words else LISTEN
        assert said in refusal("--memory", *listen, *words.format(taken=port).split())


@pytest.mark.parametrize("module", ["starlette", "uvicorn"])
def test_without_the_extra_one_sentence_says_what_to_install(module: str) -> None:
    said = refusal("--memory", *LISTEN, *CONTROL, code=WITHOUT_WEB.format(module=module))
    assert "pip install 'kafkalite[web]'" in said
    assert len(said.splitlines()) == 1


def test_a_data_directory_in_use_is_named(tmp_path: Path) -> None:
    words = ("--data-dir", str(tmp_path / "data"))
    with serving(tmp_path, *words):
        assert "is in use by process" in refusal(*LISTEN, *CONTROL, *words)


def test_serve_alone_imports_nothing_of_it(tmp_path: Path) -> None:
    call = [sys.executable, "-c", TELLING_IMPORTS, "serve", "--memory", *LISTEN]
    process = subprocess.Popen(call, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    next(line for line in process.stdout if "started" in line)
    process.terminate()
    said = process.communicate(timeout=20)[0]
    assert "imported []" in said
