"""Who follows the metadata of a broker follows it until the broker stops, and no longer."""

from __future__ import annotations

from kafkalite.config.authorization import AUTHORIZER, STANDARD_AUTHORIZER
from tests.unit.handlers.whole_broker import WholeBroker


def test_nobody_follows_for_a_broker_that_has_stopped() -> None:
    world = WholeBroker({AUTHORIZER: STANDARD_AUTHORIZER})
    publishing = world.broker.metadata._publishing
    assert publishing._subscribers
    world.broker.stop()
    world.clock.advance(1_000)
    assert not publishing._subscribers
