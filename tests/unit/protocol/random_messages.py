"""Random messages of any class and version, from a random.Random that the test owns."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from kafkalite.protocol import classes, files, spec
from kafkalite.protocol.messages import message_class

_LONG_ENOUGH_FOR_TWO_VARINT_BYTES = 130


def every_message() -> list[spec.Message]:
    return [
        message for path in files.message_files() for message in spec.read(path).messages.values()
    ]


def every_version() -> Iterator[tuple[type[Any], int]]:
    for message in every_message():
        for version in message.versions:
            yield message_class(message.name), version


def random_message(chance: random.Random, cls: type[Any], version: int) -> Any:
    """A message with every field of this version random, and every other one at its default."""
    return _Maker(chance, cls, version).struct(cls.SPEC.root)


class _Maker:
    def __init__(self, chance: random.Random, cls: type[Any], version: int) -> None:
        self.chance = chance
        self.cls = cls
        self.version = version

    def struct(self, struct: spec.Struct) -> Any:
        cls = self.cls if struct is self.cls.SPEC.root else getattr(self.cls, struct.name)
        here = [field for field in struct.fields if self.version in field.versions]
        return cls(**{field.name: self.value(field) for field in here})

    def value(self, field: spec.Field) -> Any:
        is_nullable = self.version in field.nullable
        kind = self.chance.randrange(4)
        if kind == 0 and is_nullable:
            return None
        default = classes.default_value(self.cls, field)
        if kind == 1 and (default is not None or is_nullable):
            return default
        if field.is_array:
            many = 20 if field.struct is None else 3
            return [self.element(field) for _ in range(self.chance.choice([0, 1, 2, many]))]
        return self.element(field)

    def element(self, field: spec.Field) -> Any:
        return self.struct(field.struct) if field.struct else self.scalar(field.type)

    def scalar(self, name: str) -> Any:
        chance = self.chance
        if name == "bool":
            return chance.random() < 0.5
        if name == "float64":
            return chance.choice([0.0, -1.5, 2e300, chance.random()])
        if name == "uuid":
            return chance.choice([classes.ZERO_UUID, chance.randbytes(16)])
        length = chance.choice([0, 1, 7, 126, 127, _LONG_ENOUGH_FOR_TWO_VARINT_BYTES])
        if name == "string":
            return "".join(chance.choice("az09-é→𝄞") for _ in range(length))
        if name in ("bytes", "records"):
            return chance.randbytes(length)
        return self.integer(name)

    def integer(self, name: str) -> int:
        bits = 16 if name == "error" else int(name.lstrip("uint"))
        low = 0 if name[0] == "u" else -(2 ** (bits - 1))
        high = low + 2**bits - 1
        return self.chance.choice([0, 1, max(low, -1), low, high, self.chance.randint(low, high)])
