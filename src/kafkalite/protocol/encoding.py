"""Generates straight-line Python that encodes a construct layout into a list of parts.

The twin of decoding.py. Fields of fixed size that follow each other are packed at once, together
with the length or count behind them. What stands for records is appended as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from construct.core import Construct

from kafkalite.protocol import primitives
from kafkalite.protocol.runtime import FEW, Written, uvarint
from kafkalite.protocol.source import Source, fixed_format, struct_name, unnamed

_LITERALS = (int, float, str, bytes, bool, type(None))
_UUID_FORMAT = "16s"


def generate_encoder(layout: primitives.Object, title: str, *, in_steps: bool) -> Written:
    """`encode(message, parts)`: appends the message's parts; a generator with `in_steps`."""
    writer = _Encoder()
    source = writer.source
    with source.block("try:"):
        if in_steps:
            source.in_steps()
        source.add("add = parts.append")
        writer.object(layout, "message")
        writer.flush()
    with source.block("except NOT_ON_THE_WIRE as error:"):
        source.add(f"raise ValueError(f'{title}: {{error}}') from error")
    return source.written()


class _Encoder:
    """Writes the writing of constructs into `source`.

    `run` is what is still to be packed: struct formats, and an expression for each but pad bytes.
    `add` is the name of the function that takes the next part.
    """

    def __init__(self) -> None:
        self.source = Source("def encode(message, parts):")
        self.run: list[tuple[str, str | None]] = []
        self.add = "add"

    def flush(self) -> None:
        if not self.run:
            return
        layout = "".join(layout for layout, _ in self.run)
        arguments = ", ".join(value for _, value in self.run if value is not None)
        if arguments:
            self.source.add(f"{self.add}({self.source.struct(layout, 'pack')}({arguments}))")
        else:
            self.source.add(f"{self.add}({bytes(len(layout))!r})")
        self.run.clear()

    def value(self, subcon: Construct, value: str) -> None:
        subcon = unnamed(subcon)
        layout = fixed_format(subcon)
        if layout is not None:
            self.fixed(layout, value)
        elif isinstance(subcon, primitives.Sized):
            self.nullable(subcon, subcon.subcon, value, self.sized)
        elif isinstance(subcon, primitives.List):
            self.nullable(subcon, subcon.length, value, self.list)
        elif isinstance(subcon, primitives.NullableStruct):
            self.nullable_struct(subcon, value)
        else:
            self.object(subcon, value)

    def fixed(self, layout: str, value: str) -> None:
        if layout == _UUID_FORMAT:  # struct would cut it, or fill it up
            self.source.add(f"if len({value}) != 16: refuse({value})")
        self.run.append((layout, value))

    def object(self, subcon: primitives.Object, value: str) -> None:
        for member in subcon.subcon.subcons:
            held = f"{value}.{member.name}"
            if not fixed_format(unnamed(member)) or fixed_format(unnamed(member)) == _UUID_FORMAT:
                variable = self.source.new(member.name + "_")
                self.source.add(f"{variable} = {held}")
                held = variable
            self.value(member, held)
        if subcon.tagged is not None:
            self.tagged(subcon.tagged, value)

    def nullable(
        self,
        subcon: Construct,
        length: primitives.Length,
        value: str,
        write: Callable[[Any, str], None],
    ) -> None:
        if not length.is_nullable:
            write(subcon, value)
            return
        self.flush()
        with self.source.block(f"if {value} is None:"):
            if isinstance(length, primitives.CompactLength):
                self.run.append(("x", None))
            else:
                self.run.append((str(fixed_format(length.subcon)), "-1"))
            self.flush()
        with self.source.block("else:"):
            write(subcon, value)
            self.flush()

    def length(self, length: primitives.Length, count: str) -> None:
        if isinstance(length, primitives.CompactLength):
            self.flush()
            self.source.add(
                f"{self.add}(UVARINTS[{count} + 1] if {count} < 127 else uvarint({count} + 1))"
            )
        else:
            self.run.append((str(fixed_format(length.subcon)), count))

    def sized(self, subcon: primitives.Sized, value: str) -> None:
        count = self.source.new("n")
        if isinstance(subcon, primitives.Text):
            encoded = self.source.new("s")
            self.source.add(f"{encoded} = {value}.encode()")
            self.source.add(f"{count} = len({encoded})")
            if isinstance(subcon.subcon, primitives.CompactLength):
                self.source.add(f"if {count} > {primitives.MAX_STRING_BYTES}: refuse({value})")
            value = encoded
        elif isinstance(subcon, primitives.Records):
            self.source.add(f"{count} = records_size({value})")
        else:
            self.source.add(f"{count} = len({value})")
        self.length(subcon.subcon, count)
        self.flush()
        if isinstance(subcon, primitives.Records):
            self.source.add(f"if type({value}) is list: parts.extend({value})")
            self.source.add(f"else: {self.add}({value})")
        else:
            self.source.add(f"{self.add}({value})")

    def list(self, subcon: primitives.List, value: str) -> None:
        count = self.source.new("n")
        self.source.add(f"{count} = len({value})")
        self.length(subcon.length, count)
        self.flush()
        layout = fixed_format(subcon.subcon)
        if layout is not None and len(layout) == 1:
            with self.source.block(f"if {count}:"):
                few = f"{self.source.few(layout, 'pack')}[{count}](*{value})"
                many = f"pack(f'>{{{count}}}{layout}', *{value})"
                self.source.add(f"{self.add}({few} if {count} <= {FEW} else {many})")
            return
        element = self.source.new("o")
        with self.source.block(f"for {element} in {value}:"):
            self.source.element()
            self.value(subcon.subcon, element)
            self.flush()

    def nullable_struct(self, subcon: primitives.NullableStruct, value: str) -> None:
        self.flush()
        with self.source.block(f"if {value} is None:"):
            self.run.append(("b", str(subcon.absent)))
            self.flush()
        with self.source.block("else:"):
            self.run.append(("b", str(subcon.present)))
            self.object(subcon.subcon, value)
            self.flush()

    def tagged(self, subcon: primitives.TaggedFields, value: str) -> None:
        if not subcon.fields:
            self.run.append(("x", None))
            return
        self.flush()
        changed = " or ".join(
            self.differs_tagged(f"{value}.{field.name}", field)
            for field in subcon.fields.values()
        )
        with self.source.block(f"if {changed}:"):
            self.tags(subcon, value)
        with self.source.block("else:"):
            self.source.add(f"{self.add}(b'\\x00')")

    def differs_tagged(self, value: str, field: primitives.TaggedField) -> str:
        if isinstance(field.subcon, primitives.NullableStruct) and field.default is not None:
            return f"{value} != {self.source.part('new', struct_name(type(field.default)))}"
        return self.differs(value, field.default)

    def differs(self, value: str, default: Any) -> str:
        """The condition that a value is not its default, without a call where that can be."""
        if isinstance(default, _LITERALS):
            return f"{value} is not None" if default is None else f"{value} != {default!r}"
        if isinstance(default, list):
            return f"{value} != []"
        held = {name: getattr(default, name) for name in default.__slots__}
        if not all(isinstance(field, _LITERALS) for field in held.values()):
            return f"{value} != {self.source.part('new', struct_name(type(default)))}"
        return " or ".join(self.differs(f"{value}.{name}", field) for name, field in held.items())

    def tags(self, subcon: primitives.TaggedFields, value: str) -> None:
        """Tagged fields need their size before them, so each is built aside first."""
        source = self.source
        outer, count, built = self.add, source.new("n"), source.new("built")
        source.add(f"{count} = 0")
        source.add(f"{built} = []")
        for tag, field in subcon.fields.items():
            held = f"{value}.{field.name}"
            with source.block(f"if {self.differs_tagged(held, field)}:"):
                inner, self.add = source.new("inner"), source.new("add")
                source.add(f"{inner} = []")
                source.add(f"{self.add} = {inner}.append")
                self.value(field.subcon, held)
                self.flush()
                source.add(f"{inner} = b''.join({inner})")
                source.add(f"{count} += 1")
                source.add(f"{built} += ({uvarint(tag)!r}, uvarint(len({inner})), {inner})")
        self.add = outer
        source.add(f"{self.add}(uvarint({count}))")
        source.add(f"{self.add}(b''.join({built}))")
