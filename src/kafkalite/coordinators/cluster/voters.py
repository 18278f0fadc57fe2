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
    if request.voter_id == view.config.node_id:
        raise KafkaError(
            Error.DUPLICATE_VOTER,
            f"The voter id for {_shown(request)} is already part of the set of voters.",
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
    raise KafkaError(
        Error.VOTER_NOT_FOUND if request.voter_id != view.config.node_id
        else Error.UNSUPPORTED_VERSION,
        f"Cannot remove voter {_shown(request)} from the set of voters, which is controller"
        f" {view.config.node_id} alone",
    )  # fmt: skip


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
    directory = uuid_text(request.voter_directory_id)
    return f"ReplicaKey(id={request.voter_id}, directoryId={directory})"
