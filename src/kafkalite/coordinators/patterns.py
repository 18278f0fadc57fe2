"""Regular expressions that a peer writes, matched in linear time.

Owns the matching. Nothing here backtracks: a text is read once, character by character, with the
set of all states that the automaton may be in, and in steps when that takes long.
"""

from __future__ import annotations

from kafkalite.coordinators.pattern_parsing import (
    MAX_LENGTH,
    MAX_STATES,
    TOPIC_ALPHABET,
    WORD,
    Alphabet,
    InvalidPattern,
    Look,
    Parser,
)
from kafkalite.env.slicing import Steps, finish

# States that are passed through before others have their turn: a millisecond or two.
WORK_PER_STEP = 5_000


class Pattern:
    """A compiled expression that is to match a whole text of these characters."""

    def __init__(self, expression: str, alphabet: Alphabet = TOPIC_ALPHABET) -> None:
        if len(expression) > MAX_LENGTH:
            raise InvalidPattern("expression too long")
        parser = Parser(expression, alphabet)
        piece = parser.parse()
        self._bit = alphabet.bit
        self._states = parser.states
        self._start, self._end = piece.start, piece.end
        self._closures: dict[tuple[frozenset[int], str, str], frozenset[int]] = {}

    def matches(self, text: str) -> bool:
        return finish(self.matching(text))

    def matching(self, text: str) -> Steps[bool]:
        """Whether the whole text matches, in steps."""
        current = frozenset((self._start,))
        before = ""
        work = 0
        for char in text:
            if char not in self._bit:
                return False
            current = self._step(self._closure(current, before, char), char)
            if not current:
                return False
            before = char
            work += len(current)
            if work > WORK_PER_STEP:
                work = 0
                yield
        return self._end in self._closure(current, before, "")

    def _step(self, states: frozenset[int], char: str) -> frozenset[int]:
        bit = self._bit[char]
        found = (self._states[one] for one in states)
        return frozenset(state.next for state in found if state.chars & bit)

    def _closure(self, states: frozenset[int], before: str, after: str) -> frozenset[int]:
        """Everything reachable without a character, between these two; kept, for there are few."""
        key = (states, before, after)
        known = self._closures.get(key)
        if known is not None:
            return known
        reached = set(states)
        open_ = list(states)
        while open_:
            state = self._states[open_.pop()]
            if state.look is not None and not _holds(state.look, before, after):
                continue
            for one in state.empty:
                if one not in reached:
                    reached.add(one)
                    open_.append(one)
        if len(self._closures) > MAX_STATES:
            self._closures.clear()
        self._closures[key] = found = frozenset(reached)
        return found


def _holds(look: Look, before: str, after: str) -> bool:
    if look is Look.BEGIN:
        return not before
    if look is Look.END:
        return not after
    if look is Look.LINE_BEGIN:
        return before in ("", "\n")
    if look is Look.LINE_END:
        return after in ("", "\n")
    is_boundary = _is_word(before) != _is_word(after)
    return is_boundary == (look is Look.BOUNDARY)


def _is_word(char: str) -> bool:
    return bool(char) and char in WORD
