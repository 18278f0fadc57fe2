"""What docs/testing.md shows works as it stands there, in a suite of somebody else's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.unit.testing.test_plugin import run_suite

PAGE = Path(__file__).parents[3] / "docs" / "testing.md"
BLOCKS = dict(re.findall(r"```python (\w+)\n(.*?)```", PAGE.read_text(), re.DOTALL))


@pytest.mark.parametrize("name", BLOCKS)
def test_the_page_works(tmp_path: Path, name: str) -> None:
    said = run_suite(tmp_path, BLOCKS[name])
    tests = len(re.findall(r"def test_", BLOCKS[name]))
    assert f"{tests} passed" in said, said


def test_every_call_that_the_page_names_is_there() -> None:
    from kafkalite.testing.embedded import EmbeddedKafka

    named = set(re.findall(r"^\| `(\w+)\(", PAGE.read_text(), re.MULTILINE))
    assert len(named) > 5
    assert [name for name in named if not hasattr(EmbeddedKafka, name)] == []
