"""What docs/quotas.md shows works as it stands there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

from kafkalite.coordinators.cluster.quotas import IP_KEYS, USER_AND_CLIENT_KEYS
from kafkalite.testing.embedded import EmbeddedKafka
from kafkalite.tools.table import CLASSES

PAGE = (Path(__file__).parents[3] / "docs" / "quotas.md").read_text()
COMMANDS = re.findall(r"^kafka-configs\.sh (.*)$", PAGE, re.MULTILINE)
SHOWN = {"users": ("--entity-type", "users"), "ips": ("--entity-type", "ips")}


def run(bootstrap: str, *words: str) -> str:
    words = tuple(bootstrap if word == "localhost:9092" else word for word in words)
    call = [sys.executable, "-m", "kafkalite.tools", CLASSES["kafka-configs"], *words]
    done = subprocess.run(call, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_commands() -> None:
    assert len(COMMANDS) == 4
    with EmbeddedKafka() as kafka:
        bootstrap = kafka.bootstrap_servers
        for command in COMMANDS:
            run(bootstrap, *shlex.split(command))
        told = run(bootstrap, "--bootstrap-server", bootstrap, "--describe", *SHOWN["users"])
        assert "producer_byte_rate=1048576.0" in told
        told = run(bootstrap, "--bootstrap-server", bootstrap, "--describe", *SHOWN["ips"])
        assert "connection_creation_rate=20.0" in told


def test_every_quota_there_is_is_in_the_table() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (users|addresses)", PAGE, re.MULTILINE)
    assert {name for name, _ in rows} == {*USER_AND_CLIENT_KEYS, *IP_KEYS}
