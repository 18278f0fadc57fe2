"""`kafka-acls`: what Apache Kafka's tool and ours say to each broker with an authorizer.

Without one: a scene in `tools/cluster.txt`. Rules of one resource have no order in Apache Kafka's
tool, so most lines are compared sorted.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.compat import transcript
from tests.compat.brokers import Broker
from tests.compat.java_tools import JavaTools
from tests.compat.native_tools import NativeTools
from tests.compat.transcript import Scene, Stage, Tools
from tests.compat.waiting import PATIENCE_S

PATH = transcript.FOLDER / "acls.txt"
CLASS = transcript.class_of("kafka-acls")

pytestmark = [pytest.mark.compat, pytest.mark.xdist_group("java-tools"), pytest.mark.theirs_in_full]


@pytest.mark.parametrize("scene", [
    pytest.param(scene, id=scene.title) for scene in transcript.scenes(PATH)
])
@pytest.mark.parametrize("is_ours", [False, True], ids=["theirs", "ours"])
def test_rules(
    authorized: Broker, tools: JavaTools, tmp_path: Path, unique: Callable[[str], str],
    scene: Scene, request: pytest.FixtureRequest, *, is_ours: bool,
) -> None:
    chosen: Tools = NativeTools(lambda: tools) if is_ours else tools
    is_theirs = not is_ours and not authorized.is_kafkalite
    is_rewriting = request.config.getoption("--rewrite-transcripts") and is_theirs
    patience_s = 0 if is_rewriting else PATIENCE_S
    played = Stage(authorized, chosen, tmp_path, unique, patience_s).play(scene)
    if is_rewriting:
        transcript.rewrite(PATH, scene.title, played)
        scene.lines = played
    assert played == scene.lines


@pytest.mark.parametrize(("answer", "is_gone"), [
    ("y", True), ("Y", True), ("n", False), ("", False),
])
def test_a_question_before_rules_go(
    authorized: Broker, tools: JavaTools, unique: Callable[[str], str], answer: str,
    *, is_gone: bool,
) -> None:
    """Apache Kafka's tool asks at a console alone, where there is none in a test."""
    ours, topic = NativeTools(lambda: tools), unique("topic")
    where = ("--bootstrap-server", authorized.bootstrap, "--topic", topic)
    ours.run(CLASS, *where, "--add", "--allow-principal", "User:x")
    said = ours.run(CLASS, *where, "--remove", text=f"{answer}\n")
    assert said == (
        "Are you sure you want to delete all ACLs for resource filter "
        f"`ResourcePattern(resourceType=TOPIC, name={topic}, patternType=LITERAL)`? (y/n)\n"
    )
    assert (ours.run(CLASS, *where, "--list") == "") == is_gone
