"""The table of KIPs, and the page that is made of it: docs/kips.md, by `python -m tests.kips`.

Owns the form of `kips.txt`. What it says is held against specs, settings and tests by
`tests/unit/test_kips.py`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

TABLE = Path(__file__).parent / "kips.txt"
PAGE = Path(__file__).parents[2] / "docs" / "kips.md"
DONE, PARTLY, MISSING = "done", "partly", "missing"
STATES = (DONE, PARTLY, MISSING)
NOTHING = "-"

_HEAD = """\
# KIPs

Every KIP of Apache Kafka up to 4.3 that a broker has a surface of. Made from `tests/kips/kips.txt`
by `python -m tests.kips`; do not edit. A unit test holds that table against specs, settings and
tests: what is `done` is served in the versions named and shown by the tests named, in `tests/`.
KIPs that concern clients, Kafka Streams, Connect or tools alone are not here, nor are those of
brokers with a ZooKeeper.

"""


@dataclass(frozen=True, slots=True)
class Kip:
    number: int
    state: str
    brings: str
    surface: tuple[str, ...]
    tests: tuple[str, ...]
    left: str

    @property
    def apis(self) -> list[tuple[str, int]]:
        """Of its surface: APIs, each with a version."""
        parts = (word.partition("@") for word in self.surface if "@" in word)
        return [(name, int(version)) for name, _, version in parts]

    @property
    def settings(self) -> list[str]:
        """Of its surface: settings and features."""
        return [word for word in self.surface if "@" not in word]


def kips() -> list[Kip]:
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    return [_kip(line) for line in lines if not line.startswith("#")]


def _kip(line: str) -> Kip:
    head, brings, surface, tests, left = (part.strip() for part in line.split("|"))
    number, state = head.split()
    return Kip(int(number), state, brings, _words(surface), _words(tests), left)


def _words(column: str) -> tuple[str, ...]:
    return () if column == NOTHING else tuple(column.split())


def as_page() -> str:
    rows = kips()
    counts = Counter(each.state for each in rows)
    told = ", ".join(f"{counts[state]} {state}" for state in STATES)
    lines = [
        f"{len(rows)} KIPs: {told}.",
        "",
        "| KIP | state | what it brings | at the broker | shown by | left |",
        "| --- | --- | --- | --- | --- | --- |",
        *map(_row, rows),
    ]
    return _HEAD + "\n".join(lines) + "\n"


def _row(kip: Kip) -> str:
    surface = ", ".join(
        [*(f"{name} {version}" for name, version in kip.apis),
         *(f"`{name}`" for name in kip.settings)]
    )  # fmt: skip
    tests = ", ".join(f"`{each}`" for each in kip.tests)
    left = "" if kip.left == NOTHING else kip.left
    return f"| {kip.number} | {kip.state} | {kip.brings} | {surface} | {tests} | {left} |"
