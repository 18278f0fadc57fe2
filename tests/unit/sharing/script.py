"""The sentences of the scenarios of a shared partition: what members do, and what the window is."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from kafkalite.coordinators.shares.batches import StateBatch
from kafkalite.env.slicing import finish
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.sharing import acknowledging
from kafkalite.sharing.acknowledging import Said, Speaker
from kafkalite.sharing.acquiring import Asker, Fetched, acquire, without
from kafkalite.sharing.in_flight import AVAILABLE, RecordState, Transition
from kafkalite.sharing.window import Window
from tests.unit.script import Script

KINDS = {"a gap": 0, "accepts": 1, "releases": 2, "rejects": 3, "renews": 4}
LOCK_MS = 30_000


@dataclass
class Stage:
    window: Window = field(default_factory=lambda: Window(0, 0))
    log: list[Fetched] = field(default_factory=list)
    now_ms: int = 0
    limit: int = 5
    most: int = 2_000
    may_renew: bool = True
    aborted: list[Fetched] = field(default_factory=list)
    open: list[Transition] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    told: str = ""
    is_held: bool = False

    def tell(self, line: str) -> None:
        self.lines.append(f"  {line}")

    def tell_window(self) -> None:
        """As it is now, when it is another than before."""
        window = self.window
        parts = [f"{window.start_offset}..{window.end_offset}"]
        parts += [
            f"{_range(run.first, run.last)} {_state(run.state)}"
            + (f" by {run.member}" if run.member else "")
            + (f" x{run.deliveries}" if run.deliveries else "")
            + (" unwritten" if run.pending else "")
            for batch in window.batches
            for run in batch.runs
        ]
        if window.complete_count:
            parts.append(f"{window.complete_count} done")
        text = ", ".join(parts)
        if text != self.told:
            self.tell(text)
            self.told = text


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def _state(state: RecordState) -> str:
    return "free" if state is AVAILABLE else state.name.lower()


def _numbers(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    return int(first), int(last or first)


SCRIPT = Script(Stage.tell_window)
act = SCRIPT.act


def play(lines: list[str]) -> list[str]:
    return SCRIPT.play(lines, Stage())


@act(r"the log has ([\d, -]+)")
def _log(stage: Stage, text: str) -> None:
    stage.log += [Fetched(*_numbers(each)) for each in text.split(", ")]


@act(r"the group begins at (\d+)")
def _begins(stage: Stage, offset: str) -> None:
    stage.window = Window(int(offset), int(offset))


@act(r"a coordinator knows from (\d+): (.+)")
def _known(stage: Stage, start: str, text: str) -> None:
    known = []
    for each in text.split(", "):
        offsets, state, count = each.split()
        value = AVAILABLE if state == "free" else RecordState[state.upper()]
        known.append(StateBatch(*_numbers(offsets), int(value), int(count.lstrip("x"))))
    try:
        stage.window = Window.of(int(start), known)
    except KafkaError as error:
        stage.tell(Error(error.code).name)


@act(r"records are delivered (\d+) times at most")
def _limit(stage: Stage, limit: str) -> None:
    stage.limit = int(limit)


@act(r"(\d+) records may be in flight")
def _most(stage: Stage, most: str) -> None:
    stage.most = int(most)


@act(r"locks are not renewed")
def _no_renewals(stage: Stage) -> None:
    stage.may_renew = False


@act(r"the transaction of ([\d-]+) was aborted")
def _aborted(stage: Stage, text: str) -> None:
    stage.aborted.append(Fetched(*_numbers(text)))


@act(r"(\w+) wants (\d+)( and no more)?(?: in batches of (\d+))?")
def _wants(stage: Stage, who: str, count: str, strict: str | None, size: str | None) -> None:
    window = stage.window
    if not window.can_acquire(stage.most):
        stage.tell(f"{who} waits")
        return
    offset = window.next_fetch_offset()
    asker = Asker(
        who, stage.now_ms + LOCK_MS, int(count), int(size or 500), strict is not None, stage.most,
        stage.limit,
    )  # fmt: skip
    acquired = acquire(window, asker, offset, [one for one in stage.log if one.last >= offset])
    for one in without(window, acquired, stage.aborted):
        stage.tell(f"{who} has {_range(one.first, one.last)}, delivery {one.deliveries}")


@act(r"(\w+) ((?:accepts|releases|rejects|renews) .+)")
def _says(stage: Stage, who: str, text: str) -> None:
    said = []
    for part in re.split(r",? and ", text):
        kind, _, offsets = part.partition(" ")
        said += [Said(*_numbers(each), (KINDS[kind],)) for each in offsets.split(", ")]
    _say(stage, who, said)


@act(r"(\w+) says of ([\d-]+): ([\w, ]+)")
def _says_each(stage: Stage, who: str, offsets: str, kinds: str) -> None:
    first, last = _numbers(offsets)
    _say(stage, who, [Said(first, last, tuple(KINDS[each] for each in kinds.split(", ")))])


def _say(stage: Stage, who: str, said: list[Said]) -> None:
    speaker = Speaker(who, stage.now_ms + LOCK_MS, stage.limit, stage.may_renew)
    try:
        _written(stage, finish(acknowledging.acknowledge(stage.window, speaker, said)))
    except KafkaError as error:
        stage.tell(f"{Error(error.code).name}: {error.message}")


def _written(stage: Stage, transition: Transition) -> None:
    stage.open.append(transition)
    if not stage.is_held:
        _end(stage, is_written=True)


def _end(stage: Stage, *, is_written: bool) -> None:
    for transition in stage.open:
        acknowledging.end(
            stage.window, transition, is_written=is_written, now_ms=stage.now_ms
        )
    stage.open.clear()


@act(r"(\w+) is gone")
def _gone(stage: Stage, who: str) -> None:
    _written(stage, finish(acknowledging.release(stage.window, who, stage.limit)))


@act(r"what is said is not written yet")
def _held(stage: Stage) -> None:
    stage.is_held = True


@act(r"it is (not )?written")
def _is_written(stage: Stage, cannot: str | None) -> None:
    stage.is_held = False
    _end(stage, is_written=cannot is None)


@act(r"(\d+) seconds pass")
def _pass(stage: Stage, seconds: str) -> None:
    stage.now_ms += int(seconds) * 1_000
    for one in finish(stage.window.expire(stage.now_ms, stage.limit)):
        state = _state(RecordState(one.state))
        stage.tell(f"to be written: {_range(one.first, one.last)} is {state}")
    stage.window.move_start()


@act(r"the log begins at (\d+)")
def _log_begins(stage: Stage, offset: str) -> None:
    stage.log = [one for one in stage.log if one.last >= int(offset)]
    stage.window.log_begins_at(int(offset))


@act(r"compaction removes ([\d-]+)")
def _compacted(stage: Stage, text: str) -> None:
    stage.log.remove(Fetched(*_numbers(text)))
