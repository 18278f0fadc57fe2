"""What Apache Kafka said to every case, written down: a test without a JVM is held to it.

`python -m tests.differential.settings --record` writes the file anew. A line is the setting, then
one line for each thing that was said, then the values it was said to; `{v}` is the value, `{n}` the
name, so that one sentence stands for all it was said of.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.differential.setting_cases import Case
from tests.differential.setting_verdicts import Verdict

FILE = Path(__file__).with_name("setting_verdicts.json")
Recorded = dict[str, dict[str, list[Any]]]
VALUE, NAME = "{v}", "{n}"


def record(verdicts: Iterable[tuple[Case, Verdict]]) -> None:
    """Writes the file."""
    told: Recorded = {}
    for case, verdict in verdicts:
        name, operation, value = case.steps[0]
        if len(case.steps) > 1:
            key, values = json.dumps([*_head(case), case.steps]), None
        else:
            key, values = json.dumps([*_head(case), [[name, operation, NAME]]]), value
        said = told.setdefault(key, {})
        said.setdefault(_pack(verdict, name, value), []).append(values)
    lines = []
    for key, said in sorted(told.items()):
        rows = [
            f"  {json.dumps(text)}: {json.dumps(sorted(values, key=str))}"
            for text, values in sorted(said.items())
        ]
        lines.append(f"{json.dumps(key)}: {{\n" + ",\n".join(rows) + "\n}")
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def recorded() -> Iterable[tuple[Case, Verdict]]:
    """Every case of the file, with what Apache Kafka said to it."""
    told: Recorded = json.loads(FILE.read_text(encoding="utf-8"))
    for key, said in told.items():
        kind, resource, api, validate_only, steps = json.loads(key)
        for text, values in said.items():
            for value in values:
                taken = [
                    (name, operation, value if of == NAME and len(steps) == 1 else of)
                    for name, operation, of in steps
                ]
                case = Case(kind, resource, tuple(taken), api, validate_only)
                yield case, _unpack(text, taken[0][0], taken[0][2])


def _head(case: Case) -> list[Any]:
    return [case.kind, case.resource, case.api, case.validate_only]


def _pack(verdict: Verdict, name: str, value: str | None) -> str:
    text = json.dumps([verdict.code, verdict.message, verdict.shown], ensure_ascii=False)
    # Short values are parts of other words, and an escaped one is not itself.
    if (
        value is not None
        and len(value) > 2
        and json.dumps(value, ensure_ascii=False)[1:-1] == value
    ):
        text = text.replace(value, VALUE)
    return text.replace(name, NAME) if len(name) > 8 else text


def _unpack(text: str, name: str, value: str | None) -> Verdict:
    text = text.replace(NAME, name).replace(VALUE, value or "")
    code, message, shown = json.loads(text)
    return Verdict(code, message, tuple(map(_frozen, shown)))


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
