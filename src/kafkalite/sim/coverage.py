"""What must have happened somewhere in a search, or the search has not looked there.

Owns the list of faults, transitions and situations that seeds are to meet. A fault that was taken
out, or that cannot come about any more, makes the search fail by its name.
"""

from __future__ import annotations

from collections.abc import Mapping

CLIENTS, GROUPS, CLUSTERS = "clients", "groups", "clusters"

# So many seeds together meet what is common, and so many also what is rare.
A_FEW_SEEDS, MANY_SEEDS = 12, 300

COMMON = (
    # the machine and its network
    "kills", "power cuts", "stops", "jumps back", "jumps ahead", "disk paces", "link paces",
    "cut links", "troubles",
    # clients
    "client kills", "zombies", "fenced", "committed", "aborted", "plain", "idempotent",
    # topics that come and go
    "deletions", "deletions of a compacted topic", "deletions of a topic with retention",
    "deletions under a transaction", "deletions while something is compacted",
    "records that retention took", "offsets committed to a topic that comes and goes",
    # groups
    "members that left", "member kills", "members by the classic protocol",
    "members by the consumer protocol", "members without a subscription", "static members",
    "group commits", "upgrades", "downgrades",
    # states that a look from inside found them in
    "classic groups: Empty", "classic groups: PreparingRebalance", "classic groups: Stable",
    "consumer members: STABLE", "consumer members: UNREVOKED_PARTITIONS",
    "consumer members: UNRELEASED_PARTITIONS", "transactions: Empty", "transactions: Ongoing",
    "transactions: PrepareCommit", "transactions: PrepareAbort", "transactions: CompleteCommit",
    "transactions: CompleteAbort",
)  # fmt: skip

RARE = (
    # files that cannot be opened
    "EMFILE in service", "ENFILE in service", "ENOENT in service", "EACCES in service",
    "EIO in service", "EMFILE at a start", "ENFILE at a start", "ENOENT at a start",
    "EACCES at a start", "EIO at a start", "failed disks", "starts that failed",
    "starts with offline partitions", "metadata files that could not be opened",
    # what needs two at a time
    "deletions under a flush", "static members of another protocol than before",
    "classic groups: CompletingRebalance",
)  # fmt: skip


GROUPS_COMMON = (
    "kills", "power cuts", "stops", "jumps back", "jumps ahead", "disk paces", "link paces",
    "cut links", "client kills", "committed", "aborted", "plain", "idempotent",
    "members of a share group", "members of a streams group", "members that left", "member kills",
    # what becomes of records that are shared
    "shared records: accepted", "shared records: released", "shared records: rejected",
    "shared records: renewed", "shared records: gaps", "shared records: again",
    "shared records: INVALID_RECORD_STATE", "share fetches without an answer",
    # on the way of tasks from one to another
    "streams groups: Stable", "streams groups: Reconciling", "streams members: STABLE",
    "streams members: UNREVOKED_TASKS", "streams members: UNRELEASED_TASKS",
)  # fmt: skip

GROUPS_RARE = ("troubles", "failed disks", "starts that failed")

CLUSTERS_COMMON = (
    "kills", "power cuts", "kills of the controller", "stops", "pauses", "cuts", "clock steps",
    "link paces", "disk paces", "plain", "idempotent", "epochs with a leader",
    "changes",
)  # fmt: skip

_LISTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    CLIENTS: (COMMON, RARE), GROUPS: (GROUPS_COMMON, GROUPS_RARE), CLUSTERS: (CLUSTERS_COMMON, ()),
}  # fmt: skip


def missing(counts: Mapping[str, int], seeds: int, play: str) -> list[str]:
    """What so many seeds should have met, and never did."""
    common, rare = _LISTS[play]
    due = (common if seeds >= A_FEW_SEEDS else ()) + (rare if seeds >= MANY_SEEDS else ())
    return [what for what in due if not counts.get(what)]
