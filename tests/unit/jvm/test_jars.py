"""The table of jars is whole, and the cache takes in nothing that is not what the table says."""

import re
from pathlib import Path

import pytest

from kafkalite.jvm import jars
from kafkalite.jvm.jars import Jar, JarsMissing


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(jars.CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_every_jar_has_a_checksum_and_one_only() -> None:
    checksums: dict[str, str] = {}
    for jar in (jar for group in jars.table().values() for jar in group):
        assert re.fullmatch("[0-9a-f]{64}", jar.sha256), jar.coordinates
        assert checksums.setdefault(jar.coordinates, jar.sha256) == jar.sha256


def test_no_two_jars_share_a_file_name() -> None:
    every = {jar for group in jars.table().values() for jar in group}
    assert len({jar.file_name for jar in every}) == len(every)


def test_a_packed_program_is_on_no_class_path() -> None:
    [packed] = jars.table()["schema-registry"]
    assert packed.file_name == f"apicurio-registry-app-{packed.version}-all.tar.gz"
    assert set(jars.class_path_groups()) == jars.table().keys() - {"schema-registry"}


@pytest.mark.parametrize("version", ["0.9.0.1", "0.11.0.3", "2.8.2", "3.9.2", "4.3.1"])
def test_clients_come_with_what_they_need(version: str) -> None:
    artifacts = {jar.artifact for jar in jars.table()[f"kafka-clients-{version}"]}
    assert {"kafka-clients", "slf4j-api", "snappy-java"} <= artifacts


def test_a_group_has_one_version_of_each_artifact() -> None:
    for name, members in jars.table().items():
        assert len({(jar.group, jar.artifact) for jar in members}) == len(members), name


def test_cached_jars_are_given_without_fetching(cache: Path) -> None:
    cache.mkdir()
    for jar in jars.table()["compiler"]:
        (cache / jar.file_name).write_bytes(b"")
    assert [path.parent for path in jars.paths("compiler")] == [cache]


def test_wrong_and_missing_jars_are_named_and_right_ones_kept(tmp_path: Path) -> None:
    fetched, cache = tmp_path / "fetched", tmp_path / "cache"
    for folder in (fetched, cache):
        folder.mkdir()
    path = fetched / "right-1.jar"
    path.write_bytes(b"the right bytes")
    right = Jar("org.example", "right", "1", jars._sha256(path))
    wrong = Jar("org.example", "wrong", "1", right.sha256)
    (fetched / "wrong-1.jar").write_bytes(b"other bytes")
    missing = Jar("org.example", "missing", "1", right.sha256)
    with pytest.raises(JarsMissing) as refused:
        jars._take_in([wrong, right, missing], fetched, cache, "WARN: not found\nnoise\n")
    said = str(refused.value)
    assert "org.example:wrong:1 is not what jars.toml pins" in said
    assert "org.example:missing:1 cannot be had" in said
    assert "WARN: not found" in said
    assert "noise" not in said
    assert [path.name for path in cache.iterdir()] == ["right-1.jar"]


def test_damaged_jars_are_found(cache: Path) -> None:
    cache.mkdir()
    jar = jars.table()["compiler"][0]
    (cache / jar.file_name).write_bytes(b"not a jar")
    assert jars.damaged() == [cache / jar.file_name]
