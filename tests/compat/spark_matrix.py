"""Runs the matrix of Spark's connector against each broker and writes what passed.

    python -m tests.compat.spark_matrix

Nothing on docs/generated/spark.md is written by hand but its first lines.
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.compat.brokers import APACHE_KAFKA, BROKERS, KAFKALITE

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "generated" / "spark.md"
MODULES = {
    "source": "test_spark_read.py",
    "sink": "test_spark_write.py",
    "streams": "test_spark_stream.py",
}
COLUMNS = {KAFKALITE: "kafkalite", APACHE_KAFKA: "Apache Kafka 4.3.1"}

HEAD = """# Spark's Kafka connector

Spark's own `format("kafka")` of Spark {spark}, unchanged, with the Kafka client that it brings.
Each case ran against kafkalite and against Apache Kafka 4.3.1; a figure is how many passed of how
many ran. Written by `python -m tests.compat.spark_matrix`.
"""

# What passed and what ran, of a feature, by broker.
Score = dict[str, Counter[str]]


class Tally:
    """Counts outcomes by module, feature and broker."""

    def __init__(self) -> None:
        self.scores: dict[str, dict[str, Score]] = {
            name: defaultdict(lambda: {kind: Counter() for kind in BROKERS})
            for name in MODULES.values()
        }

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.failed:
            file, _, test = report.nodeid.partition("::")
            feature, _, case = test.partition("[")
            kind = next(each for each in BROKERS if case.startswith(each))
            words = feature.removeprefix("test_").replace("_", " ")
            self.scores[Path(file).name][words][kind].update(run=1, passed=int(report.passed))


def page(tally: Tally) -> list[str]:
    from pyspark import __version__

    lines = [HEAD.format(spark=__version__)]
    lines += _table("part", ((what, _sum([tally.scores[m]])) for what, m in MODULES.items()))
    lines.append(_row("together", _sum(tally.scores.values())))
    for what, module in MODULES.items():
        lines += ["", f"## {what.capitalize()}", ""]
        lines += _table("feature", sorted(tally.scores[module].items()))
    return lines


def _table(what: str, rows: Iterable[tuple[str, Score]]) -> list[str]:
    columns = " | ".join(COLUMNS[kind] for kind in BROKERS)
    return [f"| {what} | {columns} |", "| --- | ---: | ---: |", *(_row(*row) for row in rows)]


def _row(name: str, score: Score) -> str:
    cells = " | ".join(f"{score[kind]['passed']}/{score[kind]['run']}" for kind in BROKERS)
    return f"| {name} | {cells} |"


def _sum(parts: Iterable[dict[str, Score]]) -> Score:
    total: Score = {kind: Counter() for kind in BROKERS}
    for part in parts:
        for score in part.values():
            for kind in BROKERS:
                total[kind] += score[kind]
    return total


def main() -> int:
    tally = Tally()
    # This program has imported the package whose pytest plugin pytest would rewrite.
    call = ["-q", "-W", "ignore::pytest.PytestAssertRewriteWarning", *sys.argv[1:]]
    call += [str(HERE / name) for name in MODULES.values()]
    code = pytest.main(call, plugins=[tally])
    lines = page(tally)
    if not sys.argv[1:]:
        PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
