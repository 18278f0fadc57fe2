"""Waiting for what a broker said is done, and for whom that is allowed.

Apache Kafka answers when its controller has decided; what its broker says may follow a moment
later. In kafkalite it is so when the reply comes, so there the first look must find it.
"""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from tests.compat.brokers import Broker

PATIENCE_S = 20
POLL_S = 0.1


def eventually(broker: Broker, condition: Callable[[], bool]) -> None:
    """Asserts the condition: of kafkalite at once, of Apache Kafka within some seconds."""
    deadline = time.monotonic() + (0 if broker.is_kafkalite else PATIENCE_S)
    while not condition():
        assert time.monotonic() < deadline, "it did not come to be"
        time.sleep(0.05)


def until(
    condition: Callable[[], bool], process: subprocess.Popen[bytes], log: Path, patience_s: float
) -> None:
    """Waits for what a program is to bring about; tells its last words if it does not."""
    deadline = time.monotonic() + patience_s
    while not condition():
        is_late = time.monotonic() >= deadline
        if is_late or process.poll() is not None:
            said = log.read_text(errors="replace")[-4000:]
            raise AssertionError(f"it {'did not come to be' if is_late else 'ended'}; {said}")
        time.sleep(POLL_S)
