"""Standard streams as shells and supervisors leave them: closed, full, shared, read by nobody."""

from __future__ import annotations

import os
import shlex
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkalite.testing.embedded import EmbeddedKafka

PROGRAM = shlex.join([sys.executable, "-m", "kafkalite"])
SERVE = f"exec {PROGRAM} serve --memory --listen 127.0.0.1:0"
needs_full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")


@pytest.fixture(scope="module")
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka() as broker:
        done = shell(f"seq 9 | {PROGRAM} produce -b {broker.bootstrap_servers} t")
        assert (done.returncode, done.stderr) == (0, "")
        yield broker


def shell(line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, timeout=30, check=False
    )


@pytest.mark.parametrize(
    ("line", "exit_code", "said"),
    [
        ("produce -b {where} t <&-", 1, "standard input cannot be read: Bad file descriptor"),
        ("consume -b {where} t >&-", 1, "standard output cannot be written: Bad file descriptor"),
        ("consume -b {where} t 2>&-", 0, ""),
        ("consume -b {where} missing 2>&-", 1, ""),
        ("config check - <&-", 1, "Error: -, [Errno 9] Bad file descriptor"),
        ("dump spec Produce >&-", 1, "Error: [Errno 9] Bad file descriptor"),
    ],
)
def test_a_closed_stream_is_told_in_a_sentence(
    kafka: EmbeddedKafka, line: str, exit_code: int, said: str
) -> None:
    done = shell(f"{PROGRAM} {line.format(where=kafka.bootstrap_servers)}")
    assert done.returncode == exit_code
    assert done.stderr.strip().removeprefix("kafkalite: ") == said


@needs_full
@pytest.mark.parametrize(
    "line", ["consume -b {where} t", "consume -b {where} --follow -n 1 t", "dump spec Produce"]
)
def test_an_output_that_is_full_is_told_in_a_sentence(kafka: EmbeddedKafka, line: str) -> None:
    done = shell(f"{PROGRAM} {line.format(where=kafka.bootstrap_servers)} >/dev/full")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "No space left on device" in done.stderr


@needs_full
@pytest.mark.parametrize("output", ["/dev/full", "&-"])
def test_a_comparison_that_cannot_be_printed_is_not_one_that_found_differences(
    kafka: EmbeddedKafka, tmp_path: Path, output: str
) -> None:
    (tmp_path / "trace").touch()
    where = kafka.bootstrap_servers
    call = f"{PROGRAM} replay {tmp_path}/trace --against {where} --oracle {where}"
    done = shell(f"{call} >{output}")
    assert done.returncode == 3
    assert "what was found is not printed" in done.stderr


def test_an_input_that_somebody_made_not_wait_is_waited_for(kafka: EmbeddedKafka) -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    call = [*shlex.split(PROGRAM), "produce", "-b", kafka.bootstrap_servers, "shared"]
    with subprocess.Popen(call, stdin=reading, stderr=subprocess.PIPE) as program:
        os.close(reading)
        time.sleep(1)  # so that it finds nothing to read
        os.write(writing, b"line\n")
        os.close(writing)
        _, errors = program.communicate(timeout=20)
    assert (program.returncode, errors) == (0, b"")
    shown = shell(f"{PROGRAM} consume -b {kafka.bootstrap_servers} shared")
    assert shown.stdout == "line\n"


# --- serve ----------------------------------------------------------------------------------------


def wait_for(path: Path) -> str:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and not path.exists():
        time.sleep(0.02)
    return path.read_text()


@needs_full
@pytest.mark.parametrize(
    "streams", ["</dev/null >/dev/full", "<&- >&- 2>&-", ">/dev/full 2>/dev/full", "| true"]
)
def test_a_banner_that_nobody_can_read_keeps_nobody_from_being_served(
    tmp_path: Path, streams: str
) -> None:
    port_file, log = tmp_path / "port", tmp_path / "log"
    begun = f"{SERVE.removeprefix('exec ')} --port-file {port_file} {streams}"
    line = f"({begun}; echo $? >{tmp_path}/code) 2>{log}"
    with subprocess.Popen(["bash", "-c", line], start_new_session=True) as program:
        where = f"127.0.0.1:{wait_for(port_file).strip()}"
        assert shell(f"echo x | {PROGRAM} produce -b {where} t").returncode == 0
        os.killpg(program.pid, signal.SIGHUP)
        program.wait(20)
    assert "Traceback" not in log.read_text()


@needs_full
def test_a_start_that_fails_ends_also_when_nobody_can_be_told(kafka: EmbeddedKafka) -> None:
    done = shell(f"exec {PROGRAM} serve --memory --listen 127.0.0.1:{kafka.port} 2>/dev/full")
    assert done.returncode == 1


def served(port_file: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["bash", "-c", f"{SERVE} --port-file {port_file}"], stdout=subprocess.PIPE
    )


def test_a_pipe_is_told_the_port(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    told: list[str] = []
    reader = threading.Thread(target=lambda: told.append(path.read_text()), daemon=True)
    reader.start()
    with served(str(path)) as program:
        reader.join(20)
        program.terminate()
    assert int(told[0]) > 0
    assert stat.S_ISFIFO(path.stat().st_mode)


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root makes devices")
def test_a_device_keeps_its_place(tmp_path: Path) -> None:
    path = tmp_path / "null"
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        path.write_bytes(b"x")
    except OSError:
        pytest.skip("no devices here")
    with served(str(path)) as program:
        assert program.stdout is not None
        while b"started" not in program.stdout.readline():
            pass
        program.terminate()
    assert stat.S_ISCHR(path.stat().st_mode)
