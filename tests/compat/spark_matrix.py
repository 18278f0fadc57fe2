"""Runs the matrix of Spark's connector against each broker and prints how many of it each passes.

python -m tests.compat.spark_matrix
"""

import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.compat.brokers import BROKERS

HERE = Path(__file__).parent
MODULES = {
    "source": "test_spark_read.py",
    "sink": "test_spark_write.py",
    "streams": "test_spark_stream.py",
}


class Tally:
    """Counts outcomes by module and broker."""

    def __init__(self) -> None:
        self.passed: Counter[tuple[str, str]] = Counter()
        self.run: Counter[tuple[str, str]] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.failed:
            kind = next(each for each in BROKERS if f"[{each}" in report.nodeid)
            key = (Path(report.nodeid.split("::")[0]).name, kind)
            self.run[key] += 1
            self.passed[key] += report.passed


def main() -> int:
    tally = Tally()
    # This program has imported the package whose pytest plugin pytest would rewrite.
    call = ["-q", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    call += [str(HERE / name) for name in MODULES.values()]
    code = pytest.main(call, plugins=[tally])
    print(f"{'':10}" + "".join(f"{kind:>24}" for kind in BROKERS))
    for what, module in MODULES.items():
        cells = [f"{tally.passed[module, kind]}/{tally.run[module, kind]}" for kind in BROKERS]
        print(f"{what:10}" + "".join(f"{cell:>24}" for cell in cells))
    sums = [
        f"{sum(tally.passed[name, kind] for name in MODULES.values())}"
        f"/{sum(tally.run[name, kind] for name in MODULES.values())}"
        for kind in BROKERS
    ]
    print(f"{'together':10}" + "".join(f"{cell:>24}" for cell in sums))
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
