"""Plays every scenario text of a shared partition and compares what happens with what it says.

`pytest tests/unit/sharing --rewrite-scenarios` writes what happens into the texts; read the
difference before you keep it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.script import cases, check
from tests.unit.sharing.script import play

SCENARIOS = Path(__file__).parent / "scenarios"


@pytest.mark.parametrize(("path", "title", "lines"), cases(SCENARIOS))
def test_scene(path: Path, title: str, lines: list[str], request: pytest.FixtureRequest) -> None:
    check(play, path, lines, request.config)
