"""Protobuf values by the schemas that they name: what one says as JSON, or what is the matter.

Owns compiling a schema's text with those that it imports, finding the message that a frame names,
and the verdict on a value. The compiler is asked where the command runs, in a process of its own;
where tasks run nothing is needed but protobuf itself.
"""

import base64
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from kafkalite.pipelines.common.outcomes import PipelineError

MISSING = "Protobuf needs its compiler: pip install 'kafkalite[protobuf]'"
NOT_PROTOBUF = "not Protobuf of the schema"
NO_MESSAGE = "no message {path} in its schema"
NO_INDEXES = "no message index before the Protobuf"
NO_TEXT = "a string is not UTF-8"
UNNAMED = "has fields that its schema does not name"
COMPILE_S = 60
LONGEST = 200
# A message lies at most so deep in others, and a number is at most so many bytes.
MAX_DEPTH, MAX_VARINT = 100, 5

# What the compiler says besides what is wrong.
_NOISE = re.compile(r"^[A-Z]\d{4} |^WARNING: All log messages|: warning: ")

Read = tuple[str | None, str | None]


class NotProtobuf(ValueError):
    """A text is no schema; the message says why."""


class _BadFrame(ValueError):
    """A value names no message."""


def compiled(text: str, others: Mapping[str, str]) -> str:
    """A schema with all that it imports, as a set of descriptors. `others` by the names that it
    has for them; what comes with the compiler, such as google/protobuf/timestamp.proto, is found.

    A serializer may have registered a descriptor in base64 instead of a text.
    """
    _check_encodable([text, *others, *others.values()])
    main = "value.proto"
    while main in others:
        main = f"_{main}"
    with tempfile.TemporaryDirectory(prefix="kafkalite-proto-") as home:
        texts, out, described = Path(home, "texts"), Path(home, "descriptors"), []
        texts.mkdir()
        for name, each in {**others, main: text}.items():
            descriptor = _descriptor(name, each)
            if descriptor is None:
                _write(texts, name, each)
            else:
                described.append(descriptor)
        _compile(texts, main, out, described)
        return f"{main}:{base64.b64encode(out.read_bytes()).decode()}"


def _check_encodable(texts: Iterable[str]) -> None:
    try:
        for each in texts:
            each.encode()
    except UnicodeError:
        raise NotProtobuf("it, or what it imports, has half of a character") from None


def _descriptor(name: str, text: str) -> bytes | None:
    """A set of one descriptor, under this name; None for what is a text."""
    try:
        from google.protobuf import descriptor_pb2
        from google.protobuf.message import DecodeError
    except ImportError:
        raise PipelineError(MISSING) from None
    try:
        file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (ValueError, DecodeError):
        return None
    if not text.strip():
        return None
    file.name = name
    return bytes(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())


def _write(folder: Path, name: str, text: str) -> None:
    place = PurePosixPath(name)
    if place.is_absolute() or ".." in place.parts or "\0" in name:
        raise NotProtobuf(f"it imports {name!r}, which is no path below")
    path = folder / place
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise NotProtobuf(f"it imports {name!r}: {error.strerror}") from None


