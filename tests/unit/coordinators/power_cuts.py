"""A partition of a coordinator that cuts the power when told to, and what else restarted one."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from kafkalite.log.partition_log import AppendOrigin
from tests.unit.coordinators.fakes import Appended, FakePartition


class PowerCut(Exception):
    """The coordinator dies right after a batch has reached the log."""


class Bugs(logging.Handler):
    """Whatever made a shard start again, but for power cuts: those are the test's own."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[BaseException] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and not isinstance(error, PowerCut):
            self.found.append(error)


BUGS = Bugs()


@dataclass(slots=True)
class CuttingPartition(FakePartition):
    """Cuts the power after the next append when it is told to."""

    is_cutting: bool = False

    def append(
        self,
        records: memoryview,
        now_ms: int,
        origin: AppendOrigin,
        *,
        is_all: bool,
        transaction_version: int = 0,
    ) -> Appended:
        appended = FakePartition.append(self, records, now_ms, origin, is_all=is_all)
        if self.is_cutting:
            self.is_cutting = False
            raise PowerCut
        return appended
