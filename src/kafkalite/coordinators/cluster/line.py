"""The controller's events in line: one at a time, and a step of it between everything else.

Owns whose turn it is. An event is decided against the image as all events before it left it, and
nothing of it is written before all of it is decided. Who cannot wait has what is under way finished
at once. Invariant: each event is answered exactly once, also when it or what follows it fails by a
mistake of ours, and when it comes after the end.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar

from kafkalite.env.dataclasses import dataclass
from kafkalite.env.later import Later, resolve_each
from kafkalite.env.slicing import Slices, Steps
from kafkalite.protocol.errors import Error, KafkaError

logger = logging.getLogger(__name__)

T = TypeVar("T")
Answer: TypeAlias = Later[Any]  # of the kind that its event says


@dataclass(slots=True)
class _Waiting:
    event: object
    answer: Answer


class Line(Generic[T]):
    """Events that wait for their decision."""

    def __init__(
        self,
        slices: Slices,
        enact: Callable[[Any], Steps[T]],
        enacted: Callable[[T, Answer], None],
    ) -> None:
        """`enact` is what is done about an event, and `enacted` has the answer given to what came
        of it: it is called between two events, and may submit or decide others."""
        self._slices = slices
        self._enact = enact
        self._enacted = enacted
        self._waiting: deque[_Waiting] = deque()
        self._current: tuple[_Waiting, Steps[T]] | None = None
        self._is_working = False
        self._stopped: KafkaError | None = None
        self._is_paused = False

    def submit(self, event: object) -> Answer:
        """Filled with the answer, or with a KafkaError."""
        if self._stopped is not None:
            return Later.of(self._stopped)
        waiting = _Waiting(event, Later())
        self._waiting.append(waiting)
        self._work()
        return waiting.answer

    def _work(self) -> None:
        if self._waiting and not self._is_working and not self._is_paused:
            self._is_working = True
            self._slices.run(self._work_off(), lambda _: None)

    def pause(self) -> None:
        """What is under way is finished, and everything else waits for `resume`."""
        self.finish_current()
        self.hold()

    def hold(self) -> None:
        """Nothing more is begun, also when this is called from within a step."""
        self._is_paused = True

    def resume(self) -> None:
        self._is_paused = False
        self._work()

    def refuse(self, answers: Iterable[Answer], error: KafkaError) -> None:
        """Those of these that still wait for their turn are refused."""
        late = set(map(id, answers))
        refused = [each.answer for each in self._waiting if id(each.answer) in late]
        self._waiting = deque(each for each in self._waiting if id(each.answer) not in late)
        resolve_each((answer, error) for answer in refused)

    @property
    def waiting(self) -> list[Answer]:
        """The answers of those that have not had their turn."""
        return [each.answer for each in self._waiting]

    def finish_current(self) -> None:
        """Has the event that is under way decided and written, before somebody decides another."""
        while self._current is not None:
            self._step(self._current)

    def stop(self, error: KafkaError) -> None:
        """Nothing more is decided, and those who wait are told so."""
        self._stopped = error
        waiting, self._waiting = list(self._waiting), deque()
        if self._current is not None:
            waiting.insert(0, self._current[0])
            self._current = None
        resolve_each((each.answer, error) for each in waiting)

    def _work_off(self) -> Steps[None]:
        try:
            while self._waiting and not self._is_paused:
                waiting = self._waiting.popleft()
                current = self._current = (waiting, self._enact(waiting.event))
                while self._current is current:
                    self._step(current)
                    yield
        finally:
            self._is_working = False

    def _step(self, current: tuple[_Waiting, Steps[T]]) -> None:
        """What fails is this event's alone: the line goes on."""
        waiting, steps = current
        name = type(waiting.event).__name__
        unknown = KafkaError(Error.UNKNOWN_SERVER_ERROR)
        tell: Callable[[], None]
        try:
            next(steps)
        except StopIteration as stop:
            tell = partial(self._enacted, stop.value, waiting.answer)
        except KafkaError as error:
            tell = partial(waiting.answer.resolve, error)
        except Exception:
            logger.exception("%s failed by a mistake of ours", name)
            tell = partial(waiting.answer.resolve, unknown)
        else:
            return
        if self._current is not current:
            return  # stopped meanwhile, and told so
        self._current = None
        if not _told(name, tell) and not waiting.answer.is_resolved:
            _told(name, partial(waiting.answer.resolve, unknown))


def _told(name: str, tell: Callable[[], None]) -> bool:
    try:
        tell()
    except Exception:
        logger.exception("what follows %s failed by a mistake of ours", name)
        return False
    return True
