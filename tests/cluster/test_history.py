"""The checks see what they are there for, and nothing where all is well."""

from __future__ import annotations

import pytest

from tests.cluster.history import (
    History,
    Log,
    copy_of,
    unkept_commits,
    wrong_in,
    wrong_in_copies,
)

PLACE = ("t", 0)
COPIES = ("copies", 0)


def well() -> tuple[History, Log]:
    history = History()
    written, seen = history.writer("w"), history.reader("r")
    records = [(offset, f"w {offset}".encode()) for offset in range(5)]
    for offset, value in records:
        written.acknowledged[value.decode()] = (PLACE, offset)
        seen.give(PLACE, offset, value)
    seen.commits(PLACE, 3)
    return history, {PLACE: records}


def test_nothing_is_said_where_all_is_well() -> None:
    assert wrong_in(*well()) == []


def lost(history: History, found: Log) -> str:
    found[PLACE].pop()
    return "w: acknowledged and lost: 1 (w 4)"


def doubled(history: History, found: Log) -> str:
    found[PLACE].append((5, b"w 4"))
    return "doubled: 1 (b'w 4')"


def exchanged(history: History, found: Log) -> str:
    found[PLACE][0] = (0, b"w 4")
    return "something else is there: 1 (w 0 at t-0-0)"


def out_of_order(history: History, found: Log) -> str:
    found[PLACE][1:3] = [(1, b"w 2"), (2, b"w 1")]
    return "t-0-2: w 1 comes behind 2"


def read_otherwise(history: History, found: Log) -> str:
    history.reader("r").give(PLACE, 2, b"other 1")
    return "r: t-0-2 was read as b'w 2', then as b'other 1'"


def read_and_gone(history: History, found: Log) -> str:
    history.reader("r").give(PLACE, 9, b"other 1")
    return "of t-0 it read what is not there: 1 (9 as b'other 1')"


def left_out(history: History, found: Log) -> str:
    del history.reader("r").values[PLACE][2]
    return "of t-0 it was not given: 1 (2)"


def went_back(history: History, found: Log) -> str:
    history.reader("r").commits(PLACE, 2)
    return "t-0-2 is committed, which was 3"


def began_again(history: History, found: Log) -> str:
    history.reader("r").begins(PLACE, 1)
    return "t-0-1 is read again, and 3 was committed"


def failed(history: History, found: Log) -> str:
    history.writer("w").failures.append("w 5: timed out")
    return "w failed: 1 (w 5: timed out)"


PLANTED = (
    lost, doubled, exchanged, out_of_order, read_otherwise, read_and_gone, left_out, went_back,
    began_again, failed,
)  # fmt: skip


@pytest.mark.parametrize("plant", PLANTED)
def test_what_is_wrong_is_said(plant) -> None:
    history, found = well()
    words = plant(history, found)
    assert any(words in each for each in wrong_in(history, found))


def copied(*offsets: int) -> Log:
    return {COPIES: [(at, copy_of(PLACE, offset)) for at, offset in enumerate(offsets)]}


@pytest.mark.parametrize(
    ("offsets", "committed", "words"),
    [
        ((0, 1, 2), 3, None),
        ((0, 1, 2, 3), 3, "copied, and not committed: 1 (b't-0 3')"),
        ((0, 2), 3, "committed, and not copied: 1 (b't-0 1')"),
        ((0, 1, 1, 2), 3, "copied twice: 1 (b't-0 1')"),
    ],
)
def test_records_and_offsets_of_a_transaction_count_together(
    offsets: tuple[int, ...], committed: int, words: str | None
) -> None:
    _, source = well()
    told = list(wrong_in_copies(source, copied(*offsets), {PLACE: committed}))
    assert told == ([] if words is None else [words])


def test_committed_offsets_do_not_go_back() -> None:
    assert list(unkept_commits({PLACE: 3}, {PLACE: 3})) == []
    assert list(unkept_commits({PLACE: 3}, {PLACE: 2})) == ["t-0-3 was committed, and 2 is"]
    assert list(unkept_commits({PLACE: 3}, {})) == ["t-0-3 was committed, and None is"]
