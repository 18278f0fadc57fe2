"""The modules that KAFKALITE_COMPILE=1 compiles: that mypyc can, and that what it makes works."""

import ast
import importlib
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from mypyc.primitives import registry

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src"
LIBRARY_ENDS = tuple(importlib.machinery.EXTENSION_SUFFIXES)
# A broker that a client produces to and fetches from, to be run with what was built.
PROGRAM = """
import kafkalite.log.appending, kafkalite.server.connection
from confluent_kafka import Consumer, Producer
from kafkalite.testing.embedded import EmbeddedKafka

with EmbeddedKafka() as broker:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "compression.type": "lz4"})
    for number in range(1000):
        producer.produce("t", b"%d" % number)
    assert producer.flush(30) == 0
    consumer = Consumer({
        "bootstrap.servers": broker.bootstrap_servers,
        "group.id": "g", "auto.offset.reset": "earliest",
    })
    consumer.subscribe(["t"])
    values = [message.value() for message in consumer.consume(1000, 30)]
    consumer.close()
assert values == [b"%d" % number for number in range(1000)], len(values)
print(kafkalite.log.appending.__file__, kafkalite.server.connection.__file__)
"""


def modules() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    listed: list[str] = project["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["custom"][
        "compiled"
    ]
    return listed


def test_every_module_of_the_list_exists_once() -> None:
    listed = modules()
    assert listed == sorted(set(listed))
    assert [name for name in listed if not (SRC / name).is_file()] == []


def test_the_tree_itself_holds_nothing_compiled() -> None:
    assert [path for path in SRC.rglob("*") if path.name.endswith(LIBRARY_ENDS)] == []


def test_mypyc_translates_the_modules(tmp_path: Path) -> None:
    """To C, as in a build; the C compiler's part takes too long for each run of the tests."""
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    hatch_build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hatch_build)
    call = [sys.executable, "-c", hatch_build.TRANSLATE, str(tmp_path), *modules()]
    done = subprocess.run(
        call, cwd=SRC, env=environment(), capture_output=True, text=True, timeout=150, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Unsupported" not in done.stdout + done.stderr  # only a warning, but it does not work
    assert (tmp_path / "c" / "__native_kafkalite.c").stat().st_size > 0


@pytest.mark.parametrize("name", modules())
def test_types_of_dataclasses_are_there_when_their_module_is_imported(name: str) -> None:
    """mypyc looks for the type of a field among the builtins that it knows and the names of the
    module, where an import for type checkers alone leaves none: a KeyError when it is imported."""
    tree = ast.parse((SRC / name).read_text())
    importlib.import_module("mypyc.irbuild.builder")  # fills the table of builtins
    known = {name.removeprefix("builtins.") for name in registry.builtin_names}
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            known |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.ClassDef):
            known.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            known |= {target.id for target in targets if isinstance(target, ast.Name)}
    fields = [
        field.annotation.value if isinstance(field.annotation, ast.Subscript) else field.annotation
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.decorator_list
        for field in node.body
        if isinstance(field, ast.AnnAssign)
    ]
    used = {field.id for field in fields if isinstance(field, ast.Name)} - {"Callable"}
    assert used - known == set()


def test_these_tests_run_with_all_of_them_compiled_or_with_none() -> None:
    """With all when `make test-compiled` says so: what it tests must be what it built."""
    names = (name.removesuffix(".py").replace("/", ".") for name in modules())
    files = [str(importlib.import_module(name).__file__) for name in names]
    is_compiled = "KAFKALITE_COMPILED" in os.environ
    assert [file for file in files if file.endswith(LIBRARY_ENDS) != is_compiled] == []


@pytest.mark.full
@pytest.mark.timeout(600)
def test_a_compiled_wheel_serves_a_client(tmp_path: Path) -> None:
    call = [sys.executable, "-m", "build", "--wheel", "--no-isolation"]
    call += ["--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(call, env=environment(KAFKALITE_COMPILE="1"), check=True, timeout=500)
    [wheel] = tmp_path.glob("*.whl")
    assert not wheel.name.endswith("-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "library")
    said = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        env=environment(PYTHONPATH=str(tmp_path / "library")),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert said.returncode == 0, said.stderr
    for path in said.stdout.split():
        assert Path(path).is_relative_to(tmp_path / "library")
        assert path.endswith(LIBRARY_ENDS)


def environment(**more: str) -> dict[str, str]:
    """Ours, but for what says where kafkalite is found."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**kept, **more}
