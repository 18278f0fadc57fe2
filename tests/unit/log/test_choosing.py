"""Which copy of a partition counts after a start, in every state that a move can be left in."""

from __future__ import annotations

from itertools import product

import pytest

from kafkalite.env import manual_env
from kafkalite.log.choosing import Places, choose
from kafkalite.log.config import LogConfig, LogSettings
from kafkalite.log.home import LogHome
from kafkalite.log.making import NewLog
from kafkalite.log.partition_log import PartitionLog
from tests.unit.log.making import TOPIC_ID, batch

ONE, TWO, GONE = b"1" * 16, b"2" * 16, b"9" * 16
OWN, FUTURE = "t-0", f"t-0.{'a' * 32}-future"
PATHS = {ONE: "/one", TWO: "/two"}


class Disks:
    """Two log directories of one broker, and the copies in them."""

    def __init__(self) -> None:
        self.env = manual_env()
        self.homes = {path: LogHome(self.env, path, LogSettings()) for path in PATHS.values()}

    def copy(self, path: str, name: str, records: int) -> PartitionLog:
        home = self.homes[path]
        self.env.disk.make_directory(path)
        new = NewLog(home, "t", 0, TOPIC_ID, f"{path}/{name}", LogConfig())
        log = new.taken(new.make_files())
        log.is_future = name == FUTURE
        for number in range(records):
            log.append_as_leader(batch([b"%d" % number]), 1)
        return log


# Each moment of a move from /one to /two: what the metadata names, what the source and the target
# are called, and how many of the three records each has.
MOMENTS = {
    "before": (ONE, (OWN, 3), None),
    "copying": (ONE, (OWN, 3), (FUTURE, 1)),
    "even": (ONE, (OWN, 3), (FUTURE, 3)),
    "named": (TWO, (OWN, 3), (FUTURE, 3)),
    "named, and the log has more": (TWO, (OWN, 3), (FUTURE, 2)),
    "both have the name": (TWO, (OWN, 2), (OWN, 3)),
    "the name was lost": (TWO, None, (FUTURE, 3)),
    "done": (TWO, None, (OWN, 3)),
}


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("away", [(), ("/one",), ("/two",)])
def test_a_copy_counts_only_if_it_has_everything(moment: str, away: tuple[str, ...]) -> None:
    named, source, target = MOMENTS[moment]
    disks = Disks()
    there = [("/one", source), ("/two", target)]
    copies = [
        disks.copy(path, *what) for path, what in there if what is not None and path not in away
    ]
    if not copies:
        return
    online = {key: path for key, path in PATHS.items() if path not in away}
    choice = choose(copies, named, Places(online, list(away)))
    if choice.log is None:
        assert away
        assert away[0] in choice.reason
        assert choice.aside == []
    else:
        assert choice.log.log_end_offset == 3
        assert choice.future is None or choice.future.is_future
    if not away:
        assert choice.log is not None


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_two_the_one_that_is_named_counts_whichever_was_found_first(
    order: tuple[int, int],
) -> None:
    disks = Disks()
    copies = [disks.copy("/one", OWN, 5), disks.copy("/two", OWN, 3)]
    found = [copies[index] for index in order]
    choice = choose(found, TWO, Places({ONE: "/one", TWO: "/two"}, []))
    assert choice.log is copies[1]
    assert choice.aside == [copies[0]]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_two_that_nothing_names_the_one_with_more_counts(order: tuple[int, int]) -> None:
    disks = Disks()
    copies = [disks.copy("/one", OWN, 5), disks.copy("/two", OWN, 3)]
    choice = choose([copies[index] for index in order], None, Places(PATHS, []))
    assert (choice.log, choice.aside) == (copies[0], [copies[1]])


@pytest.mark.parametrize(("named", "away"), [*product([None, ONE, GONE], [[], ["/three"]])])
def test_a_log_is_made_anew_only_if_it_can_be_nowhere(named: bytes | None, away: list[str]) -> None:
    reason = Places(PATHS, away).why_not_made(named)
    assert (reason is None) == (not away and named is not GONE)
    if reason is not None:
        assert "put the directory back" in reason
