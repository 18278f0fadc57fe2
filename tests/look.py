"""`make look`: the house in figures, as an architect took them by hand once.

Each is counted from the source or from a running broker; tests/unit/test_look.py holds the goals.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.unit.calls import calls_of_a_produce
from tests.unit.waiting_rooms import rooms_of_a_commit

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "kafkalite"


@dataclass(frozen=True)
class Figure:
    """What is counted, how it once was, what it is to be, and where it is found."""

    what: str
    once: int
    goal: int
    found: list[str]

    @property
    def count(self) -> int:
        return len(self.found)


def figures() -> list[Figure]:
    return [
        Figure("calls from socket to file for a small Produce", 15, 10, calls_of_a_produce()),
        Figure("waiting rooms that a coordinator's write crosses", 6, 2, rooms_of_a_commit()),
        Figure("places that write the high watermark", 10, 1, high_watermark_writers()),
        Figure("hand-made promise chains", 30, 0, promise_chains()),
        Figure("Any in the coordinators' seams", 130, 33, anys()),
    ]


def high_watermark_writers() -> list[str]:
    """Calls of `PartitionLog.replicated`, the one way for it to rise."""
    return [
        f"{name}:{node.lineno}"
        for name, tree in _modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "replicated"
        and ast.unparse(node.func.value).endswith("log")
    ]


def promise_chains() -> list[str]:
    """Functions that make a Later and have a callback of another one fill it."""
    found = []
    for name, tree in _modules():
        if name == "env/later.py":
            continue
        for function in _functions(tree):
            made = {
                target.id
                for node in ast.walk(function)
                if isinstance(node, ast.Assign | ast.AnnAssign) and _makes_later(node.value)
                for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
                if isinstance(target, ast.Name)
            }
            if any(_fills(call, made) for call in _chained(function)):
                found.append(f"{name}:{function.lineno} {function.name}")
    return found


def anys() -> list[str]:
    return [
        f"{name}:{node.lineno}"
        for name, tree in _modules()
        if name.startswith("coordinators/")
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id == "Any"
    ]


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def _makes_later(value: ast.expr | None) -> bool:
    """`Later()` or `Later[...]()`, with nothing in it."""
    if not isinstance(value, ast.Call) or value.args:
        return False
    return ast.unparse(value.func).partition("[")[0] == "Later"


def _chained(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """What is given to some `.then(...)`: lambdas, names of inner functions, bound methods."""
    inner = {node.name: node for node in ast.walk(function) if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(function):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr == "then":
            for argument in node.args:
                yield argument
                if isinstance(argument, ast.Name) and argument.id in inner:
                    yield inner[argument.id]


def _fills(callback: ast.AST, made: set[str]) -> bool:
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == "resolve"
        and isinstance(node.value, ast.Name)
        and node.value.id in made
        for node in ast.walk(callback)
    )


@cache
def _modules() -> list[tuple[str, ast.Module]]:
    return [
        (path.relative_to(PACKAGE).as_posix(), ast.parse(path.read_text()))
        for path in sorted(PACKAGE.rglob("*.py"))
    ]


def main() -> None:
    table = Table("what", "at 7cf17e4", "goal", "now")
    for each in figures():
        table.add_row(each.what, str(each.once), str(each.goal), str(each.count))
    console = Console()
    console.print(table)
    for each in figures():
        if each.count > each.goal:
            console.print(f"{each.what}:", *each.found, sep="\n  ", highlight=False)


if __name__ == "__main__":
    main()
