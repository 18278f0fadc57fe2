"""No name in the package is dead: what runs names it, or a rule says who else finds it.

Names are followed from the code of modules on: what only dead code names is dead as well. Names are
compared as they are written, so that two functions of one name keep each other.
"""

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "kafkalite"
SPECS = ROOT / "protocol_specs"
# What users read; the other pages are about the project itself.
FOR_USERS = (
    "README.md", "docs/container.md", "docs/pipelines.md", "docs/proof.md", "docs/testing.md",
)  # fmt: skip
IMPORTED_BY_USERS = ("testing/", "pipelines/", "spark.py")

# Of the environment: what tests, and those of users, put in the real one's place.
DOUBLES = ("InlineBackground", "ManualClock", "QueuedBackground", "manual_env")
# The base class that another library gives us, and how the methods that it calls begin.
CALLED_BY_OTHERS = {
    "Text": ("shell_complete",),
    "click.ParamType[str]": ("shell_complete",),
    "click.Group": (
        "invoke", "list_commands", "get_command", "format_commands", "shell_complete",
    ),
    "H11Protocol": ("connection_made", "connection_lost", "on_response_complete"),
    "io.RawIOBase": ("writable",),
    "Console": ("on_broken_pipe",),
    "StreamingQueryListener": ("onQuery",),
    "urllib.request.HTTPRedirectHandler": ("redirect_request",),
    "Subconstruct": ("_emit",),
}
FOUND_BY_DECORATOR = ("command", "pytest.fixture", "atexit.register")
# Each with the reason why nothing names it.
ROWS = {
    "protocol/traversal.py resources_of": "what an audit says of a request; there is none yet",
    "broker/broker.py TURNS_ALONE": "env.turns looks for it in the module of a frame",
    "server/dispatch.py describe_turn": "env.turns looks for it in the module of a frame",
}

GETTERS = ("attrgetter", "getattr", "hasattr", "methodcaller", "setattr")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, eq=False)
class Definition:
    """A constant, function, class, method or property, and what its own code names."""

    module: str
    name: str
    owner: "Definition | None"
    bases: tuple[str, ...]
    decorators: tuple[str, ...]
    uses: frozenset[str]

    @property
    def top(self) -> str:
        return self.owner.name if self.owner else self.name

    def __str__(self) -> str:
        return f"{self.module} {f'{self.owner.name}.' if self.owner else ''}{self.name}"


@dataclass(frozen=True)
class Code:
    """All that a folder defines, and what its modules name while they are imported."""

    definitions: tuple[Definition, ...]
    uses: frozenset[str]


Rule = Callable[[Definition], bool]


def test_every_name_is_named_somewhere_else() -> None:
    assert [str(each) for each in unreached(of_folder(PACKAGE), RULES.values())] == []


def test_every_exception_is_needed() -> None:
    code = of_folder(PACKAGE)
    dead = unreached(code)
    for reason, rule in RULES.items():
        assert any(map(rule, dead)), f"nothing is excused because {reason}"
    assert set(ROWS) <= {str(each) for each in dead}
    assert set(DOUBLES) <= {each.top for each in dead if _stands_in_for_the_world(each)}
    bases = {base for each in dead if each.owner is not None for base in each.owner.bases}
    assert set(CALLED_BY_OTHERS) <= bases
    decorators = [name for each in dead for name in each.decorators]
    assert all(any(name.endswith(end) for name in decorators) for end in FOUND_BY_DECORATOR)


