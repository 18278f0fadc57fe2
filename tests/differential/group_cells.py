"""The cells of the table: every state of a group × whatever may be asked of it × every policy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

POLICIES = ("disabled", "upgrade", "downgrade", "bidirectional")

# How each state is made. Whoever waits in it is asked afterwards what was answered.
STATES: dict[str, list[str]] = {
    "no group": [],
    "offsets alone": ["admin commits"],
    "classic, empty": ["ana leads", "ana leaves"],
    "classic, empty, with offsets": ["ana leads", "ana commits", "ana leaves"],
    "classic, an id given and not used": ["ana asks"],
    "classic, joining, one waits": ["ana leads", "bob parks"],
    "classic, joining, two wait": ["ana leads bob", "cat parks", "bob parks"],
    "classic, joining, a static one waits": ["ana leads", "sam parks"],
    "classic, joining, one waits and an id is given": ["ana leads", "bob parks", "cat asks"],
    "classic, syncing, nobody waits": ["ana joins"],
    "classic, syncing, one waits": [
        "ana leads", "bob parks", "ana parks", "ana hears", "bob hears", "bob syncs",
    ],
    "classic, syncing, a static one waits": [
        "ana leads", "sam parks", "ana parks", "ana hears", "sam hears", "sam syncs",
    ],
    "classic, stable": ["ana leads"],
    "classic, stable, two": ["ana leads bob"],
    "classic, stable, two, with offsets": ["ana leads bob", "ana commits"],
    "classic, stable, static": ["sam leads"],
    "classic, stable, static and not": ["ana leads sam"],
    "classic, stable, a subscription that is none": ["ana garbles", "ana leads"],
    "classic, stable, one left": ["ana leads bob", "bob leaves"],
    "connectors, joining": ["con leads", "ana switches nothing", "ana comes"],
    "connectors, syncing": ["con joins"],
    "connectors, stable": ["con leads"],
    "connectors, empty": ["con leads", "con leaves"],
    "consumer, empty": ["eve enters", "eve leaves"],
    "consumer, empty, with offsets": ["eve enters", "eve commits", "eve leaves"],
    "consumer, stable": ["eve enters", "eve settles"],
    "consumer, stable, two": ["eve enters", "fay enters", "eve settles fay"],
    "consumer, one owes a revocation": ["eve enters", "eve settles", "fay enters", "eve beats"],
    "consumer, one has not heard": ["eve enters", "eve settles", "fay enters"],
    "consumer, assigning": ["eve enters", "fay enters", "eve settles fay", "fay leaves"],
    "consumer, static": ["gus enters", "gus settles"],
    "consumer, static and not": ["eve enters", "gus enters", "eve settles gus"],
    "consumer, static, away": ["eve enters", "gus enters", "eve settles gus", "gus leaves -2"],
    "both, a classic one was there": ["ana leads", "eve enters"],
    "both, two classic ones were there": ["ana leads bob", "eve enters"],
    "both, one waited to join": ["ana leads", "bob parks", "eve enters"],
    "both, one waited to sync": [
        "ana leads", "bob parks", "ana parks", "ana hears", "bob hears", "bob syncs", "eve enters",
    ],
    "both, settled": ["ana leads", "eve enters", "eve settles ana"],
    "both, the classic one joined again": ["ana leads", "eve enters", "ana beats", "ana comes"],
    "both, a classic one came": ["eve enters", "eve settles", "ana comes"],
    "both, a classic one came and synced": ["eve enters", "eve settles", "ana comes", "ana syncs"],
    "both, the consumer owes a revocation": [
        "eve enters", "eve settles", "ana comes", "ana syncs", "eve beats",
    ],
    "both, static": ["sam leads", "eve enters", "eve settles sam"],
    "both, the static consumer is away": [
        "ana leads", "gus enters", "gus settles ana", "gus leaves -2",
    ],
    "both, the consumer left": ["ana leads", "eve enters", "eve settles ana", "eve leaves"],
    "both, one of two consumers left": [
        "ana leads", "eve enters", "fay enters", "eve settles ana fay", "fay leaves",
    ],
}  # fmt: skip

# CLASSIC and MEMBER stand for the state's first classic member, and first consumer.
ACTS: dict[str, list[str]] = {
    "nothing": [],
    "a classic member comes": ["zoe comes"],
    "a classic member asks for an id": ["zoe asks"],
    "a static classic member comes": ["kim comes"],
    "a static classic member comes under a known name": ["rex comes"],
    "a classic member of another protocol comes": ["zoe switches roundrobin", "zoe comes"],
    "a classic member with an odd subscription comes": ["zoe garbles", "zoe comes"],
    "a connector comes": ["con comes"],
    "the classic member joins again": ["CLASSIC comes"],
    "the classic member syncs": ["CLASSIC syncs"],
    "the classic member syncs, a generation ahead": ["CLASSIC syncs 1"],
    "the classic member beats": ["CLASSIC beats"],
    "the classic member beats, a generation ahead": ["CLASSIC beats 1"],
    "the classic member beats, a generation behind": ["CLASSIC beats -1"],
    "the classic member leaves": ["CLASSIC leaves"],
    "the classic member leaves by its name": ["CLASSIC leaves instance"],
    "the classic member commits": ["CLASSIC commits"],
    "the classic member commits, a generation ahead": ["CLASSIC commits 1"],
    "the classic member commits, a generation behind": ["CLASSIC commits -1"],
    "a consumer comes": ["ivy enters"],
    "two consumers come": ["ivy enters", "max enters"],
    "a consumer comes and goes": ["ivy enters", "ivy leaves"],
    "a static consumer comes": ["lou enters"],
    "a static consumer comes under a known name": ["jon enters"],
    "an unknown consumer beats": ["ivy beats 7"],
    "an unknown consumer leaves": ["ivy leaves"],
    "the consumer beats": ["MEMBER beats"],
    "the consumer beats, an epoch ahead": ["MEMBER beats 1"],
    "the consumer beats, an epoch behind": ["MEMBER beats -1"],
    "the consumer joins again": ["MEMBER enters"],
    "the consumer leaves": ["MEMBER leaves"],
    "the consumer leaves for a while": ["MEMBER leaves -2"],
    "the consumer commits": ["MEMBER commits"],
    "the consumer commits, an epoch ahead": ["MEMBER commits 1"],
    "the consumer commits, an epoch behind": ["MEMBER commits -1"],
    "the consumer's id joins as a classic one": ["zoe takes MEMBER", "zoe comes"],
    "the consumer's id beats as a classic one": ["zoe takes MEMBER", "zoe beats"],
    "the consumer's id syncs as a classic one": ["zoe takes MEMBER", "zoe syncs"],
    "the consumer's id leaves as a classic one": ["zoe takes MEMBER", "zoe leaves"],
    "the classic member's id beats as a consumer": ["ivy takes CLASSIC", "ivy beats"],
    "the classic member's id enters as a consumer": ["ivy takes CLASSIC", "ivy enters"],
    "the classic member's id leaves as a consumer": ["ivy takes CLASSIC", "ivy leaves"],
    "a consumer comes and the classic member follows": [
        "ivy enters", "CLASSIC beats", "CLASSIC comes", "CLASSIC syncs", "ivy beats",
    ],
    "the consumer leaves and the classic member follows": [
        "MEMBER leaves", "CLASSIC beats", "CLASSIC comes", "CLASSIC syncs",
    ],
    "the classic member leaves and the consumer goes on": ["CLASSIC leaves", "MEMBER beats"],
    "the classic member fetches": ["CLASSIC fetches"],
    "the classic member fetches, a generation ahead": ["CLASSIC fetches 1"],
    "the consumer fetches": ["MEMBER fetches"],
    "the consumer fetches, an epoch ahead": ["MEMBER fetches 1"],
    "an admin fetches": ["admin fetches"],
    "an admin commits": ["admin commits"],
    "an admin deletes the group": ["admin deletes group"],
    "an admin deletes offsets": ["admin deletes offsets"],
}
CLASSIC, MEMBER = ("ana", "sam"), ("eve", "gus")


@dataclass(frozen=True, slots=True)
class Cell:
    policy: str
    state: str
    act: str

    def __str__(self) -> str:
        return f"{self.policy}: {self.state}: {self.act}"

    @property
    def making(self) -> list[str]:
        return STATES[self.state]

    @property
    def acting(self) -> list[str]:
        """With the names of those who are in the state; of nobody's if there is none."""
        words = " ".join(self.making).split()
        classic = next((name for name in CLASSIC if name in words), "ana")
        member = next((name for name in MEMBER if name in words), "eve")
        return [
            step.replace("CLASSIC", classic).replace("MEMBER", member) for step in ACTS[self.act]
        ]


def all_cells(policies: tuple[str, ...] = POLICIES) -> Iterator[Cell]:
    for policy in policies:
        for state in STATES:
            for act in ACTS:
                yield Cell(policy, state, act)
