"""What tools have to know of a node's settings, of whatever Kafka they are.

Owns these few keys as they stand in the file: a node that kafkalite itself would refuse to be may
be formatted all the same.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafkalite.tools.client_settings import Number, numbers
from kafkalite.tools.failures import wrong_setting
from kafkalite.tools.files import Absent, read_properties
from kafkalite.tools.java_numbers import whole

_NODE_ID = Number("node.id", default=-1, is_long=False)
_NEEDED = ("process.roles", "node.id", "controller.listener.names")


def meta_properties(path: str) -> dict[str, str] | None:
    """What says whose a directory is, if anything does."""
    try:
        return {"version": "0"} | read_properties(path)
    except Absent:
        return None


def listed(settings: Mapping[str, str], name: str) -> list[str]:
    return [each.strip() for each in settings.get(name, "").split(",") if each.strip()]


def listener_addresses(settings: Mapping[str, str]) -> dict[str, tuple[str, int]]:
    """Where a node is found by its listeners: as it advertises itself, or listens."""
    found = {}
    for name in ("listeners", "advertised.listeners"):
        for each in listed(settings, name):
            listener, _, address = each.partition("://")
            host, _, port = address.rpartition(":")
            try:
                found[listener.upper()] = host.strip("[]") or "localhost", whole(port)
            except ValueError:
                wrong = f"Invalid value {each} for configuration {name}: no port"
                raise wrong_setting(wrong) from None
    return found


class NodeSettings:
    def __init__(self, file: str) -> None:
        self._found = read_properties(file)
        for name in _NEEDED:
            if not self._found.get(name, "").strip():
                raise wrong_setting(
                    f'Missing required configuration "{name}" which has no default value.'
                )
        self.node_id = numbers(self._found, (_NODE_ID,))[_NODE_ID.name]
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
