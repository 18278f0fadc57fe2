"""What a member of a consumer group subscribes to, and what that does to the group (KIP-848).

Owns the step from a member's names and expression to the topics that they stand for: at once, or,
where the group has an interval between its assignments, after the answer, as Apache Kafka does.
Changes nothing itself: all that follows is records, but for whether the group is to look again.
"""

from __future__ import annotations

from kafkalite.coordinators.groups import consumer_records
from kafkalite.coordinators.groups.consumer_group import (
    ConsumerGroup,
    ConsumerMember,
    ResolvedRegex,
)
from kafkalite.coordinators.groups.events import PatternsDue
from kafkalite.coordinators.groups.state import GroupsState
from kafkalite.coordinators.groups.target import NAMES_PER_STEP, Draft, refresh
from kafkalite.coordinators.groups.turn import Turn
from kafkalite.coordinators.pattern_parsing import InvalidPattern
from kafkalite.coordinators.patterns import Pattern
from kafkalite.env.slicing import Steps
from kafkalite.protocol.errors import Error, KafkaError

MATCHED_PER_STEP = 8
# Of looks at what the expressions of a group match, where that is done after the answer.
LEAST_BETWEEN_MS = 10_000


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
    is_paced = state.settings.assignment_interval_ms(group.group_id) > 0
    has_changed = must_bump = old.subscribed_topics != new.subscribed_topics
    if old.subscribed_regex != new.subscribed_regex:
        has_changed = True
        is_known = yield from _change_regex(state, turn, draft, old, new, is_paced=is_paced)
        must_bump = must_bump or is_known
    if is_paced:
        _look_later(state, turn, group, draft, new)
    if must_bump or group.must_refresh or (not is_paced and _is_stale(state, turn, group)):
        if not (has_changed or is_paced):
            group.matched_ms = turn.now_ms
            yield from _resolve_again(state, turn, draft)
        written = len(turn.effects.records)
        yield from refresh(state, turn, draft, must_bump=must_bump)
        # Only a look that found nothing is sure to be the last: an append may yet fail.
        group.must_refresh = len(turn.effects.records) > written
        if group.has_topic_metadata_record:
            turn.write(consumer_records.topic_metadata_tombstone(group.group_id))
    return has_changed


def _change_regex(
    state: GroupsState,
    turn: Turn,
    draft: Draft,
    old: ConsumerMember,
    new: ConsumerMember,
    *,
    is_paced: bool,
) -> Steps[bool]:
    """Forgets the member's former expression if it was the last with it; resolves the new, unless
    that comes later. Whether it is known what the member has now."""
    regexes = dict(draft.regexes)
    subscribed = {one.subscribed_regex for one in draft.members.values()}
    if old.subscribed_regex in regexes and old.subscribed_regex not in subscribed:
        del regexes[old.subscribed_regex]
        turn.write(consumer_records.regex(draft.group_id, old.subscribed_regex, None))
    if new.subscribed_regex and new.subscribed_regex not in regexes:
        if is_paced:
            _pattern(new.subscribed_regex)
        else:
            resolved = yield from _resolve(state, turn, new.subscribed_regex)
            regexes[new.subscribed_regex] = resolved
            turn.write(consumer_records.regex(draft.group_id, new.subscribed_regex, resolved))
    draft.regexes = regexes
    return not new.subscribed_regex or new.subscribed_regex in regexes


# -- after the answer ------------------------------------------------------------------------------


def _look_later(
    state: GroupsState, turn: Turn, group: ConsumerGroup, draft: Draft, new: ConsumerMember
) -> None:
    """Has all expressions of the group looked at, where that is due, and not too often."""
    expressions = {one.subscribed_regex for one in draft.members.values()} - {""}
    before = {one.subscribed_regex for one in group.members.values()}
    is_first = bool(new.subscribed_regex) and new.subscribed_regex not in before
    last_ms = max((one.timestamp_ms for one in group.regexes.values()), default=None)
    ago_ms = None if last_ms is None else turn.now_ms - last_ms  # below 0: the clock was set back
    if ago_ms is not None and 0 <= ago_ms <= LEAST_BETWEEN_MS:
        return
    is_stale = ago_ms is None or not 0 <= ago_ms <= state.settings.consumer_regex_refresh_ms
    is_due = is_first or group.must_match or is_stale or len(expressions) != len(group.regexes)
    if expressions and is_due:
        due = PatternsDue(group.group_id, sorted(expressions), turn.may_see)
        turn.arm_if_absent(("patterns", group.group_id), 0, due)


def on_patterns_due(state: GroupsState, turn: Turn, event: PatternsDue) -> Steps[None]:
    """One new epoch for all that the expressions match by now."""
    group = state.consumer_group(event.group_id)
    if group is None:
        return
    turn.may_see = event.may_see
    draft = Draft.of(group)
    subscribed = {one.subscribed_regex for one in group.members.values()}
    must_bump = False
    for expression in event.expressions:
        if expression not in subscribed:
            continue
        resolved = yield from _resolve(state, turn, expression)
        known = draft.regexes.get(expression)
        must_bump = must_bump or resolved.topics != (() if known is None else known.topics)
        draft.regexes = {**draft.regexes, expression: resolved}
        turn.write(consumer_records.regex(draft.group_id, expression, resolved))
    if turn.effects.records:
        yield from refresh(state, turn, draft, must_bump=must_bump)


# -- at once ---------------------------------------------------------------------------------------


def _is_stale(state: GroupsState, turn: Turn, group: ConsumerGroup) -> bool:
    """Whether by now members may be allowed to see other topics than those that were found."""
    interval_ms = state.settings.consumer_regex_refresh_ms
    return bool(group.regexes) and not 0 <= turn.now_ms - group.matched_ms < interval_ms


def _resolve_again(state: GroupsState, turn: Turn, draft: Draft) -> Steps[None]:
    """Topics or rights have come or gone: what do the expressions match now?"""
    for expression, known in draft.regexes.items():
        resolved = yield from _resolve(state, turn, expression)
        if resolved.topics != known.topics:
            draft.regexes = {**draft.regexes, expression: resolved}
            turn.write(consumer_records.regex(draft.group_id, expression, resolved))


def _resolve(state: GroupsState, turn: Turn, expression: str) -> Steps[ResolvedRegex]:
    pattern = _pattern(expression)
    topics: list[str] = []
    for count, name in enumerate(list(state.topics.names()), 1):
        if pattern.matches(name) and turn.may_see(name):
            topics.append(name)
        if count % MATCHED_PER_STEP == 0:
            yield
    return ResolvedRegex(tuple(sorted(topics)), turn.now_ms)


def _pattern(expression: str) -> Pattern:
    try:
        return Pattern(expression)
    except InvalidPattern as error:
        raise KafkaError(
            Error.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{expression}` is not a valid regular expression: {error}.",
        ) from None
