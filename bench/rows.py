"""What every measurement comes to: a row, and the file of all rows.

Owns the format of `bench/results/latest.json` and what a goal means. Rows of a run take the place
of those of the same name in the file, so that suites may be measured one at a time.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
LATEST = RESULTS / "latest.json"
COMPILED = RESULTS / "compiled.json"


@dataclass(slots=True)
class Row:
    """One thing that was measured, a value per round; `kafka` is empty where only we have it.

    The goal is one for the ratio of kafkalite to Apache Kafka: at least that much of a rate, at
    most that much of a cost. The floor is what the machine asks for the same work, the ceiling what
    the load generator reaches when nobody does any.
    """

    suite: str
    name: str
    unit: str
    kafkalite: list[float] = field(default_factory=list)
    kafka: list[float] = field(default_factory=list)
    compiled: list[float] = field(default_factory=list)  # in runs that ask for it
    goal: float | None = None
    is_rate: bool = True
    floor: float | None = None
    floor_goal: float | None = None  # a cost may be so many times the floor
    limit: float | None = None  # for kafkalite's own value, where there is nothing to compare with
    ceiling: float | None = None
    note: str = ""

    @property
    def ours(self) -> float:
        return statistics.median(self.kafkalite)

    @property
    def theirs(self) -> float | None:
        return statistics.median(self.kafka) if self.kafka else None

    @property
    def ratio(self) -> float | None:
        return self.ours / self.theirs if self.theirs else None

    @property
    def is_met(self) -> bool | None:
        """Whether it is as good as it should be; None where nothing is asked."""
        asked: list[bool] = []
        if self.goal is not None and self.ratio is not None:
            asked.append(self._is_good(self.ratio, self.goal))
        if self.floor_goal is not None and self.floor:
            asked.append(self.ours <= self.floor_goal * self.floor)
        if self.limit is not None:
            asked.append(self._is_good(self.ours, self.limit))
        return all(asked) if asked else None

    @property
    def as_compiled(self) -> Row:
        """The row of the compiled kafkalite alone."""
        return replace(self, kafkalite=self.compiled, compiled=[])

    def _is_good(self, value: float, wanted: float) -> bool:
        return value >= wanted if self.is_rate else value <= wanted

    @property
    def goal_text(self) -> str:
        sign = "≥" if self.is_rate else "≤"
        texts = [f"{sign} {self.goal:g} ×"] if self.goal is not None else []
        if self.floor_goal is not None:
            texts.append(f"≤ {self.floor_goal:g} × floor")
        if self.limit is not None:
            texts.append(f"{sign} {self.limit:g}")
        return ", ".join(texts)

    def as_json(self) -> dict[str, object]:
        return {
            "suite": self.suite,
            "name": self.name,
            "unit": self.unit,
            "kafkalite": self.ours,
            "kafka": self.theirs,
            "ratio": self.ratio,
            "goal": self.goal_text or None,
            "is_met": self.is_met,
            "floor": self.floor,
            "ceiling": self.ceiling,
            "spread": {"kafkalite": spread(self.kafkalite), "kafka": spread(self.kafka)},
            "rounds": {
                "kafkalite": self.kafkalite,
                "kafka": self.kafka,
                **({"compiled": self.compiled} if self.compiled else {}),
            },
            "rule": {
                "goal": self.goal,
                "is_rate": self.is_rate,
                "floor_goal": self.floor_goal,
                "limit": self.limit,
            },
            "note": self.note,
        }

    @classmethod
    def of_json(cls, row: dict) -> Row:
        return cls(
            row["suite"], row["name"], row["unit"],
            row["rounds"]["kafkalite"], row["rounds"]["kafka"],
            row["rounds"].get("compiled", []),
            **row["rule"],
            floor=row["floor"], ceiling=row["ceiling"], note=row["note"],
        )  # fmt: skip


def spread(values: list[float]) -> float | None:
    """How far the rounds lie apart, as a share of their median."""
    if not values or not (middle := statistics.median(values)):
        return None
    return (max(values) - min(values)) / middle


def number(value: float | None) -> str:
    """With three digits that mean something."""
    if value is None:
        return ""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 0.001 else f"{value:.2g}"


# --- the file of all rows -------------------------------------------------------------------------


def load(path: Path = LATEST) -> list[Row]:
    if not path.exists():
        return []
    return [Row.of_json(row) for row in json.loads(path.read_text())["rows"]]


def merged(old: Iterable[Row], new: Iterable[Row]) -> list[Row]:
    """The new rows in the place of the old ones of their suites; suites keep their order."""
    new = list(new)
    by_suite: dict[str, list[Row]] = {}
    for row in old:
        by_suite.setdefault(row.suite, []).append(row)
    by_suite.update({row.suite: [] for row in new})
    for row in new:
        by_suite[row.suite].append(row)
    return [row for rows in by_suite.values() for row in rows]


def exchanged(old: Iterable[Row], new: Iterable[Row]) -> list[Row]:
    """Each new row in the place of the old one of its name, or at the end."""
    by_name = {(row.suite, row.name): row for row in old}
    return list((by_name | {(row.suite, row.name): row for row in new}).values())


def store(rows: Iterable[Row], machine: dict[str, str], path: Path = LATEST) -> None:
    path.parent.mkdir(exist_ok=True)
    content = {"machine": machine, "rows": [row.as_json() for row in rows]}
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
