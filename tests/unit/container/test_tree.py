"""The files of the image, written below a directory of our own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kafkalite.container.tree import ALIASES, DIRECTORIES, STARTERS, write_tree

SCRIPTS = sorted(path for path in STARTERS.rglob("*") if path.is_file())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    tools = tmp_path / "opt/kafka/bin"
    tools.mkdir(parents=True)
    (tools / "kafka-topics.sh").touch()
    (tools / "kafka-topics").touch()
    (tools / "zookeeper-server-start.sh").touch()
    write_tree(str(tmp_path))
    return tmp_path


def test_all_scripts_may_be_run_and_written_by_the_group_of_root(root: Path) -> None:
    for script in SCRIPTS:
        there = root / script.relative_to(STARTERS)
        assert there.stat().st_mode & 0o777 == 0o775
        assert "@python@" not in there.read_text()
        assert ("@python@" in script.read_text()) == (sys.executable in there.read_text())
        subprocess.run(["bash", "-n", there], check=True)
    for directory in DIRECTORIES:
        assert Path(f"{root}{directory}").stat().st_mode & 0o070 == 0o070
    for alias in ALIASES:
        assert Path(f"{root}{alias}").is_symlink()


def test_the_tools_are_where_users_of_other_images_look_for_them(root: Path) -> None:
    names = ("usr/bin/kafka-topics", "usr/bin/kafka-topics.sh")
    for name in (*names, "opt/bitnami/kafka/bin/kafka-topics.sh"):
        assert 'exec /opt/kafka/bin/kafka-topics.sh "$@"' in (root / name).read_text()
        assert os.access(root / name, os.X_OK)
    own = root / "usr/bin/zookeeper-server-start"
    assert "kafkalite.container.zookeeper" in own.read_text()
    assert (root / "usr/bin/zookeeper-server-start.sh").readlink() == Path(
        "/usr/bin/zookeeper-server-start"
    )


def test_it_is_written_a_second_time(root: Path) -> None:
    write_tree(str(root))
    assert (root / "etc/kafka/docker/run").exists()


# --- what is done before a start ------------------------------------------------------------------


def before(root: Path, **environment: str) -> dict[str, str]:
    """The variables of Kafka's that `run` goes on with."""
    said = subprocess.run(
        ["bash", "-c", f". {root}/etc/kafka/docker/before; env -0"],
        env={"PATH": os.environ["PATH"], **environment}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    pairs = (each.partition("=") for each in said.stdout.split("\0") if each.startswith("KAFKA_"))
    return {name: value for name, _, value in pairs}


def test_commands_of_wurstmeisters_image_take_the_place_of_their_names(root: Path) -> None:
    told = "INSIDE://:9092,OUTSIDE://_{HOSTNAME_COMMAND}:_{PORT_COMMAND}"
    topics = "a:1:1,\n  b $HOME `c` 'd' \"e\""
    assert before(
        root, KAFKA_ADVERTISED_LISTENERS=told, KAFKA_CREATE_TOPICS=topics,
        HOSTNAME_COMMAND="echo 'a & b' | tr -d ' '", PORT_COMMAND="echo 9094",
        BROKER_ID_COMMAND="echo 7", RACK_COMMAND="echo a rack",
    ) == {
        "KAFKA_ADVERTISED_LISTENERS": "INSIDE://:9092,OUTSIDE://a&b:9094",
        "KAFKA_CREATE_TOPICS": topics,
        "KAFKA_BROKER_ID": "7",
        "KAFKA_BROKER_RACK": "a rack",
    }  # fmt: skip
    assert before(root, HOSTNAME_COMMAND="echo there") == {"KAFKA_ADVERTISED_HOST_NAME": "there"}
    said = {"KAFKA_ADVERTISED_HOST_NAME": "here", "KAFKA_BROKER_ID": "1", "KAFKA_BROKER_RACK": "r"}
    named = {"HOSTNAME_COMMAND": "echo no", "BROKER_ID_COMMAND": "echo 2", "RACK_COMMAND": "echo s"}
    assert before(root, **said, **named) == said
    assert before(root) == {}


def test_whatever_command_starts_the_image_the_rest_is_done_before(root: Path) -> None:
    """An image that takes the place of another one is started by its own command."""
    assert ". /etc/kafka/docker/before\n" in (root / "etc/kafka/docker/run").read_text()
    custom = "export KAFKA_NUM_PARTITIONS=3"
    assert before(root, CUSTOM_INIT_SCRIPT=custom) == {"KAFKA_NUM_PARTITIONS": "3"}
    scripts = root / "docker-entrypoint-initdb.d"
    (scripts / "a first.sh").write_text(f"touch {root}/ran\n")
    script = root / "etc/kafka/docker/before"
    script.write_text(script.read_text().replace("/docker-entry", f"{root}/docker-entry"))
    before(root)
    assert (root / "ran").exists()


@pytest.mark.parametrize("is_read_only", [False, True])
def test_the_health_check_knows_the_port_also_where_the_root_is_read_only(
    root: Path, is_read_only: bool
) -> None:
    memory, place = root / "dev/shm", root / "run/kafkalite"
    memory.mkdir(parents=True)
    if is_read_only:
        place.rmdir()  # whoever runs the tests may write everywhere
    paths = {"/run/kafkalite": f"{place}", "/dev/shm": f"{memory}", sys.executable: "echo"}
    launch, healthy = (root / "etc/kafka/docker/launch", root / "usr/bin/kafkalite-healthy")
    said = []
    for script in (launch, healthy):
        text = script.read_text()
        for path, here in paths.items():
            text = text.replace(path, here)
        call = ["bash", "-c", text, "a script", "--topic", "a b"]
        said.append(subprocess.run(call, capture_output=True, text=True, check=True).stdout)
    port_file = f"{memory}/kafkalite-port" if is_read_only else f"{place}/port"
    assert f" --port-file {port_file} --topic a b\n" in said[0]
    assert f" {port_file}" in said[1]
