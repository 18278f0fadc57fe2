"""Reads protocol_specs/: what every message is made of, in every version.

Owns the grammar of the spec files. Knows nothing of bytes. A file is read when one of its messages
is first asked for; a wrong one names its file, line and column.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from kafkalite.protocol.files import api_files as api_files
from kafkalite.protocol.files import directory as directory
from kafkalite.protocol.files import file_of as file_of
from kafkalite.protocol.files import message_files as message_files

SCALARS = frozenset(
    ("bool", "int8", "int16", "uint16", "int32", "uint32", "int64", "float64", "uuid", "error")
)
SIZED = frozenset(("string", "bytes", "records"))
# What a field may name: Apache Kafka's `entityType` without its Id or Name.
RESOURCES = ("topic", "group", "transactional", "producer", "broker")

_INDENT = 4
_NEVER = range(0)
_HEAD = re.compile(r"(?P<kind>api|message) (?P<name>\w+)(?P<options>(?: \w+=[^\s#]+)*)")
_FIELD = re.compile(
    r" *(?P<name>[a-z]\w*): (?P<array>\[)?(?P<type>\w+)(?(array)\])"
    r"(?P<nullable>\?(?:(?P<nullable_from>\d+)\+)?)?(?P<inflexible> inflexible)?"
    rf"(?: (?P<resource>{'|'.join(RESOURCES)})\b)?"
    r"(?: = (?P<default>[^\s#]+))?"
    r"(?: +@(?P<first>\d+)(?P<open>\+)?(?:-(?P<last>\d+))?)?"
    r"(?: +tag (?P<tag>\d+)(?:@(?P<tag_from>\d+)\+)?)?"
)
_REMARK = re.compile(r"\s*(?:#.*)?$")


class SpecError(ValueError):
    """A spec file is wrong: a mistake of ours, never of a peer."""


@dataclass(slots=True)
class Field:
    """One field of a struct. The ranges are versions of the whole message."""

    name: str
    type: str  # a scalar, a sized type, or the name of a struct
    struct: Struct | None  # what `type` names, when it is neither scalar nor sized
    is_array: bool
    nullable: range
    versions: range
    tag: int | None
    tagged: range
    default: str | None  # as written; None means the type's zero value
    is_inflexible: bool
    resource: str | None  # the kind of thing that its value names, or each of its elements

    @property
    def can_be_null(self) -> bool:
        """Whether any version has a null for it: then the attribute may be None."""
        return len(self.nullable) > 0

    def is_in(self, version: int) -> bool:
        return version in self.versions or version in self.tagged


@dataclass(slots=True)
class Struct:
    name: str
    fields: list[Field]


@dataclass(slots=True)
class Message:
    """A request, a response, a header, or the key or value of a record."""

    name: str
    doc: str
    versions: range
    flexible: range
    type: int | None  # of a record: the number that tells it from its siblings
    api: Api | None
    root: Struct = field(init=False)
    structs: dict[str, Struct] = field(default_factory=dict)  # the nested ones, in file order

    def __post_init__(self) -> None:
        self.root = Struct(self.name, [])

    @property
    def has_records(self) -> bool:
        structs = (self.root, *self.structs.values())
        return any(field.type == "records" for struct in structs for field in struct.fields)


@dataclass(slots=True)
class Api:
    """What the head of an API's file says; the same object stands behind request and response."""

    name: str
    key: int
    versions: range  # all that can be decoded
    flexible: range
    listeners: tuple[str, ...]  # none: Apache Kafka 4 serves it no more
    dropped: range  # the versions of old that Apache Kafka 4 dropped
    unstable: range
    response_header: int | None  # a response header that no flexibility changes

    @property
    def stable(self) -> range:
        """The versions that Apache Kafka 4 advertises when unstable ones are not enabled."""
        first = self.dropped.stop if self.dropped else self.versions.start
        last = self.unstable.start if self.unstable else self.versions.stop
        return range(first, last)


@dataclass(slots=True)
class SpecFile:
    api: Api | None = None
    messages: dict[str, Message] = field(default_factory=dict)


def message(name: str) -> Message:
    """The definition of the message of this name; KeyError when there is none."""
    return read(file_of(name)).messages[name]


def api(key: int) -> Api:
    """The definition of the API of this key; KeyError when there is none."""
    found = read(api_files()[key]).api
    assert found is not None
    return found


@cache
def read(path: Path) -> SpecFile:
    return parse(path.read_text(encoding="utf-8"), path.name)


def parse(text: str, file_name: str) -> SpecFile:
    return _Parser(file_name).parse(text)


