"""What tools have to know of a node's settings, of whatever Kafka they are.

Owns these few keys as they stand in the file: a node that kafkalite itself would refuse to be may
be formatted all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kafkalite.config.properties import parse_properties
from kafkalite.tools.failures import Failure, illegal_argument, wrong_setting

_NEEDED = ("process.roles", "node.id", "controller.listener.names")


def meta_properties(path: str) -> dict[str, str] | None:
    """What says whose a directory is, if anything does; raises OSError."""
    try:
        return {"version": "0"} | _parsed(path)
    except FileNotFoundError:
        return None


def _parsed(path: str) -> dict[str, str]:
    try:
        return parse_properties(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise illegal_argument(f"{path}: {error}") from None


def _properties(path: str) -> dict[str, str]:
    try:
        return _parsed(path)
    except FileNotFoundError:
        raise Failure("java.nio.file.NoSuchFileException", path) from None
    except OSError as error:
        raise Failure("java.io.IOException", f"{path}: {error.strerror}") from error


def listed(settings: Mapping[str, str], name: str) -> list[str]:
    return [each.strip() for each in settings.get(name, "").split(",") if each.strip()]


def listener_addresses(settings: Mapping[str, str]) -> dict[str, tuple[str, int]]:
    """Where a node is found by its listeners: as it advertises itself, or listens."""
    found = {}
    for name in ("listeners", "advertised.listeners"):
        for each in listed(settings, name):
            listener, _, address = each.partition("://")
            host, _, port = address.rpartition(":")
            if not port.isdigit():
                raise wrong_setting(f"Invalid value {each} for configuration {name}: no port")
            found[listener.upper()] = host.strip("[]") or "localhost", int(port)
    return found


class NodeSettings:
    def __init__(self, file: str) -> None:
        self._found = _properties(file)
        for name in _NEEDED:
            if not self._found.get(name, "").strip():
                raise wrong_setting(
                    f'Missing required configuration "{name}" which has no default value.'
                )
        self.node_id = self._number("node.id")
        self.is_controller = "controller" in self._list("process.roles")
        self.controller_listener = self._list("controller.listener.names")[0]
        self.has_static_voters = bool(self._list("controller.quorum.voters"))

    @property
    def metadata_directory(self) -> str:
        return self._found.get("metadata.log.dir", "").strip() or self._log_directories[0]

    @property
    def directories(self) -> list[str]:
        """Those of logs and that of the metadata, each once, in the order of their names."""
        return sorted({*self._log_directories, self.metadata_directory})

    @property
    def _log_directories(self) -> list[str]:
        return self._list("log.dirs") or self._list("log.dir") or ["/tmp/kafka-logs"]

    def controller_address(self) -> tuple[str, int]:
        """Where the others find this controller."""
        listeners = listener_addresses(self._found)
        if self.controller_listener not in listeners:
            raise wrong_setting(
                f"no listener {self.controller_listener} in listeners: add it, as "
                "controller.listener.names has it"
            )
        return listeners[self.controller_listener]

    def _list(self, name: str) -> list[str]:
        return listed(self._found, name)

    def _number(self, name: str) -> int:
        text = self._found[name].strip()
        try:
            return int(text)
        except ValueError:
            raise wrong_setting(
                f"Invalid value {text} for configuration {name}: Not a number of type INT"
            ) from None
