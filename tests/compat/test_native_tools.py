"""kafkalite's own command line tools: on both brokers they say what Apache Kafka's tools say.

The transcripts are those of Apache Kafka's tools. A call of a tool that is not there yet is made
with Apache Kafka's; a scene without any call of ours is not played.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kafkalite.tools.table import CLASSES
from tests.compat import transcript
from tests.compat.brokers import Broker
from tests.compat.java_tools import JavaTools
from tests.compat.native_tools import NativeTools
from tests.compat.transcript import Scene, Stage

# Lines of calls and answers that are checked with a tool of ours: more with every tool.
COVERED_LINES = 606

pytestmark = [pytest.mark.xdist_group("java-tools"), pytest.mark.theirs_in_full]


def ours(scene: Scene) -> list[transcript.Call]:
    return [call for call in scene.calls if call.line.split()[0] in CLASSES]


def scenes(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("scene", [
        pytest.param(scene, id=scene.title)
        for name in names
        for scene in transcript.scenes(transcript.FOLDER / f"{name}.txt")
        if ours(scene)
    ])


@pytest.fixture
def stage(
    broker: Broker, request: pytest.FixtureRequest, tmp_path: Path, unique: Callable[[str], str]
) -> Stage:
    def others() -> JavaTools:
        found: JavaTools = request.getfixturevalue("tools")
        return found

    return Stage(broker, NativeTools(others), tmp_path, unique)


@scenes("cluster", "configs", "groups", "records", "tokens", "topics", "versions")
def test_tools(stage: Stage, scene: Scene) -> None:
    assert stage.play(scene) == scene.lines


def test_how_much_of_the_transcripts_is_ours() -> None:
    covered = sum(
        1 + len(call.said)
        for path in transcript.FOLDER.glob("*.txt")
        for scene in transcript.scenes(path)
        for call in ours(scene)
    )
    assert covered == COVERED_LINES
