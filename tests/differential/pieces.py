"""The file of a long search, a line of JSON for each piece of it, so that it can go on later.

A piece is a run of conversations of one seed, without a gap; the next begins where it ended.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.differential.ledger import Ledger

Version = tuple[str, int]


@dataclass(slots=True)
class Piece:
    """What came of `rounds` conversations from number `first` on."""

    seed: str
    first: int = 0
    rounds: int = 0
    seconds: float = 0.0
    asked: Counter[Version] = field(default_factory=Counter)
    unexplained: Counter[tuple[str, str]] = field(default_factory=Counter)
    unconfirmed: Counter[tuple[str, str]] = field(default_factory=Counter)
    allowed: Counter[str] = field(default_factory=Counter)
    acts: Counter[str] = field(default_factory=Counter)  # between requests
    ledger: Ledger = field(default_factory=Ledger)

    def __str__(self) -> str:
        return (
            f"{self.asked.total()} requests, {len(self.asked)} versions of"
            f" {len({api for api, _ in self.asked})} APIs, {self.seconds:.0f} s;"
            f" {len(self.unexplained)} kinds of unexplained differences"
        )


_COUNTERS = ("asked", "unexplained", "unconfirmed", "allowed", "acts")


def read(path: Path) -> list[Piece]:
    if not path.exists():
        return []
    return [_piece(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def append(path: Path, piece: Piece) -> None:
    row = {name: getattr(piece, name) for name in ("seed", "first", "rounds", "seconds")}
    row["ledger"] = piece.ledger.to_plain()
    row |= {name: sorted(getattr(piece, name).items()) for name in _COUNTERS}
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{json.dumps(row)}\n")


def _piece(row: dict[str, Any]) -> Piece:
    for name in _COUNTERS:
        pairs = row.get(name, ())  # older files tell of no acts
        row[name] = Counter(
            {tuple(key) if isinstance(key, list) else key: count for key, count in pairs}
        )
    row["ledger"] = Ledger.from_plain(row["ledger"])
    return Piece(**row)


def next_number(pieces: Iterable[Piece], seed: str) -> int:
    """Of the conversation of this seed that was not held yet."""
    return max((each.first + each.rounds for each in pieces if each.seed == seed), default=0)


def total(pieces: Iterable[Piece]) -> Piece:
    whole = Piece("")
    for piece in pieces:
        whole.rounds += piece.rounds
        whole.seconds += piece.seconds
        whole.ledger.update(piece.ledger)
        for name in _COUNTERS:
            getattr(whole, name).update(getattr(piece, name))
    return whole
