"""The starters of other projects' harnesses, word for word, where no engine for containers is: in
the image's tree of files, laid over this machine's own in namespaces of their own. Nothing of it
is left when the shell that waits for it ends.

With an engine, tests/compat/test_container.py does the same with the image itself.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kafkalite.container.tree import write_tree
from tests.compat.container_starters import STARTERS, Starter

ROOT = Path(__file__).parents[2]
# For `make test`: each way in once.
SAMPLE = ("python-zookeeper", "java-apache", "go")
PATIENCE_S = 60
RING_UP = (
    "import fcntl, socket, struct;"
    "fcntl.ioctl(socket.socket(), 0x8914, struct.pack('16sh14x', b'lo', 1))"  # SIOCSIFFLAGS, IFF_UP
)
# Arguments: the tree, Python, and directories that may be on another file system than /.
LAY_OVER = """\
set -e
tree=$1 python=$2; shift 2
top=$(mktemp -d); mount -t tmpfs tmpfs "$top"; mkdir "$top/work" "$top/root"
cp -r "$tree" "$top/upper"
mount -t overlay overlay -o "lowerdir=/,upperdir=$top/upper,workdir=$top/work" "$top/root"
for each in "$@"; do mkdir -p "$top/root$each"; mount --rbind "$each" "$top/root$each"; done
mount -t proc proc "$top/root/proc"; mount --rbind /dev "$top/root/dev"
"$python" -c "$RING_UP"
printf '127.0.0.1 localhost kafka\\n127.0.0.2 %s\\n' "$(hostname)" > "$top/root/etc/hosts"
echo entered
exec chroot "$top/root" /bin/bash -c "$DRIVE"
"""
# What the harness does: its command, its wait, and a record to and fro.
DRIVE = """\
cd /home
sh -c "$COMMAND" >/tmp/said 2>&1 &
for _ in $(seq 600); do grep -qP "$READY" /tmp/said && break; sleep 0.1; done
echo there | "$PYTHON" -m kafkalite produce -b "$ADDRESS" topic
"$PYTHON" -m kafkalite consume -b "$ADDRESS" topic --count 1
"$PYTHON" -m kafkalite.container.healthy /run/kafkalite/port && echo healthy
[ -z "$RUOK" ] || { exec 3<>/dev/tcp/localhost/2181; printf ruok >&3; cat <&3; echo; }
cat /tmp/said
"""


def why_not() -> str | None:
    """Why the tree cannot be laid over this machine's, if so."""
    if sys.platform != "linux" or shutil.which("unshare") is None:
        return "there are no namespaces here"
    return None


@pytest.mark.parametrize(
    "starter",
    [
        pytest.param(each, marks=() if each.name in SAMPLE else pytest.mark.full, id=each.name)
        for each in STARTERS
    ],
)
def test_harnesses_start_it_as_they_start_others(starter: Starter, tmp_path: Path) -> None:
    if (reason := why_not()) is not None:
        pytest.skip(reason)
    tree = tmp_path / "tree"
    address = f"localhost:{starter.port}"
    write_tree(str(tree))
    script = Path(f"{tree}{starter.path}")
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(starter.script.replace("{address}", address))
    script.chmod(starter.mode)
    (tree / "home").mkdir(exist_ok=True)
    done = subprocess.run(
        ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", *_as_root(),
         "bash", "-c", LAY_OVER, "lay-over", tree, sys.executable, *_elsewhere()],
        capture_output=True, text=True, timeout=2 * PATIENCE_S, check=False,
        env={
            **os.environ, **starter.variables, "PYTHONPATH": f"{ROOT}/src", "RING_UP": RING_UP,
            "DRIVE": DRIVE, "COMMAND": starter.command.format(path=starter.path, call=starter.call),
            "READY": starter.ready, "ADDRESS": address, "PYTHON": sys.executable,
            "RUOK": "yes" if starter.zookeeper else "", "PATH": f"{os.environ['PATH']}:/usr/sbin",
        },
    )  # fmt: skip
    if "entered\n" not in done.stdout:
        pytest.skip(f"this machine lets nobody lay a tree over its own: {done.stderr.strip()}")
    said = done.stdout
    for line in ("there\n", "healthy\n", *(["imok\n"] if starter.zookeeper else [])):
        assert line in said, said + done.stderr
    for line in ("[KafkaServer id=1] started", "[KafkaRaftServer nodeId=1] Kafka Server started",
                 "Transitioning from RECOVERY to RUNNING"):  # fmt: skip
        assert said.count(line) == 1, said


def _as_root() -> list[str]:
    return [] if os.geteuid() == 0 else ["--user", "--map-root-user"]


def _elsewhere() -> set[str]:
    """What the broker's Python needs, and which need not be on the file system of /."""
    needed = {str(ROOT), sys.prefix, sys.base_prefix}
    root = os.stat("/").st_dev
    return {path for path in needed if os.stat(path).st_dev != root}
