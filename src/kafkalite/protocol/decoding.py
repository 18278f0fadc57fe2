"""Generates straight-line Python that decodes a construct layout.

One walk over the construct objects writes one function. Fields of fixed size that follow each
other are read at once, together with the length or count that stands behind them. Every length is
checked against the end and every count against the bytes left before anything is made of them;
what is read past the end otherwise is an IndexError or struct.error, and becomes MalformedFrame.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from construct.core import Construct

from kafkalite.protocol import primitives
from kafkalite.protocol.errors import MalformedFrame
from kafkalite.protocol.source import (
    Source,
    continue_uvarint,
    fixed_format,
    least_bytes,
    read_tag,
    skip_tags,
    unnamed,
)

_LITERALS = (int, float, str, bytes, bool, type(None))


def compile_decoder(
    layout: primitives.Object, title: str, *, is_prefix: bool
) -> Callable[..., Any]:
    """`decode(data, p=0)`: the message, and with `is_prefix` also the position after it."""
    writer = _Decoder(title)
    source = writer.source
    source.names |= {
        "MalformedFrame": MalformedFrame,
        "continue_uvarint": continue_uvarint,
        "read_tag": read_tag,
        "skip_tags": skip_tags,
        "unpack_from": struct.unpack_from,
        "REFUSED": (IndexError, struct.error, UnicodeDecodeError),
    }
    with source.block("try:"):
        _write_prologue(source, _has_records(layout))
        made = writer.object(layout)
        writer.flush()
        if is_prefix:
            source.add(f"return {made}, p")
        else:
            with source.block("if p != end:"):
                writer.refuse("bytes after its end")
            source.add(f"return {made}")
    with source.block("except REFUSED as error:"):
        source.add(f"raise MalformedFrame(f'{title}: {{error}}') from error")
    return source.compile("decode", f"decode {title}")


def _write_prologue(source: Source, has_records: bool) -> None:
    """Slices and indices of bytes are cheaper than of views, but records must not be copied."""
    if has_records:
        source.add("view = memoryview(data)")
        source.add("if type(data) is memoryview: data = bytes(data)")
    else:
        source.add("if type(data) is not bytes: data = bytes(data)")
    source.add("end = len(data)")


def _has_records(subcon: Construct) -> bool:
    subcon = unnamed(subcon)
    if isinstance(subcon, primitives.Object):
        return any(map(_has_records, subcon.subcon.subcons))
    if isinstance(subcon, primitives.List | primitives.NullableStruct):
        return _has_records(subcon.subcon)
    return isinstance(subcon, primitives.Records)


class _Decoder:
    """Writes the reading of constructs into `source`; each method returns where the value is.

    `run` is what is still to be read at position p: struct formats, and the variables for them.
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self.source = Source("def decode(data, p=0):")
        self.run: list[tuple[str, str]] = []

    def refuse(self, problem: str) -> None:
        self.source.add(f"raise MalformedFrame({f'{self.title}: {problem}'!r})")

    def later(self, layout: str, stem: str) -> str:
        """Reads a fixed field with the others of its run."""
        variable = self.source.new(stem)
        self.run.append((layout, variable))
        return variable

    def flush(self) -> None:
        """Reads the run: what follows needs its values, or moves p."""
        if not self.run:
            return
        layout = "".join(layout for layout, _ in self.run)
        variables = ", ".join(variable for _, variable in self.run)
        if layout == "B":
            self.source.add(f"{variables} = data[p]")
        else:
            name = self.source.struct(layout, "unpack_from")
            comma = "," if len(self.run) == 1 else ""
            self.source.add(f"{variables}{comma} = {name}(data, p)")
        self.source.add(f"p += {struct.calcsize('>' + layout)}")
        self.run.clear()

    def value(self, subcon: Construct, name: str) -> str:
        """The expression of a value; it can be a variable that flush has yet to assign."""
        subcon = unnamed(subcon)
        layout = fixed_format(subcon)
        if layout is not None:
            return self.later(layout, name + "_")
        if isinstance(subcon, primitives.Sized):
            return self.sized(subcon, name)
        if isinstance(subcon, primitives.List):
            return self.list(subcon, name)
        if isinstance(subcon, primitives.NullableStruct):
            return self.nullable_struct(subcon, name)
        return self.object(subcon)

    def object(self, subcon: primitives.Object) -> str:
        values = {
            member.name: self.value(member, member.name) for member in subcon.subcon.subcons
        }
        if subcon.tagged is not None:
            values |= self.tagged(subcon.tagged, subcon.factory)
        factory = self.source.constant(subcon.factory.__name__, subcon.factory)
        arguments = [
            values.get(name) or self.default(default)
            for name, default in _defaults(subcon.factory).items()
        ]
        return f"{factory}({', '.join(arguments)})"

    def default(self, default: Any) -> str:
        is_literal = isinstance(default, _LITERALS)
        return repr(default) if is_literal else self.source.constant("DEFAULT", default)

    def length(self, subcon: primitives.Length) -> tuple[str, int, int]:
        """A variable read from the wire; what to take off it; and the value that means null."""
        if isinstance(subcon, primitives.CompactLength):
            variable = self.later("B", "n")
            self.flush()
            with self.source.block(f"if {variable} > 127:"):
                self.source.add(f"{variable}, p = continue_uvarint(data, p, {variable})")
            return variable, 1, 0
        variable = self.later(str(fixed_format(subcon.subcon)), "n")
        self.flush()
        return variable, 0, -1

    def sized(self, subcon: primitives.Sized, name: str) -> str:
        count, excess, null = self.length(subcon.subcon)
        value = self.source.new(name + "_")
        if not subcon.subcon.is_nullable:
            self.content(subcon, value, count, excess)
            return value
        with self.source.block(f"if {count} == {null}:"):
            self.source.add(f"{value} = None")
        with self.source.block("else:"):
            self.content(subcon, value, count, excess)
        return value

    def content(self, subcon: primitives.Sized, value: str, count: str, excess: int) -> None:
        add = self.source.add
        add(f"e = p + {count}" + (f" - {excess}" if excess else ""))
        with self.source.block("if not p <= e <= end:"):
            self.refuse(f"{value.rpartition('_')[0]} does not end in the frame")
        if isinstance(subcon, primitives.Text):
            if excess:  # a length of two bytes says no more than this by itself
                with self.source.block(f"if {count} > {primitives.MAX_STRING_BYTES + excess}:"):
                    self.refuse(f"{value.rpartition('_')[0]} is too long")
            add(f"{value} = data[p:e].decode()")
        elif isinstance(subcon, primitives.Records):
            add(f"{value} = view[p:e]")
        else:
            add(f"{value} = bytes(data[p:e])")
        add("p = e")

    def list(self, subcon: primitives.List, name: str) -> str:
        count, excess, null = self.length(subcon.length)
        value = self.source.new(name + "_")
        if not subcon.length.is_nullable:
            self.elements(subcon, value, count, excess)
            return value
        with self.source.block(f"if {count} == {null}:"):
            self.source.add(f"{value} = None")
        with self.source.block("else:"):
            self.elements(subcon, value, count, excess)
        return value

    def elements(self, subcon: primitives.List, value: str, count: str, excess: int) -> None:
        add = self.source.add
        if excess:
            add(f"{count} -= {excess}")
        least = least_bytes(subcon.subcon)
        needed = count if least == 1 else f"{count} * {least}"
        with self.source.block(f"if not 0 <= {needed} <= end - p:"):
            self.refuse(f"more {value.rpartition('_')[0]} than the frame can hold")
        layout = fixed_format(subcon.subcon)
        if layout is None:
            add(f"{value} = []")
            with self.source.block(f"for _ in range({count}):"):
                element = self.value(subcon.subcon, value.rpartition("_")[0])
                self.flush()
                add(f"{value}.append({element})")
        elif len(layout) == 1:
            add(f"{value} = list(unpack_from(f'>{{{count}}}{layout}', data, p)) if {count} else []")
            add(f"p += {needed}")
        else:
            add(f"e = p + {needed}")
            add(f"{value} = [bytes(data[q:q + {least}]) for q in range(p, e, {least})]")
            add("p = e")

    def nullable_struct(self, subcon: primitives.NullableStruct, name: str) -> str:
        layout = "B" if subcon.absent == 0 else "b"  # a varint of 0 or 1 is one byte
        marker = self.later(layout, "marker")
        self.flush()
        value = self.source.new(name + "_")
        with self.source.block(f"if {marker} == {subcon.absent}:"):
            self.source.add(f"{value} = None")
        with self.source.block(f"elif {marker} == {subcon.present}:"):
            made = self.object(subcon.subcon)
            self.flush()
            self.source.add(f"{value} = {made}")
        with self.source.block("else:"):
            self.refuse(f"a marker before {name} that is none")
        return value

    def tagged(
        self, subcon: primitives.TaggedFields, factory: Callable[..., Any]
    ) -> dict[str, str]:
        count = self.later("B", "tags")
        self.flush()
        if not subcon.fields:
            with self.source.block(f"if {count}:"):
                self.source.add(f"p = skip_tags(data, p, end, {count})")
            return {}
        defaults = _defaults(factory)
        values = {}
        for field in subcon.fields.values():
            variable = values[field.name] = self.source.new(field.name + "_")
            self.source.add(f"{variable} = {self.default(defaults[field.name])}")
        with self.source.block(f"if {count}:"):
            self.tags(subcon, values, count)
        return values

    def tags(self, subcon: primitives.TaggedFields, values: dict[str, str], count: str) -> None:
        add = self.source.add
        tag, stop = self.source.new("tag"), self.source.new("stop")
        with self.source.block(f"if {count} > 127:"):
            add(f"{count}, p = continue_uvarint(data, p, {count})")
        add(f"{tag} = -1")
        with self.source.block(f"for _ in range({count}):"):
            add(f"{tag}, p, {stop} = read_tag(data, p, end, {tag})")
            word = "if"
            for number, field in subcon.fields.items():
                with self.source.block(f"{word} {tag} == {number}:"):
                    value = self.value(field.subcon, field.name)
                    self.flush()
                    add(f"{values[field.name]} = {value}")
                word = "elif"
            with self.source.block("else:"):
                add(f"p = {stop}")
            with self.source.block(f"if p != {stop}:"):
                self.refuse("a tagged field whose size is not its own")


def _defaults(factory: Any) -> dict[str, Any]:
    """What the constructor of a message class takes, in order, and what stands for it."""
    return dict(zip(factory.__slots__, factory.__init__.__defaults__ or (), strict=True))
