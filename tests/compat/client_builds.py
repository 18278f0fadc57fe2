"""Builds the programs around clients of other languages, once per source, into the user's cache.

The sources and locked dependencies lie in `go`, `js`, `python`, `rust` and `programs`; the
toolchain is the one on PATH, and what it fetches comes from where it is told to. A test whose
toolchain is absent is skipped. Programs that come packed are unpacked there.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import pytest

from kafkalite.jvm import jars
from tests.compat.brokers import RUN_FOLDER

HERE = Path(__file__).parent
BUILD_TIMEOUT_S = 900
CACHE_VARIABLE = "KAFKALITE_CLIENTS"
# Neither optimized nor with symbols: that takes a third less time, and nothing here is measured.
GO_FLAGS = ("-buildvcs=false", "-trimpath", "-gcflags=all=-N -l", "-ldflags=-s -w")
NPM_FLAGS = ("--no-audit", "--no-fund", "--ignore-scripts", "--omit-lockfile-registry-resolved")
# The newest Python that the old versions of Python's libraries were packed for.
OLD_PYTHON = (3, 11)
KCAT_PACKAGES = ("kcat", "librdkafka1", "libyajl2")

Command = list[str]


class BuildFailed(RuntimeError):
    """A program that could not be built; the message ends with what the toolchain said."""


def go() -> Command:
    """The three Go libraries, at their newest versions."""
    return [str(_built("go", lambda folder: _build_go(folder, "go.mod")) / "clients")]


def go_old() -> Command:
    """The same sources with old versions of the libraries."""
    made = _built("go", lambda folder: _build_go(folder, "old.mod", "-tags=old"), "old")
    return [str(made / "clients")]


def js() -> Command:
    """KafkaJS; which version is the first argument."""
    return [_tool("node", "Node.js"), str(_built("js", _install_js) / "client.js")]


def containers_go() -> Command:
    """Testcontainers of Go, on an image that is the first argument."""
    made = _built("containers/go", lambda folder: _build_go(folder, "go.mod"))
    return [str(made / "clients")]


def containers_js() -> Command:
    """The same of Node."""
    return [_tool("node", "Node.js"), str(_built("containers/js", _install_js) / "containers.js")]


def rust() -> Command:
    """rdkafka with the librdkafka that it carries."""
    return [str(_built("rust", lambda folder: _build_rust(folder, "Cargo.toml")) / "client")]


def rust_old() -> Command:
    """The same sources with an old version of both."""
    made = _built("rust", lambda folder: _build_rust(folder, "old/Cargo.toml"), "old")
    return [str(made / "client")]


def aiokafka_old() -> Command:
    return _python_client("aiokafka")


def confluent_kafka_old() -> Command:
    return _python_client("confluent_kafka")


def python(program: str) -> Path:
    """The folder of a program of `programs`, with what it needs in `packages`."""
    return _built(f"programs/{program}", _install_python)


def kcat() -> tuple[Command, dict[str, str]]:
    """kcat from PATH, else from Debian's packages beside the rest; with what it needs around it."""
    on_path = shutil.which("kcat")
    if on_path:
        return [on_path], {}
    folder = _built("kcat", _unpack_kcat)
    libraries = {str(path.parent) for path in folder.rglob("lib*.so.*")}
    return [str(folder / "usr/bin/kcat")], {"LD_LIBRARY_PATH": os.pathsep.join(sorted(libraries))}


def apicurio() -> Path:
    """The jar of Apicurio Registry, which names all others that it needs."""
    [packed] = jars.table()["schema-registry"]
    made = _built("apicurio", _unpack_apicurio, packed.version)
    return made / f"{packed.artifact}-{packed.version}-runner.jar"


def _build_go(folder: Path, modules: str, *flags: str) -> None:
    call = [_tool("go", "Go toolchain"), "build", f"-modfile={modules}", *flags, *GO_FLAGS]
    _run([*call, "-o", "clients", "."], folder, CGO_ENABLED="0")


