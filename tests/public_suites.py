"""`make public-suites`: tests that other projects wrote against Kafka, their broker exchanged.

Each project's source distribution is fetched as it was published and put into an environment of its
own. Its suite runs once against kafkalite and once against Apache Kafka; the counts go to
docs/generated/public-suites.md. What a suite starts by itself, brokers with TLS among it, is left
out by name. Ends with 1 when a test passes with Apache Kafka and not with kafkalite.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from rich.console import Console
from rich.table import Table

from tests.compat import brokers
from tests.compat.brokers import APACHE_KAFKA, KAFKALITE, Broker

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "generated" / "public-suites.md"
PLACE = Path(sys.prefix) / "side" / "public-suites"
SUITE_TIMEOUT_S = 1_200
HEAD = """# Suites of other projects

Written by `make public-suites`: the tests of projects that test against Kafka, from their source
distributions as published, with nothing changed but the broker's address.

| suite | tests | passed with kafkalite | passed with Apache Kafka 4.3.1 | left out | not passed |
| --- | --- | --- | --- | --- | --- |
"""


@dataclass(frozen=True)
class Suite:
    """What it takes to run one of them."""

    package: str
    version: str
    paths: tuple[str, ...]
    requires: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)  # with {host} and {port} in them
    settings: Mapping[str, str] = field(default_factory=dict)  # as the project's own broker has
    port: int = 0  # where it does not ask
    options: str = ""  # of pytest, as in the project's own file of them
    leaves_out: str = ""
    # What the distribution lacks of its own tests, and they import.
    missing: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.package} {self.version}"


_EXTERNAL_SERVICE = '''
class ExternalService:
    """A broker that somebody else starts and stops."""

    def __init__(self, host, port):
        self.host, self.port = host, port

    def open(self):
        pass

    close = stop = dump_logs = open


SpawnedService = None
'''

SUITES = (
    Suite(
        "kafka-python", "3.0.12",
        (
            "test/integration/test_admin_integration.py",
            "test/integration/test_consumer_integration.py",
            "test/integration/test_producer_integration.py",
        ),
        ("pytest", "py", "lz4", "zstandard", "python-snappy", "crc32c"),
        {"KAFKA_VERSION": "4.3.1", "KAFKA_ROOT": "/", "KAFKA_URI": "kafka://{host}:{port}"},
        {"node.id": "0", "num.partitions": "4", "group.min.session.timeout.ms": "1000"},
        leaves_out="TLS and SASL, which start brokers of their own",
        missing={"test/__init__.py": "", "test/service.py": _EXTERNAL_SERVICE},
    ),
    Suite(
        "kombu", "5.7.0", ("t/integration/test_kafka.py",),
        ("pytest", "confluent-kafka==2.16.1"), port=9092, options="python_classes = test_*",
    ),
    Suite(
        "taskiq-aio-kafka", "1.0.0", ("tests",), ("pytest", "anyio", "aiokafka==0.14.0"),
        {"TEST_KAFKA_URL": "{host}:{port}"}, options="anyio_mode = auto",
    ),
)  # fmt: skip


@dataclass
class Verdict:
    """What came of each test of a run."""

    passed: set[str] = field(default_factory=set)
    skipped: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)

    @property
    def asked(self) -> int:
        return len(self.passed | self.failed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=", ".join(each.package for each in SUITES))
    wanted = parser.parse_args().names
    suites = [each for each in SUITES if not wanted or each.package in wanted]
    if not suites:
        parser.error(f"no such suite; there are {', '.join(each.package for each in SUITES)}")
    console = Console()
    found: dict[str, tuple[Verdict, Verdict]] = {}
    for suite in suites:
        with console.status(f"{suite.name}: fetching"):
            folder, python = _prepared(suite)
        verdicts = []
        for kind in (KAFKALITE, APACHE_KAFKA):
            with console.status(f"{suite.name}: {kind}"):
                verdicts.append(_run(suite, kind, folder, python))
        found[suite.name] = verdicts[0], verdicts[1]
    if not wanted:
        _write(found)
    return _tell(console, found)


# --- one suite ------------------------------------------------------------------------------------


def _prepared(suite: Suite) -> tuple[Path, Path]:
    """The folder of its sources, and the Python that has what it needs."""
    place = PLACE / f"{suite.package}-{suite.version}"
    python, done = place / "venv" / "bin" / "python", place / "done"
    if not done.exists():
        place.mkdir(parents=True, exist_ok=True)
        exact = f"{suite.package}=={suite.version}"
        download = ["pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
        _call([sys.executable, "-m", *download, "--dest", str(place), exact])
        _call([sys.executable, "-m", "venv", str(place / "venv")])
        _call([str(python), "-m", "pip", "install", "--quiet", exact, *suite.requires])
        with tarfile.open(next(place.glob("*.tar.gz"))) as archive:
            archive.extractall(place / "sources", filter="data")
        done.touch()
    [sources] = (place / "sources").iterdir()
    for path, text in suite.missing.items():
        (sources / path).write_text(text)
    return sources, python


def _call(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}:\n{done.stderr[-2_000:]}")


def _run(suite: Suite, kind: str, folder: Path, python: Path) -> Verdict:
    with tempfile.TemporaryDirectory(prefix="kafkalite-suite-") as place:
        port = suite.port or brokers.free_ports(1)[0]
        listener = {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}"}
        settings = {**suite.settings, **(listener if kind == KAFKALITE else {})}
        broker = brokers.start(kind, Path(place) / "broker", settings, port=port)
        try:
            return _tested(suite, broker, folder, python, Path(place))
        finally:
            broker.stop()


def _tested(suite: Suite, broker: Broker, folder: Path, python: Path, place: Path) -> Verdict:
    report, settings = place / "report.xml", place / "pytest.ini"
    settings.write_text(f"[pytest]\n{suite.options}\n")
    where = {"host": broker.host, "port": broker.port}
    variables = {name: value.format(**where) for name, value in suite.variables.items()}
    subprocess.run(
        [
            str(python), "-m", "pytest", "-q", "-c", str(settings), "--rootdir", str(folder),
            "--junitxml", str(report), *suite.paths,
        ],
        cwd=folder, env={**os.environ, **variables}, timeout=SUITE_TIMEOUT_S, check=False,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    return _read(report)


def _read(report: Path) -> Verdict:
    verdict = Verdict()
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        kinds = {child.tag for child in case}
        if kinds & {"failure", "error"}:
            verdict.failed.add(name)
        elif "skipped" in kinds:
            verdict.skipped.add(name)
        else:
            verdict.passed.add(name)
    return verdict


# --- what is told ---------------------------------------------------------------------------------


def _write(found: Mapping[str, tuple[Verdict, Verdict]]) -> None:
    rows = []
    for suite in SUITES:
        ours, theirs = found[suite.name]
        short = ", ".join(_short(name) for name in sorted(ours.failed | theirs.failed))
        rows.append(
            f"| {suite.name} | {ours.asked} | {len(ours.passed)} | {len(theirs.passed)} | "
            f"{suite.leaves_out or '–'} | {short or '–'} |"
        )
    PAGE.write_text(HEAD + "\n".join(rows) + "\n", encoding="utf-8")


def _short(name: str) -> str:
    return f"`{name.rpartition('.')[2]}`"


def _tell(console: Console, found: Mapping[str, tuple[Verdict, Verdict]]) -> int:
    table = Table("suite", "tests", "kafkalite", "Apache Kafka", "skipped")
    worse: list[str] = []
    for name, (ours, theirs) in found.items():
        counts = ours.asked, len(ours.passed), len(theirs.passed), len(ours.skipped)
        table.add_row(name, *map(str, counts))
        worse += [f"{name}: {test}" for test in sorted(theirs.passed - ours.passed)]
    console.print(table)
    for name, (ours, theirs) in found.items():
        for test in sorted(ours.failed & theirs.failed):
            console.print(f"{name}: {test} passes with neither", markup=False)
    for each in worse:
        console.print(f"{each} passes with Apache Kafka alone", markup=False)
    return 1 if worse or not all(ours.asked for ours, _ in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
