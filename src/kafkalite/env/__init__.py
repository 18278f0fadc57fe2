"""Time, disk, background work and chance, as the broker is given them.

Owns the line between the program and the machine: everything below this package's interfaces may be
replaced, and nothing outside it asks the machine directly. Of the network Env has what names stand
for; the rest the server alone is given.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random

from kafkalite.env import collector
from kafkalite.env.background import Background, InlineBackground, ThreadBackground
from kafkalite.env.clock import Clock, ManualClock, RealClock
from kafkalite.env.connecting import address_of
from kafkalite.env.dataclasses import dataclass, field
from kafkalite.env.disk import Disk, RealDisk
from kafkalite.env.memory import MemoryDisk
from kafkalite.env.randomness import seeded_random, system_random
from kafkalite.env.slicing import Slices


@dataclass(slots=True)
class Env:
    """What a broker needs of the world."""

    clock: Clock
    disk: Disk
    background: Background
    random: Random
    # The address of a host's name, or OSError. May take long: for workers.
    address_of: Callable[[str], str] = address_of
    slices: Slices = field(init=False)  # all long work of the loop, of whatever room

    def __post_init__(self) -> None:
        is_real = isinstance(self.clock, RealClock)
        self.slices = Slices(self.clock, collector.of_process if is_real else None)


def real_env(
    loop: asyncio.AbstractEventLoop, *, in_memory: bool = False, max_open_files: int | None = None
) -> Env:
    """The machine itself; with `in_memory`, all but its disk."""
    clock = RealClock(loop)
    disk: Disk = MemoryDisk(now_ms=clock.now_ms) if in_memory else RealDisk(max_open_files)
    return Env(clock, disk, ThreadBackground(loop), system_random())


def manual_env(
    seed: int = 0, disk: Disk | None = None, clock: ManualClock | None = None
) -> Env:
    """A world that a test owns: its clock stands still, its disk is memory, its chance is a
    seed."""
    clock = clock or ManualClock()
    return Env(
        clock, disk or MemoryDisk(now_ms=clock.now_ms), InlineBackground(), seeded_random(seed),
        _of_this_machine,
    )


def _of_this_machine(name: str) -> str:
    if name != "localhost":
        raise OSError(f"{name} is a name of nobody in this world")
    return "127.0.0.1"
