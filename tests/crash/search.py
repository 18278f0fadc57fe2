"""The search: at every disk operation of a workload, what may be left is recovered and checked."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from kafkalite.sim.disk import CrashDisk
from tests.crash.worlds import Dead, Run, Workload, check_state, recover
from tests.unit.log.making import abandon


@dataclass(slots=True)
class Found:
    """A state of the disk that broke a promise, and how to come back to it."""

    workload: Workload
    operation: int
    state: int
    problem: BaseException


def crash_points(workload: Workload, states: int, compound: float = 0.1) -> int:
    """Crashes a workload before each of its operations, in several ways; returns how many."""
    disk = CrashDisk()
    count = 0
    run: Run | None = None

    def before(kind: str, path: str, size: int) -> None:
        nonlocal count
        if run is None:
            return
        for state in range(states):
            random = Random(f"{workload.seed}/{disk.operations}/{state}")
            # The first state is that of a process that dies, the others those of a machine.
            left = disk.stopped() if state == 0 else disk.crashed(random)
            expected = run.expected.copy()
            # A write that returned lasts longer than its process, but not than the machine.
            is_machine = state > 0 or workload.is_fsynced
            if is_machine and not workload.is_fsynced:
                for batch in expected.appended:
                    batch.is_acknowledged = False
            try:
                if random.random() < compound:
                    left = _crash_again(left, workload, random, is_machine=is_machine)
                    count += 1
                check_state(left, expected, workload)
            except Exception as problem:
                where = (
                    f"seed {workload.seed} operation {disk.operations} {kind} {path} state {state}"
                )
                raise AssertionError(f"{workload}: {where}: {problem!r}") from problem
            count += 1

    run = Run(workload, disk)
    disk.before_operation = before
    run.run()
    return count


def _crash_again(
    disk: CrashDisk, workload: Workload, random: Random, *, is_machine: bool
) -> CrashDisk:
    """The process or the machine dies once more, in the middle of recovery."""
    total = _operations_of_recovery(disk.stopped(), workload)
    if total == 0:
        return disk
    last = random.randrange(total)

    def die(kind: str, path: str, size: int) -> None:
        if disk.operations > last:
            raise Dead

    disk.before_operation = die
    disk.operations = 0
    try:
        manager, _ = recover(disk, workload)
        abandon(manager)
    except Dead:
        pass
    disk.before_operation = None
    return disk.crashed(random) if is_machine else disk.stopped()


def _operations_of_recovery(disk: CrashDisk, workload: Workload) -> int:
    manager, _ = recover(disk, workload)
    abandon(manager)
    return disk.operations
