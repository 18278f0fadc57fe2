"""A share group and a streams group in simulated worlds: sound brokers pass; and what members are
handed is judged as it must be.

Brokers that are broken on purpose are in tests/mutants; these seeds catch them.
"""

from __future__ import annotations

import pytest

from kafkalite.sim.group_run import simulate_groups
from kafkalite.sim.network import ClientLink
from kafkalite.sim.shared import ACCEPT, REJECT, RELEASE, Handed, Sharing
from kafkalite.sim.tasks import READS, Workers, Working
from kafkalite.sim.world import World

SEEDS = 6
# Others that have shown a defect, of the broker or of the judgement.
FOUND = (12, 38, 97, 5_328)
LOCK_MS, MOST = 1_000, 3
RECORD = 0, 7


@pytest.mark.parametrize("seed", [*range(SEEDS), *FOUND])
def test_sound_brokers_show_no_anomaly(seed: int) -> None:
    verdict = simulate_groups(seed)
    assert not verdict.anomalies, f"seed {seed}: {verdict.anomalies}"
    assert verdict.counts["shared records: accepted"] > 100


# --- the judgement --------------------------------------------------------------------------------


class Play:
    """Two members of a share group, and a clock."""

    def __init__(self) -> None:
        self.world = World(1)
        self.now_ms, self.life = 100, object()
        self.sharing = Sharing(
            "t", bytes(16), 1, False, MOST, lambda: self.now_ms, lambda: self.life
        )
        self.clients = {who: self.world.client() for who in ("ada", "bob")}

    def hand(
        self, who: str, count: int = 1, value: bytes = b"v", *, asked_ms: int = -1
    ) -> set[str]:
        """The kinds of anomalies that come with it."""
        known = len(self.sharing.found)
        asked = self.now_ms if asked_ms < 0 else asked_ms
        self.now_ms += 5
        handed = Handed(RECORD, value, count, asked, self.life)
        self.sharing.hand(who, self.clients[who], handed, LOCK_MS)
        return {kind for kind, _ in self.sharing.found[known:]}

    def say(self, what: int, count: int = 1) -> None:
        self.now_ms += 5
        self.sharing.let_go(RECORD)
        self.sharing.settle(RECORD, what, count)
        self.now_ms += 5


def test_a_record_is_with_one_member_while_its_lock_lasts() -> None:
    play = Play()
    assert play.hand("ada") == set()
    play.now_ms += LOCK_MS // 2
    assert play.hand("bob", 2) == {"shared with two"}


@pytest.mark.parametrize("what", ["lock", "life", "connection", "asked before"])
def test_who_is_not_sure_of_a_record_accuses_nobody(what: str) -> None:
    play = Play()
    assert play.hand("ada") == set()
    asked_ms = -1
    if what == "lock":
        play.now_ms += LOCK_MS
    elif what == "life":
        play.life = object()
    elif what == "connection":
        play.clients["ada"]._link = ClientLink(play.world.network, print, print)
    else:
        asked_ms = 50
    assert play.hand("bob", 2, asked_ms=asked_ms) == set()


def test_a_lock_that_was_renewed_lasts_longer() -> None:
    play = Play()
    play.hand("ada")
    play.now_ms += LOCK_MS // 2
    play.sharing.renew(RECORD, "ada", play.now_ms, LOCK_MS)
    play.now_ms += LOCK_MS * 3 // 4
    assert play.hand("bob", 2) == {"shared with two"}


@pytest.mark.parametrize("what", [ACCEPT, REJECT])
def test_what_is_done_with_is_handed_to_nobody(what: int) -> None:
    play = Play()
    play.hand("ada")
    play.say(what)
    assert play.hand("bob", 2) == {"shared though done with"}
    assert play.hand("ada", 2, asked_ms=100) == set(), "asked for before that was known"


def test_deliveries_are_counted_to_a_limit() -> None:
    play = Play()
    for count in range(1, MOST + 1):
        assert play.hand("ada", count) == set()
        play.say(RELEASE, count)
    assert play.hand("ada", MOST + 1) == {"shared though done with", "shared too often"}
    play = Play()
    play.hand("ada", 2)
    play.say(RELEASE, 2)
    assert play.hand("bob", 2) == {"deliveries forgotten"}


def test_a_record_has_one_value() -> None:
    play = Play()
    play.hand("ada")
    play.say(RELEASE)
    assert play.hand("bob", 2, b"w") == {"shared inconsistently"}


def test_in_the_end_all_that_is_there_was_shared_and_nothing_else() -> None:
    play = Play()
    play.hand("ada")
    index, offset = RECORD
    assert list(play.sharing.check(index, [(offset, b"v")])) == []
    assert {kind for kind, _ in play.sharing.check(index, [(offset, b"w"), (8, b"x")])} == {
        "shared what is not there", "never shared"
    }  # fmt: skip
    play.sharing.lost[index] = MOST
    assert list(play.sharing.check(index, [(offset, b"v"), (8, b"x")])) == []


def test_a_task_is_worked_on_by_one() -> None:
    now_ms = 100
    working = Working("t", 1, lambda: now_ms)
    task = {(READS, 0)}
    working.hand("ada", task, 90)
    now_ms = 300
    working.hand("bob", task, 95)
    assert working.found == [], "asked for before ada was handed it"
    working = Working("t", 1, lambda: now_ms)
    working.hand("ada", task, 290)
    now_ms = 400
    working.hand("bob", task, 390)
    assert [kind for kind, _ in working.found] == ["worked on by two"]
    working.let_go("bob", task)
    working.hand("ada", task, 395)
    now_ms = 5_000
    working.hand("bob", task, 4_990)
    assert len(working.found) == 1, "she may have been taken for gone"


def test_each_task_has_somebody() -> None:
    world = World(1)
    workers = Workers(world, Working("t", 1, world.clock.monotonic_ms))
    workers.come()
    for place in workers.places:
        place.member.is_steady = True
    first, second, _ = (place.member for place in workers.places)
    first.owned, second.owned = {("0", 0)}, {("1", 0)}
    assert list(workers.check()) == []
    second.owned = {("0", 0)}
    assert {kind for kind, _ in workers.check()} == {"not worked on by one"}
