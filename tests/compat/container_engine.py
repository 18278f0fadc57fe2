"""An engine for containers, and kafkalite's image in it.

The engine is the one that this machine has; else, for root, a dockerd that is started for the run
and keeps what it has downloaded in the cache. Where no registry of images is reached, the image's
base is made with debootstrap and the Python of this process.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
IMAGE = "kafkalite:8.0.0"
BASE = "python:3.12-slim"
OWN_BASE = "kafkalite-base:latest"
START_S = 60
BRIDGE = Path("/sys/class/net/docker0")
BUILD_S = 1200
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "kafkalite" / "engine"
# What the base image of the Dockerfile has for its Python.
LIBRARIES = (
    "ca-certificates,libbz2-1.0,libdb5.3,libexpat1,libffi8,libgdbm6,liblzma5,libncursesw6,"
    "libreadline8,libsqlite3-0,libssl3,libuuid1,netbase,tzdata,zlib1g"
)
NOT_NEEDED = ("test", "tests", "idlelib", "__pycache__", "site-packages", "ensurepip", "tkinter")


class NoEngine(Exception):
    """Why no container can be run here."""


class Engine:
    """Docker's command line, at one engine."""

    def __init__(self, host: str | None, *, is_own: bool) -> None:
        self.host = host
        self.is_own = is_own
        here = {} if host is None else {"DOCKER_HOST": host}
        self.environment = {**os.environ, **here, "DOCKER_BUILDKIT": "0" if is_own else "1"}

    def run(self, *words: str, check: bool = True, timeout_s: float = 60) -> str:
        """What a command says, errors included; raises AssertionError when it fails."""
        done = subprocess.run(
            ["docker", *words], env=self.environment, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=timeout_s, check=False,
        )  # fmt: skip
        assert done.returncode == 0 or not check, f"docker {' '.join(words)}: {done.stdout}"
        return done.stdout.strip()

    def answers(self) -> bool:
        done = subprocess.run(
            ["docker", "version"], env=self.environment, capture_output=True, check=False
        )
        return done.returncode == 0

    def has_image(self, name: str) -> bool:
        return self.run("image", "ls", "-q", name) != ""


@contextmanager
def engine() -> Iterator[Engine]:
    """The one that is there, or one for the time of the tests; raises NoEngine."""
    if shutil.which("docker") is None:
        raise NoEngine("there is no docker on PATH")
    there = Engine(None, is_own=False)
    if there.answers():
        yield there
    elif shutil.which("dockerd") is None or os.geteuid() != 0:
        raise NoEngine("no engine answers, and only root can start one, with dockerd on PATH")
    else:
        with _own_engine() as own:
            yield own


@contextmanager
def _own_engine() -> Iterator[Engine]:
    CACHE.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="kafkalite-engine-"))
    had_bridge = BRIDGE.exists()
    call = [
        "dockerd", "--host", f"unix://{folder}/socket", "--data-root", str(CACHE / "data"),
        "--exec-root", f"{folder}/exec", "--pidfile", f"{folder}/pid", "--ip", "127.0.0.1",
        "--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false",
    ]  # fmt: skip
    with (
        open(folder / "log", "wb") as log,
        subprocess.Popen(call, stdout=log, stderr=log) as daemon,
    ):
        try:
            own = Engine(f"unix://{folder}/socket", is_own=True)
            end = time.monotonic() + START_S
            while not own.answers():
                if daemon.poll() is not None or time.monotonic() > end:
                    last = (folder / "log").read_text().splitlines()[-1:]
                    raise NoEngine(f"dockerd does not run here: {last}")
                time.sleep(0.2)
            yield own
        finally:
            daemon.terminate()
            daemon.wait(60)
            _take_away(folder, had_bridge)


def _take_away(folder: Path, had_bridge: bool) -> None:
    """What the daemon leaves of itself when it ends."""
    for mount in folder.glob("exec/netns/*"):
        subprocess.run(["umount", str(mount)], capture_output=True, check=False)
    if not had_bridge:
        subprocess.run(["ip", "link", "delete", BRIDGE.name], capture_output=True, check=False)
    shutil.rmtree(folder, ignore_errors=True)


# --- images ---------------------------------------------------------------------------------------


def build_image(engine: Engine) -> None:
    """kafkalite's image, from this tree."""
    base = _base(engine)
    network = ["--network", "host"] if engine.is_own else []
    call = ["build", "--tag", IMAGE, "--build-arg", f"PYTHON={base}", *network, str(ROOT)]
    engine.run(*call, timeout_s=BUILD_S)
    if engine.is_own:  # what earlier runs have built
        engine.run("image", "prune", "--force", "--filter", "until=24h")


def _base(engine: Engine) -> str:
    for name in (BASE, OWN_BASE):
        if engine.has_image(name):
            return name
    if "Downloaded" in engine.run("pull", BASE, check=False, timeout_s=300):
        return BASE
    if shutil.which("debootstrap") is None or os.geteuid() != 0:
        raise NoEngine(f"{BASE} cannot be pulled, and there is no debootstrap to make one like it")
    with tempfile.TemporaryDirectory(prefix="kafkalite-base-") as folder:
        _make_base(Path(folder, "root"))
        _import(engine, Path(folder, "root"), Path(folder, "base.tar"))
    return OWN_BASE


def _make_base(root: Path) -> None:
    call = ["debootstrap", "--variant=minbase", f"--include={LIBRARIES}", "bookworm", str(root)]
    subprocess.run(call, check=True, stdout=subprocess.DEVNULL, timeout=BUILD_S)
    home, version = Path(sys.base_prefix), f"python3.{sys.version_info.minor}"
    local = root / "usr/local"
    without = shutil.ignore_patterns(*NOT_NEEDED, "*.a", "config-*")
    shutil.copytree(home / "lib" / version, local / "lib" / version, ignore=without, symlinks=True)
    for library in (home / "lib").glob("libpython*.so*"):
        shutil.copy2(library, local / "lib", follow_symlinks=False)
    for package in (home / "lib" / version / "site-packages").glob("pip*"):
        shutil.copytree(package, local / "lib" / version / "site-packages" / package.name)
    shutil.copy2(home / "bin" / version, local / "bin" / version)
    for name in ("python", "python3"):
        (local / "bin" / name).symlink_to(version)
    shutil.copy2(
        "/etc/ssl/certs/ca-certificates.crt", root / "etc/ssl/certs"
    )  # whom this one trusts
    for useless in (
        "var/cache/apt/archives",
        "var/lib/apt/lists",
        "usr/share/doc",
        "usr/share/man",
    ):
        shutil.rmtree(root / useless, ignore_errors=True)
    (root / "var/cache/apt/archives/partial").mkdir(parents=True)
    subprocess.run(["chroot", str(root), "/sbin/ldconfig"], check=True)


def _import(engine: Engine, root: Path, packed: Path) -> None:
    with tarfile.open(packed, "w") as archive:
        archive.add(root, ".")
    path = "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
    trusted = "PIP_CERT=/etc/ssl/certs/ca-certificates.crt"
    engine.run("import", "-c", f"ENV PATH={path}", "-c", f"ENV {trusted}", str(packed), OWN_BASE,
               timeout_s=BUILD_S)  # fmt: skip
