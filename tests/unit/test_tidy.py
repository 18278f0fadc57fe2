"""What a machine can check of the style: imports, sizes, docstrings, and names that match.

The tables of excesses below may only shrink: an entry that is better than its figure, or no longer
an excess, fails as well, so that what was won is kept. Columns are ruff's to count.
"""

import ast
import re
from collections.abc import Container, Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "kafkalite"
CHECKED_FOLDERS = ("src", "tests", "bench", "examples")

MODULE_LINES = 500
FUNCTION_LINES = 60

# From the top down: a room imports from those below it, never from its own row or above. What a
# wheel leaves out (sim) stands at the top, so that nothing in one asks for it.
ROOMS: tuple[tuple[str, ...], ...] = (
    ("cli", "sim"),
    ("console",),
    ("tools",),
    ("testing",),
    ("metrics",),
    ("client",),
    ("broker",),
    ("observe",),
    ("server",),
    ("handlers",),
    ("telemetry",),
    ("sharing",),
    ("peers",),
    ("coordinators",),
    ("replication",),
    ("log",),
    ("records",),
    ("protocol", "env"),
)
# Rooms that stand aside: all may import them, and they import only what is named here.
ASIDE: dict[str, frozenset[str]] = {
    "config": frozenset(),
    "container": frozenset({"config"}),
    "jvm": frozenset(),
    "quotas": frozenset({"config", "env"}),
    "security": frozenset({"config", "env"}),
    "spark": frozenset({"jvm"}),
    "pipelines": frozenset({"jvm", "spark"}),
}

# Inside the rooms nothing imports in a circle, be it for type checkers only; but for these modules.
CIRCLES: frozenset[frozenset[str]] = frozenset({
    frozenset({
        "config.broker", "config.dynamic", "config.quorum", "config.reopening", "config.together"
    }),
    frozenset({"coordinators.groups.other_kinds", "coordinators.groups.state"}),
    frozenset({"jvm.jars", "jvm.java"}),
    frozenset({"sim.history", "sim.topics"}),
    frozenset({"testing.comparison.batches", "testing.comparison.names"}),
    frozenset({
        "testing.comparison.allowed", "testing.comparison.differences", "testing.comparison.orders"
    }),
})  # fmt: skip
# Layers of the largest room, from the top down: a module imports from its own row and below.
LOG_LAYERS: dict[str, str] = {
    "all logs of a broker": "manager periodic cleaner cleaning mover copies retention_pass finding"
    " loading deleting forerunners log_table",
    "how one is found, made and opened": "choosing describing directory loader making offline",
    "one log": "partition_log",
    "what becomes of it": "appending cutting reader retention rolling truncation",
    "as it is in memory": "durability log_state",
    "compaction, which sees files and no log": "compaction ended filter key_map large"
    " record_pieces",
    "what a log is made of": "append epochs home interrupted producers recovery replay seals"
    " segment snapshots validator",
    "files, settings, words": "checkpoints config failures flusher index names throttle txn_index"
    " vacated watermark",
}
# The parts of the coordinators, and what of another part each may know.
COORDINATORS: dict[str, frozenset[str]] = {
    "": frozenset(),  # the runtime that they share
    "cluster": frozenset({""}),
    "groups": frozenset({"", "cluster.image", "cluster.states"}),
    "shares": frozenset({""}),
    "transactions": frozenset({""}),
}
# What one handler of an API has of another's.
SHARED_HANDLERS: frozenset[tuple[str, str]] = frozenset({("describe_cluster", "metadata")})

# Time, files, sockets, threads and chance come in through env.
OUTSIDE_WORLD = frozenset(
    "asyncio concurrent fcntl mmap multiprocessing os random secrets select selectors shutil signal"
    " socket ssl subprocess sys tempfile threading time uuid uvloop".split()
)
MAY_TOUCH_THE_WORLD: dict[str, str] = {
    "env": "its task",
    "cli": "a command is a process: arguments, signals, terminal",
    "container": "programs of the image: environment, mounts, files, a port",
    "tools": "each is a process: arguments, exit codes, time-outs",
    "jvm": "looks for programs and fetches files",
    "spark": "starts a JVM",
    "pipelines": "programs of their own beside the broker",
    "console": "answers over HTTP, keeps sessions, asks a schema registry",
    "metrics": "asks a cluster from time to time, and answers over HTTP",
    "testing": "starts and stops brokers in other people's processes",
    "client": "connects, waits and chooses partitions as any client does",
    "sim": "builds the simulated world that replaces the real one",
    "broker": "composition root: builds the real env",
    "server/listener": "owns the sockets",
}

