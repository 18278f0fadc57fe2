"""What every test run shares: one folder for the run, known to all worker processes.

The first process makes the folder and names it in the environment, so xdist's workers inherit it.
A keeper beside it stops what was started there and removes it, also if the run is killed.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import kafkalite
from tests.compat.brokers import RUN_FOLDER, STARTED
from tests.compat.matrix import Matrix
from tests.left_behind import name_the_sockets_of_kafka_python

# How long an example takes says something of the machine, and nothing of the code.
SLOW = [HealthCheck.too_slow]
settings.register_profile("any-machine", deadline=None, suppress_health_check=SLOW)
settings.load_profile("any-machine")

if "KAFKALITE_COMPILED" in os.environ:  # a wheel is tested, and the simulated world is in none
    kafkalite.__path__.append(str(Path(__file__).parents[1] / "src" / "kafkalite"))

# Commands under test know no cluster of whoever runs the tests.
os.environ["KAFKALITE_PROFILES"] = os.devnull
os.environ.pop("KAFKALITE_PROFILE", None)

KEEPER_TIMEOUT_S = 60
# What a broker's log says when nobody was served for long; a busy machine makes it no more.
HELD_UP = re.compile(r"nobody was served for \d+ ms, (\d+) ms of it computing.*")
HELD_UP_CPU_MS = 100
_keeper = pytest.StashKey[subprocess.Popen[bytes]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--broker",
        choices=("kafkalite", "apache-kafka"),
        help="run compatibility tests on this one only",
    )
    parser.addoption(
        "--rewrite-scenarios",
        action="store_true",
        help="write what happens into the texts of scenarios",
    )
    parser.addoption("--matrix", type=Path, help="write what passed into this table")
    parser.addoption(
        "--rewrite-transcripts",
        action="store_true",
        help="write what Apache Kafka's tools say to Apache Kafka into the transcripts",
    )


def pytest_configure(config: pytest.Config) -> None:
    name_the_sockets_of_kafka_python()
    # As programs under test have them, also under nohup and in a shell's background.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if RUN_FOLDER not in os.environ:
        folder = tempfile.mkdtemp(prefix="kafkalite-test-")
        os.environ[RUN_FOLDER] = folder
        config.stash[_keeper] = subprocess.Popen(
            [sys.executable, "-m", "tests.compat.keeper", folder],
            cwd=Path(__file__).parents[1],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
    if config.getoption("--matrix") and not hasattr(config, "workerinput"):
        matrix = Matrix(config.getoption("--matrix"), is_whole=not leaves_out_cases(config))
        config.pluginmanager.register(matrix)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Puts the group of a test behind its id, where the scheduler of xdist looks for it.

    pytest-xdist 3.8 does so itself, but where pytest before 9.2 kept the id; without it the tests
    of one group, and what they share, are all over the workers.
    """
    if not getattr(config.option, "loadgroup", False):
        return
    for item in items:
        mark = item.get_closest_marker("xdist_group")
        if mark is None:
            continue
        behind = f"@{mark.args[0]}"
        known = getattr(item, "_id", None)
        if known is not None and not item.nodeid.endswith(behind):
            names = (*known.names[:-1], f"{item.name}{behind}")
            item._id = replace(known, names=names, params=None)
        assert item.nodeid.endswith(behind), "tests of a group would not stay together"


def leaves_out_cases(config: pytest.Config) -> bool:
    """Whether a test may run without some of its cases, by what the command line says."""
    names = ("keyword", "markexpr", "broker", "maxfail", "lf", "deselect")
    return any(map(config.getoption, names)) or any("[" in word for word in config.args)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Lists whoever held up the loop of a broker that ran in a process of its own."""
    if hasattr(terminalreporter.config, "workerinput") or RUN_FOLDER not in os.environ:
        return
    said = held_up(Path(os.environ[RUN_FOLDER]))
    if said:
        terminalreporter.section("loops that were held up")
        for line in said:
            terminalreporter.line(line)


def held_up(run_folder: Path) -> list[str]:
    """What the logs of this run's brokers say of turns that computed for long, most first."""
    found = [
        (int(match[1]), match[0])
        for row in (run_folder / STARTED).glob("*")
        if (log := Path(row.read_text(), "log")).exists()
        for match in HELD_UP.finditer(log.read_text(errors="replace"))
    ]
    return [line for cpu_ms, line in sorted(found, reverse=True) if cpu_ms >= HELD_UP_CPU_MS]


def pytest_unconfigure(config: pytest.Config) -> None:
    keeper = config.stash.get(_keeper, None)
    if keeper is not None:
        os.environ.pop(RUN_FOLDER, None)
        keeper.communicate(timeout=KEEPER_TIMEOUT_S)


@pytest.fixture(scope="session")
def run_folder() -> Path:
    """The folder of this run, the same in every worker."""
    return Path(os.environ[RUN_FOLDER])
