"""The worlds that handlers are asked in."""

from collections.abc import Callable, Iterator

import pytest

from tests.unit.handlers.quorum_desk import QuorumDesk
from tests.unit.handlers.whole_broker import WholeBroker
from tests.unit.handlers.world import World


@pytest.fixture
def world() -> Iterator[World]:
    """One broker."""
    world = World()
    yield world
    world.close()


@pytest.fixture
def three() -> Iterator[World]:
    """Three brokers of one process."""
    world = World((1, 2, 3))
    yield world
    world.close()


@pytest.fixture
def broker() -> Iterator[WholeBroker]:
    """One broker with its coordinators, which has a topic "t" of one partition."""
    broker = WholeBroker()
    broker.create("t")
    yield broker
    broker.close()


@pytest.fixture
def make_world() -> Iterator[Callable[..., World]]:
    """Worlds with settings of their own: `make_world(settings={…})`."""
    made: list[World] = []

    def make(*arguments: object, **named: object) -> World:
        made.append(World(*arguments, **named))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for world in made:
        world.close()


@pytest.fixture
def desk(world: World) -> QuorumDesk:
    """A controller that broker processes come to."""
    return QuorumDesk(world)
