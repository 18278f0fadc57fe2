"""Runs the shell scripts of examples/ with a `kafkalite` that has a Spark session already.

Owns the program of that name which scripts find first: `kafkalite pipeline` is run by the test that
waits for the script, with the command as it is; all else by kafkalite in a process of its own.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from kafkalite.cli.pipeline import command

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
LOOK_S = 0.05

PROGRAM = """#!{python}
import json, os, socket, sys
words = sys.argv[1:]
if words[0] != "pipeline":
    os.execv(sys.executable, [sys.executable, "-m", "kafkalite", *words])
with socket.create_connection(("127.0.0.1", {port})) as link, link.makefile("rw") as talk:
    talk.write(json.dumps(words[1:]) + "\\n")
    talk.flush()
    said = json.loads(talk.readline())
sys.stdout.write(said["stdout"])
sys.stderr.write(said["stderr"])
sys.exit(said["code"])
"""


@dataclass(frozen=True, slots=True)
class Done:
    """How a script ended, and what it said."""

    code: int
    said: str


def run(script: str, *words: Any, folder: Path, environment: Mapping[str, str]) -> Done:
    """Runs a script to its end; in this thread, because commands listen for signals."""
    log = folder / f"{script}.log"
    with socket.create_server(("127.0.0.1", 0)) as server, log.open("w") as output:
        server.settimeout(LOOK_S)
        given = {**os.environ, "PYTHONPATH": str(ROOT / "src"), **environment}
        given["PATH"] = f"{_program(folder, server.getsockname()[1])}{os.pathsep}{given['PATH']}"
        call = ["sh", str(EXAMPLES / script), *map(str, words)]
        with subprocess.Popen(call, env=given, stdout=output, stderr=output) as process:
            while process.poll() is None:
                _serve_one(server, environment)
    return Done(process.returncode, log.read_text())


def _program(folder: Path, port: int) -> Path:
    path = folder / "bin" / "kafkalite"
    path.parent.mkdir(exist_ok=True)
    path.write_text(PROGRAM.format(python=sys.executable, port=port))
    path.chmod(0o755)
    return path.parent


def _serve_one(server: socket.socket, environment: Mapping[str, str]) -> None:
    try:
        link, _ = server.accept()
    except TimeoutError:
        return
    link.settimeout(None)
    with link, link.makefile("rw") as talk:
        found = CliRunner().invoke(command, json.loads(talk.readline()), env=environment)
        if found.exception is not None and not isinstance(found.exception, SystemExit):
            raise found.exception
        said = {"stdout": found.stdout, "stderr": found.stderr, "code": found.exit_code}
        talk.write(json.dumps(said) + "\n")
