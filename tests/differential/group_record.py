"""What Apache Kafka said to every cell of the table: a test without a JVM is held to it.

`python -m tests.differential.migrations --record` writes the file anew: for each state and act what
was said, line by line, under each policy; policies of which the same was said stand together.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.differential.group_cells import Cell

FILE = Path(__file__).with_name("group_verdicts.json")
Verdict = list[str]


def record(verdicts: Iterable[tuple[Cell, Verdict]]) -> None:
    """Writes the file."""
    table: dict[str, dict[str, dict[str, str]]] = {}
    for cell, verdict in verdicts:
        told = table.setdefault(cell.state, {}).setdefault(cell.act, {})
        told[cell.policy] = "\n".join(verdict)
    FILE.write_text(json.dumps(
        {
            state: {act: _together(told) for act, told in acts.items()}
            for state, acts in table.items()
        },
        indent=1,
    ) + "\n", encoding="utf-8")  # fmt: skip


def _together(told: dict[str, str]) -> dict[str, list[str]]:
    policies: dict[str, list[str]] = {}
    for policy, text in told.items():
        policies.setdefault(text, []).append(policy)
    return {" ".join(names): text.split("\n") for text, names in policies.items()}


def recorded() -> Iterator[tuple[Cell, Verdict]]:
    """Every cell of the file, with what Apache Kafka said to it."""
    for state, acts in json.loads(FILE.read_text(encoding="utf-8")).items():
        for act, told in acts.items():
            for policies, verdict in told.items():
                for policy in policies.split():
                    yield Cell(policy, state, act), verdict
