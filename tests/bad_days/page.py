"""Writes docs/generated/bad_days.md: days by commands, from the outcomes of what ran.

Owns the file of outcomes beside it, in which what ran replaces what was known.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.bad_days.commands import COMMANDS, Command
from tests.bad_days.days import DAYS, Outcome
from tests.compat.brokers import APACHE_KAFKA, KAFKALITE

PAGE = Path(__file__).parents[2] / "docs" / "generated" / "bad_days.md"
KEPT = PAGE.with_suffix(".json")
NAMES = {KAFKALITE: "kafkalite", APACHE_KAFKA: "Apache Kafka 4.3.1"}

# By day and by command; and that by broker.
ByDay = dict[str, dict[str, dict[str, Any]]]
Outcomes = dict[str, ByDay]

HEAD = """# Pipelines on bad days

Written by `python -m tests.bad_days --matrix`. Each command ran over 800 records in four
partitions, in a driver of its own; the bad thing happened while a batch was planned and not read,
unless its name says otherwise; then the command was started again. After each run confluent-kafka
and pyarrow counted what it had written: nothing twice, nothing that nobody wrote, and with exit
code 0 nothing missing but what was told to be lost. A cell is the exit codes of the runs, one
after another, †: killed; **bold**: not as it should be, and told below. A dash: it cannot happen
to this command. An empty cell did not run. One cell alone: `make bad-days ARGS="--broker kafkalite
--day disk --command mirror"`.

| column | `kafkalite pipeline …` |
| --- | --- |
"""


def text_of(outcomes: Outcomes) -> str:
    return "\n".join(page(outcomes)) + "\n"


def load() -> Outcomes:
    return json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}


def keep(outcomes: Outcomes, kind: str, day: str, command: str, outcome: Outcome) -> None:
    """Puts one outcome in, and writes file and page."""
    outcomes.setdefault(kind, {}).setdefault(day, {})[command] = asdict(outcome)
    KEPT.write_text(json.dumps(outcomes, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    PAGE.write_text(text_of(outcomes), encoding="utf-8")


def page(outcomes: Outcomes) -> Iterator[str]:
    yield HEAD.rstrip()
    yield from (f"| {each.name} | `{words_of(each)}` |" for each in COMMANDS.values())
    for kind, name in NAMES.items():
        by_day = outcomes.get(kind, {})
        yield from ("", f"## {name}", "", summary(by_day), "")
        yield f"| day | {' | '.join(COMMANDS)} |"
        yield "| --- |" + " --- |" * len(COMMANDS)
        for day in DAYS.values():
            known = by_day.get(day.name, {})
            cells = [cell(known.get(each)) if each in day.of else "–" for each in COMMANDS]
            yield f"| {day.name} | {' | '.join(cells)} |"
        yield from faults(by_day)
    yield from ("", "## Where drivers were killed", "", *points(outcomes))


def words_of(command: Command) -> str:
    """As somebody would type them, but for folders and the options that make batches small."""
    shown = {"topic": "TOPIC", "folder": "FOLDER", "target": "TARGET", "servers": "SERVERS"}
    name, _, more = command.words.format(**shown).partition(" ")
    return f"{name} TOPIC {more}"


def summary(by_day: ByDay) -> str:
    """How many cells there are, ran, and were not as they should be."""
    all_of = sum(len(day.of) for day in DAYS.values())
    found = [outcome for by_command in by_day.values() for outcome in by_command.values()]
    wrong = sum(bool(outcome["faults"]) for outcome in found)
    return f"{len(found)} of {all_of} cells ran; {wrong} were not as they should be."


def cell(outcome: dict[str, Any] | None) -> str:
    if outcome is None:
        return ""
    said = " ".join("†" if each is None else str(each) for each in outcome["exits"])
    return f"**{said}**" if outcome["faults"] else said


def faults(by_day: ByDay) -> Iterator[str]:
    for day in DAYS:
        for command, outcome in sorted(by_day.get(day, {}).items()):
            for fault in outcome["faults"]:
                yield f"- {day}, {command}: {fault}"


def points(outcomes: Outcomes) -> list[str]:
    """Of each command, at which points and how often in all."""
    found: dict[str, set[str]] = {}
    for by_day in outcomes.values():
        for by_command in by_day.values():
            for command, outcome in by_command.items():
                found.setdefault(command, set()).update(outcome["killed_at"])
    return [f"- {name}: {', '.join(sorted(there))}" for name, there in found.items() if there]
