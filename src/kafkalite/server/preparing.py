"""What the first request of each API has made, made before it comes: a little now and then.

Owns what is left to be made: the modules of handlers and of groups, and the classes and code of the
newest version of their messages. All of that is the whole process's; who asks first makes it in a
turn of its own otherwise, ten to thirty milliseconds of it. One thing at a time with a pause behind
it, on the loop: while a thread imports, each of the loop's system calls waits for the interpreter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from kafkalite import handlers
from kafkalite.config.listeners import BROKER
from kafkalite.env.clock import Clock, Timer
from kafkalite.env.importing import imported
from kafkalite.handlers.api_set import ApiSet
from kafkalite.protocol import codec, spec
from kafkalite.protocol.messages import message_class

# What a start brings along comes first.
BEGIN_MS = 1_000
PAUSE_MS = 20
# What their coordinator has imported once it has a partition of their topic.
OF_GROUPS = ("kafkalite.coordinators.groups.shard", "kafkalite.coordinators.groups.state")

Make = Callable[[int, tuple[ApiSet, ...]], Iterator[None]]


class Preparing:
    """For who serves for long; who does not would pay for what nobody asks."""

    def __init__(self, clock: Clock, sets: Iterable[ApiSet]) -> None:
        self._clock = clock
        self._things = made_ready(sets)
        self._timer: Timer | None = None

    def start(self) -> None:
        self._timer = self._clock.call_later(BEGIN_MS, self._make_one)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _make_one(self) -> None:
        if next(self._things, None) is None:
            self._timer = None
        else:
            self._timer = self._clock.call_later(PAUSE_MS, self._make_one)


def made_ready(sets: Iterable[ApiSet]) -> Iterator[str]:
    """Makes one thing after the other, and says what of. Classes come first: modules name those of
    many APIs, which would else be made in one go."""
    sets = tuple(sets)
    yield from _of_each_api(_classes, sets)
    if any(each.kind == BROKER for each in sets):
        for name in OF_GROUPS:
            with suppress(Exception):
                for _ in imported(name):
                    yield name
    yield from _of_each_api(_handler_and_code, sets)


def _of_each_api(make: Make, sets: tuple[ApiSet, ...]) -> Iterator[str]:
    for key, path in sorted(spec.api_files().items()):
        with suppress(Exception):  # whoever asks for it is told, and the log
            for _ in make(key, sets):
                yield path.stem


def _classes(key: int, sets: tuple[ApiSet, ...]) -> Iterator[None]:
    api = spec.api(key)
    yield
    if any(each.kind in api.listeners for each in sets):
        for kind in ("Request", "Response"):
            message_class(f"{api.name}{kind}")
            yield


def _handler_and_code(key: int, sets: tuple[ApiSet, ...]) -> Iterator[None]:
    api, module = spec.api(key), handlers.module_of(key)
    if module is None or not any(each.kind in api.listeners for each in sets):
        return
    yield from imported(module)
    for each in sets:
        each.handler(key)
    version = handlers.versions(api).stop - 1
    asked = message_class(f"{api.name}Request")
    codec.prefix_decoder(asked, version)
    yield
    codec.encoder(message_class(f"{api.name}Response"), version)
    yield
    if spec.message(asked.__name__).has_records:
        codec.few_decoder(asked, version)
        yield
