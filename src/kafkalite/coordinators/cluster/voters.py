"""Controllers that somebody would have come to the quorum, or go from it (KIP-853).

Reads only: the controller of this process is the only voter, and stays it. What a quorum of one is
asked is refused as Apache Kafka refuses it.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.view import ZERO_UUID, View
from kafkalite.coordinators.effects import Effects
from kafkalite.log.names import uuid_text
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import AddRaftVoterRequest, RemoveRaftVoterRequest

MOST_SHOWN = 8  # of what a request brings


def add_voter(view: View, request: AddRaftVoterRequest) -> Effects:
    """Raises KafkaError."""
    _check_named("Add", request)
    listener = view.config.get_list("controller.listener.names")[0]
    if listener not in (each.name for each in request.listeners):
        given = ", ".join(
            f"ListenerName({each.name})={each.host}/<unresolved>:{each.port}"
            for each in request.listeners[:MOST_SHOWN]
        )
        raise KafkaError(
            Error.INVALID_REQUEST,
            f"Add voter request didn't include the endpoint (Endpoints(endpoints={{{given}}})) for"
            f" the default listener ListenerName({listener})",
        )
    _check_dynamic(view, "adding")
    if request.voter_id in view.voters:
        raise KafkaError(
            Error.DUPLICATE_VOTER,
            f"The voter id for {_shown(request)} is already part of the set of voters"
            f" {_listed(view)}.",
        )
    raise KafkaError(
        Error.UNSUPPORTED_VERSION,
        f"Controller {view.config.node_id} is of kafkalite and the only voter: it takes no other"
        " beside it.",
    )


def remove_voter(view: View, request: RemoveRaftVoterRequest) -> Effects:
    """Raises KafkaError."""
    _check_named("Remove", request)
    _check_dynamic(view, "removing")
    if view.voters.get(request.voter_id) != request.voter_directory_id:
        raise KafkaError(
            Error.VOTER_NOT_FOUND,
            f"Cannot remove voter {_shown(request)} from the set of voters {_listed(view)}",
        )
    raise KafkaError(
        Error.UNSUPPORTED_VERSION,
        f"Controller {request.voter_id} is the only voter: without it nobody would lead.",
    )


def _check_named(verb: str, request: AddRaftVoterRequest | RemoveRaftVoterRequest) -> None:
    if request.voter_id < 0 or request.voter_directory_id == ZERO_UUID:
        raise KafkaError(
            Error.INVALID_REQUEST, f"{verb} voter request didn't include a valid voter"
        )


def _check_dynamic(view: View, doing: str) -> None:
    if view.kraft_version == 0:
        raise KafkaError(
            Error.UNSUPPORTED_VERSION,
            f"Cluster doesn't support {doing} voter because the kraft.version feature is 0",
        )


def _shown(request: AddRaftVoterRequest | RemoveRaftVoterRequest) -> str:
    return _key(request.voter_id, request.voter_directory_id)


def _listed(view: View) -> str:
    return f"[{', '.join(_key(each, view.voters[each]) for each in view.voters)}]"


def _key(voter_id: int, directory_id: bytes) -> str:
    return f"ReplicaKey(id={voter_id}, directoryId={uuid_text(directory_id)})"
