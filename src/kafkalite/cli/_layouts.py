"""Finds messages by any of their names, and prints their fields as a version has them."""

from __future__ import annotations

from collections.abc import Iterator

from kafkalite.protocol import spec


def find(word: str) -> list[spec.Message]:
    """The messages of an API (its name or key), or the one message of this name."""
    wanted = word.replace("_", "").lower()
    found = [
        message
        for path in spec.message_files()
        if wanted.startswith(_plain_stem(path.stem)) or _key_of(path.stem) == wanted
        for message in spec.read(path).messages.values()
    ]
    named = [message for message in found if message.name.lower() == wanted]
    return named or [message for message in found if _is_api(message, wanted)]


def find_api(word: str) -> spec.Api | None:
    """The API of this name or key."""
    for message in find(word):
        if message.api is not None:
            return message.api
    return None


def describe(message: spec.Message, version: int | None) -> Iterator[str]:
    """The message's layout, in one version or over all."""
    kind = f" key={message.api.key}" if message.api else ""
    kind += f" type={message.type}" if message.type is not None else ""
    shown = f"versions={_range(message.versions)}" if version is None else f"version={version}"
    yield f"{message.name}{kind} {shown} flexible={_range(message.flexible)}"
    yield from _fields(message, message.root, version, 1)


def _fields(
    message: spec.Message, struct: spec.Struct, version: int | None, depth: int
) -> Iterator[str]:
    for field in struct.fields:
        if version is None or field.is_in(version):
            yield f"{'    ' * depth}{_field(message, field, version)}"
            if field.struct is not None:
                yield from _fields(message, field.struct, version, depth + 1)


def _field(message: spec.Message, field: spec.Field, version: int | None) -> str:
    kind = f"[{field.type}]" if field.is_array else field.type
    line = f"{field.name}: {kind}"
    if field.can_be_null if version is None else version in field.nullable:
        line += "?"
    if field.default is not None:
        line += f" = {field.default}"
    if version is None and field.versions != message.versions and field.versions:
        line += f"  @{_range(field.versions)}"
    if field.tag is not None and (version is None or version in field.tagged):
        line += f"  tag {field.tag}"
    return line


def _range(versions: range) -> str:
    if not versions:
        return "none"
    if versions.stop > spec.LAST:
        return f"{versions.start}+"
    return f"{versions.start}-{versions.stop - 1}"


def _plain_stem(stem: str) -> str:
    return stem.lstrip("0123456789_").replace("_", "")


def _key_of(stem: str) -> str:
    number = stem.partition("_")[0]
    return str(int(number)) if number.isdigit() else ""


def _is_api(message: spec.Message, wanted: str) -> bool:
    api = message.api
    if api is None:
        return message.name.lower() in (f"{wanted}key", f"{wanted}value")
    return wanted in (api.name.lower(), str(api.key))