@pytest.mark.parametrize(
    ("text", "dead"),
    [
        ("def lost(): ...", ["lost"]),
        ("def found(): ...\nfound()", []),
        ("def again(): again()", ["again"]),
        ("def first(): second()\ndef second(): first()", ["first", "second"]),
        ("def found(): ...\nclass Lost:\n    def __init__(self): found()", ["found", "Lost"]),
        ("class Kept:\n    def lost(self): ...\nKept()", ["Kept.lost"]),
        ("class Kept:\n    @property\n    def lost(self): ...\nKept()", ["Kept.lost"]),
        ("class Kept:\n    def asked(self): ...\nKept().asked()", []),
        ("class Kept:\n    def asked(self): ...\ngetattr(Kept(), 'asked')", []),
        ("LOST = 1", ["LOST"]),
        ("LOST: int = 1", ["LOST"]),
        ("NONE, ALL = 0, 1\nprint(ALL)", []),
        ("FOUND = 1\ndef lost(): return FOUND", ["FOUND", "lost"]),
        ("def found(): ...\n__all__ = ['found']", []),
        ("class Found: ...\ndef main(of: 'Found | None'): ...\nmain()", []),
        ("from other import found as it\nit()", []),
        ("from other import lost", []),
        ("'lost'\ndef lost(): ...", ["lost"]),
    ],
)
def test_what_nothing_names_is_seen(tmp_path: Path, text: str, dead: list[str]) -> None:
    (tmp_path / "one.py").write_text(text)
    found = {str(each).removeprefix("one.py ") for each in unreached(of_folder(tmp_path))}
    assert {each for each in found if "__" not in each} == set(dead)