LONG_MODULES: dict[str, int] = {}
LONG_FUNCTIONS: dict[str, int] = {}
HANDLERS_WITHOUT_TEST: frozenset[str] = frozenset()


def test_imports_point_down() -> None:
    wrong = [
        f"{where}: {room} imports {target}"
        for where, room, target in _imports_between_rooms()
        if not _may_import(room, target)
    ]
    assert wrong == []


def test_nothing_in_a_room_imports_in_a_circle() -> None:
    assert frozenset(_circles(_imports_within_rooms())) == CIRCLES


def test_a_circle_is_found() -> None:
    imports = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"d"}, "e": {"a"}}
    assert list(_circles(imports)) == [frozenset("abc")]


def test_the_layers_of_the_log_hold() -> None:
    rows = [names.split() for names in LOG_LAYERS.values()]
    rank = {f"log.{name}": number for number, row in enumerate(rows) for name in row}
    inside = {name: found for name, found in _imports_within_rooms().items() if _is_in(name, "log")}
    assert inside.keys() == rank.keys()
    wrong = [
        f"{name} imports {target}"
        for name, targets in inside.items()
        for target in targets
        if rank[target] < rank[name]
    ]
    assert wrong == []


def test_coordinators_know_of_each_other_what_the_map_says() -> None:
    wrong = [
        f"{name} imports {target}"
        for name, targets in _imports_within_rooms().items()
        if _is_in(name, "coordinators")
        for target in targets
        if not _may_know(_inside(name), _inside(target))
    ]
    assert wrong == []


def test_handlers_of_apis_do_not_import_each_other() -> None:
    apis = {f"handlers.{name}" for name in _handlers()}
    found = {
        (_inside(name), _inside(target))
        for name, targets in _imports_within_rooms().items()
        for target in targets & apis
        if name in apis
    }
    assert found == SHARED_HANDLERS


def test_every_room_is_in_the_table() -> None:
    known = {room for row in ROOMS for room in row} | set(ASIDE)
    assert {_room(path) for path in _modules("src")} - {""} <= known


def test_the_world_is_reached_through_env() -> None:
    wrong = [
        f"{_name(path)}: imports {name}"
        for path in _modules("src")
        if not _may_touch_the_world(path)
        for name in _names_imported_by(_at_run_time(_tree(path)))
        if name.split(".")[0] in OUTSIDE_WORLD
    ]
    assert wrong == []


def test_modules_are_short() -> None:
    _only_shrinks(LONG_MODULES, {_name(path): len(_lines(path)) for path in _all()}, MODULE_LINES)


def test_functions_are_short() -> None:
    found = {
        f"{_name(path)}:{node.name}": (node.end_lineno or 0) - node.lineno + 1
        for path in _all()
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    _only_shrinks(LONG_FUNCTIONS, found, FUNCTION_LINES)


def test_every_module_says_what_it_owns() -> None:
    assert [_name(path) for path in _all() if not ast.get_docstring(_tree(path))] == []


def test_specs_are_named_by_key_and_api() -> None:
    wrong = []
    for path in (ROOT / "protocol_specs").glob("[0-9]*.spec"):
        number, _, name = path.stem.partition("_")
        api = next((line for line in _lines(path) if line.startswith("api ")), "")
        if f"key={int(number)} " not in f"{api} " or _snake(api.split(" ")[1]) != name:
            wrong.append(path.name)
    assert wrong == []


def test_handlers_are_named_as_their_specs() -> None:
    wrong = [
        name
        for name in _handlers()
        if not any(
            isinstance(node, ast.FunctionDef) and node.name == name
            for node in _tree(PACKAGE / "handlers" / f"{name}.py").body
        )
    ]
    assert wrong == [], "a handler's module holds a function of the same name"


def test_handlers_have_a_test_of_their_name() -> None:
    tests = {path.name for path in _modules("tests")}
    untested = {name for name in _handlers() if f"test_{name}.py" not in tests}
    assert untested == HANDLERS_WITHOUT_TEST


def test_links_lead_to_files() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    links = [
        (page, target)
        for page in pages
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)\s]*)?\)", page.read_text())
    ]
    assert len(links) > 10
    assert [link for link in links if not (link[0].parent / link[1]).exists()] == []


def test_an_excess_and_a_past_excess_are_seen() -> None:
    with pytest.raises(AssertionError):
        _only_shrinks({}, {"long": 501}, MODULE_LINES)
    with pytest.raises(AssertionError):
        _only_shrinks({"long": 502}, {"long": 501}, MODULE_LINES)
    with pytest.raises(AssertionError):
        _only_shrinks({"mended": 501}, {"mended": 400}, MODULE_LINES)


