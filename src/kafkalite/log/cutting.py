"""A cut of a log that serves: workers wait for the disk, and the loop goes on meanwhile.

Owns the way between the two. Nothing is appended to the log, and nothing more of it counts as
durable, until the cut is over. Invariant: a cut that is made comes to last, whoever wanted it; one
that is not made, and not wanted any more, leaves the log as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial

from kafkalite.env.later import Later
from kafkalite.env.slicing import Steps
from kafkalite.log.failures import is_out_of_descriptors
from kafkalite.log.flusher import RETRY_MS
from kafkalite.log.log_state import LogState
from kafkalite.log.truncation import Cut, Need
from kafkalite.protocol.errors import Error, KafkaError

Outcome = KafkaError | None
MISTAKEN = KafkaError(Error.UNKNOWN_SERVER_ERROR, "a log was not cut, by a mistake of ours")


class Cutting:
    """One cut on its way."""

    __slots__ = ("_cut", "_is_wanted", "_log", "_needs", "over")

    def __init__(self, log: LogState, cut: Cut, is_wanted: Callable[[], bool]) -> None:
        assert log.being_cut is None, f"{log} is being cut"
        self._log, self._cut, self._is_wanted = log, cut, is_wanted
        self._needs = cut.needs()
        self.over: Later[Outcome] = Later()

    def begin(self) -> Later[Outcome]:
        """Filled when the cut lasts, when it is not wanted any more, or with why it cannot be."""
        self._log.being_cut = self.over
        self._log.durability.hold()
        self._go_on()
        return self.over

    def _go_on(self, _: None = None) -> None:
        log = self._log
        if log.lost is not None:
            self._end(log.lost)
            return
        try:
            log.home.check_online()
            is_off = not self._cut.is_made and not self._is_wanted()
            need = None if is_off else next(self._needs, None)
        except OSError as error:
            if self._cut.is_made:
                log.home.fail(error)  # half of it would be worse
            self._end(log.storage_error(error))
        except KafkaError as error:
            self._end(error.with_traceback(None))
        except BaseException:
            self._end(MISTAKEN)
            raise
        else:
            self._meet(need)

    def _meet(self, need: Need | None) -> None:
        if need is None:
            self._end(None)
        elif isinstance(need, str):
            self._log.home.save_checkpoint_later(need, partial(self._is_saved, need))
        elif isinstance(need, Generator):
            steps = self._while_there(need)
            self._log.home.env.slices.later(steps).then(self._go_on, self._failed)
        else:
            self._log.home.env.background.submit(need, partial(self._is_done, need))

    def _while_there(self, steps: Steps[None]) -> Steps[None]:
        for _ in steps:
            yield
            self._log.home.check_online()
            if self._log.lost is not None:
                return

    def _is_saved(self, name: str, is_written: bool) -> None:
        if is_written:
            self._go_on()
        elif self._log.home.is_online:
            self._again(name)
        else:
            self._go_on()  # which says why

    def _is_done(self, need: Need, outcome: object) -> None:
        if is_out_of_descriptors(outcome):
            self._again(need)
            return
        if isinstance(outcome, BaseException):
            self._failed(outcome)
        else:
            self._go_on()

    def _failed(self, error: BaseException) -> None:
        if isinstance(error, OSError):
            self._log.home.fail(error)  # what the disk has is not known after that
            self._go_on()
        elif isinstance(error, KafkaError):
            self._end(error.with_traceback(None))
        else:
            self._end(MISTAKEN)
            raise error

    def _again(self, need: Need) -> None:
        """No descriptor was left, or no room: that passes."""
        self._log.home.env.clock.call_later(RETRY_MS, partial(self._meet, need))

    def _end(self, outcome: Outcome) -> None:
        log = self._log
        if not self._cut.is_made:
            self._cut.give_up()
        log.being_cut = None
        log.durability.release()
        self.over.resolve(outcome)
