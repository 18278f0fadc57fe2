"""What a consumer group's members should have: subscriptions, their topics, the assignment.

Owns the step from a changed group to a new target assignment, as records. Works on a `Draft`,
the group as it will be once the records before are replayed. Changes nothing itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kafkalite.coordinators.groups import consumer_records
from kafkalite.coordinators.groups.assignors import ASSIGNORS, Candidate
from kafkalite.coordinators.groups.consumer_group import (
    ConsumerGroup,
    ConsumerMember,
    ResolvedRegex,
    Target,
)
from kafkalite.coordinators.groups.state import GroupsState
from kafkalite.coordinators.groups.topic_hash import hash_in_steps
from kafkalite.coordinators.groups.topics import TopicView
from kafkalite.coordinators.groups.turn import Turn
from kafkalite.env.slicing import Steps

# Of topics, looked at in one step.
NAMES_PER_STEP = 32

Subscription = tuple[tuple[str, ...], tuple[str, ...]]


@dataclass(slots=True)
class Draft:
    """A consumer group in the middle of a decision."""

    group_id: str
    epoch: int
    metadata_hash: int
    assignment_epoch: int
    assignment_timestamp_ms: int
    members: dict[str, ConsumerMember]
    targets: dict[str, Target]
    regexes: dict[str, ResolvedRegex]
    owners: dict[tuple[bytes, int], str]
    # Ids whose partitions are this member's own: also that of its former self.
    former_ids: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, group: ConsumerGroup) -> Draft:
        return cls(
            group.group_id,
            group.epoch,
            group.metadata_hash,
            group.assignment_epoch,
            group.assignment_timestamp_ms,
            group.members,
            group.targets,
            group.regexes,
            group.owners,
        )

    def put(self, member: ConsumerMember) -> None:
        self.members = {**self.members, member.member_id: member}

    def drop(self, member_ids: Iterable[str]) -> None:
        gone = set(member_ids)
        self.members = {key: one for key, one in self.members.items() if key not in gone}
        self.targets = {key: one for key, one in self.targets.items() if key not in gone}

    def subscription(self, member: ConsumerMember) -> Subscription:
        """The names that the member gave, and those that its regular expression matches."""
        resolved = self.regexes.get(member.subscribed_regex)
        return member.subscribed_topics, () if resolved is None else resolved.topics

    def subscribed_topics(self) -> list[str]:
        """Each subscription is looked at once, however many members have the same."""
        subscriptions = {self.subscription(one) for one in self.members.values()}
        return sorted({name for names in subscriptions for name in (*names[0], *names[1])})

    def is_taken(self, member_id: str, topic_id: bytes, partition: int) -> bool:
        owner = self.owners.get((topic_id, partition))
        return owner not in (None, member_id, self.former_ids.get(member_id))


def metadata_hash(state: GroupsState, names: Iterable[str]) -> Steps[int]:
    """A number that changes when a subscribed topic does: its id, partitions or racks."""
    return (yield from hash_in_steps((yield from _views(state, names))))


def _views(state: GroupsState, names: Iterable[str]) -> Steps[list[TopicView]]:
    """The topics of these names that exist."""
    views: list[TopicView] = []
    for count, name in enumerate(names, 1):
        view = state.topics.by_name(name)
        if view is not None:
            views.append(view)
        if count % NAMES_PER_STEP == 0:
            yield
    return views


def refresh(state: GroupsState, turn: Turn, draft: Draft, *, must_bump: bool) -> Steps[None]:
    """Looks at the subscribed topics again; a new group epoch when anything has changed."""
    hashed = yield from metadata_hash(state, draft.subscribed_topics())
    if must_bump or hashed != draft.metadata_hash:
        draft.epoch += 1
        draft.metadata_hash = hashed
        turn.write(consumer_records.group_epoch(draft.group_id, draft.epoch, hashed))


def retarget(state: GroupsState, turn: Turn, draft: Draft) -> Steps[None]:
    """Computes the target assignment, if it is older than the group and not too young."""
    interval_ms = state.settings.assignment_interval_ms(draft.group_id)
    is_too_soon = is_young(draft.assignment_timestamp_ms, interval_ms, turn.now_ms)
    if draft.assignment_epoch >= draft.epoch or is_too_soon:
        return
    found = yield from _views(state, draft.subscribed_topics())
    views = {view.topic_id: view for view in found}
    assign = ASSIGNORS[_assignor_of(state, draft)]
    ids: dict[Subscription, frozenset[bytes]] = {}
    candidates: list[Candidate] = []
    for one in draft.members.values():
        candidate = yield from _candidate(state, draft, one, ids)
        candidates.append(candidate)
    targets = yield from assign(candidates, views)
    for member_id, target in targets.items():
        if draft.targets.get(member_id) != target:
            turn.write((yield from consumer_records.target(draft.group_id, member_id, target)))
    draft.targets = targets
    draft.assignment_epoch = draft.epoch
    turn.write(consumer_records.target_epoch(draft.group_id, draft.epoch, turn.now_ms))


def is_young(made_ms: int, interval_ms: int, now_ms: int) -> bool:
    """Whether it is too soon to do again what was done then; not when the clock was set back."""
    return made_ms != 0 and made_ms <= now_ms < made_ms + interval_ms


def _candidate(
    state: GroupsState,
    draft: Draft,
    member: ConsumerMember,
    ids: dict[Subscription, frozenset[bytes]],
) -> Steps[Candidate]:
    """`ids` are those of subscriptions that were looked at already."""
    subscription = draft.subscription(member)
    if subscription not in ids:
        ids[subscription] = yield from topic_ids(state, draft, member)
    return Candidate(
        member.member_id,
        member.instance_id,
        member.rack_id,
        ids[subscription],
        draft.targets.get(member.member_id, {}),
    )


def topic_ids(
    state: GroupsState, draft: Draft, member: ConsumerMember
) -> Steps[frozenset[bytes]]:
    """Topics of the member's subscription that exist."""
    names, matched = draft.subscription(member)
    found: list[bytes] = []
    for count, name in enumerate((*names, *matched), 1):
        topic_id = state.topics.id_of(name)
        if topic_id is not None:
            found.append(topic_id)
        if count % NAMES_PER_STEP == 0:
            yield
    return frozenset(found)


def _assignor_of(state: GroupsState, draft: Draft) -> str:
    """The assignor that most members ask for; the first configured when none does."""
    return preferred_assignor(draft.members.values(), state.settings.consumer_assignors)


def preferred_assignor(members: Iterable[ConsumerMember], configured: list[str]) -> str:
    votes: dict[str, int] = {}
    for member in members:
        name = member.server_assignor
        if name is not None and name in ASSIGNORS:
            votes[name] = votes.get(name, 0) + 1
    if votes:
        return max(votes, key=lambda name: votes[name])
    return next((name for name in configured if name in ASSIGNORS), "uniform")
