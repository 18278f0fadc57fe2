"""The pinned jars: `jars.toml` names them with checksums, a cache on disk holds them.

Owns the cache and its filling. A jar is in the cache only whole and checked: fetched aside,
compared with its checksum, then renamed. Any number of processes may ask at once; one fetches.
Fetching is the work of Ivy, which pyspark carries and which knows Maven Central by itself.
"""

import fcntl
import functools
import hashlib
import importlib.util
import os
import subprocess
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

FETCH_TIMEOUT_S = 1_800
CACHE_VARIABLE = "KAFKALITE_JARS"
# Where a mirror serves instead of Maven Central: a file in Ivy's settings format.
SETTINGS_VARIABLE = "KAFKALITE_IVY_SETTINGS"

# No poms are asked for: the table holds what they would resolve to.
_SETTINGS = """<ivysettings><settings defaultResolver="central"/><resolvers>
<ibiblio name="central" m2compatible="true" usepoms="false"/></resolvers></ivysettings>"""
_MODULE = """<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
<info organisation="kafkalite" module="jars"/>
<configurations><conf name="default"/></configurations><dependencies>{rows}
<conflict manager="all"/></dependencies></ivy-module>"""
_ROW = """<dependency org="{0.group}" name="{0.artifact}" rev="{0.version}" transitive="false"
 conf="*->*"><artifact name="{0.artifact}" type="{0.extension}" ext="{0.extension}"{1}/>
</dependency>"""
_CLASSIFIER = ' m:classifier="{}"'
_FETCHED = "jars/[artifact]-[revision](-[classifier]).[ext]"


class JarsMissing(RuntimeError):
    """Jars that could not be fetched, or are not what the table says; each is named."""


@dataclass(frozen=True, slots=True, order=True)
class Jar:
    """A file of Maven Central: a jar, or a whole program in an archive of jars."""

    group: str
    artifact: str
    version: str
    sha256: str
    classifier: str = ""
    extension: str = "jar"

    @property
    def coordinates(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"

    @property
    def file_name(self) -> str:
        classified = f"-{self.classifier}" if self.classifier else ""
        return f"{self.artifact}-{self.version}{classified}.{self.extension}"


@functools.cache
def table() -> dict[str, tuple[Jar, ...]]:
    """Every group of jars by name, each as its program's class path needs it."""
    text = files("kafkalite.jvm").joinpath("jars.toml").read_text()
    return {
        name: tuple(_jar(coordinates, sha256) for coordinates, sha256 in rows.items())
        for name, rows in tomllib.loads(text).items()
    }


def _jar(row: str, sha256: str) -> Jar:
    coordinates, _, extension = row.partition("@")
    group, artifact, version, *classifier = coordinates.split(":")
    return Jar(group, artifact, version, sha256, "".join(classifier), extension or "jar")


def class_path_groups() -> list[str]:
    """The groups that are a class path; an archive is large, and fetched when it first runs."""
    return [name for name, jars in table().items() if all(jar.extension == "jar" for jar in jars)]


def cache_folder() -> Path:
    """Where the jars lie: $KAFKALITE_JARS, else the user's cache."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen)
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "kafkalite" / "jars"


def paths(*groups: str) -> list[Path]:
    """The jars of these groups, fetched first if the cache lacks any."""
    wanted = list(dict.fromkeys(jar for group in groups for jar in table()[group]))
    folder = cache_folder()
    found = [folder / jar.file_name for jar in wanted]
    if not all(path.exists() for path in found):
        fetch(wanted)
    return found


def class_path(*groups: str) -> str:
    """The same as a JVM takes it."""
    return os.pathsep.join(map(str, paths(*groups)))


def fetch(wanted: Iterable[Jar]) -> None:
    """Brings what the cache lacks, checked; says which jars cannot be had."""
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with _one_process_at_a_time(folder):
        lacking = [jar for jar in wanted if not (folder / jar.file_name).exists()]
        if lacking:
            with tempfile.TemporaryDirectory(dir=folder, prefix="fetching-") as aside:
                said = _run_ivy(lacking, Path(aside))
                _take_in(lacking, Path(aside) / "jars", folder, said)


def damaged() -> list[Path]:
    """The jars in the cache that are not what the table says."""
    known = {jar for group in table().values() for jar in group}
    kept = [(cache_folder() / jar.file_name, jar) for jar in sorted(known)]
    return [path for path, jar in kept if path.exists() and _sha256(path) != jar.sha256]


@contextmanager
def _one_process_at_a_time(folder: Path) -> Iterator[None]:
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run_ivy(lacking: list[Jar], aside: Path) -> str:
    """Retrieves into `aside/jars`; gives what Ivy said, which is worth reading when a jar fails."""
    from kafkalite.jvm import java

    settings = os.environ.get(SETTINGS_VARIABLE) or aside / "settings.xml"
    (aside / "settings.xml").write_text(_SETTINGS)
    (aside / "ivy.xml").write_text(_MODULE.format(rows="".join(map(_row, lacking))))
    call = [java.find(), "-jar", _ivy(), "-settings", settings, "-ivy", aside / "ivy.xml"]
    call += ["-cache", aside / "cache", "-retrieve", aside / _FETCHED]
    said = []
    with (
        _progress() as progress,
        subprocess.Popen(
            list(map(str, call)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as ivy,
    ):
        bar = progress.add_task(f"fetching {len(lacking)} jars", total=len(lacking))
        assert ivy.stdout is not None
        for line in ivy.stdout:
            said.append(line)
            progress.advance(bar, line.count("[SUCCESSFUL ]"))
        ivy.wait(FETCH_TIMEOUT_S)
    return "".join(said)


def _row(jar: Jar) -> str:
    return _ROW.format(jar, _CLASSIFIER.format(jar.classifier) if jar.classifier else "")


def _take_in(lacking: list[Jar], fetched: Path, folder: Path, said: str) -> None:
    """Moves what is right into the cache, then complains of the rest, if any, by name."""
    wrong = []
    for jar in lacking:
        path = fetched / jar.file_name
        if not path.exists():
            wrong.append(f"{jar.coordinates} cannot be had")
        elif _sha256(path) != jar.sha256:
            wrong.append(f"{jar.coordinates} is not what jars.toml pins (SHA-256 differs)")
        else:
            path.replace(folder / jar.file_name)
    if wrong:
        reasons = [line for line in said.splitlines() if "ERROR" in line or "WARN" in line]
        raise JarsMissing("\n".join([*wrong, "Ivy said:", *reasons[:20]]))


def _ivy() -> Path:
    """The Ivy jar inside pyspark, found without importing pyspark."""
    spec = importlib.util.find_spec("pyspark")
    folders = spec.submodule_search_locations if spec else None
    for folder in folders or ():
        for path in Path(folder, "jars").glob("ivy-*.jar"):
            return path
    raise JarsMissing("fetching jars takes the Ivy in pyspark: pip install 'kafkalite[spark]'")


def _progress() -> Progress:
    return Progress(console=Console(stderr=True))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
