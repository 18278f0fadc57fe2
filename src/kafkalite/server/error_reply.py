"""The reply of an API to a request that failed as a whole.

Owns the rule, not a table: the error goes where the response has a slot for it, at its top or, when
it has none there, with each of the things that the request named. An API whose response has no slot
at all gives None; its peer is cut off instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kafkalite.env.dataclasses import dataclass
from kafkalite.env.slicing import ELEMENTS_PER_STEP, Steps, finish
from kafkalite.protocol import spec
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import message_class

# By which something is named.
NUMBERS = frozenset(
    "index partition partition_id partition_index producer_id resource_type".split()
)


def error_reply(request: Any, version: int, code: Error, message: str | None = None) -> Any | None:
    """A response to `request` that says nothing but this error."""
    return finish(error_reply_in_steps(request, version, code, message))


def error_reply_in_steps(
    request: Any, version: int, code: Error, message: str | None = None
) -> Steps[Any | None]:
    """The same, of a request that may name thousands of things."""
    asked: spec.Message = type(request).SPEC
    assert asked.api is not None
    failure = _Failure(message_class(f"{asked.api.name}Response"), version, code, message)
    response = failure.cls()
    answered: spec.Message = failure.cls.SPEC
    if failure.mark(response, answered.root):
        return response
    is_told = yield from failure.mirror(request, asked.root, response, answered.root)
    return response if is_told else None


def refused_entries(request: Any, version: int, code: Error) -> Steps[list[Any]]:
    """What the response to `request` has for each entry that it names, all of which are refused."""
    asked: spec.Message = type(request).SPEC
    assert asked.api is not None
    failure = _Failure(message_class(f"{asked.api.name}Response"), version, code, None)
    response = failure.cls()
    yield from failure.mirror(request, asked.root, response, failure.cls.SPEC.root)
    entries: list[Any] = getattr(response, answered_array(failure.cls, version))
    return entries


def answered_array(cls: type[Any], version: int) -> str:
    """The array of a response with an answer to each entry of its request."""
    return next(_Failure(cls, version, Error.NONE, None).slots_of(cls.SPEC.root)).name


@dataclass(slots=True)
class _Failure:
    """An error, and the class and version of the response it goes into."""

    cls: type[Any]
    version: int
    code: Error
    message: str | None
    told: int = 0  # entries so far

    def mark(self, target: Any, struct: spec.Struct) -> bool:
        """Puts the error into the slot of a struct, if it has one."""
        found = False
        for field in self._fields(struct):
            if field.type == "error":
                setattr(target, field.name, self.code)
                found = True
            elif field.name == "error_message" and field.type == "string":
                target.error_message = self.message
        return found

    def mirror(
        self, request: Any, asked: spec.Struct, response: Any, answered: spec.Struct
    ) -> Steps[bool]:
        """Gives the response an entry with the error for each entry of the request's array."""
        slot = next(self.slots_of(answered), None)
        source = self._source(asked, slot) if slot is not None else None
        if slot is None or slot.struct is None or source is None:
            return False
        entries = getattr(response, slot.name)
        for item in getattr(request, source.name) or ():
            entry = getattr(self.cls, slot.type)()
            _copy_names(item, entry, source, slot.struct)
            if not self.mark(entry, slot.struct) and source.struct is not None:
                yield from self.mirror(item, source.struct, entry, slot.struct)
            entries.append(entry)
            self.told += 1
            if self.told % ELEMENTS_PER_STEP == 0:
                yield
        return True

    def slots_of(self, struct: spec.Struct) -> Iterator[spec.Field]:
        """The arrays of a struct that have slots for errors."""
        return (field for field in self._fields(struct) if self._has_slot(field))

    def _fields(self, struct: spec.Struct) -> list[spec.Field]:
        return [field for field in struct.fields if self.version in field.versions]

    def _has_slot(self, field: spec.Field) -> bool:
        """Whether an array's entries, or those of an array in them, have a slot for an error."""
        return field.is_array and field.struct is not None and any(
            inner.type == "error" or self._has_slot(inner) for inner in self._fields(field.struct)
        )

    def _source(self, asked: spec.Struct, slot: spec.Field) -> spec.Field | None:
        """The array of the request that the response's answers: of the same name, or the first."""
        arrays = [field for field in self._fields(asked) if field.is_array]
        named = (field for field in arrays if field.name == slot.name)
        return next(named, arrays[0] if arrays else None)


def _is_name(field: spec.Field) -> bool:
    return (
        field.struct is None
        and not field.is_array
        and field.default is None
        and (field.type in ("string", "uuid") or field.name in NUMBERS)
    )


def _copy_names(item: Any, entry: Any, source: spec.Field, struct: spec.Struct) -> None:
    """What names the thing, or the value itself. A name has no default, and what is told of the
    thing may be called as what was asked of it: a time, an epoch."""
    if source.struct is None:
        name = next(
            field.name for field in struct.fields if _is_name(field) and field.type == source.type
        )
        setattr(entry, name, item)
        return
    known = {field.name: field for field in source.struct.fields}
    for field in struct.fields:
        same = known.get(field.name)
        if same and _is_name(field) and not same.is_array and field.type == same.type:
            setattr(entry, field.name, getattr(item, field.name))
