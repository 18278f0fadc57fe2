"""Plays every scenario text and compares what happens with what it says.

`pytest tests/unit/coordinators --rewrite-scenarios` writes what happens into the texts; read the
difference before you keep it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.coordinators.script import play, rewrite, scenes

FILES = sorted((Path(__file__).parent / "scenarios").glob("*.txt"))
SCENES = [
    pytest.param(path, title, lines, id=f"{path.stem}: {title}")
    for path in FILES
    for title, lines in scenes(path)
]


@pytest.mark.parametrize(("path", "title", "lines"), SCENES)
def test_scene(path: Path, title: str, lines: list[str], request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--rewrite-scenarios", default=False):
        path.write_text(rewrite(path), encoding="utf-8")
        return
    assert play(lines) == lines, f"{path.name}: {title}"
