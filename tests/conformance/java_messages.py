"""Apache Kafka's own message classes, asked through a small Java program (Conformance.java)."""

from __future__ import annotations

import base64
import json
import subprocess
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafkalite.jvm import jars, java
from kafkalite.protocol import classes, spec
from tests.compat.java_classes import compile_classes

SOURCE = Path(__file__).with_name("Conformance.java")
SUFFIX = "JsonConverter.class"


@dataclass(frozen=True)
class Generation:
    """The classes of one version of Apache Kafka, and the groups of jars they are in."""

    name: str
    groups: tuple[str, ...]
    # Messages whose fields have other names there (None: any message may): they are not sent by
    # name but as bytes, which Java must read to the end and write again as they were.
    renamed: frozenset[str] | None = frozenset()
    # Messages that this generation defines otherwise than its successors do.
    different: frozenset[str] = frozenset()


GENERATIONS = (
    Generation("4.3.1", ("reference", "coordinators")),
    # Share groups were a preview in 3.9, and this answer had no leader epoch yet.
    Generation(
        "3.9.2",
        ("kafka-clients-3.9.2",),
        frozenset({"VoteRequest"}),
        frozenset({"ReadShareGroupStateSummaryResponse"}),
    ),
    # Before 3.0 a change of leader could not come without voters.
    Generation("2.8.2", ("kafka-clients-2.8.2",), None, frozenset({"LeaderChangeMessage"})),
)


class JavaMessages:
    """One Java process with the classes of one generation."""

    def __init__(self, generation: Generation, folder: Path) -> None:
        class_path = _class_path(generation)
        classes_folder = folder / f"conformance-{generation.name}"
        classes_folder.mkdir(exist_ok=True)
        compile_classes([SOURCE], classes_folder, ("reference",))
        self.names = _class_names(class_path)
        command = java.command(
            ":".join([str(classes_folder), *map(str, class_path)]), "Conformance", heap="512M"
        )
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )

    def close(self) -> None:
        self._process.communicate(timeout=30)

    def class_of(self, message: spec.Message) -> str | None:
        """The Java class of one of our messages; requests and responses are called …Data there."""
        name = message.name + "Data" if message.api else message.name
        return self.names.get(name) or self.names.get(message.name + "Data")

    def versions(self, class_name: str) -> range:
        low, high = map(int, self._ask("versions", class_name)[0].split())
        return range(low, high + 1)

    def write(self, class_name: str, version: int, fields: dict[str, Any]) -> tuple[bytes, Any]:
        """The bytes that Java makes of these fields, and what it reads from them again."""
        encoded, _, shown = self._ask("write", class_name, str(version), json.dumps(fields))
        return base64.b64decode(encoded), json.loads(shown)

    def echo(self, class_name: str, version: int, data: bytes) -> bytes:
        """What Java writes of the message that it reads from these bytes."""
        encoded = base64.b64encode(data).decode()
        return base64.b64decode(self._ask("echo", class_name, str(version), encoded)[0])

    def _ask(self, *parts: str) -> tuple[str, str, str]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\t".join(parts) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().rstrip("\n").partition("\t")
        if answer[0] == "error":
            raise AssertionError(f"{' '.join(parts[:3])}: {answer[2]}")
        return answer


def _class_path(generation: Generation) -> list[Path]:
    jackson = [path for path in jars.paths("reference") if path.name.startswith("jackson-")]
    return [*jars.paths(*generation.groups), *jackson]


def _class_names(class_path: list[Path]) -> dict[str, str]:
    """From a message's simple name to its full one."""
    names: dict[str, str] = {}
    for path in class_path:
        with zipfile.ZipFile(path) as jar:
            for entry in jar.namelist():
                if entry.endswith(SUFFIX):
                    full = entry.removesuffix(SUFFIX).replace("/", ".")
                    names[full.rpartition(".")[2]] = full
    return names


def to_json(message: Any, version: int) -> dict[str, Any]:
    """One of our messages as Kafka's JSON converters read it."""
    return _struct(message, type(message), type(message).SPEC.root, version)


def _struct(value: Any, cls: type[Any], struct: spec.Struct, version: int) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for field in struct.fields:
        if version not in field.versions:
            continue
        one = getattr(value, field.name)
        is_tagged = field.tag is not None and version in field.tagged
        if is_tagged and one == classes.default_value(cls, field):
            continue
        shown[camel(field.name)] = _value(one, cls, field, version)
    return shown


def _value(value: Any, cls: type[Any], field: spec.Field, version: int) -> Any:
    if value is None:
        return None
    if field.is_array:
        return [_element(one, cls, field, version) for one in value]
    return _element(value, cls, field, version)


def _element(value: Any, cls: type[Any], field: spec.Field, version: int) -> Any:
    if field.struct is not None:
        return _struct(value, cls, field.struct, version)
    if field.type == "uuid":
        return base64.urlsafe_b64encode(value).decode().rstrip("=")
    if field.type in ("bytes", "records"):
        return base64.b64encode(value).decode()
    return value


def camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in rest)
