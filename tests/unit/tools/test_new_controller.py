"""A controller that is to be added: what its own files have to say, and what they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkalite.tools.running import main

SETTINGS = {
    "node.id": "5", "process.roles": "controller", "controller.listener.names": "CONTROLLER,X",
    "listeners": "CONTROLLER://:9093,X://[::1]:9094",
    "advertised.listeners": "CONTROLLER://host:19093",
}  # fmt: skip
DIRECTORY_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
IS_THIS = "Is this a valid controller configuration file?"


def adding(folder: Path, settings: dict[str, str], *, is_formatted: bool = True) -> int:
    if is_formatted:
        (folder / "meta.properties").write_text(f"version=1\ndirectory.id={DIRECTORY_ID}\n")
    config = folder / "controller.properties"
    config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return main([
        "kafka-metadata-quorum", "--bootstrap-server", "127.0.0.1:1", "--command-config",
        str(config), "add-controller", "--dry-run",
    ])  # fmt: skip


def test_it_is_told_before_it_is_added(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert adding(tmp_path, SETTINGS | {"log.dirs": f"{tmp_path},/nothing"}) == 0
    assert capsys.readouterr().out == (
        f"DRY RUN of adding controller 5 with directory id {DIRECTORY_ID} and endpoints: "
        "CONTROLLER://host:19093, X://[::1]:9094\n"
    )


@pytest.mark.parametrize(("changed", "said"), [
    ({"node.id": None}, f"node.id not found in configuration file. {IS_THIS}"),
    ({"node.id": "-1"}, f"node.id was negative in configuration file. {IS_THIS}"),
    ({"process.roles": "broker"},
     f"process.roles did not contain 'controller' in configuration file. {IS_THIS}"),
    ({"metadata.log.dir": None}, f"Neither metadata.log.dir nor log.dirs were found. {IS_THIS}"),
    ({"controller.listener.names": None}, f"controller.listener.names was not found. {IS_THIS}"),
    ({"controller.listener.names": "y"},
     "Cannot find information about controller listener name: Y"),
    ({"metadata.log.dir": "/nothing"}, "Unable to read meta.properties from /nothing"),
])
def test_what_is_missing(
    changed: dict[str, str | None], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = SETTINGS | {"metadata.log.dir": str(tmp_path)} | changed
    assert adding(tmp_path, {name: each for name, each in settings.items() if each}) == 1
    assert capsys.readouterr().err == f"{said}\n"
