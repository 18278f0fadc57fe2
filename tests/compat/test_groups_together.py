"""Consumers that start together get their partitions together (the full rounds: start_together)."""

from collections.abc import Iterator

import pytest

from tests.compat.start_together import LIMIT_S, kafkalite, play
from tests.compat.together_clients import CLIENTS

# What other tests do to the machine meanwhile decides too much: `make compat` and `make together`
# run it. How a new group gathers its members is told by tests/unit/coordinators.
pytestmark = pytest.mark.full

ROUNDS = 3


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    """With default settings, as the brokers of the other tests are not."""
    with kafkalite() as address:
        yield address


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("client", CLIENTS)
def test_consumers_of_a_new_group_that_start_together_are_one_generation(
    bootstrap: str, client: str, count: int
) -> None:
    """A machine that others use may hold a client up once: most rounds, and at once."""
    played = [play(bootstrap, client, count) for _ in range(ROUNDS)]
    together = [one.took_s for one in played if one.is_one_generation]
    assert len(together) > ROUNDS // 2
    assert min(together) <= LIMIT_S
