"""Generates straight-line Python that decodes a construct layout.

One walk over the construct objects writes one function. Fields of fixed size that follow each
other are read at once, together with the length or count that stands behind them. Every length is
checked against the end and every count against the bytes left before anything is made of them;
what is read past the end otherwise is an IndexError or struct.error, and becomes MalformedFrame.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from construct.core import Construct

from kafkalite.protocol import primitives
from kafkalite.protocol.classes import New
from kafkalite.protocol.runtime import FEW, FEW_ELEMENTS, Written
from kafkalite.protocol.source import Source, fixed_format, struct_name, unnamed

# A frame with records is copied up to this size when it comes as a view: that costs less than
# reading its fields from the view.
COPIED_BYTES = 4096


def generate_decoder(
    layout: primitives.Object, title: str, *, is_prefix: bool, in_steps: bool, is_limited: bool
) -> Written:
    """`decode(data, p=0)`: the message, and with `is_prefix` also the position after it; a
    generator that returns them with `in_steps`. One that `is_limited` raises ManyElements before
    it reads a list with which there would be more than FEW_ELEMENTS in all."""
    writer = _Decoder(title, _has_records(layout), is_limited=is_limited)
    source = writer.source
    with source.block("try:"):
        writer.prologue()
        if in_steps:
            source.in_steps()
        if is_limited:
            source.add(f"left = {FEW_ELEMENTS}")
        made = writer.object(layout, "message")
        if is_prefix:
            source.add(f"return {made}, p")
        else:
            with source.block("if p != end:"):
                writer.refuse("bytes after its end")
            source.add(f"return {made}")
    with source.block("except PAST_THE_END as error:"):
        source.add(f"raise MalformedFrame(f'{title}: {{error}}') from error")
    return source.written()


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

    def __init__(self, title: str, has_records: bool, *, is_limited: bool) -> None:
        self.title = title
        self.is_limited = is_limited
        self.has_records = has_records
        self.source = Source("def decode(data, p=0):")
        self.run: list[tuple[str, str]] = []

    def prologue(self) -> None:
        """Bytes are cheaper to cut than views, but large records are not to be copied for that."""
        add = self.source.add
        add("end = len(data)")
        if not self.has_records:
            add("if type(data) is not bytes: data = bytes(data)")
            return
        add("is_view = type(data) is memoryview")
        add("view = data if is_view else memoryview(data)")
        with self.source.block(f"if is_view and end <= {COPIED_BYTES}:"):
            add("data = bytes(data)")
            add("is_view = False")

    def text(self, content: str) -> str:
        if self.has_records:
            return f"(bytes(data{content}) if is_view else data{content}).decode('utf-8', AS_JAVA)"
        return f"data{content}.decode('utf-8', AS_JAVA)"

    def refuse(self, problem: str) -> None:
        self.source.add(f"raise MalformedFrame({f'{self.title}: {problem}'!r})")

    def later(self, layout: str, stem: str) -> str:
        """Reads a fixed field with the others of its run."""
        variable = self.source.new(stem)
        self.run.append((layout, variable))
        return variable

    def flush(self, back: int = 0) -> None:
        """Reads the run, whose values are needed next; p is then `back` bytes before its end."""
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
        self.advance(struct.calcsize(">" + layout) - back)
        self.run.clear()

    def advance(self, count: int) -> None:
        if count:
            self.source.add(f"p {'+' if count > 0 else '-'}= {abs(count)}")

    def value(self, subcon: Construct, name: str) -> str:
        """The variable of a value, which the next flush may have yet to assign."""
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
        return self.object(subcon, name)

    def object(self, subcon: primitives.Object, name: str) -> str:
        """Makes the object without its constructor, which costs more than the rest of it."""
        values = {
            member.name: self.value(member, member.name) for member in subcon.subcon.subcons
        }
        if subcon.tagged is not None:
            values |= self.tagged(subcon.tagged, subcon.factory)
        self.flush()
        made = self.source.new(name + "_")
        cls = self.source.part("class", struct_name(subcon.factory))
        self.source.add(f"{made} = new({cls})")
        for slot, default in _defaults(subcon.factory).items():
            self.source.add(f"{made}.{slot} = {values.get(slot) or self.default(default)}")
        return made

    def default(self, default: Any) -> str:
        if not isinstance(default, New):
            return repr(default)
        if default.struct is None:
            return "[]"
        return f"{self.source.part('class', default.struct)}()"

    def length(self, subcon: primitives.Length, name: str, *, back: int, most: int = 0) -> str:
        """The variable of a length, its varint complete; p is `back` bytes before what follows."""
        is_compact = isinstance(subcon, primitives.CompactLength)
        count = self.later("B" if is_compact else str(fixed_format(subcon.subcon)), "n")
        self.flush(back)
        if is_compact:
            with self.source.block(f"if {count} > 127:"):
                ahead = f" + {back}" * bool(back)
                self.source.add(f"{count}, p = continue_uvarint(data, p{ahead}, {count})")
                if most:
                    with self.source.block(f"if {count} > {most + 1}:"):
                        self.refuse(f"{name} is too long")
                self.advance(-back)
        return count

    @contextmanager
    def unless_null(
        self, length: primitives.Length, count: str, value: str, *, back: int
    ) -> Iterator[None]:
        """What is written inside runs for anything but null, which is read here."""
        if not length.is_nullable:
            yield
            return
        is_compact = isinstance(length, primitives.CompactLength)
        with self.source.block(f"if not {count}:" if is_compact else f"if {count} == -1:"):
            self.source.add(f"{value} = None")
            self.advance(back)
        with self.source.block("else:"):
            yield

    def sized(self, subcon: primitives.Sized, name: str) -> str:
        """With p left one byte back, the one that a compact length is too high by cancels out."""
        add, length, value = self.source.add, subcon.subcon, self.source.new(name + "_")
        back = int(isinstance(length, primitives.CompactLength))
        most = primitives.MAX_STRING_BYTES if isinstance(subcon, primitives.Text) else 0
        count = self.length(length, name, back=back, most=most)
        with self.unless_null(length, count, value, back=back):
            add(f"e = p + {count}")
            with self.source.block(f"if {self.is_outside(length, count)}:"):
                self.refuse(f"{name} does not end in the frame")
            content = "[p + 1:e]" if back else "[p:e]"
            if isinstance(subcon, primitives.Text):
                add(f"{value} = {self.text(content)}")
            elif isinstance(subcon, primitives.Records):
                add(f"{value} = view{content}")
            else:
                add(f"{value} = bytes(data{content})")
            add("p = e")
        return value

    def is_outside(self, length: primitives.Length, count: str) -> str:
        """Whether the end e is none: past the frame's end, or of a length that is no length."""
        if not isinstance(length, primitives.CompactLength):
            return f"e > end or {count} < 0"
        return "e > end" if length.is_nullable else f"e > end or not {count}"

    def list(self, subcon: primitives.List, name: str) -> str:
        length, value = subcon.length, self.source.new(name + "_")
        layout = fixed_format(subcon.subcon)
        # Elements that are read one by one stop at the end by themselves: that each has a byte is
        # close enough. Those that are read at once are counted exactly.
        least = 1 if layout is None else struct.calcsize(">" + layout)
        count = self.length(length, name, back=0)
        with self.unless_null(length, count, value, back=0):
            if isinstance(length, primitives.CompactLength):
                self.source.add(f"{count} -= 1")
            needed = count if least == 1 else f"{count} * {least}"
            with self.source.block(f"if not 0 <= {needed} <= end - p:"):
                self.refuse(f"more {name} than the frame can hold")
            if layout is None:
                self.elements(subcon.subcon, name, value, count)
            else:
                self.fixed_elements(layout, value, count, least)
        return value

    def elements(self, subcon: Construct, name: str, value: str, count: str) -> None:
        """Counts down: for the few elements that most lists have, cheaper than a range."""
        if self.is_limited:
            self.source.add(f"left -= {count}")
            self.source.add("if left < 0: raise ManyElements")
        self.source.add(f"{value} = []")
        with self.source.block(f"while {count}:"):
            self.source.element()
            self.source.add(f"{count} -= 1")
            element = self.value(subcon, name)
            self.flush()
            self.source.add(f"{value}.append({element})")

    def fixed_elements(self, layout: str, value: str, count: str, least: int) -> None:
        if len(layout) == 1:
            few = f"{self.source.few(layout, 'unpack_from')}[{count}](data, p)"
            many = f"unpack_from(f'>{{{count}}}{layout}', data, p)"
            self.source.add(f"{value} = list({few} if {count} <= {FEW} else {many})")
        else:
            starts = f"range(p, p + {count} * {least}, {least})"
            self.source.add(f"{value} = [bytes(data[q:q + {least}]) for q in {starts}]")
        self.source.add(f"p += {count} * {least}")

    def nullable_struct(self, subcon: primitives.NullableStruct, name: str) -> str:
        layout = "B" if subcon.absent == 0 else "b"  # a varint of 0 or 1 is one byte
        marker = self.later(layout, "marker")
        self.flush()
        value = self.source.new(name + "_")
        with self.source.block(f"if {marker} == {subcon.absent}:"):
            self.source.add(f"{value} = None")
        with self.source.block(f"elif {marker} == {subcon.present}:"):
            self.source.add(f"{value} = {self.object(subcon.subcon, name)}")
        with self.source.block("else:"):
            self.refuse(f"a marker before {name} that is none")
        return value

    def tagged(
        self, subcon: primitives.TaggedFields, factory: type[Any]
    ) -> dict[str, str]:
        if not subcon.fields:
            self.no_tags()
            return {}
        count = self.later("B", "tags")
        self.flush()
        defaults = _defaults(factory)
        values = {}
        for field in subcon.fields.values():
            variable = values[field.name] = self.source.new(field.name + "_")
            self.source.add(f"{variable} = {self.default(defaults[field.name])}")
        with self.source.block(f"if {count}:"):
            self.tags(subcon, values, count)
        return values

    def no_tags(self) -> None:
        """Where no tag is known there is mostly a lone zero."""
        if not self.run:
            with self.source.block("if data[p]:"):
                self.source.add("p = skip_tags(data, p + 1, end, data[p])")
            with self.source.block("else:"):
                self.source.add("p += 1")
            return
        count = self.later("B", "tags")
        self.flush()
        with self.source.block(f"if {count}:"):
            self.source.add(f"p = skip_tags(data, p, end, {count})")

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


def _defaults(factory: type[Any]) -> dict[str, Any]:
    """What the constructor of a message class takes, in order, and what stands for it."""
    constructor: Any = factory.__init__
    return dict(zip(factory.__slots__, constructor.__defaults__ or (), strict=True))
