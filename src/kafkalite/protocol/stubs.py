"""Writes the stubs messages.pyi and errors.pyi from the specs.

    python -m kafkalite.protocol.stubs

The stubs are checked in, and a test tells when they are stale.
"""

from __future__ import annotations

from pathlib import Path

from kafkalite.protocol import files, spec
from kafkalite.protocol.errors import Error

_PYTHON = {"bool": "bool", "float64": "float", "string": "str", "bytes": "bytes", "uuid": "bytes"}
_GENERATED = "# Generated from protocol_specs by `python -m kafkalite.protocol.stubs`.\n"


def main() -> None:
    here = Path(__file__).parent
    (here / "messages.pyi").write_text(messages_stub(), encoding="utf-8")
    (here / "errors.pyi").write_text(errors_stub(), encoding="utf-8")


def messages_stub() -> str:
    head = [
        _GENERATED,
        "from dataclasses import dataclass",
        "from typing import Any, ClassVar",
        "",
        "from kafkalite.protocol.classes import ZERO_UUID as ZERO_UUID",
        "from kafkalite.protocol.spec import Message",
        "",
        "def message_class(name: str) -> type[Any]: ...",
    ]
    for path in files.message_files():
        for message in spec.read(path).messages.values():
            head += ["", *_message_stub(message)]
    return "\n".join(head) + "\n"


def _message_stub(message: spec.Message) -> list[str]:
    lines = [_DATACLASS, f"class {message.name}:"]
    if message.doc:
        lines.append(f'    """{message.doc}"""')
    lines.append("    SPEC: ClassVar[Message]")
    if message.api is not None:
        lines.append("    API_KEY: ClassVar[int]")
    if message.type is not None:
        lines.append("    TYPE: ClassVar[int]")
    for struct in message.structs.values():
        lines += ["    " + _DATACLASS, f"    class {struct.name}:"]
        lines += ["        " + _field_stub(field, message) for field in struct.fields]
    return lines + ["    " + _field_stub(field, message) for field in message.root.fields]


_DATACLASS = "@dataclass(slots=True, kw_only=True)"


def _field_stub(field: spec.Field, message: spec.Message) -> str:
    if field.struct is not None:
        python = f"{message.name}.{field.type}"
    elif field.type == "records":
        python = "Any"  # a memoryview when decoded; anything with a length to encode
    else:
        python = _PYTHON.get(field.type, "int")
    if field.is_array:
        python = f"list[{python}]"
    if (field.can_be_null or field.default == "null") and python != "Any":
        python += " | None"
    return f"{field.name}: {python} = ..."


def errors_stub() -> str:
    head = [
        _GENERATED,
        "from enum import IntEnum",
        "",
        "class Error(IntEnum):",
        *(f"    {error.name} = {error.value}" for error in Error),
        "    @property",
        "    def is_retriable(self) -> bool: ...",
        "    @property",
        "    def message(self) -> str: ...",
        "",
        "class KafkaError(Exception):",
        "    code: Error",
        "    message: str | None",
        "    def __init__(self, code: Error, message: str | None = None) -> None: ...",
        "",
        "class MalformedFrame(Exception): ...",
    ]
    return "\n".join(head) + "\n"


if __name__ == "__main__":
    main()
