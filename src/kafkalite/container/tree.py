"""The files that the image holds beside Python: the scripts that other images have, in `starters`
as they lie below the root, and directories that the broker and its callers write to.

All of it may be written by the group root, which is every user's whose id an engine makes up.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

STARTERS = Path(__file__).with_name("starters")
PYTHON = "@python@"
SHARED = 0o775
OWNER, GROUP = 1000, 0  # who runs in the image
# Made empty; volumes that are mounted there take their owner and mode from them.
DIRECTORIES = (
    "/bitnami/kafka", "/docker-entrypoint-initdb.d", "/etc/kafka/secrets", "/kafka",
    "/mnt/shared/config", "/opt/bitnami/kafka", "/opt/kafka/logs", "/opt/kafka/run",
    "/run/kafkalite",
    "/tmp/kraft-combined-logs", "/var/lib/kafka/data", "/var/lib/kafkalite",
    "/var/lib/zookeeper/data", "/var/lib/zookeeper/log", "/var/log/kafka",
)  # fmt: skip
# One file under several names.
ALIASES = {
    "/etc/confluent/docker/bash-config": "/etc/kafka/docker/bash-config",
    "/usr/bin/ub": "/usr/bin/cub",
    "/usr/bin/zookeeper-server-start.sh": "/usr/bin/zookeeper-server-start",
}
# Where the command line tools are, when `kafkalite home /opt/kafka` has made them, and where else
# the users of other images look for them: without their ending, too, on everybody's PATH.
TOOLS = "/opt/kafka/bin"
ALSO_AT = "/opt/bitnami/kafka/bin"
ON_PATH = "/usr/bin"


def write_tree(root: str) -> None:
    """Writes all of it below this directory."""
    for directory in DIRECTORIES:
        _make(Path(root + directory))
    own = {f"/{source.relative_to(STARTERS)}": source for source in STARTERS.rglob("*")}
    for name, source in own.items():
        if source.is_file():
            text = source.read_text(encoding="utf-8")
            _write(Path(root + name), text.replace(PYTHON, sys.executable))
    for name, aim in ALIASES.items():
        link = Path(root + name)
        link.unlink(missing_ok=True)
        link.symlink_to(aim)
    for name, text in _calls(root):
        if name not in own and name not in ALIASES:
            _write(Path(root + name), text)


def _calls(root: str) -> Iterator[tuple[str, str]]:
    """Scripts and not links: a tool finds its home by where it was called."""
    for tool in sorted(Path(root + TOOLS).glob("*.sh")):
        for name in (f"{ON_PATH}/{tool.stem}", f"{ON_PATH}/{tool.name}", f"{ALSO_AT}/{tool.name}"):
            yield name, f'#!/bin/sh\nexec {TOOLS}/{tool.name} "$@"\n'


def _write(path: Path, text: str) -> None:
    _make(path.parent)
    path.write_text(text, encoding="utf-8")
    path.chmod(SHARED)
    _give_away(path)


def _make(directory: Path) -> None:
    """With modes of its own, but for what is there already."""
    if not directory.is_dir():
        _make(directory.parent)
        directory.mkdir()
        directory.chmod(SHARED)
        _give_away(directory)


def _give_away(path: Path) -> None:
    if os.geteuid() == 0:
        os.chown(path, OWNER, GROUP)
