"""What a mirror knows of offsets is the same after any kill, and does not grow with its batches."""

import json
from itertools import count, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.pipelines.common import syncs
from kafkalite.pipelines.common.syncs import FOLD_AFTER, FOLDER, Syncs
from kafkalite.pipelines.common.translation import Sync, translate

PLACE = ("t", 0)


class Killed(Exception):
    """As `kill -9`."""


class Notes:
    """Files in memory; dies at the operation of a number, in the middle of it."""

    path = "/c/kafkalite"

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self.dies_at: int | None = None
        self._operations = count()

    def read(self, name: str) -> str | None:
        return self.files.get(name)

    def write(self, name: str, text: str) -> None:
        self.files[f"{name}.writing"] = text[: len(text) // 2]
        self._operate()
        del self.files[f"{name}.writing"]
        self.files[name] = text

    def create(self, name: str, text: str) -> bool:
        raise NotImplementedError

    def delete(self, name: str) -> None:
        self._operate()
        del self.files[name]

    def names(self, name: str = "") -> list[str]:
        return [each.removeprefix(f"{name}/") for each in self.files if each.startswith(name)]

    def _operate(self) -> None:
        if next(self._operations) == self.dies_at:
            raise Killed


def batches_of(sizes: list[tuple[int, bool]]) -> list[Sync]:
    """One behind the other; those with a gap have a marker at their end."""
    found, start, to_start = [], 0, 0
    for size, is_gapped in sizes:
        end, to_end = start + size + is_gapped, to_start + size
        runs = ((start, size),) if is_gapped else ()
        found.append(Sync(start, end, to_start, to_end, runs))
        start, to_start = end, to_end
    return found


def places(found: list[Sync]) -> list[int | None]:
    return [translate(offset, found) for offset in range(60)]


SIZES = st.lists(st.tuples(st.integers(1, 4), st.booleans()), min_size=1, max_size=9)


@given(SIZES, st.integers(0, 40))
def test_any_kill_leaves_what_was_known(sizes: list[tuple[int, bool]], dies_at: int) -> None:
    """The batch that was under way comes again, as Spark has it."""
    batches = batches_of(sizes)
    notes = Notes()
    notes.dies_at = dies_at
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(syncs, "FOLD_AFTER", 2)
        kept, number = Syncs(notes), 0
        while number < len(batches):
            try:
                kept.note(number, {PLACE: batches[number]})
            except Killed:
                kept = Syncs(notes)
                continue
            number += 1
    assert places(kept.found[PLACE]) == places(batches)
    assert places(Syncs(notes).found[PLACE]) == places(batches)


@given(SIZES, st.data())
def test_batches_that_come_again_change_nothing(sizes: list[tuple[int, bool]], data: Any) -> None:
    batches = batches_of(sizes)
    kept = Syncs(Notes())
    for number, batch in enumerate(batches):
        for _ in range(data.draw(st.integers(1, 2))):
            kept.note(number, {PLACE: batch})
    assert places(kept.found[PLACE]) == places(batches)
    assert all(one.end <= other.start for one, other in pairwise(kept.found[PLACE]))


def test_a_mirror_that_runs_for_long_remembers_little() -> None:
    notes = Notes()
    kept = Syncs(notes)
    for number, batch in enumerate(batches_of([(2, False)] * (3 * FOLD_AFTER + 5))):
        kept.note(number, {PLACE: batch, ("t", 1): batch})
    end = 2 * (3 * FOLD_AFTER + 5)
    assert kept.found == {PLACE: [Sync(0, end, 0, end)], ("t", 1): [Sync(0, end, 0, end)]}
    assert len(notes.files) == 6
    assert Syncs(notes).found == kept.found


def test_files_of_earlier_releases_are_read() -> None:
    notes = Notes()
    notes.files[f"{FOLDER}/0.json"] = json.dumps([["t", 0, 0, 5, 0, 5]])
    notes.files[f"{FOLDER}/10.json"] = json.dumps([["t", 0, 9, 12, 8, 10, [[9, 2]]]])
    notes.files[f"{FOLDER}/9.json"] = json.dumps([["t", 0, 5, 9, 5, 8, [[5, 3]]]])
    assert Syncs(notes).found == {
        PLACE: [Sync(0, 5, 0, 5), Sync(5, 9, 5, 8, ((5, 3),)), Sync(9, 12, 8, 10, ((9, 2),))]
    }
