"""The table of what brokers of each release serve is what the classes of that release say.

Six of the releases have their classes among the jars that `make setup` fetches; the others are
compared where `python -m tests.profiles` has once been run, and skipped elsewhere.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkalite.testing import profiles
from tests.profiles import releases

# Of which `make setup` has the jars.
OF_SETUP = ("0.10.2", "0.11.0", "1.1", "2.8", "3.9", "4.3")

pytestmark = pytest.mark.conformance


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return releases.compiled(tmp_path_factory.mktemp("classes"))


@pytest.mark.parametrize(
    "release",
    [
        each if each in OF_SETUP else pytest.param(each, marks=pytest.mark.full)
        for each in releases.releases()
    ],
)
def test_the_table_is_what_the_classes_say(release: str, classes: Path) -> None:
    if release not in OF_SETUP and not releases.is_cached(release):
        pytest.skip(f"the jar of {release} is fetched by python -m tests.profiles")
    found = releases.asked(release, classes)
    known = profiles.profiles()[release]
    assert found.profile == known
    assert found.names_own_versions == known.names_own_versions
