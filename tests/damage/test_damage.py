"""Derived files deleted, cut, emptied, swapped or flipped: a sample, or all with ROUNDS.

`SEED=1 ROUNDS=100` tries every single damage of each small log, at each byte and bit, all pairs and
triples of files that are gone or empty, and a thousand of several damages of any kind at once.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from itertools import combinations, islice
from random import Random

import pytest

from tests.damage.shapes import SHAPES
from tests.damage.trial import (
    DELETE,
    EMPTY,
    FLIP,
    Damage,
    Stopped,
    attempt,
    every_single,
    some,
    stopped,
)

SEED = int(os.environ.get("SEED") or 1)
ROUNDS = int(os.environ.get("ROUNDS") or 0)
_SAMPLED = 1  # of each kind of damage to each file
_SAMPLED_SEVERAL = 10
_SHOWN_EACH = 2_000


def _sample(one: Stopped, random: Random) -> Iterator[list[Damage]]:
    kinds: dict[tuple[str, str], list[Damage]] = {}
    for damage in every_single(one):
        kinds.setdefault((damage.path, damage.kind), []).append(damage)
    for damages in kinds.values():
        yield from ([each] for each in random.sample(damages, min(_SAMPLED, len(damages))))
    yield from (some(one, random) for _ in range(_SAMPLED_SEVERAL))


def _all(one: Stopped, random: Random) -> Iterator[list[Damage]]:
    yield from ([each] for each in every_single(one))
    for kind in (DELETE, EMPTY):
        paths = [path for path in one.derived if kind == DELETE or one.files[path]]
        for count in (2, 3, len(paths) - 1, len(paths)):
            for chosen in islice(combinations(paths, count), 20 * ROUNDS):
                yield [Damage(path, kind) for path in chosen]
    yield from (some(one, random) for _ in range(10 * ROUNDS))


def _tried(one: Stopped, trials: Iterator[list[Damage]]) -> int:
    """How often something was compared."""
    count = 0
    for damages in trials:
        try:
            count += attempt(one, damages)
        except Exception as error:
            what = "; ".join(map(str, damages)) or "nothing"
            raise AssertionError(
                f"SEED={SEED} {one.name!r}, stopped {'cleanly' if one.is_clean else 'by a kill'},"
                f" after {what}: {error!r}"
            ) from error
        if ROUNDS and count % _SHOWN_EACH == 0:
            print(f"{one.name}: {count} damages tried", file=sys.stderr, flush=True)
    return count


@pytest.fixture(autouse=True)
def loud_again() -> Iterator[None]:
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.timeout(0 if ROUNDS else 180)
@pytest.mark.parametrize("is_clean", [True, False], ids=["clean", "killed"])
@pytest.mark.parametrize("name", SHAPES)
def test_a_log_is_what_it_was_whatever_becomes_of_what_is_made_from_it(
    name: str, is_clean: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    logging.disable(logging.CRITICAL)
    one = stopped(name, SEED, is_clean=is_clean)
    random = Random(f"{SEED} {name} {is_clean}")
    assert attempt(one, [])
    if not ROUNDS:
        assert _tried(one, _sample(one, random)) > 20
    else:
        with capsys.disabled():
            count = _tried(one, _all(one, random))
            print(f"\n{name}, {'clean' if is_clean else 'killed'}: {count} damages tried")
        assert count > 20


@pytest.mark.parametrize("bit", [378, 506, 570, 698])
def test_a_place_a_few_bytes_off_is_no_place(bit: int) -> None:
    """The zeros between two batches look like the head of a message of magic 0."""
    logging.disable(logging.CRITICAL)
    one = stopped("one segment", 1, is_clean=True)
    assert attempt(one, [Damage("/data/t-0/00000000000000000000.index", FLIP, bit)])
