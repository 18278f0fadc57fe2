"""The controller that `kafka-metadata-quorum add-controller` is to add, as its own files tell."""

from __future__ import annotations

from dataclasses import dataclass

from kafkalite.log.names import META_PROPERTIES, parse_uuid, uuid_text
from kafkalite.tools.client_settings import settings_of
from kafkalite.tools.failures import TerseFailure, illegal_argument, no_number
from kafkalite.tools.files import Unreadable
from kafkalite.tools.java_numbers import whole
from kafkalite.tools.node_settings import listed, listener_addresses, meta_properties

_IS_THIS = "Is this a valid controller configuration file?"


@dataclass(frozen=True, slots=True)
class NewController:
    node_id: int
    directory_id: bytes
    endpoints: dict[str, tuple[str, int]]

    def __str__(self) -> str:
        shown = ", ".join(
            f"{name}://{f'[{host}]' if ':' in host else host}:{port}"
            for name, (host, port) in self.endpoints.items()
        )
        return (
            f"controller {self.node_id} with directory id {uuid_text(self.directory_id)} and "
            f"endpoints: {shown}"
        )


def new_controller(config: str) -> NewController:
    settings = settings_of(config)
    return NewController(
        _node_id(settings), _directory_id(_metadata_directory(settings)), _endpoints(settings)
    )


def _node_id(settings: dict[str, str]) -> int:
    text = settings.get("node.id")
    if text is None:
        raise TerseFailure(f"node.id not found in configuration file. {_IS_THIS}")
    try:
        node_id = whole(text)
    except ValueError:
        raise no_number(text) from None
    if node_id < 0:
        raise TerseFailure(f"node.id was negative in configuration file. {_IS_THIS}")
    if "controller" not in settings.get("process.roles", ""):
        raise TerseFailure(
            f"process.roles did not contain 'controller' in configuration file. {_IS_THIS}"
        )
    return node_id


def _metadata_directory(settings: dict[str, str]) -> str:
    for name in ("metadata.log.dir", "log.dirs"):
        if name in settings:
            return settings[name].split(",")[0] if name == "log.dirs" else settings[name]
    raise TerseFailure(f"Neither metadata.log.dir nor log.dirs were found. {_IS_THIS}")


def _directory_id(directory: str) -> bytes:
    try:
        found = meta_properties(f"{directory}/{META_PROPERTIES}")
    except Unreadable:
        found = None
    if found is None:
        raise TerseFailure(f"Unable to read meta.properties from {directory}")
    if "directory.id" not in found:
        raise TerseFailure(f"No directory id found in {directory}")
    try:
        return parse_uuid(found["directory.id"])
    except ValueError as error:
        raise illegal_argument(str(error)) from None


def _endpoints(settings: dict[str, str]) -> dict[str, tuple[str, int]]:
    known = listener_addresses(settings)
    if "controller.listener.names" not in settings:
        raise TerseFailure(f"controller.listener.names was not found. {_IS_THIS}")
    found = {}
    for name in (each.upper() for each in listed(settings, "controller.listener.names")):
        if name not in known:
            raise TerseFailure(f"Cannot find information about controller listener name: {name}")
        found[name] = known[name]
    return found
