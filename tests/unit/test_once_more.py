"""Which tests are run once more after a run of all."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests import once_more

KNOWN = [
    "tests/compat/test_tools.py::test_says[topics]@tools",
    "tests/unit/test_spec.py::test_wrong[name @2-]",
    "tests/unit/test_spec.py::test_right",
]


def test_a_group_is_no_part_of_a_name(tmp_path: Path) -> None:
    known = tmp_path / "lastfailed"
    known.write_text(json.dumps(dict.fromkeys(KNOWN, True)))
    assert once_more.failed_last(known) == [
        "tests/compat/test_tools.py::test_says[topics]",
        *KNOWN[1:],
    ]


@pytest.mark.parametrize(
    ("count", "fails_again", "status", "runs"),
    [(0, False, 1, 0), (1, False, 0, 1), (3, False, 0, 1), (3, True, 1, 1), (4, False, 1, 0)],
)
def test_few_failures_have_a_second_run(
    count: int, fails_again: bool, status: int, runs: int,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    failed, asked = [f"tests/test_{number}.py" for number in range(count)], list[list[str]]()

    def call(words: list[str]) -> int:
        asked.append(words[3:])
        return int(fails_again)

    monkeypatch.setattr(once_more, "failed_last", lambda: failed)
    monkeypatch.setattr(subprocess, "call", call)
    assert once_more.main() == status
    assert asked == [failed] * runs
    assert ("UNSTEADY" in capsys.readouterr().out) == (runs == 1 and not fails_again)