def _only_shrinks(excesses: dict[str, int], found: dict[str, int], limit: int) -> None:
    """The excesses are exactly what was found over the limit."""
    assert {name: size for name, size in found.items() if size > limit} == excesses


def _imports_between_rooms() -> Iterator[tuple[str, str, str]]:
    for path in _modules("src"):
        for imported in _imported_names(path):
            target = _room_of_import(imported)
            if target not in ("", _room(path)):
                yield _name(path), _room(path), target


def _may_import(room: str, target: str) -> bool:
    if room == "":
        return _names_only_cli(target)
    if room in ASIDE:
        return target in ASIDE[room]
    return target in ASIDE or _rank(target) > _rank(room)


def _names_only_cli(target: str) -> bool:
    """`kafkalite/__init__.py` imports nothing, `__main__.py` the command line."""
    return target == "cli"


def _rank(room: str) -> int:
    return next(rank for rank, row in enumerate(ROOMS) if room in row)


def _room(path: Path) -> str:
    parts = path.relative_to(PACKAGE).parts
    return "" if parts[0].startswith("__") else parts[0].removesuffix(".py")


def _room_of_import(imported: str) -> str:
    """The room of `kafkalite.log.index`, or nothing for the bare package and other packages."""
    parts = imported.split(".")
    inside = parts[0] == "kafkalite" and len(parts) > 1
    return parts[1] if inside and not parts[1].startswith("__") else ""


def _is_in(name: str, room: str) -> bool:
    return name.startswith(f"{room}.")


def _top(name: str) -> str:
    return name.partition(".")[0]


def _inside(name: str) -> str:
    """`cluster.image` of `coordinators.cluster.image`."""
    return name.partition(".")[2]


def _may_know(name: str, target: str) -> bool:
    part, other = (each.rpartition(".")[0] for each in (name, target))
    return part == other or other in COORDINATORS[part] or target in COORDINATORS[part]


@cache
def _imports_within_rooms() -> dict[str, set[str]]:
    """By module, `log.index` for `kafkalite.log.index`: what it imports of its own room, also for
    type checkers only. A package is what its `__init__` is."""
    paths = {
        path.relative_to(PACKAGE).with_suffix("").as_posix().replace("/", "."): path
        for path in _modules("src")
    }
    names = {name.removesuffix(".__init__"): path for name, path in paths.items()}
    return {
        name: {
            target
            for target in _modules_imported_by(path, names)
            if target in names and target != name and _top(target) == _top(name)
        }
        for name, path in names.items()
    }


def _modules_imported_by(path: Path, names: Container[str]) -> Iterator[str]:
    """Without the package's name; `from x import y` means x.y where that is a module."""
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            yield from (_short(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = _short(f"{node.module}.{alias.name}")
                yield whole if whole in names else _short(node.module)


def _short(name: str) -> str:
    return name.removeprefix("kafkalite.")


def _circles(imports: dict[str, set[str]]) -> Iterator[frozenset[str]]:
    """The modules that reach each other, where there are several."""
    reached = {name: _reached(name, imports) for name in imports}
    left = {name for name in imports if name in reached[name]}
    while left:
        name = min(left)
        circle = {other for other in reached[name] if name in reached[other]} | {name}
        left -= circle
        if len(circle) > 1:
            yield frozenset(circle)


def _reached(start: str, imports: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        new = imports[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def _may_touch_the_world(path: Path) -> bool:
    inside = path.relative_to(PACKAGE).with_suffix("").as_posix()
    return any(inside == name or inside.startswith(f"{name}/") for name in MAY_TOUCH_THE_WORLD)


def _imported_names(path: Path) -> Iterator[str]:
    """All imports, also those for type checkers only and those within functions."""
    yield from _names_imported_by(ast.walk(_tree(path)))


def _at_run_time(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node but those under `if TYPE_CHECKING`: a type alone cannot reach the world."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            continue
        yield node
        yield from _at_run_time(node)


def _names_imported_by(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "kafkalite":
            yield from (f"kafkalite.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def _handlers() -> list[str]:
    """The handler modules that answer an API; the others in the room help them."""
    apis = {path.stem.partition("_")[2] for path in (ROOT / "protocol_specs").glob("[0-9]*.spec")}
    return sorted(apis & {path.stem for path in (PACKAGE / "handlers").glob("*.py")})


def _snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


def _all() -> list[Path]:
    return [path for folder in CHECKED_FOLDERS for path in _modules(folder)]


@cache
def _modules(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())
