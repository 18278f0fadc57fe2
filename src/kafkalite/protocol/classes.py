"""Makes the message classes from the specs: slotted dataclasses with keyword constructors.

A class has one attribute per field over all versions, each with its default, and the classes of
its nested structs. The source is generated and executed once per message, because that is several
times faster than `dataclasses` on classes that are made when a broker starts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafkalite.protocol import code_cache, files, wheel_sources
from kafkalite.protocol.runtime import Written

if TYPE_CHECKING:
    from kafkalite.protocol import spec

ZERO_UUID = bytes(16)

_ZERO: dict[str, Any] = {
    "bool": False,
    "float64": 0.0,
    "string": "",
    "bytes": b"",
    "records": b"",
    "uuid": ZERO_UUID,
}


class New:
    """Stands in a signature for a default that each object must have for itself."""

    __slots__ = ("struct",)

    def __init__(self, struct: str | None) -> None:
        self.struct = struct  # the name of a nested struct; None is a list

    def __repr__(self) -> str:
        return f"<a new {self.struct or 'list'}>"


class _Spec:
    """The class's spec, read when it is asked for: kept code does without it."""

    def __get__(self, obj: object, cls: type[Any]) -> spec.Message:
        return _spec_of(cls.__name__)


def _spec_of(name: str) -> spec.Message:
    from kafkalite.protocol import spec

    return spec.message(name)


class _DataclassFields:
    """What makes a class a dataclass to `dataclasses`: made when first asked for, as it is slow."""

    def __get__(self, obj: object, cls: Any) -> Any:
        import dataclasses

        def field(name: str, default: Any) -> Any:
            if isinstance(default, New):
                return dataclasses.field(default_factory=lambda: getattr(cls(), name))
            return dataclasses.field(default=default)

        defaults = zip(cls.__slots__, cls.__init__.__defaults__ or (), strict=True)
        fields = [(name, Any, field(name, default)) for name, default in defaults]
        twin: Any = dataclasses.make_dataclass(cls.__name__, fields)
        cls.__dataclass_fields__ = twin.__dataclass_fields__
        return twin.__dataclass_fields__


def build(name: str, module: str) -> type[Any]:
    """The class of the message of this name; KeyError when there is none."""
    made_from = files.file_of(name)
    code = code_cache.load(name, made_from, "class")
    if code is None:
        source, _ = wheel_sources.load(name, made_from, "class") or write(name)
        code = compile(source, f"<{name}>", "exec")
        code_cache.store(name, made_from, "class", code)
    names: dict[str, Any] = {
        "__name__": module,
        "New": New,
        "SPEC": _Spec(),
        "FIELDS": _DataclassFields(),
        "represent": _represent,
    }
    exec(code, names)
    cls: type[Any] = names[name]
    return cls


def write(name: str) -> Written:
    """The source of the class."""
    message = _spec_of(name)
    return "\n".join(_class_source(message.root, message)), {}


def default_value(cls: type[Any], field: spec.Field) -> Any:
    """What an attribute is when nobody sets it; a new list or struct at each call."""
    if field.default is None:
        if field.type == "records" and field.can_be_null:
            return None
        return _zero_value(cls, field)
    if field.default == "null":
        return None
    if field.type == "bool":
        return field.default == "true"
    if field.type == "string":
        return field.default.strip('"')
    return float(field.default) if field.type == "float64" else int(field.default)


def _zero_value(cls: type[Any], field: spec.Field) -> Any:
    if field.is_array:
        return []
    if field.struct is not None:
        return getattr(cls, field.type)()
    return _ZERO.get(field.type, 0)


def _class_source(struct: spec.Struct, message: spec.Message) -> list[str]:
    is_root = struct is message.root
    names = [field.name for field in struct.fields]
    body = [repr(message.doc if is_root else ""), f"__slots__ = {tuple(names)}"]
    if is_root:
        key = message.api.key if message.api else None
        body += ["SPEC = SPEC", f"API_KEY = {key}", f"TYPE = {message.type}"]
        for nested in message.structs.values():
            body += _class_source(nested, message)
    body.append("__dataclass_fields__ = FIELDS")
    body += _init_source(struct, message)
    body += _eq_source(names)
    body.append("__repr__ = represent")
    return [f"class {struct.name}:", *("    " + line for line in body)]


def _init_source(struct: spec.Struct, message: spec.Message) -> list[str]:
    parameters = ["self"]
    body = []
    for field in struct.fields:
        name = field.name
        if _is_fresh(field):
            kind = None if field.is_array else field.type
            new = "[]" if field.is_array else f"{message.name}.{field.type}()"
            parameters.append(f"{name}=New({kind!r})")
            body.append(f"    self.{name} = {new} if {name}.__class__ is New else {name}")
        else:
            parameters.append(f"{name}={default_value(object, field)!r}")
            body.append(f"    self.{name} = {name}")
    return [f"def __init__({', '.join(parameters)}):", *(body or ["    pass"])]


def _is_fresh(field: spec.Field) -> bool:
    """Whether the default is a list or a struct: then each object must have its own."""
    return field.default is None and (field.is_array or field.struct is not None)


def _eq_source(names: list[str]) -> list[str]:
    same = " and ".join(f"self.{name} == other.{name}" for name in names) or "True"
    return [
        "def __eq__(self, other):",
        "    if other.__class__ is not self.__class__:",
        "        return NotImplemented",
        f"    return {same}",
    ]


def _represent(self: Any) -> str:
    values = (f"{name}={getattr(self, name)!r}" for name in self.__slots__)
    return f"{type(self).__qualname__}({', '.join(values)})"
