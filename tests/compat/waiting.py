"""Waiting for what a broker said is done, and for whom that is allowed.

Apache Kafka answers when its controller has decided; what its broker says may follow a moment
later. In kafkalite it is so when the reply comes, so there the first look must find it.
"""

import time
from collections.abc import Callable

from tests.compat.brokers import Broker

PATIENCE_S = 20


def eventually(broker: Broker, condition: Callable[[], bool]) -> None:
    """Asserts the condition: of kafkalite at once, of Apache Kafka within some seconds."""
    deadline = time.monotonic() + (0 if broker.is_kafkalite else PATIENCE_S)
    while not condition():
        assert time.monotonic() < deadline, "it did not come to be"
        time.sleep(0.05)
