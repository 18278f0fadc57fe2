"""Texts of scenes that are played: a line that begins at the margin happens, the others come of it.

A text holds scenes, each under a line that begins with `#` and says what it shows. Who stages them
registers the sentences it knows; a stage's `lines` are what the scene reads like when it is played.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Act = Callable[..., None]


class Script:
    """The sentences that a kind of stage can play."""

    def __init__(self, told: Callable[[Any], None] = lambda stage: None) -> None:
        """`told` is called after each sentence, to add what came of it."""
        self._told = told
        self._acts: list[tuple[re.Pattern[str], Act]] = []

    def act(self, pattern: str) -> Callable[[Act], Act]:
        def register(function: Act) -> Act:
            self._acts.append((re.compile(pattern), function))
            return function

        return register

    def perform(self, stage: Any, line: str) -> None:
        for pattern, function in self._acts:
            match = pattern.fullmatch(line)
            if match is not None:
                function(stage, *match.groups())
                return
        raise AssertionError(f"nobody knows how to play {line!r}")

    def play(self, lines: list[str], stage: Any) -> list[str]:
        """What the scene reads like when it is played."""
        for line in lines:
            if not line.startswith(" "):
                stage.lines.append(line)
                self.perform(stage, line)
                self._told(stage)
        return list(stage.lines)


def scenes(path: Path) -> list[tuple[str, list[str]]]:
    """Title and lines of each scene."""
    found: list[tuple[str, list[str]]] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            found.append((line[1:].strip(), []))
        elif line.strip():
            found[-1][1].append(line)
    return found


def cases(folder: Path) -> list[Any]:
    """File, title and lines of all scenes, for a test that takes these."""
    return [
        pytest.param(path, title, lines, id=f"{path.stem}: {title}")
        for path in sorted(folder.glob("*.txt"))
        for title, lines in scenes(path)
    ]


def check(
    play: Callable[[list[str]], list[str]], path: Path, lines: list[str], config: pytest.Config
) -> None:
    """A scene reads as it is played; or, with --rewrite-scenarios, is made to."""
    if config.getoption("--rewrite-scenarios"):
        path.write_text(_rewritten(play, path), encoding="utf-8")
        return
    assert play(lines) == lines


def _rewritten(play: Callable[[list[str]], list[str]], path: Path) -> str:
    text = ["\n".join([f"# {title}", *play(lines)]) for title, lines in scenes(path)]
    return "\n\n".join(text) + "\n"
