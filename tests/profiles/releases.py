"""Asks the classes of Apache Kafka's releases what their brokers serve, and writes that as text.

Owns which jars are asked (`jars.toml`) and how the table is written; the project's own fetcher has
them from Maven Central. Until 3.9 a broker with a ZooKeeper is meant, from 4.0 on one without.
"""

from __future__ import annotations

import os
import subprocess
import textwrap
import tomllib
from dataclasses import dataclass
from pathlib import Path

from kafkalite.jvm import jars, java
from kafkalite.testing import profiles
from kafkalite.testing.profiles import GONE, Profile
from tests.compat.java_classes import compile_classes

HERE = Path(__file__).parent
TABLE = HERE.parents[1] / "src" / "kafkalite" / "testing" / "profiles.txt"
GROUP = "org.apache.kafka"
LOGGING = "org.slf4j"  # what the classes need beside themselves
ASK_TIMEOUT_S = 60
COLUMNS = 100
GLUE = "~"  # an item stays on one line

_HEAD = """\
# What brokers of Apache Kafka's releases serve: per release what is not as in the one before it.
# Written by `python -m tests.profiles` from the releases' own classes: change nothing here.
# "Produce 0/3-12": ApiVersions lists 0 to 12, and a request below 3 ends the connection.
# Until 3.9 of brokers with a ZooKeeper; in small letters features and their levels.
# GetTelemetrySubscriptions and PushTelemetry are listed where client metrics are on.
"""


@dataclass(slots=True)
class Answers:
    """What the classes of one release say."""

    profile: Profile
    names_own_versions: bool = False


def releases() -> dict[str, list[jars.Jar]]:
    """The jars of all releases, the oldest first."""
    table = tomllib.loads((HERE / "jars.toml").read_text())
    return {
        release: [_jar(row, sha256) for row, sha256 in rows.items()]
        for release, rows in table.items()
    }


def _jar(row: str, sha256: str) -> jars.Jar:
    artifact, version = row.split(":")
    return jars.Jar(GROUP, artifact, version, sha256)


def is_cached(release: str) -> bool:
    """Whether asking it takes no fetching."""
    needed = [*releases()[release], _logging(), *jars.table()["compiler"]]
    return all((jars.cache_folder() / jar.file_name).exists() for jar in needed)


def compiled(target: Path) -> Path:
    """The folder with the program that asks."""
    compile_classes([HERE / "Listed.java"], target, ["compiler"])
    return target


def asked(release: str, classes: Path) -> Answers:
    """What the broker of a release serves, by its own classes."""
    needed = [*releases()[release], _logging()]
    jars.fetch(needed)
    paths = [classes, *(jars.cache_folder() / jar.file_name for jar in needed)]
    said = subprocess.run(
        java.command(os.pathsep.join(map(str, paths)), "Listed"),
        capture_output=True, text=True, check=True, timeout=ASK_TIMEOUT_S,
    ).stdout  # fmt: skip
    return _understood(release, said)


def _logging() -> jars.Jar:
    [jar] = [each for each in jars.table()["kafka-clients-4.3.1"] if each.group == LOGGING]
    return jar


def _understood(release: str, said: str) -> Answers:
    answers = Answers(Profile(release, {}, {}, {}))
    profile = answers.profile
    for line in said.splitlines():
        match line.split():
            case ["api", key, lowest, highest, answered]:
                profile.listed[int(key)] = range(int(lowest), int(highest) + 1)
                profile.answered[int(key)] = range(int(answered), int(highest) + 1)
            case ["feature", name, lowest, highest]:
                profile.features[name] = range(int(lowest), int(highest) + 1)
            case ["unknown", how]:
                answers.names_own_versions = how == "named"
    return answers


def text(found: list[Profile]) -> str:
    """The table of these releases, the oldest first."""
    last = Profile("", {}, {}, {})
    parts = [_HEAD]
    for profile in found:
        items = ", ".join(each.replace(" ", GLUE) for each in _changes(last, profile))
        lines = textwrap.fill(items, COLUMNS, break_on_hyphens=False).replace(GLUE, " ")
        parts.append(f"\n[{profile.release}]\n{lines}\n")
        last = profile
    return "".join(parts)


def _changes(last: Profile, profile: Profile) -> list[str]:
    names = {key: name for name, key in profiles.keys().items()}
    found = []
    for key in sorted(last.listed.keys() | profile.listed.keys()):
        now = profile.listed.get(key), profile.answered.get(key)
        if now != (last.listed.get(key), last.answered.get(key)):
            found.append(f"{names[key]} {_versions(*now)}")
    for name, levels in profile.features.items():
        if levels != last.features.get(name):
            found.append(f"{name} {_versions(levels, levels)}")
    return found


def _versions(listed: range | None, answered: range | None) -> str:
    if listed is None or answered is None:
        return GONE
    refused = "" if listed == answered else f"/{answered[0]}"
    return f"{listed[0]}{refused}-{listed[-1]}"
