"""The pytest plugin: fixtures with a broker. Loaded by pytest wherever kafkalite is installed.

`kafkalite` is one broker for the whole run, in memory; `fresh_kafkalite` is one for a single test.
Both start in a few hundredths of a second, when a test first asks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kafkalite.testing.embedded import EmbeddedKafka


@pytest.fixture(scope="session")
def kafkalite() -> Iterator[EmbeddedKafka]:
    """A broker that all tests of the run share; give topics names of their own."""
    from kafkalite.testing.embedded import EmbeddedKafka

    with EmbeddedKafka() as broker:
        yield broker


@pytest.fixture
def fresh_kafkalite() -> Iterator[EmbeddedKafka]:
    """A broker with nothing in it, for this test alone."""
    from kafkalite.testing.embedded import EmbeddedKafka

    with EmbeddedKafka() as broker:
        yield broker
