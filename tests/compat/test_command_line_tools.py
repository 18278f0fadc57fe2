"""Apache Kafka's command line tools: what each says, on both brokers, as a transcript has it.

`--rewrite-transcripts` writes what they say to Apache Kafka into `tests/compat/tools`.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Producer

from kafkalite.jvm import jars
from tests.compat import transcript
from tests.compat.admin_peer import Admin
from tests.compat.brokers import Broker
from tests.compat.java_tools import JavaTools
from tests.compat.transcript import Scene, Stage
from tests.compat.waiting import PATIENCE_S
from tests.out_and_in.asking import Asker
from tests.out_and_in.other_groups import StreamsMember

# What kafkalite has not, by the names of its requests.

# Tools that no transcript calls, and why.
ELSEWHERE = {
    "ConnectPluginPath": "asks no broker",
    "DumpLogSegments": "reads files: test_log_files, test_groups_tools, test_transactions_tool",
    "JmxTool": "asks no broker",
    "OAuthCompatibilityTool": "asks no broker",
    "ReplicaVerificationTool": "compares replicas, without end, and there is one of each",
    "ShareConsumerPerformance": "tells times: test_share_groups has its members",
    "VerifiableShareConsumer": "tells times: test_share_groups has its members",
}
MAIN = (b"\x01\x00\x04main", b"([Ljava/lang/String;)V")

pytestmark = [pytest.mark.xdist_group("java-tools"), pytest.mark.theirs_in_full]

Play = Callable[..., list[str]]


def scenes(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("path", "scene"), [
        pytest.param(path, scene, id=scene.title)
        for path in (transcript.FOLDER / f"{name}.txt" for name in names)
        for scene in transcript.scenes(path)
    ])


@pytest.fixture
def play(
    broker: Broker, tools: JavaTools, tmp_path: Path, unique: Callable[[str], str],
    request: pytest.FixtureRequest,
) -> Play:
    """Plays a scene and gives its lines as they are now; names are made for it or given."""

    def play(path: Path, scene: Scene, **names: str) -> list[str]:
        is_rewriting = request.config.getoption("--rewrite-transcripts")
        stage = Stage(broker, tools, tmp_path, unique, 0 if is_rewriting else PATIENCE_S)
        stage.names.update(names)
        played = stage.play(scene)
        if is_rewriting and not broker.is_kafkalite:
            transcript.rewrite(path, scene.title, played)
            scene.lines = played
        return played

    return play


@scenes("cluster", "configs", "groups", "records", "shares", "tokens", "topics")
def test_tools(play: Play, path: Path, scene: Scene) -> None:
    assert play(path, scene) == scene.lines


@scenes("streams")
def test_tools_of_streams_groups(
    broker: Broker, play: Play, path: Path, scene: Scene, unique: Callable[[str], str]
) -> None:
    names = {"streamers": unique("streamers"), "streamed": unique("streamed")}
    with closing(Admin(broker)) as admin, closing(Asker(broker.port)) as asker:
        admin.create(names["streamed"], 2)
        for number in (b"0", b"1"):
            producer = Producer({"bootstrap.servers": broker.bootstrap})
            producer.produce(names["streamed"], number, partition=int(number))
            assert producer.flush(20) == 0
        member = StreamsMember(asker, names["streamers"], names["streamed"], 1)
        member.join()
        member.commit(1)
        if "deserted" in scene.title:
            member.leave()
        assert play(path, scene, **names) == scene.lines


@pytest.mark.full  # it waits ten seconds until it is sure that no record comes any more
@scenes("compaction")
def test_tools_that_take_long(play: Play, path: Path, scene: Scene) -> None:
    assert play(path, scene) == scene.lines


@scenes("versions")
def test_versions_that_a_client_uses(play: Play, path: Path, scene: Scene) -> None:
    assert play(path, scene) == scene.lines


def test_every_tool_has_its_transcript() -> None:
    [jar] = (path for path in jars.paths("reference") if path.name.startswith("kafka-tools-4"))
    with zipfile.ZipFile(jar) as archive:
        programs = {
            name.removesuffix(".class").replace("/", ".")
            for name in archive.namelist()
            if name.endswith(".class") and all(part in archive.read(name) for part in MAIN)
        }
    called = {
        transcript.class_of(call.line.split()[0])
        for path in transcript.FOLDER.glob("*.txt")
        for scene in transcript.scenes(path)
        for call in scene.calls
    }
    elsewhere = {transcript.TOOLS + name for name in ELSEWHERE}
    assert called | elsewhere == programs | {transcript.CONFIGS}
    assert called & elsewhere == set()
