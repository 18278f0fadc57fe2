"""What a member of a consumer group subscribes to, and what that does to the group (KIP-848).

Owns the step from a member's names and expression to the topics that they stand for. Changes
nothing itself: all that follows is records, but for whether the group is to look again.
"""

from __future__ import annotations

from kafkalite.coordinators.groups import consumer_records
from kafkalite.coordinators.groups.consumer_group import (
    ConsumerGroup,
    ConsumerMember,
    ResolvedRegex,
)
from kafkalite.coordinators.groups.state import GroupsState
from kafkalite.coordinators.groups.target import NAMES_PER_STEP, Draft, refresh
from kafkalite.coordinators.groups.turn import Turn
from kafkalite.coordinators.pattern_parsing import InvalidPattern
from kafkalite.coordinators.patterns import Pattern
from kafkalite.env.slicing import Steps
from kafkalite.protocol.errors import Error, KafkaError

MATCHED_PER_STEP = 8


def change_subscription(
    state: GroupsState,
    turn: Turn,
    group: ConsumerGroup,
    draft: Draft,
    old: ConsumerMember,
    new: ConsumerMember,
) -> Steps[bool]:
    """Writes what changed of the member and, if the topics did, of the group; true if they did."""
    is_new = old.member_id not in draft.members
    is_large = len(new.subscribed_topics) >= NAMES_PER_STEP
    if is_large:
        yield
    if new != old or is_new:
        turn.write(consumer_records.member(group.group_id, new))
        draft.put(new)
        if is_large:
            yield
    has_changed = old.subscribed_topics != new.subscribed_topics
    has_changed = (yield from _change_regex(state, turn, draft, old, new)) or has_changed
    if has_changed or group.must_refresh or _is_stale(state, turn, group):
        if not has_changed:
            group.matched_ms = turn.now_ms
            yield from _resolve_again(state, turn, draft)
        written = len(turn.effects.records)
        yield from refresh(state, turn, draft, must_bump=has_changed)
        # Only a look that found nothing is sure to be the last: an append may yet fail.
        group.must_refresh = len(turn.effects.records) > written
        if group.has_topic_metadata_record:
            turn.write(consumer_records.topic_metadata_tombstone(group.group_id))
    return has_changed


def _change_regex(
    state: GroupsState, turn: Turn, draft: Draft, old: ConsumerMember, new: ConsumerMember
) -> Steps[bool]:
    """Forgets the member's former expression if it was the last with it; resolves the new."""
    if old.subscribed_regex == new.subscribed_regex:
        return False
    regexes = dict(draft.regexes)
    subscribed = {one.subscribed_regex for one in draft.members.values()}
    if old.subscribed_regex in regexes and old.subscribed_regex not in subscribed:
        del regexes[old.subscribed_regex]
        turn.write(consumer_records.regex(draft.group_id, old.subscribed_regex, None))
    if new.subscribed_regex and new.subscribed_regex not in regexes:
        resolved = yield from _resolve(state, turn, new.subscribed_regex)
        regexes[new.subscribed_regex] = resolved
        turn.write(consumer_records.regex(draft.group_id, new.subscribed_regex, resolved))
    draft.regexes = regexes
    return True


def _is_stale(state: GroupsState, turn: Turn, group: ConsumerGroup) -> bool:
    """Whether by now members may be allowed to see other topics than those that were found."""
    interval_ms = state.settings.consumer_regex_refresh_ms
    return bool(group.regexes) and turn.now_ms - group.matched_ms >= interval_ms


def _resolve_again(state: GroupsState, turn: Turn, draft: Draft) -> Steps[None]:
    """Topics or rights have come or gone: what do the expressions match now?"""
    for expression, known in draft.regexes.items():
        resolved = yield from _resolve(state, turn, expression)
        if resolved.topics != known.topics:
            draft.regexes = {**draft.regexes, expression: resolved}
            turn.write(consumer_records.regex(draft.group_id, expression, resolved))


def _resolve(state: GroupsState, turn: Turn, expression: str) -> Steps[ResolvedRegex]:
    try:
        pattern = Pattern(expression)
    except InvalidPattern as error:
        raise KafkaError(
            Error.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{expression}` is not a valid regular expression: {error}.",
        ) from None
    topics: list[str] = []
    for count, name in enumerate(list(state.topics.names()), 1):
        if pattern.matches(name) and turn.may_see(name):
            topics.append(name)
        if count % MATCHED_PER_STEP == 0:
            yield
    return ResolvedRegex(tuple(sorted(topics)), turn.now_ms)
