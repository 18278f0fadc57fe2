"""The question before a transactional append: does the coordinator know of it? (KIP-890)

Asks at most once per request, and only for partitions where the transaction has not begun. Until
Produce version 12 a partition must have been added before, which is not asked about when
`transaction.partition.verification.enable` is false; from then on it is added here.
"""

from __future__ import annotations

from kafkalite.coordinators.transactions.peer import Admission
from kafkalite.env.later import Later
from kafkalite.env.slicing import Steps
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.produce_entry import Entry
from kafkalite.handlers.stepwise import pieces
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import ProduceRequest

VERIFICATION = "transaction.partition.verification.enable"
ABORTABLE_VERSION = 11
ADDING_VERSION = 12
ASKED_PER_STEP = 64

# While the coordinator cannot tell, old producers are sent an error that they are sure to retry.
CANNOT_TELL = (
    Error.NETWORK_EXCEPTION,
    Error.COORDINATOR_LOAD_IN_PROGRESS,
    Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_COORDINATOR,
)


def admit(
    context: Context,
    call: Call,
    request: ProduceRequest,
    entries: list[Entry],
    transactional: list[Entry],
) -> Steps[Later[None]]:
    """Resolved when every entry has its proof or its refusal."""
    refusal = yield from _refusal(transactional)
    if refusal is not None:
        for some in pieces(entries, ASKED_PER_STEP):
            for entry in some:
                entry.refuse(refusal)
            yield
        return Later.of(None)
    if call.version < ADDING_VERSION and not context.config.get_bool(VERIFICATION):
        return Later.of(None)
    unproven: list[Entry] = []
    for some in pieces(transactional, ASKED_PER_STEP):
        unproven += [entry for entry in some if _needs_proof(call, entry)]
        yield
    if not unproven:
        return Later.of(None)
    return (yield from _ask(context, call, request, unproven))


def _refusal(transactional: list[Entry]) -> Steps[KafkaError | None]:
    """What is wrong with the request as a whole."""
    producers: set[tuple[int, int]] = set()
    for some in pieces(transactional, ASKED_PER_STEP):
        producers |= {
            (entry.header.producer_id, entry.header.producer_epoch)
            for entry in some
            if entry.header is not None
        }
        yield
    if len(producers) > 1:
        return KafkaError(
            Error.INVALID_PRODUCER_ID_MAPPING,
            "Transactional records contained more than one producer ID",
        )
    return None


def _needs_proof(call: Call, entry: Entry) -> bool:
    """Whether the transaction is to begin in this partition; a stale epoch is refused at once."""
    header, partition = entry.header, entry.partition
    assert header is not None
    assert partition is not None
    try:
        partition.check_leader()
        verification = partition.log.start_verification(
            header.producer_id, header.base_sequence, header.producer_epoch,
            supports_epoch_bump=call.version >= ADDING_VERSION,
        )
    except KafkaError as error:
        entry.refuse(error)
        return False
    entry.verification = verification
    return verification is not None


def _ask(
    context: Context, call: Call, request: ProduceRequest, unproven: list[Entry]
) -> Steps[Later[None]]:
    header, transactional_id = unproven[0].header, request.transactional_id
    assert header is not None
    assert transactional_id is not None
    where: dict[tuple[str, int], Entry] = {}
    for some in pieces(unproven, ASKED_PER_STEP):
        where |= {
            (entry.partition.topic, entry.partition.index): entry
            for entry in some
            if entry.partition is not None
        }
        yield

    is_adding = call.version >= ADDING_VERSION

    def answered(refusals: dict[tuple[str, int], KafkaError]) -> None:
        for one, error in refusals.items():
            where[one].refuse(_told(error, is_adding=is_adding))

    admission = Admission(
        transactional_id,
        header.producer_id,
        header.producer_epoch,
        tuple(where),
        is_adding=is_adding,
    )
    knows_abortable = call.version >= ABORTABLE_VERSION
    return context.transactions.ask(admission, knows_abortable=knows_abortable).map(answered)


def _told(error: KafkaError, *, is_adding: bool) -> KafkaError:
    """What a producer is told of a refusal by the coordinator, which is none of its own."""
    is_busy = error.code == Error.CONCURRENT_TRANSACTIONS and not is_adding
    if error.code not in CANNOT_TELL and not is_busy:
        return error
    return KafkaError(
        Error.NOT_ENOUGH_REPLICAS,
        "Unable to verify the partition has been added to the transaction. "
        f"Underlying error: {Error(error.code).name}",
    )
