"""What a connection leaves behind when its client goes."""

from kafkalite.server.limits import Limits
from tests.unit.server.support import FakeLink, World, frame


def test_what_is_worked_on_for_a_client_that_has_gone_counts_as_memory():
    world, link = World(Limits(max_queued_request_bytes=100_000), 262_144), FakeLink()
    world.connect(link)
    for number in range(3):
        world.feed(link, frame(b"later-%d" % number + b"x" * 50_000))
    world.service.resolve(b"later-1" + b"x" * 50_000)
    assert world.memory.used == 3 * 50_007
    link.abort()
    assert world.memory.used == 2 * 50_007
    for number in (2, 0):
        world.service.resolve(b"later-%d" % number + b"x" * 50_000)
    assert world.memory.used == 0