def test_a_name_is_found_in_another_module_as_what_it_is_there(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("def found(): ...\ndef lost(): ...")
    (tmp_path / "two.py").write_text("from one import found as it, lost\nit()")
    assert [str(each) for each in unreached(of_folder(tmp_path))] == ["one.py lost"]


# --- who else finds a name ------------------------------------------------------------------------


def _answers_an_api(each: Definition) -> bool:
    return each.module == f"handlers/{each.name}.py" and any(SPECS.glob(f"[0-9]*_{each.name}.spec"))


def _is_found_by_its_decorator(each: Definition) -> bool:
    return any(
        name == wanted or name.endswith(f".{wanted}")
        for name in each.decorators
        for wanted in FOUND_BY_DECORATOR
    )


def _is_a_hook_of_pytest(each: Definition) -> bool:
    return each.module == "testing/plugin.py" and each.name.startswith("pytest_")


def _is_called_by_another_library(each: Definition) -> bool:
    return each.owner is not None and any(
        each.name.startswith(CALLED_BY_OTHERS.get(base, ("nothing ",))) for base in each.owner.bases
    )


def _is_for_users(each: Definition) -> bool:
    """Public, and on a page for users: itself, or the class that it is a method of."""
    is_public = not each.name.startswith("_") and each.module.startswith(IMPORTED_BY_USERS)
    return is_public and not {each.name, each.top}.isdisjoint(_words_for_users())


def _stands_in_for_the_world(each: Definition) -> bool:
    is_double = each.module.startswith("env/") and each.top in DOUBLES
    return is_double and each.name in _names_in_tests()


def _is_of_the_simulation(each: Definition) -> bool:
    return each.module.startswith("sim/") and each.name in _names_in_tests()


RULES: dict[str, Rule] = {
    "a handler is found by its spec's name": _answers_an_api,
    "a decorator takes it down": _is_found_by_its_decorator,
    "pytest calls its hooks": _is_a_hook_of_pytest,
    "another library calls it": _is_called_by_another_library,
    "users import it, and a page tells them": _is_for_users,
    "tests put it in the place of the world": _stands_in_for_the_world,
    "tests run the simulated world": _is_of_the_simulation,
    "a row tells why": lambda each: str(each) in ROWS,
}


@cache
def _words_for_users() -> frozenset[str]:
    return frozenset(
        word
        for page in FOR_USERS
        for code in re.findall(r"```.*?```|`[^`]+`", (ROOT / page).read_text(), re.DOTALL)
        for word in re.findall(r"\w+", code)
    )


@cache
def _names_in_tests() -> frozenset[str]:
    found = of_folder(ROOT / "tests")
    return found.uses.union(*(each.uses for each in found.definitions))


# --- what is defined, and what is named -----------------------------------------------------------


def unreached(code: Code, rules: Iterable[Rule] = ()) -> list[Definition]:
    """What neither the modules' own code reaches nor any rule excuses."""
    excused = [each for each in code.definitions if any(rule(each) for rule in rules)]
    reached = set(excused)
    used = set(code.uses).union(*(each.uses for each in excused))
    waiting = [each for each in code.definitions if each not in reached]
    while found := [each for each in waiting if _is_reached(each, used, reached)]:
        reached.update(found)
        used.update(*(each.uses for each in found))
        waiting = [each for each in waiting if each not in reached]
    return waiting


def _is_reached(each: Definition, used: set[str], reached: set[Definition]) -> bool:
    is_named = each.name in used or each.name.startswith("__")
    return is_named and (each.owner is None or each.owner in reached)


@cache
def of_folder(folder: Path) -> Code:
    definitions: list[Definition] = []
    uses: set[str] = set()
    for path in sorted(folder.rglob("*.py")):
        tree = ast.parse(path.read_text())
        module = _Module(path.relative_to(folder).as_posix(), _aliases(tree))
        definitions += module.definitions(tree.body, None)
        uses |= module.names([node for node in tree.body if not _defined_by(node)])
    return Code(tuple(definitions), frozenset(uses))


@dataclass(frozen=True)
class _Module:
    name: str
    aliases: dict[str, str]

    def definitions(
        self, body: Iterable[ast.AST], owner: Definition | None
    ) -> Iterator[Definition]:
        for node in body:
            for name in _defined_by(node, within=owner is not None):
                made = self._definition(node, name, owner)
                yield made
                if isinstance(node, ast.ClassDef):
                    yield from self.definitions(node.body, made)

    def _definition(self, node: ast.AST, name: str, owner: Definition | None) -> Definition:
        own: list[ast.AST] = [node]
        bases: list[ast.expr] = []
        decorators: list[ast.expr] = []
        if isinstance(node, ast.ClassDef):
            bases, decorators = node.bases, node.decorator_list
            own = [*bases, *node.keywords, *decorators]
            own += [part for part in node.body if not _defined_by(part, within=True)]
        elif isinstance(node, FUNCTIONS):
            decorators = node.decorator_list
        return Definition(
            self.name,
            name,
            owner,
            tuple(map(ast.unparse, bases)),
            tuple(ast.unparse(each.func if isinstance(each, ast.Call) else each)
                  for each in decorators),
            frozenset(self.names(own)),
        )  # fmt: skip

    def names(self, nodes: Iterable[ast.AST]) -> set[str]:
        found = {name for node in nodes for part in ast.walk(node) for name in _named_by(part)}
        return found | {self.aliases[name] for name in found if name in self.aliases}


def _defined_by(node: ast.AST, *, within: bool = False) -> list[str]:
    """The names that a statement of a module, or within a class, defines."""
    if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        return [node.name]
    if within:
        return []
    if isinstance(node, ast.AnnAssign):
        return [node.target.id] if isinstance(node.target, ast.Name) else []
    if isinstance(node, ast.Assign):
        # Numbers of one kind stand in one line, also those that are not needed.
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    return []


def _named_by(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in GETTERS:
        yield from _texts(node.args)
    elif isinstance(node, ast.Call) and ast.unparse(node.func) == "cast":
        yield from _quoted(node.args[0])
    elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
        yield from _texts([node.value])
    elif isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
        yield from _quoted(node.annotation)
    elif isinstance(node, FUNCTIONS) and node.returns is not None:
        yield from _quoted(node.returns)


def _texts(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        for part in ast.walk(node):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                yield part.value


def _quoted(node: ast.AST) -> Iterator[str]:
    """What the texts of an annotation name."""
    for text in _texts([node]):
        for part in ast.walk(ast.parse(text)):
            if isinstance(part, ast.Name | ast.Attribute):
                yield from _named_by(part)


def _aliases(tree: ast.AST) -> dict[str, str]:
    """What names that are imported under another one are called where they are defined."""
    return {
        alias.asname: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname is not None
    }
