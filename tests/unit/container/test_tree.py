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