class _Parser:
    """Reads one file, line by line. `blocks` are the structs open at each depth of indentation."""

    def __init__(self, file_name: str) -> None:
        self.file_name = file_name
        self.line_number = 0
        self.doc: list[str] = []
        self.spec = SpecFile()
        self.message: Message | None = None
        self.blocks: list[list[Field]] = []

    def parse(self, text: str) -> SpecFile:
        for self.line_number, line in enumerate(text.splitlines(), 1):
            stripped = line.strip()
            if stripped.startswith("#"):
                self.doc.append(stripped[1:].strip())
            elif stripped:
                self.line(line, stripped)
                self.doc.clear()
        self.check_blocks()
        return self.spec

    def line(self, line: str, stripped: str) -> None:
        if line.startswith(" "):
            self.field(line)
        elif stripped in ("request", "response"):
            self.side(stripped)
        else:
            self.head(line)

    def head(self, line: str) -> None:
        match = _HEAD.match(line)
        if match is None:
            raise self.error(1, "expected 'api', 'message', 'request', 'response' or a field")
        self.end_of_line(line, match.end())
        options = dict(option.split("=", 1) for option in match["options"].split())
        doc = " ".join(self.doc)
        column = match.start("options") + 2
        try:
            if match["kind"] == "api":
                self.spec.api = _api(match["name"], options)
                self.api_doc = doc
            else:
                self.open(_record(match["name"], doc, options))
        except (KeyError, ValueError) as error:
            raise self.error(column, f"bad or missing option: {error}") from None
        if options:
            raise self.error(column, f"unknown option: {', '.join(options)}")

    def side(self, side: str) -> None:
        api = self.spec.api
        if api is None:
            raise self.error(1, f"'{side}' before any 'api'")
        name = api.name + side.capitalize()
        self.open(Message(name, self.api_doc, api.versions, api.flexible, None, api))

    def open(self, message: Message) -> None:
        self.check_blocks()
        if message.name in self.spec.messages:
            raise self.error(1, f"{message.name} is defined twice")
        self.message = self.spec.messages[message.name] = message
        self.blocks = [message.root.fields]

    def field(self, line: str) -> None:
        if self.message is None:
            raise self.error(1, "a field outside of any message")
        match = _FIELD.match(line)
        if match is None:
            raise self.error(len(line) - len(line.lstrip()) + 1, "expected 'name: type'")
        self.end_of_line(line, match.end())
        depth = match.start("name") // _INDENT
        if match.start("name") % _INDENT or not 1 <= depth <= len(self.blocks):
            raise self.error(match.start("name") + 1, "indented too far, or not by four spaces")
        del self.blocks[depth:]
        block = self.blocks[-1]
        if any(other.name == match["name"] for other in block):
            raise self.error(match.start("name") + 1, f"{match['name']} is defined twice")
        block.append(self.make_field(match, self.message))

    def make_field(self, match: re.Match[str], message: Message) -> Field:
        versions = self.versions(match, message)
        tag_from = match["tag_from"]
        tagged = range(int(tag_from), versions.stop) if tag_from else versions
        return Field(
            name=match["name"],
            type=match["type"],
            struct=self.struct(match, message),
            is_array=match["array"] is not None,
            nullable=self.nullable(match, versions),
            versions=versions,
            tag=None if match["tag"] is None else int(match["tag"]),
            tagged=_NEVER if match["tag"] is None else tagged,
            default=match["default"],
            is_inflexible=match["inflexible"] is not None,
            resource=match["resource"],
        )

    def versions(self, match: re.Match[str], message: Message) -> range:
        if match["first"] is None:
            return message.versions
        first = int(match["first"])
        last = message.versions.stop - 1 if match["open"] else int(match["last"] or first)
        if (match["open"] and match["last"]) or not message.versions.start <= first <= last:
            raise self.error(match.start("first"), "versions that the message does not have")
        return range(first, min(last + 1, message.versions.stop))

    def nullable(self, match: re.Match[str], versions: range) -> range:
        if match["nullable"] is None:
            return _NEVER
        if match["nullable_from"] is None:
            return versions
        return range(int(match["nullable_from"]), versions.stop)

    def struct(self, match: re.Match[str], message: Message) -> Struct | None:
        name = match["type"]
        if name in SCALARS or name in SIZED:
            if name in SCALARS and match["nullable"] and not match["array"]:
                raise self.error(match.start("nullable") + 1, f"{name} cannot be null")
            return None
        if not name[0].isupper():
            raise self.error(match.start("type") + 1, f"unknown type {name}")
        if match["resource"]:
            raise self.error(match.start("resource") + 1, "a struct names nothing by itself")
        if name not in message.structs:
            message.structs[name] = Struct(name, [])
            self.blocks.append(message.structs[name].fields)  # its block must follow
            return message.structs[name]
        return message.structs[name]

    def check_blocks(self) -> None:
        if self.message is None:
            return
        for struct in self.message.structs.values():
            if not struct.fields:
                raise self.error(1, f"struct {struct.name} of {self.message.name} has no block")

    def end_of_line(self, line: str, position: int) -> None:
        if _REMARK.match(line, position) is None:
            rest = line[position:].strip()
            column = len(line) - len(line[position:].lstrip()) + 1
            raise self.error(column, f"unexpected {rest!r}")

    def error(self, column: int, problem: str) -> SpecError:
        return SpecError(f"{self.file_name}:{self.line_number}:{column}: {problem}")


def _api(name: str, options: dict[str, str]) -> Api:
    versions = _range(options.pop("versions"), LAST)
    response_header = options.pop("response_header", None)
    return Api(
        name=name,
        key=int(options.pop("key")),
        versions=versions,
        flexible=_range(options.pop("flexible"), versions.stop - 1),
        listeners=tuple(filter(None, options.pop("listeners", "").split(","))),
        dropped=_range(options.pop("dropped", "none"), LAST),
        unstable=_range(options.pop("unstable", "none"), LAST),
        response_header=None if response_header is None else int(response_header),
    )


def _record(name: str, doc: str, options: dict[str, str]) -> Message:
    versions = _range(options.pop("versions"), LAST)
    flexible = _range(options.pop("flexible"), versions.stop - 1)
    number = options.pop("type", None)
    return Message(name, doc, versions, flexible, None if number is None else int(number), None)


LAST = 32767  # versions are int16 on the wire


def _range(text: str, last: int) -> range:
    """`3-5`, `3+`, `3` or `none`."""
    if text == "none":
        return _NEVER
    if text.endswith("+"):
        return range(int(text[:-1]), last + 1)
    first, dash, end = text.partition("-")
    return range(int(first), int(end if dash else first) + 1)
