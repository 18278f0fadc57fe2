"""What first requests need is made while nobody waits for it, a thing at a time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from kafkalite import handlers
from kafkalite.config.listeners import BROKER
from kafkalite.env.clock import ManualClock
from kafkalite.handlers.api_set import ApiSet
from kafkalite.protocol import spec
from kafkalite.server.preparing import BEGIN_MS, PAUSE_MS, Preparing

ROOT = Path(__file__).parents[3]

# In a process that nobody has asked for anything: what each step makes, and then what the first
# request of each API still does.
PROGRAM = """
import importlib, sys
from tests.unit.handlers.whole_broker import WholeBroker
from kafkalite import handlers
from kafkalite.protocol import classes, compiler, spec
from kafkalite.protocol.messages import FindCoordinatorRequest
from kafkalite.server.preparing import made_ready

made = []

def noted(owner, name):
    original = getattr(owner, name)
    def note(*given):
        made.append(name)
        return original(*given)
    setattr(owner, name, note)

broker = WholeBroker()
noted(compiler, "function")
noted(classes, "build")
noted(handlers, "import_module")
most = []
steps = made_ready([broker.context.api_sets["broker"]])
while next(steps, None) is not None:
    most.append(len(made))
    made.clear()
assert max(most) < 20, most  # classes of internal records come with their module
made.clear()
modules = set(sys.modules)
served = [api for api in broker.context.api_sets["broker"].apis]
for api in served:
    version = handlers.versions(api).stop - 1
    assert broker.broker.dispatcher._find_route(api.key << 16 | version) is not None, api
assert not made, made
assert set(sys.modules) == modules, set(sys.modules) - modules
assert len(served) > 70, len(served)
asked = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])  # whose topic is made for it
assert not broker.ask(asked, 4).coordinators[0].error_code
later = {each for each in set(sys.modules) - modules if each.startswith("kafkalite.")}
assert not later, later
broker.close()
"""


def test_a_first_request_makes_nothing_once_all_is_ready() -> None:
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert not done.returncode, done.stderr


class Found:
    """Which handlers are asked for, of which one is broken."""

    def __init__(self) -> None:
        self.keys: list[int] = []

    def __call__(self, key: int) -> Any:
        self.keys.append(key)
        if key == 3:
            raise ImportError("a planted mistake")
        return handlers.handler(key)


def test_it_goes_on_behind_a_mistake_and_a_pause() -> None:
    clock, found = ManualClock(), Found()
    Preparing(clock, [ApiSet(BROKER, found)]).start()
    clock.advance(BEGIN_MS - 1)
    assert not found.keys
    clock.advance(10_000 * PAUSE_MS)
    assert {key for key in handlers.served() if BROKER in spec.api(key).listeners} <= {*found.keys}
    assert clock.next_due_ms() is None


def test_it_rests_once_it_is_stopped() -> None:
    clock, found = ManualClock(), Found()
    preparing = Preparing(clock, [ApiSet(BROKER, found)])
    preparing.start()
    clock.advance(BEGIN_MS + 2 * PAUSE_MS)
    preparing.stop()
    assert clock.next_due_ms() is None
    clock.advance(10_000 * PAUSE_MS)
    assert not found.keys
    preparing.stop()