def _install_js(folder: Path) -> None:
    _run([_tool("npm", "npm"), "ci", *NPM_FLAGS], folder)


def _build_rust(folder: Path, manifest: str) -> None:
    call = [_tool("cargo", "Rust toolchain"), "build", "--release", "--manifest-path", manifest]
    _run([*call, "--target-dir", "target"], folder)
    (folder / "target/release/client").replace(folder / "client")
    shutil.rmtree(folder / "target")


def _install_python(folder: Path, requirements: str = "requirements.txt", *flags: str) -> None:
    call = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    target = ["--no-deps", "--target", "packages", *flags]
    _run([*call, *target, "--requirement", requirements], folder)


def _python_client(library: str) -> Command:
    """The program with one library at an old version, which is found before the environment's."""
    version = ".".join(map(str, OLD_PYTHON))
    is_ours = sys.version_info[:2] == OLD_PYTHON
    interpreter = sys.executable if is_ours else _tool(f"python{version}", f"Python {version}")
    flags = ("--only-binary", ":all:", "--python-version", version)
    made = _built(
        "python", lambda folder: _install_python(folder, f"{library}.txt", *flags), library
    )
    return ["env", f"PYTHONPATH={made / 'packages'}", interpreter, str(made / "client.py")]


def _unpack_kcat(folder: Path) -> None:
    apt, dpkg = _tool("apt-get", "kcat, nor apt-get to fetch it"), _tool("dpkg", "dpkg")
    try:
        _run([apt, "download", *KCAT_PACKAGES], folder)
    except BuildFailed:
        pytest.skip("no kcat on PATH, and apt-get has none")
    for package in folder.glob("*.deb"):
        _run([dpkg, "-x", str(package), "."], folder)
        package.unlink()


def _unpack_apicurio(folder: Path) -> None:
    try:
        [packed] = jars.paths("schema-registry")
    except jars.JarsMissing as missing:
        raise BuildFailed(str(missing)) from missing
    with tarfile.open(packed) as archive:
        archive.extractall(folder, filter="data")


def _tool(name: str, what: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {what} on PATH")
    return found


def _run(call: Command, folder: Path, **environment: str) -> None:
    done = subprocess.run(
        call, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True,
        timeout=BUILD_TIMEOUT_S, check=False,
    )
    if done.returncode != 0:
        raise BuildFailed(f"{' '.join(call)}\n{(done.stdout + done.stderr)[-3000:]}")


def _built(language: str, build: Callable[[Path], None], variant: str = "new") -> Path:
    """The folder of what these sources build; who comes first builds, the others wait.

    A failure is kept for the rest of the run, so that it is told once and not built again and
    again.
    """
    sources = HERE / language
    name = f"{language.replace('/', '-')}-{variant}"
    cache = _cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    made = cache / f"{name}-{_digest(sources)}"
    failed = Path(os.environ[RUN_FOLDER], f"{name}-failed")
    with _one_at_a_time(cache / f"{name}.lock"):
        if failed.exists():
            raise BuildFailed(failed.read_text())
        if not made.exists():
            with tempfile.TemporaryDirectory(dir=cache, prefix="building-") as aside:
                work = Path(aside, "work")
                shutil.copytree(sources, work) if sources.exists() else work.mkdir()
                try:
                    build(work)
                except BuildFailed as failure:
                    failed.write_text(str(failure))
                    raise
                work.replace(made)
    return made


def _digest(sources: Path) -> str:
    digest = sha256()
    for path in sorted(sources.rglob("*")):
        if path.is_file():
            digest.update(f"{path.relative_to(sources)} {path.stat().st_size}\n".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _cache_folder() -> Path:
    """Beside the cache of the jars: $KAFKALITE_CLIENTS, else the user's."""
    chosen = os.environ.get(CACHE_VARIABLE)
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(chosen) if chosen else Path(caches) / "kafkalite" / "clients"


@contextmanager
def _one_at_a_time(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
