"""What every test run shares: one folder for the run, known to all worker processes.

The first process makes the folder and names it in the environment, so xdist's workers inherit it.
At the end the first process stops what was started there and removes it.
"""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.compat.brokers import stop_all
from tests.compat.matrix import Matrix

RUN_FOLDER = "KAFKALITE_TEST_RUN"
_owned = pytest.StashKey[Path]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--broker",
        choices=("kafkalite", "apache-kafka"),
        help="run compatibility tests on this one only",
    )
    parser.addoption("--matrix", type=Path, help="write the table of what passed to this file")


def pytest_configure(config: pytest.Config) -> None:
    if RUN_FOLDER not in os.environ:
        config.stash[_owned] = Path(tempfile.mkdtemp(prefix="kafkalite-test-"))
        os.environ[RUN_FOLDER] = str(config.stash[_owned])
    if config.getoption("--matrix") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Matrix(config.getoption("--matrix")))


def pytest_unconfigure(config: pytest.Config) -> None:
    folder = config.stash.get(_owned, None)
    if folder is not None:
        stop_all(folder)
        shutil.rmtree(folder, ignore_errors=True)
        os.environ.pop(RUN_FOLDER, None)


@pytest.fixture(scope="session")
def run_folder() -> Path:
    """The folder of this run, the same in every worker."""
    return Path(os.environ[RUN_FOLDER])
