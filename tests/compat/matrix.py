"""Writes docs/compatibility.md from the outcomes of a run: client by client, feature by feature.

A file of tests is a client, named by the first words of its docstring, unless its tests say which
client they ran with; a test is a feature. Nothing in the page is written by hand but its first
lines.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from tests.compat.brokers import APACHE_KAFKA, APACHE_KAFKA_3, KAFKALITE
from tests.compat.differences import DIFFERENCES

KINDS = (KAFKALITE, APACHE_KAFKA, APACHE_KAFKA_3)
# Brokers are the columns; both versions of Apache Kafka share one, since a test meets one of them.
COLUMNS = {KAFKALITE: "kafkalite", APACHE_KAFKA: "Apache Kafka", APACHE_KAFKA_3: "Apache Kafka"}

HEAD = """# Compatibility

Written by `make compat`: each test of `tests/compat` ran against kafkalite and against Apache Kafka
4.3.1 (3.9.2 where Apache Kafka 4 dropped the versions that a client speaks). A figure is how many
cases passed.
"""

Outcomes = dict[str, dict[str, dict[str, Counter[str]]]]  # client, feature, column


class Matrix:
    """A pytest plugin of the process that collects the reports."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.outcomes: Outcomes = defaultdict(lambda: defaultdict(lambda: defaultdict(Counter)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        file, _, test = report.nodeid.partition("::")
        feature, _, case = test.partition("[")
        kind = next((kind for kind in KINDS if case.startswith(kind)), None)
        is_told = report.when == "call" or report.outcome != "passed"
        if kind is not None and is_told and "/compat/" in file:
            words = feature.removeprefix("test_").replace("_", " ")
            client = dict(report.user_properties).get("client") or client_of(file)
            self.outcomes[str(client)][words][COLUMNS[kind]][outcome_of(report)] += 1

    def pytest_sessionfinish(self) -> None:
        self.path.write_text("\n".join(page(self.outcomes)) + "\n", encoding="utf-8")


def client_of(file: str) -> str:
    """The words before the first colon or comma of the test file's docstring."""
    text = ast.get_docstring(ast.parse(Path(file).read_text(encoding="utf-8"))) or file
    return text.partition(":")[0].partition(",")[0].strip()


def outcome_of(report: pytest.TestReport) -> str:
    if report.outcome == "skipped" and isinstance(report.longrepr, tuple):
        return f"skipped: {report.longrepr[2].removeprefix('Skipped: ')}"
    return report.outcome


def page(outcomes: Outcomes) -> list[str]:
    lines = [HEAD, "| client | kafkalite | Apache Kafka |", "| --- | --- | --- |"]
    for client, features in sorted(outcomes.items()):
        total = {column: sum_of(features, column) for column in COLUMNS.values()}
        lines.append(f"| {client} | {cell(total['kafkalite'])} | {cell(total['Apache Kafka'])} |")
    for client, features in sorted(outcomes.items()):
        lines += ["", f"## {client}", "", "| feature | kafkalite | Apache Kafka |"]
        lines.append("| --- | --- | --- |")
        for feature, by_column in sorted(features.items()):
            ours, theirs = by_column["kafkalite"], by_column["Apache Kafka"]
            lines.append(f"| {feature} | {cell(ours)} | {cell(theirs)} |")
    lines += ["", "## Allowed differences", ""]
    return lines + ([f"- {name}: {why}" for name, why in DIFFERENCES.items()] or ["None."])


def sum_of(features: dict[str, dict[str, Counter[str]]], column: str) -> Counter[str]:
    return sum((by_column[column] for by_column in features.values()), Counter())


def cell(outcomes: Counter[str]) -> str:
    return ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items())) or "–"
