"""`kafkalite serve --console` and `kafkalite console`: processes, their ends, what they refuse."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import psutil
import pytest
from confluent_kafka.admin import AdminClient

from kafkalite.broker import Broker
from kafkalite.cli._console import MOST_ROWS, _rows
from kafkalite.console.owner import MOST_BYTES

START_SECONDS = 30
PROGRAM = [sys.executable, "-m", "kafkalite"]
SERVE = (*PROGRAM, "serve", "--listen", "127.0.0.1:0", "--console", "127.0.0.1:0")


class Served:
    def __init__(self, process: subprocess.Popen[str], port: int, console: int) -> None:
        self.process, self.port, self.console = process, port, console
        [self.helper] = psutil.Process(process.pid).children()

        cookies = urllib.request.HTTPCookieProcessor()
        self._browser = urllib.request.build_opener(cookies)

    def ask(self, path: str, **fields: Any) -> dict[str, Any]:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.console}/api/{path}", json.dumps(fields).encode(),
            {"x-kafkalite-console": "1"},
        )  # fmt: skip
        with self._browser.open(request, timeout=15) as answer:
            found: dict[str, Any] = json.loads(answer.read())
            return found


@contextmanager
def serving(folder: Path, *words: str) -> Iterator[Served]:
    port, console = folder / "port", folder / "console"
    files = ("--port-file", str(port), "--console-port-file", str(console))
    process = subprocess.Popen(
        [*SERVE, *files, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    helper: psutil.Process | None = None
    try:
        deadline = time.monotonic() + START_SECONDS
        while not port.exists():
            assert process.poll() is None, process.communicate()[0]
            assert time.monotonic() < deadline
            time.sleep(0.02)
        served = Served(process, int(port.read_text()), int(console.read_text()))
        helper = served.helper
        yield served
    finally:
        process.kill()
        if helper is not None and helper.is_running():
            helper.kill()
        process.communicate()


def test_a_broker_with_its_console(tmp_path: Path) -> None:
    with serving(tmp_path, "--memory", "--topic", "orders:3") as broker:
        assert [each["name"] for each in broker.ask("topics")["topics"]] == ["orders"]
        admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{broker.port}"})
        admin.list_topics(timeout=10)
        deadline = time.monotonic() + 10
        while not any("kafka" in each["software"] for each in broker.ask("clients")["clients"]):
            assert time.monotonic() < deadline, "it opens another connection a moment later"
            time.sleep(0.1)
        with pytest.raises(urllib.error.HTTPError) as refused:
            broker.ask("topic/create", name="new")
        assert refused.value.code == 403
        refused.value.close()
        broker.process.send_signal(signal.SIGTERM)
        said = broker.process.communicate(timeout=20)[0]
        assert broker.process.returncode == 0, said
        assert f"console http://127.0.0.1:{broker.console}/" in said
        assert not broker.helper.is_running()


def test_the_console_ends_with_a_broker_that_is_killed(tmp_path: Path) -> None:
    with serving(tmp_path, "--memory") as broker:
        broker.process.kill()
        broker.process.wait()
        gone, alive = psutil.wait_procs([broker.helper], timeout=10)
        assert (len(gone), alive) == (1, [])


def test_the_broker_goes_on_without_its_console(tmp_path: Path) -> None:
    with serving(tmp_path, "--memory", "--topic", "orders") as broker:
        broker.helper.kill()
        with suppress(OSError), socket.create_connection(("127.0.0.1", broker.console), 1) as left:
            left.settimeout(1)
            assert left.recv(1) == b""
        admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{broker.port}"})
        assert "orders" in admin.list_topics(timeout=10).topics
        broker.process.send_signal(signal.SIGTERM)
        said = broker.process.communicate(timeout=20)[0]
        assert broker.process.returncode == 0, said
        assert "has ended, the broker goes on" in said


def test_a_broker_with_keys_has_its_users_log_in(tmp_path: Path) -> None:
    where = ("--secure", "--data-dir", str(tmp_path / "data"), "--topic", "orders",
             "--console-allow-changes")  # fmt: skip
    with serving(tmp_path, *where) as broker:
        for path, fields in (("topics", {}), ("login", {"user": "admin", "password": "wrong"})):
            with pytest.raises(urllib.error.HTTPError) as refused:
                broker.ask(path, **fields)
            assert refused.value.code == 401
            refused.value.close()
        password = (tmp_path / "data.secure" / "admin.password").read_text().strip()
        broker.ask("login", user="admin", password=password)
        broker.ask("topic/create", name="made")
        assert {each["name"] for each in broker.ask("topics")["topics"]} == {"orders", "made"}
        principals = {each["principal"] for each in broker.ask("clients")["clients"]}
        assert principals - {"User:ANONYMOUS"} == {"User:admin"}  # one may be about to log in


def test_who_is_connected_is_told_in_few_words() -> None:
    """More than the console takes would be the end of it, and clients say what they like."""
    clients = [
        SimpleNamespace(software_name="n" * 30_000, software_version="v" * 30_000,
                        principal="ö" * 30_000, peer_address=(str(number), 1), listener="L" * 200)
        for number in range(2 * MOST_ROWS)
    ]  # fmt: skip
    work = _rows(cast(Broker, SimpleNamespace(server=SimpleNamespace(clients=clients))))
    told: list[Any] = []

    def through() -> Iterator[None]:
        told.extend((yield from work))

    assert len(list(through())) > 1
    assert len(told) == MOST_ROWS
    assert len(json.dumps(told)) < MOST_BYTES


def test_whoever_is_logged_in_for_all_by_librdkafkas_words_changes_nothing(tmp_path: Path) -> None:
    """The process of the console reads them, so that its broker has to read them alike."""
    config = tmp_path / "librdkafka.conf"
    config.write_text("security.protocol=SASL_PLAINTEXT\nsasl.mechanisms=PLAIN\n"
                      "sasl.username=admin\nsasl.password=secret\n")  # fmt: skip
    words = [*PROGRAM, "serve", "--memory", "--listen", "127.0.0.1:0", "--console", "0.0.0.0:0",
             "--console-allow-changes", "--console-config", str(config)]  # fmt: skip
    done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode != 0
    assert "nobody logs in" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("serve", "--memory", "--console-allow-changes"), "goes with --console HOST:PORT"),
        (("serve", "--memory", "--console", "x"), "is not HOST:PORT"),
        (("serve", "--memory", "--console", "0.0.0.0:0", "--listen", "127.0.0.1:0",
          "--console-allow-changes"), "nobody logs in"),
        (("serve", "--brokers", "2", "--console", "127.0.0.1:0"), "shows them all"),
        (("serve", "--memory", "--control", "127.0.0.1:0", "--console", "127.0.0.1:0"),
         "--control goes with no --console"),
        (("console", "--registry", "registry:8081"), "expected http"),
        (("console", "--listen", "0.0.0.0:0", "--allow-changes"), "nobody logs in"),
        (("console", "--of-broker", "1"), "is not LISTENER,OWNER"),
    ],
)  # fmt: skip
def test_what_is_refused(words: tuple[str, ...], why: str) -> None:
    done = subprocess.run(
        [*PROGRAM, *words], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode != 0
    assert why in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
