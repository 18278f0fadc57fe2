"""Writes docs/generated/secured_clients.md: libraries by ways, and what each hears who is refused.

What passed comes from the outcomes of test_secured_matrix.py, what is heard from the file that this
module owns: by library and by what is wrong, each answer with the ways on which it is given.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.compat.brokers import APACHE_KAFKA, KAFKALITE

HEARD = Path(__file__).parent / "secured_refusals.json"
FILE, NAME = "tests/compat/test_secured_matrix.py", "secured_clients.md"
CELL = "{library} on {way}"

# By library, by what is wrong: an answer, and the ways on which it is given.
Heard = dict[str, dict[str, dict[str, list[str]]]]

HEAD = """# Clients of secured brokers

Written by `make compat`: each library came to kafkalite and to Apache Kafka 4.3.1 in each way,
wrote a record and read it, and was then refused for each reason below. *both*: on both brokers the
record came, and each refusal was told in the words of the second part, which are those that the
library has for it in front of Apache Kafka; but for alerts of TLS, of which those of kafkalite have
rows of their own. `tests/compat/test_secured_matrix.py` asks.
"""
SECOND = """## What who is refused hears

As each library says it by itself, without addresses and times: an exception, the error that its
callback has or, in brackets, the line of its log that tells more than the exception. What is said
of a topic that there is no rule for is said of one that exists, and that may not even be seen.
"""


def heard_on(heard: Heard, library: str, way: str) -> dict[str, str]:
    """What a library hears on one way, by what is wrong."""
    return {
        what: said
        for what, answers in heard.get(library, {}).items()
        for said, ways in answers.items()
        if way in ways
    }


def with_found(heard: Heard, library: str, way: str, found: Mapping[str, str]) -> Heard:
    """The same with what was found on one way now."""
    reasons: dict[str, dict[str, list[str]]] = {}
    for what, answers in heard.get(library, {}).items():
        gone = way if what in found else ""
        left = {said: [each for each in ways if each != gone] for said, ways in answers.items()}
        reasons[what] = {said: ways for said, ways in left.items() if ways}
    for what, said in found.items():
        reasons.setdefault(what, {}).setdefault(said, []).append(way)
    return {**heard, library: {what: answers for what, answers in reasons.items() if answers}}


def write(beside: Path, tests: Mapping[str, Mapping[str, list[str]]]) -> None:
    """Into the folder of the other table; `tests` are the outcomes of the file's, as kept there."""
    cases = {case: told for of_test in tests.values() for case, told in of_test.items()}
    if cases:
        beside.with_name(NAME).write_text("\n".join(page(cases)) + "\n", encoding="utf-8")


def page(cases: Mapping[str, list[str]]) -> list[str]:
    from tests.compat.secured_clients import NAMES
    from tests.compat.secured_lab import WAYS

    libraries, ways = list(NAMES), [way.name for way in WAYS]
    lines = [HEAD, f"| library | {' | '.join(ways)} |", "| --- |" + " --- |" * len(ways)]
    for library in libraries:
        told = [_cell(cases, CELL.format(library=library, way=way)) for way in ways]
        lines.append(f"| {library} | {' | '.join(told)} |")
    heard = json.loads(HEARD.read_text(encoding="utf-8"))
    return [*lines, "", SECOND, *_refusals(heard, libraries)]


def _cell(cases: Mapping[str, list[str]], name: str) -> str:
    found = {
        broker: cases.get(f"{kind}-{name}", ["", "not shown"])[1]
        for kind, broker in ((KAFKALITE, "kafkalite"), (APACHE_KAFKA, "Apache Kafka"))
    }
    passed = [broker for broker, outcome in found.items() if outcome == "passed"]
    if len(passed) == 1:
        return f"{passed[0]} alone"
    return "both" if passed else found["kafkalite"]


def _refusals(heard: Heard, libraries: list[str]) -> Iterator[str]:
    yield "| what is wrong | library | what it says | ways |"
    yield "| --- | --- | --- | --- |"
    for what in dict.fromkeys(what for library in libraries for what in heard.get(library, {})):
        for library in libraries:
            for said, ways in heard.get(library, {}).get(what, {}).items():
                shown = said.replace("|", "\\|")
                yield f"| {what} | {library} | `{shown}` | {', '.join(ways)} |"
