"""`kafka-storage`: ours says what Apache Kafka's says, ends as it does, and leaves the same in the
directories.

These tests are of files, so they do not run twice.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from kafkalite.coordinators.cluster.snapshots import read_snapshot
from kafkalite.env.disk import RealDisk
from kafkalite.jvm import jars, java
from kafkalite.log.checkpoints import read_properties
from kafkalite.records.control import ControlType, read_type
from tests.compat.brokers import CLUSTER_ID

pytestmark = pytest.mark.compat

CLASS = "kafka.tools.StorageTool"
DIRECTORY_ID = "JEXY6aqzQY-32P5TStzaFg"
SETTINGS = """process.roles={roles}
node.id=1
listeners={listeners}
controller.listener.names=CONTROLLER
log.dirs={folder}/a,{folder}/b
{voters}
"""
STATIC = "controller.quorum.voters=1@127.0.0.1:19093"
DYNAMIC = "controller.quorum.bootstrap.servers=127.0.0.1:19093"
FORMAT = f"format -t {CLUSTER_ID} -c {{file}}"
STANDALONE = f"{FORMAT} -s"
SALTED = 'salt="N3E=",'
STACK = re.compile(r"^(\tat |\t\.\.\. \d+ more).*\n", re.MULTILINE)
IDS = re.compile(r"directory\.id=[\w-]{22}")

# What is in the directories, as calls of the tool, and the call that is compared.
ALIKE_STATIC = [
    ["info -c {file}"],
    ["info -c none.properties"],
    [FORMAT],
    [FORMAT, FORMAT],
    [FORMAT, f"{FORMAT} --ignore-formatted"],
    [FORMAT, "info -c {file}"],
    [FORMAT, "format -t another -c {file} -g"],
    [f"{FORMAT} -N"],
    [STANDALONE],
    [f"{FORMAT} -f kraft.version=1"],
    [f"{FORMAT} -r 3.3"],
    [f"{FORMAT} -r 3.9 -f group.version=1"],
    [f"{FORMAT} -r 4.0 -S SCRAM-SHA-256=[name=alice,{SALTED}password=secret]"
     f" -S SCRAM-SHA-512=[name=bob,iterations=8192,{SALTED}saltedpassword=YCE=]"],
    [f"{FORMAT} -S SCRAM-SHA-256=[name=alice,salt=N3E,saltedpassword=YCE]"],
    [f"{FORMAT} -r 3.4 -S SCRAM-SHA-256=[name=alice,password=secret]"],
]  # fmt: skip
ALIKE_DYNAMIC = [
    [FORMAT],
    [f"{FORMAT} -N"],
    [STANDALONE],
    [f"{STANDALONE} -r 3.8"],
    [f"{STANDALONE} -r 3.9 -f eligible.leader.replicas.version=1"],
    [f"{STANDALONE} -f transaction.version=1 -f group.version=0"],
    [f"{STANDALONE} -f metadata.version=21"],
    [f"{STANDALONE} -r 4.0 -f metadata.version=21"],
    *([f"{STANDALONE} -f {feature}"] for feature in (
        "metadata.version=31", "metadata.version=99", "kraft.version=0", "kraft.version=2",
        "group.version=7", "group.version=x", "bogus=1", "bogus",
    )),
    [f"{STANDALONE} -r bogus"],
    *([f"{FORMAT} -I {voters}"] for voters in (
        f"1@127.0.0.1:19093:{DIRECTORY_ID}", f"2@127.0.0.1:19093:{DIRECTORY_ID}",
        "bogus", "x@a:1:b", "1@a", "1@a:1",
        f"1@a:x:{DIRECTORY_ID}",
        f"1@a:1:{DIRECTORY_ID},1@b:1:{DIRECTORY_ID}",
    )),
    *([f"{STANDALONE} -S {user}"] for user in (
        "bogus", "SCRAM-SHA-1=[name=a,password=b]", "SCRAM-SHA-256=name=a]", "SCRAM-SHA-256=[a=b",
        "SCRAM-SHA-256=[password=b]", "SCRAM-SHA-256=[name=a]", "SCRAM-SHA-256=[name]",
        "SCRAM-SHA-256=[name=a,saltedpassword=YCE=]", "SCRAM-SHA-256=[name=a,password=b,salt=!!]",
        "SCRAM-SHA-256=[name=a,password=b,iterations=5]",
        "SCRAM-SHA-256=[name=a,password=b,iterations=50000]",
        "SCRAM-SHA-256=[name=a,password=b,iterations=x]",
        "SCRAM-SHA-256=[name=a,password=b,foo=1,bar=2]",
        *(f"SCRAM-SHA-256=[name=a,password=b,salt={salt}]" for salt in (
            "N", "N=", "N3", "N3=", "N3==", "N3E", "N3E==", "N3F", "N3E=N3E=", "N3ENN", "=", "==",
            "====", "N3E_", "",
        )),
    )),
]  # fmt: skip
ALIKE_ANYWHERE = [
    *(f"version-mapping -r {each}" for each in (
        "3.3-IV3", "3.8", "3.9", "4.0-IV1", "4.0-IV2", "4.0.1", "4.1-IV0", "4.2-IV0", "4.2",
        "4.4-IV0", "2.0",
    )),
    "version-mapping",
    *(f"feature-dependencies -f {each}" for each in (
        "metadata.version=29", "metadata.version=99", "eligible.leader.replicas.version=1",
        "transaction.version=2 -f kraft.version=1", "share.version=2", "bogus=1", "bogus",
        "group.version=x",
    )),
]  # fmt: skip
SAMPLE = 3  # of each list; the others take a JVM's start each


@dataclass(frozen=True)
class Outcome:
    said: str
    code: int
    left: dict[str, object]


def apache_kafka(words: list[str]) -> list[str]:
    return java.command(jars.class_path("reference"), CLASS, *words, heap="128M")


def kafkalite(words: list[str]) -> list[str]:
    return [sys.executable, "-m", "kafkalite.tools", "kafka-storage", *words]


def outcome(command: Callable[[list[str]], list[str]], calls: list[str], folder: Path) -> Outcome:
    """Of the last of some calls, in a folder that is empty before them."""
    for name in "ab":
        shutil.rmtree(folder / name, ignore_errors=True)
    for call in calls:
        words = [word.format(file=folder / "node.properties") for word in call.split()]
        done = subprocess.run(
            command(words), cwd=folder, timeout=60, check=False, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
    said = IDS.sub("directory.id=…", STACK.sub("", done.stdout))
    files = [path for path in sorted(folder.rglob("*")) if path.parent != folder]
    return Outcome(said, done.returncode, {str(each): contents(each) for each in files})


def contents(path: Path) -> object:
    """What is in a file, but for ids and times that are new each time."""
    if path.name == "meta.properties":
        found = read_properties(RealDisk(), str(path))
        return {**found, "directory.id": len(found["directory.id"])}
    if path.suffix == ".checkpoint":
        snapshot = read_snapshot(RealDisk(), str(path))
        quorum = [(read_type(each.key), each.value) for each in snapshot.control_records]
        return snapshot.messages, [row for row in quorum if row[0] != ControlType.SNAPSHOT_HEADER]
    return path.is_dir()


def some_full(cases: list[list[str]]) -> list[object]:
    return [
        pytest.param(case, id=" then ".join(case), marks=[pytest.mark.full] * (number >= SAMPLE))
        for number, case in enumerate(cases)
    ]


def settings(folder: Path, voters: str, roles: str = "broker,controller") -> None:
    listeners = {"broker": "PLAINTEXT://:9092", "controller": "CONTROLLER://:19093"}
    text = SETTINGS.format(
        roles=roles, folder=folder, voters=voters,
        listeners=",".join(listeners[role] for role in roles.split(",")),
    )  # fmt: skip
    (folder / "node.properties").write_text(text)


def check(calls: list[str], folder: Path) -> Outcome:
    wanted, found = (outcome(each, calls, folder) for each in (apache_kafka, kafkalite))
    voters = [path for path in wanted.left if "__cluster_metadata" in path]
    if "-s" in calls[-1].split() and voters:  # the voter's directory has a new id each time
        for each in (wanted, found):
            each.left[voters[-1]] = len(str(each.left[voters[-1]])) > 0
    assert found == wanted
    return found


@pytest.mark.parametrize("calls", some_full(ALIKE_STATIC))
def test_with_voters_by_the_settings(calls: list[str], tmp_path: Path) -> None:
    settings(tmp_path, STATIC)
    check(calls, tmp_path)


@pytest.mark.parametrize("calls", some_full(ALIKE_DYNAMIC))
def test_with_voters_by_the_log(calls: list[str], tmp_path: Path) -> None:
    settings(tmp_path, DYNAMIC)
    check(calls, tmp_path)


@pytest.mark.parametrize("call", some_full([[each] for each in ALIKE_ANYWHERE]))
def test_of_releases(call: list[str], tmp_path: Path) -> None:
    check(call, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize(("roles", "call"), [
    ("broker", FORMAT), ("broker", STANDALONE), ("controller", STANDALONE), ("controller", FORMAT),
])
def test_of_one_role(roles: str, call: str, tmp_path: Path) -> None:
    settings(tmp_path, DYNAMIC, roles)
    check([call], tmp_path)
