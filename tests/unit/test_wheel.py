"""The wheel alone, with the core dependencies and nothing else, in an empty environment."""

import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from shutil import copy2
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
# A client's first words: ApiVersions version 3, correlation id 7, client "cat", software "kafka" 1.
FRAME = "00120003 00000007 0003636174 00 066b61666b61 0231 00"
# Rooms that users import only with the extra of the same name installed.
ROOMS_WITH_EXTRAS = ("console", "metrics", "pipelines", "spark", "testing")
# Made for tests: keys come with the extra `security`.
MODULES_WITH_EXTRAS = ("kafkalite.security.authority",)

Run = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.xdist_group("wheel")  # it is built once


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and its core dependencies; nobody's repository beside it."""
    home = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", home, ROOT]
    call(build, home)
    venv.create(home / "env", with_pip=False)
    [wheel] = home.glob("*.whl")
    python = home / "env" / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", python, "install"]
    call([*install, "--quiet", "--no-index", "--no-deps", "--no-compile", wheel], home)
    copy_core_dependencies(next((home / "env" / "lib").glob("python*/site-packages")))
    return home


@pytest.fixture
def run(installed: Path, tmp_path: Path) -> Run:
    def run_there(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        program, *arguments = words
        return call([installed / "env" / "bin" / program, *arguments], tmp_path, check)

    return run_there


def call(words: list, folder: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        list(map(str, words)),
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0 or not check, done.stdout + done.stderr
    return done


def copy_core_dependencies(target: Path) -> None:
    """Copies what the wheel requires without extras, and what that requires, from here.

    From this environment and not from an index, so that the test runs without a network.
    """
    here = Path(sysconfig.get_paths()["purelib"])
    for needed in closure("kafkalite"):
        for file in needed.files or ():
            source = (here / file).resolve()
            if source.is_file() and source.is_relative_to(here):
                destination = target / source.relative_to(here)
                destination.parent.mkdir(parents=True, exist_ok=True)
                copy2(source, destination)


def closure(root: str) -> Iterator[Distribution]:
    """The distributions that `root` needs, without extras, each once."""
    waiting, seen = [root], set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        try:
            found = distribution(name)
        except PackageNotFoundError:
            continue
        if name != root:
            yield found
        needs = map(Requirement, found.requires or ())
        waiting += [n.name for n in needs if not n.marker or n.marker.evaluate({"extra": ""})]


def test_it_says_its_version(run: Run) -> None:
    said = run("kafkalite", "--version").stdout
    assert said.startswith("kafkalite, version ")


def test_it_is_installed_and_not_the_tree(run: Run) -> None:
    where = run("python", "-c", "import kafkalite; print(kafkalite.__file__)").stdout
    assert "site-packages" in where
    assert str(ROOT / "src") not in where


def test_every_module_imports_without_extras(run: Run) -> None:
    program = (
        "import importlib, pkgutil, kafkalite\n"
        "for module in pkgutil.walk_packages(kafkalite.__path__, 'kafkalite.'):\n"
        f"    if module.name in {MODULES_WITH_EXTRAS}:\n"
        "        continue\n"
        f"    if module.name.split('.')[1] not in {(*ROOMS_WITH_EXTRAS, '__main__')}:\n"
        "        importlib.import_module(module.name)\n"
    )
    run("python", "-W", "error", "-c", program)


def test_the_simulated_world_stays_at_home(installed: Path) -> None:
    [wheel] = installed.glob("*.whl")
    names = ZipFile(wheel).namelist()
    rooms = {name.split("/")[1] for name in names if name.startswith("kafkalite/")}
    assert {"broker", "env", "testing"} <= rooms
    assert "sim" not in rooms


def test_the_page_of_the_console_comes_with_it(installed: Path) -> None:
    [wheel] = installed.glob("*.whl")
    folder = ROOT / "src" / "kafkalite" / "console" / "page"
    files = {f"kafkalite/console/page/{each.name}" for each in folder.iterdir()}
    assert files <= set(ZipFile(wheel).namelist())


def test_it_decodes_a_frame_from_its_packaged_specs(run: Run) -> None:
    program = (
        "from pathlib import Path\n"
        "import kafkalite\n"
        "from kafkalite.protocol import codec\n"
        "from kafkalite.protocol.messages import ApiVersionsRequest\n"
        "assert (Path(kafkalite.__file__).parent / 'protocol_specs').is_dir()\n"
        "request = ApiVersionsRequest(client_software_name='kat', client_software_version='1')\n"
        "print(codec.decode(ApiVersionsRequest, 3, codec.encode(request, 3)) == request)\n"
    )
    assert run("python", "-c", program).stdout == "True\n"


def test_its_first_codecs_come_without_construct(run: Run) -> None:
    program = (
        "import sys\n"
        "from kafkalite.protocol import codec, code_cache\n"
        "from kafkalite.protocol.messages import FetchRequest, FetchResponse\n"
        "code_cache.load = lambda *_: None\n"
        "assert codec.decode(FetchRequest, 4, codec.encode(FetchRequest(), 4)) == FetchRequest()\n"
        "assert codec.decode(FetchResponse, 18, codec.encode(FetchResponse(), 18))\n"
        "print('construct' in sys.modules)\n"
    )
    assert run("python", "-c", program).stdout == "False\n"


def test_it_dumps_a_frame(run: Run, tmp_path: Path) -> None:
    captured = tmp_path / "frame"
    captured.write_text(FRAME)
    said = run("kafkalite", "dump", "frame", str(captured)).stdout
    assert '- request: "ApiVersions"' in said
    assert 'client_software_name: "kafka"' in said


def test_its_help_lists_the_commands(run: Run) -> None:
    assert "dump" in run("kafkalite", "--help").stdout
