"""Which cases of a table `make test` has time for: a few of them, the others are marked `full`."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def sampled(cases: Iterable[str], *sample: str) -> list[Any]:
    """All of them, for `parametrize`: only those of the sample are in `make test`."""
    every = list(cases)
    _are_there(sample, every)
    return [
        case if case in sample else pytest.param(case, marks=pytest.mark.full) for case in every
    ]


def _are_there(sample: Collection[str], cases: list[str]) -> None:
    if missing := set(sample) - set(cases):
        raise ValueError(f"no such cases: {sorted(missing)}")