def _compile(folder: Path, main: str, out: Path, described: list[bytes]) -> None:
    call = [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", f"-I{_common_schemas()}"]
    if described:
        # Sets behind each other are one set.
        given = out.with_name("given")
        given.write_bytes(b"".join(described))
        call.append(f"--descriptor_set_in={given}")
    call += ["--include_imports", f"--descriptor_set_out={out}", main]
    try:
        done = subprocess.run(call, capture_output=True, text=True, timeout=COMPILE_S, check=False)
    except subprocess.TimeoutExpired:
        raise NotProtobuf(f"it was not compiled in {COMPILE_S} s") from None
    if done.returncode:
        said = done.stderr.replace(f"{folder}/", "")
        lines = [line for line in said.splitlines() if not _NOISE.search(line)]
        raise NotProtobuf(_short("; ".join(lines) or f"its compiler ended with {done.returncode}"))


def _common_schemas() -> Path:
    """Where google/type/… are; those of google/protobuf/… come with the compiler."""
    try:
        import grpc_tools  # noqa: F401
        from google.type import date_pb2
    except ImportError:
        raise PipelineError(MISSING) from None
    return Path(date_pb2.__file__).parents[2]


def reader(schemas: Mapping[int, str]) -> Callable[[int | None, bytes | None], Read]:
    """A function that gives a value as JSON, or why it is not of the schema of this id.

    Spark hands it to processes of its own, each of which reads the descriptors once.
    """
    known: dict[int, _Messages] = {}

    def read(number: int | None, body: bytes | None) -> Read:
        if number is None or body is None or number not in schemas:
            return None, None
        if number not in known:
            known[number] = _Messages(schemas[number])
        return known[number].read(bytes(body))

    return read


class _Messages:
    """The messages of one schema."""

    def __init__(self, compiled: str) -> None:
        from google.protobuf import descriptor_pb2, descriptor_pool

        main, _, encoded = compiled.partition(":")
        self._pool = descriptor_pool.DescriptorPool()
        self._may_be_no_text = False
        for file in descriptor_pb2.FileDescriptorSet.FromString(base64.b64decode(encoded)).file:
            self._pool.Add(file)
            if file.name == main:
                self._file = file
            # Since proto3 what is no UTF-8 is not parsed.
            self._may_be_no_text |= file.syntax in ("", "proto2", "editions")
        self._classes: dict[tuple[int, ...], Any] = {}

    def read(self, body: bytes) -> Read:
        from google.protobuf import json_format
        from google.protobuf.message import DecodeError

        try:
            path, start = message_path(body)
            message = self._class(path)()
            message.ParseFromString(body[start:])
        except _BadFrame as fault:
            return None, str(fault)
        except DecodeError:
            return None, NOT_PROTOBUF
        if self._may_be_no_text and _has_no_text(message):
            return None, f"{NOT_PROTOBUF}: {NO_TEXT}"
        missing = message.FindInitializationErrors()
        if missing:
            return None, _short(f"{NOT_PROTOBUF}: it has no {', '.join(missing)}")
        size = message.ByteSize()
        message.DiscardUnknownFields()
        if message.ByteSize() != size:
            return None, f"{NOT_PROTOBUF}: it {UNNAMED}"
        try:
            return self._as_json(message), None
        except (
            json_format.Error, TypeError, ValueError, AttributeError, RecursionError,
        ) as error:  # fmt: skip
            # A schema may have another google.protobuf.Timestamp, whose fields are not found.
            return None, _short(f"{NOT_PROTOBUF}: {error}")

    def _as_json(self, message: Any) -> str:
        from google.protobuf import json_format

        text: str = json_format.MessageToJson(
            message,
            indent=None,
            preserving_proto_field_name=True,
            # Zero is a value, and never sent where nothing tells it from none.
            always_print_fields_with_no_presence=True,
            descriptor_pool=self._pool,
        )
        return text

    def _class(self, path: tuple[int, ...]) -> Any:
        if path not in self._classes:
            from google.protobuf import message_factory

            name = self._name(path)
            found = self._pool.FindMessageTypeByName(name)
            self._classes[path] = message_factory.GetMessageClass(found)
        return self._classes[path]

    def _name(self, path: tuple[int, ...]) -> str:
        names = [self._file.package] if self._file.package else []
        level = self._file.message_type
        for index in path:
            if not 0 <= index < len(level):
                raise _BadFrame(NO_MESSAGE.format(path=".".join(map(str, path))))
            names.append(level[index].name)
            level = level[index].nested_type
        return ".".join(names)


def _has_no_text(message: Any) -> bool:
    """Whether a string in a message is none: protobuf gives its bytes, and its JSON has what Python
    would write for them."""
    from google.protobuf.message import Message

    waiting = [message]
    while waiting:
        for field, value in waiting.pop().ListFields():
            kind, values = field.type, [value]
            if isinstance(value, Mapping) and not isinstance(value, Message):
                kind = field.message_type.fields_by_name["value"].type
                try:
                    values = list(value.values())
                except UnicodeDecodeError:  # a key
                    return True
            elif isinstance(value, Sequence) and not isinstance(value, str | bytes | Message):
                values = list(value)
            if kind == field.TYPE_STRING and any(isinstance(each, bytes) for each in values):
                return True
            waiting += [each for each in values if isinstance(each, Message)]
    return False


def message_path(body: bytes) -> tuple[tuple[int, ...], int]:
    """Which message of its file a value is, from the outside in, and where the value begins.

    How many indexes and each of them, all as zigzag numbers; a zero alone is the first message.
    """
    count, at = _number(body, 0)
    if count == 0:
        return (0,), at
    if not 0 < count <= MAX_DEPTH:
        raise _BadFrame(NO_INDEXES)
    path = []
    for _ in range(count):
        index, at = _number(body, at)
        path.append(index)
    return tuple(path), at


def _number(body: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(MAX_VARINT):
        if at + place >= len(body):
            break
        byte = body[at + place]
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at + place + 1
    raise _BadFrame(NO_INDEXES)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
