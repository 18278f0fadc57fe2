"""What people type by mistake: one sentence, an exit code, and never a traceback."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafkalite.cli.main import main
from kafkalite.log import names

PORT_FILE = "--port-file cannot be written"
RANDOM = bytes(range(256)) * 12
SERVE = "serve --listen 127.0.0.1:0"
LONG = "a" * 64  # a part of a name has 63 characters at most
NOWHERE = "serve --listen 127.0.0.1:99999"  # what is wrongly taken ends here


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dir").mkdir()
    (tmp_path / "binary").write_bytes(RANDOM)
    (tmp_path / "empty").touch()
    (tmp_path / "odd").write_bytes(b"000")
    (tmp_path / "marked").write_bytes(b"\xef\xbb\xbfnum.partitions=3\n")
    (tmp_path / "latin").write_bytes(b"# \xfcber\nnum.partitions=3\n")
    return tmp_path


@pytest.mark.parametrize(
    ("call", "exit_code", "said"),
    [
        (f"{NOWHERE} --memory --data-dir x", 1, "--memory keeps nothing in a directory"),
        (f"{NOWHERE} --memory --override log.dirs=x", 1, "--memory keeps nothing in a directory"),
        (f"{NOWHERE} --memory --override log.dir=x", 1, "--memory keeps nothing in a directory"),
        (f"{SERVE} --memory -c binary", 1, "binary, this is no text but a binary file"),
        (f"{SERVE} --memory -c dir", 2, "'dir': Is a directory"),
        (f"{SERVE} --memory -c missing", 2, "'missing': No such file"),
        (f"{SERVE} --memory --override x", 1, "--override x: expected KEY=VALUE"),
        (f"{SERVE} --memory --override =x", 1, "--override =x: expected KEY=VALUE"),
        ("serve --memory --listen 127.0.0.1", 1, "Unable to parse PLAINTEXT://127.0.0.1"),
        ("serve --memory --listen 127.0.0.1:99999", 1, "Error: Port 99999 of PLAINTEXT"),
        ("config check binary", 1, "binary, this is no text but a binary file"),
        ("config check dir", 2, "'dir': Is a directory"),
        ("config check missing", 2, "'missing': No such file"),
        ("config check empty", 0, "0 honoured, 0 ignored, 0 refused"),
        ("config check latin", 0, "honoured  num.partitions=3"),
        ("dump frame binary", 1, "not a frame"),
        ("dump frame empty", 1, "not a frame"),
        ("dump frame dir", 2, "'dir': Is a directory"),
        ("dump segment binary", 1, "binary is no file of a log directory"),
        ("dump segment dir", 2, "'dir' is a directory"),
        ("dump segment missing", 2, "'missing' does not exist"),
        ("dump segment empty", 0, ""),
        ("dump spec missing", 1, "no API, message or record is called missing"),
        ("dump frame odd", 1, "not a frame"),
        ("dump frame --response Nope --version 1 odd", 2, "no API is called Nope"),
        ("dump frame --response ² --version 1 odd", 2, "no API is called ²"),
        ("dump frame --response Fetch --version 99 odd", 2, "Fetch has no version 99"),
        ("dump frame --response Fetch odd", 2, "--response needs --version"),
        ("config check marked", 0, "honoured  num.partitions=3"),
        (f"{NOWHERE} --memory --override broker.rack=\udcff", 1, "broker.rack: '\\udcff' is not"),
        ("proxy --to ..:1", 2, "'..:1' is not HOST:PORT"),
        (f"proxy --to a:1 --listen {LONG}:1", 2, "is not HOST:PORT"),
        ("proxy --to a:1 --listen a:0 --save dir", 2, "'dir' is no name of a file"),
        ("replay empty --against a:² --oracle a:1", 2, "'a:²' is not HOST:PORT"),
        ("produce", 2, "Missing argument 'TOPIC'"),
        ("produce t\udcff", 2, "'t\\udcff' is not UTF-8"),
        ("consume t\udcff", 2, "'t\\udcff' is not UTF-8"),
        ("produce x -H \udcff=1", 2, "'\\udcff' is not UTF-8"),
        ("consume x -b a:²", 2, "'a:²' is not HOST:PORT"),
        ("consume x -b a:99999999999999999999", 2, "is not HOST:PORT"),
        ("consume x -b ..:1", 2, "'..:1' is not HOST:PORT"),
        (f"consume x -b {LONG}:1", 2, "is not HOST:PORT"),
        ("produce x -b nowhere", 2, "'nowhere' is not HOST:PORT"),
        ("produce x -b ,", 2, "',' is not HOST:PORT"),
        ("produce x -z brotli", 2, "'brotli' is not one of"),
        (r"produce x -D \q", 2, r"\q is no escape"),
        ("consume x -b 127.0.0.1:0", 4, "no broker answers (127.0.0.1:0: "),
        ("consume x -o nosuch", 2, "'nosuch' is none of beginning, end, an offset"),
        ("consume x -o @nosuch", 2, "@nosuch: expected milliseconds since 1970, or a time"),
        ("consume x -f %q", 2, "%q is none of %"),
        ("consume x -f %", 2, "ends in %"),
        ("consume x -n 9223372036854775808", 2, "is not in the range"),
        ("consume x --exit-idle nan", 2, "'nan' is no number of seconds"),
        ("top --every inf", 2, "is not in the range"),
        ("topic create x -p 2147483648", 2, "is not in the range"),
        ("topic create x -r 32768", 2, "is not in the range"),
        ("topic add-partitions x --to 2147483648", 2, "is not in the range"),
    ],
)
def test_one_sentence_and_an_exit_code(call: str, exit_code: int, said: str) -> None:
    result = CliRunner().invoke(main, call.split())
    assert (result.exit_code, "Traceback" in result.output) == (exit_code, False), result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert said in re.sub(r"\s+", " ", result.output) or said in result.output


@pytest.mark.parametrize(
    "suffix",
    [names.LOG, names.INDEX, names.TIME_INDEX, names.TXN_INDEX, names.SNAPSHOT, ".checkpoint", ""],
)
@pytest.mark.parametrize("content", [RANDOM, RANDOM[3:], b"", b"\0" * 100, b"\xff" * 100])
def test_any_file_is_shown_or_refused(folder: Path, suffix: str, content: bytes) -> None:
    for stem in ("00000000000000000000", "name"):
        (folder / f"{stem}{suffix}").write_bytes(content)
        result = CliRunner().invoke(main, ["dump", "segment", f"{stem}{suffix}"])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.output


def start(*words: str) -> str:
    """What a broker says that does not start."""
    done = subprocess.run(
        [sys.executable, "-m", "kafkalite", "serve", *words],
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "started" not in done.stdout
    return done.stderr.splitlines()[-1]


def test_a_start_that_cannot_be_says_cause_and_cure(folder: Path) -> None:
    free = ("--listen", "127.0.0.1:0")
    assert start("--data-dir", "binary", *free) == (
        "kafkalite cannot start: binary is no directory; choose another --data-dir"
    )
    said = start("--memory", "--port-file", "missing/port", *free)
    assert said.endswith(f"{PORT_FILE}: No such file or directory: 'missing/port'")
    said = start("--memory", "--port-file", "dir", *free)
    assert said.endswith(f"{PORT_FILE}: Is a directory: 'dir'")
    assert not (folder / "dir.tmp").exists()
    assert "not.there.invalid is no address of this machine" in (
        start("--memory", "--listen", "not.there.invalid:0")
    )
    for host in ("..", LONG):
        said = start("--memory", "--listen", f"{host}:0")
        assert said.startswith(f"kafkalite cannot start: {host} is no address of this machine: ")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = start("--memory", "--listen", f"127.0.0.1:{port}")
        assert said.endswith("choose another --listen, or port 0 for a free one")


def test_a_port_file_that_cannot_be_written_is_named_by_the_proxy_too(folder: Path) -> None:
    for path, reason in (("missing/port", "No such file or directory"), ("dir", "Is a directory")):
        call = ["proxy", "--to", "127.0.0.1:1", "--listen", "127.0.0.1:0", "--port-file", path]
        done = CliRunner().invoke(main, call)
        assert (done.exit_code, "Traceback" in done.output) == (1, False)
        assert f"{PORT_FILE}: {reason}: {path!r}" in done.output
    assert [each.name for each in folder.iterdir() if each.suffix == ".tmp"] == []


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() == 0, reason="root may do anything")
def test_what_is_not_permitted_is_named(folder: Path) -> None:
    (folder / "dir").chmod(0o500)
    assert "Permission denied" in start("--data-dir", "dir/data", "--listen", "127.0.0.1:0")
    assert "choose another --listen" in start("--memory", "--listen", "127.0.0.1:80")
