"""Writes docs/generated/compatibility.md from outcomes of runs: by client and feature.

A file of tests is a client, named by the first words of its docstring, unless its tests say which
client they ran with; a test is a feature. The outcomes lie beside the page as JSON, case by case,
so that the whole may be run in pieces: what ran replaces what was known of it, a test that is no
more goes. Nothing in the page is written by hand but its first lines.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import pytest

from tests.compat import secured_page
from tests.compat.brokers import APACHE_KAFKA, APACHE_KAFKA_3, KAFKALITE
from tests.compat.differences import DIFFERENCES

# Brokers are the columns; both versions of Apache Kafka share one, since a test meets one of them.
OURS, THEIRS = "kafkalite", "Apache Kafka"
COLUMNS = {KAFKALITE: OURS, APACHE_KAFKA: THEIRS, APACHE_KAFKA_3: THEIRS}
NODE = re.compile(r"(?P<file>.*?)::(?P<test>[^\[@]*)(\[(?P<case>.*)\])?(@.*)?", re.DOTALL)

HEAD = """# Compatibility

Written by `make compat`: each test of `tests/compat` ran against kafkalite and against Apache Kafka
4.3.1 (3.9.2 where Apache Kafka 4 dropped the versions that a client speaks). A figure is how many
cases passed; a dash stands where there is nothing to ask of Apache Kafka alone, as in a test that
gives the data of one broker to the other.
"""

Cases = dict[str, list[str]]  # case: client and outcome
Outcomes = dict[str, dict[str, Cases]]  # file, test
Table = dict[str, dict[str, dict[str, Counter[str]]]]  # client, feature, column


class Matrix:
    """A pytest plugin of the process that collects the reports."""

    def __init__(self, path: Path, *, is_whole: bool) -> None:
        """`is_whole`: no case of the tests that run is left out, so what is not seen is no more."""
        self.path = path
        self.is_whole = is_whole
        self.ran: Outcomes = defaultdict(lambda: defaultdict(dict))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        file, test, case = parts_of(report.nodeid)
        is_told = report.when == "call" or report.outcome != "passed"
        if is_told and "/compat/" in file:
            client = dict(report.user_properties).get("client") or client_of(file)
            known = self.ran[file][test].get(case)
            if known is None or known[1] == "passed":
                self.ran[file][test][case] = [str(client), outcome_of(report)]

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        kept_in = self.path.with_suffix(".json")
        kept = json.loads(kept_in.read_text(encoding="utf-8")) if kept_in.exists() else {}
        is_finished = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        known = merged(kept, self.ran, is_whole=self.is_whole and is_finished)
        outcomes = {file: there for file, tests in known.items() if (there := still(file, tests))}
        text = json.dumps(outcomes, indent=0, sort_keys=True, ensure_ascii=False)
        kept_in.write_text(re.sub(r"\[\n(.*),\n(.*)\n\]", r"[\1, \2]", text) + "\n", "utf-8")
        self.path.write_text("\n".join(page(outcomes)) + "\n", "utf-8")
        secured_page.write(self.path, outcomes.get(secured_page.FILE, {}))


def parts_of(node: str) -> tuple[str, str, str]:
    """The file, the test and the case of a test's name, without the group that it runs in."""
    found = NODE.fullmatch(node)
    assert found is not None, node
    return found["file"], found["test"], found["case"] or ""


@cache
def client_of(file: str) -> str:
    """The words before the first colon or comma of the test file's docstring."""
    _, _, text = Path(file).read_text(encoding="utf-8").partition('"""')
    return " ".join(text.partition(":")[0].partition(",")[0].split())


def outcome_of(report: pytest.TestReport) -> str:
    if report.outcome == "skipped" and isinstance(report.longrepr, tuple):
        return f"skipped: {report.longrepr[2].removeprefix('Skipped: ')}"
    return report.outcome


def merged(kept: Outcomes, ran: Outcomes, *, is_whole: bool) -> Outcomes:
    """What is known after a run; of a test that ran whole, its cases alone."""
    both = {file: dict(tests) for file, tests in kept.items()}
    for file, tests in ran.items():
        known = both.setdefault(file, {})
        for test, cases in tests.items():
            known[test] = dict(cases) if is_whole else {**known.get(test, {}), **cases}
    return both


def still(file: str, tests: dict[str, Cases]) -> dict[str, Cases]:
    """Those tests of a file that are there today."""
    if not Path(file).exists():
        return {}
    there = set(re.findall(r"^def (\w+)", Path(file).read_text(encoding="utf-8"), re.MULTILINE))
    return {test: cases for test, cases in tests.items() if test in there}


def table_of(outcomes: Outcomes) -> Table:
    table: Table = defaultdict(lambda: defaultdict(lambda: defaultdict(Counter)))
    for tests in outcomes.values():
        for test, cases in tests.items():
            words = test.removeprefix("test_").replace("_", " ")
            for case, (client, outcome) in cases.items():
                table[client][words][column_of(case)][outcome] += 1
    return table


def column_of(case: str) -> str:
    """Of the broker that a case names first; a test that names none is about kafkalite."""
    named = [kind for kind in COLUMNS if kind in case] or [KAFKALITE]
    return COLUMNS[min(named, key=case.find)]


def page(outcomes: Outcomes) -> list[str]:
    table = sorted(table_of(outcomes).items())
    lines = [HEAD, f"| client | {OURS} | {THEIRS} |", "| --- | --- | --- |"]
    for client, features in table:
        lines.append(row(client, sum_of(features, OURS), sum_of(features, THEIRS)))
    for client, features in table:
        lines += ["", f"## {client}", "", f"| feature | {OURS} | {THEIRS} |", "| --- | --- | --- |"]
        for feature, by_column in sorted(features.items()):
            lines.append(row(feature, by_column[OURS], by_column[THEIRS]))
    lines += ["", "## Allowed differences", ""]
    return lines + ([f"- {name}: {why}" for name, why in DIFFERENCES.items()] or ["None."])


def sum_of(features: dict[str, dict[str, Counter[str]]], column: str) -> Counter[str]:
    return sum((by_column[column] for by_column in features.values()), Counter())


def row(name: str, ours: Counter[str], theirs: Counter[str]) -> str:
    return f"| {name} | {cell(ours)} | {cell(theirs)} |"


def cell(outcomes: Counter[str]) -> str:
    return ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items())) or "–"
