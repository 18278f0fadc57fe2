"""What can be seen of the code only while it runs: how many calls lie between a socket and a file.

A call costs some 50 ns and a reader a jump, so the way of a small Produce is counted and may only
get shorter.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import kafkalite
from tests import look
from tests.unit.calls import Wire, ways_to_the_file
from tests.unit.handlers.producing import batch_of, by_producer, request
from tests.unit.handlers.whole_broker import WholeBroker

PACKAGE = Path(kafkalite.__file__).parent
# From the socket's callback to the file's write, both counted.
CALLS_OF_A_PRODUCE = 10
# What is short of its goal. Replies wait in `Uncommitted` beside the high watermark, whose waits
# end together: with one wait there for each commit its replies came before the errands of the
# commit in front of it.
SHORT = {"waiting rooms that a coordinator's write crosses": 1}


@pytest.fixture
def broker() -> Iterator[WholeBroker]:
    broker = WholeBroker()
    broker.create("t")
    yield broker
    broker.close()


@pytest.fixture
def wire(broker: WholeBroker) -> Iterator[Wire]:
    wire = Wire(broker)
    yield wire
    wire.close()


@pytest.mark.pure  # compiled functions have no frames
@pytest.mark.parametrize("is_idempotent", [False, True])
def test_a_small_produce_is_few_calls_from_the_socket_to_the_file(
    broker: WholeBroker, wire: Wire, is_idempotent: bool
) -> None:
    broker.ask(request(by_producer(broker, 0)), 9)  # the first of its kind, and of its producer
    wire.send(by_producer(broker, 1) if is_idempotent else batch_of(broker, b"v" * 100))
    (way,) = ways_to_the_file(wire)
    assert wire.error_code() == 0
    assert broker.partition().log.log_end_offset == 2
    assert way[0].endswith("_readable")
    assert len(way) == CALLS_OF_A_PRODUCE, "\n".join(["", *way])


@pytest.mark.pure
@pytest.mark.parametrize("figure", look.figures(), ids=lambda figure: figure.what)
def test_the_house_is_as_plain_as_it_was_to_be(figure: look.Figure) -> None:
    assert figure.count <= figure.goal + SHORT.get(figure.what, 0), "\n".join(["", *figure.found])
