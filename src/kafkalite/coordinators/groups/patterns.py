"""Regular expressions over topic names, in RE2's syntax and in linear time.

Owns their parsing and matching. A peer writes them, so nothing here backtracks: an expression
becomes an automaton of a bounded size, and a name is read once, character by character.
Invariant: a character class is a set of characters that a topic name may have, as bits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

MAX_STATES = 5_000
MAX_REPEAT = 1_000  # as RE2
MAX_NESTING = 100
MAX_LENGTH = 4_096

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
DIGITS = "0123456789"
ALPHABET = LETTERS + DIGITS + "._-"
_BIT = {char: 1 << index for index, char in enumerate(ALPHABET)}
_ALL = (1 << len(ALPHABET)) - 1


class InvalidPattern(Exception):
    """The expression is none, or has something that a linear-time engine cannot do."""


class Look(Enum):
    """What a position must be; it reads no character."""

    BEGIN = "begin"
    END = "end"
    BOUNDARY = "word boundary"
    INSIDE = "no word boundary"


def _bits(chars: str) -> int:
    return sum(_BIT[char] for char in set(chars) if char in _BIT)


_WORD = _bits(LETTERS + DIGITS)  # the underscore is no part of any class below but this one
_WORD |= _BIT["_"]
_ESCAPES = {
    "d": _bits(DIGITS),
    "D": _ALL & ~_bits(DIGITS),
    "w": _WORD,
    "W": _ALL & ~_WORD,
    "s": 0,
    "S": _ALL,
}
_POSIX = {
    "alnum": _bits(LETTERS + DIGITS),
    "alpha": _bits(LETTERS),
    "ascii": _ALL,
    "blank": 0,
    "cntrl": 0,
    "digit": _bits(DIGITS),
    "graph": _ALL,
    "lower": _bits(LETTERS[:26]),
    "print": _ALL,
    "punct": _bits("._-"),
    "space": 0,
    "upper": _bits(LETTERS[26:]),
    "word": _WORD,
    "xdigit": _bits(DIGITS + "abcdefABCDEF"),
}
_LOOKS = {"A": Look.BEGIN, "z": Look.END, "b": Look.BOUNDARY, "B": Look.INSIDE}
_CONTROL = "nrtfva"


# -- the automaton ---------------------------------------------------------------------------


@dataclass(slots=True)
class _State:
    """Goes on over one character of `chars`, or over nothing where `look` holds."""

    chars: int = 0
    next: int = -1
    empty: list[int] = field(default_factory=list)
    look: Look | None = None


@dataclass(slots=True)
class _Piece:
    start: int
    end: int


class TopicPattern:
    """A compiled expression that is to match a whole topic name."""

    def __init__(self, expression: str) -> None:
        if len(expression) > MAX_LENGTH:
            raise InvalidPattern("expression too long")
        parser = _Parser(expression)
        piece = parser.parse()
        self._states = parser.states
        self._start, self._end = piece.start, piece.end
        self._closures: dict[tuple[frozenset[int], str, str], frozenset[int]] = {}

    def matches(self, name: str) -> bool:
        current = frozenset((self._start,))
        before = ""
        for char in name:
            if char not in _BIT:
                return False
            current = self._step(self._closure(current, before, char), char)
            if not current:
                return False
            before = char
        return self._end in self._closure(current, before, "")

    def _step(self, states: frozenset[int], char: str) -> frozenset[int]:
        bit = _BIT[char]
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
    is_boundary = _is_word(before) != _is_word(after)
    return is_boundary == (look is Look.BOUNDARY)


def _is_word(char: str) -> bool:
    return bool(_BIT.get(char, 0) & _WORD)


def _unquoted(text: str) -> str:
    r"""The expression without `\Q…\E`, each character between them escaped by itself."""
    if "\\Q" not in text:
        return text
    parts: list[str] = []
    position = 0
    while position < len(text):
        if text[position] != "\\":
            parts.append(text[position])
            position += 1
        elif text.startswith("\\Q", position):
            quoted, mark, _ = text[position + 2 :].partition("\\E")
            parts += [char if char.isalnum() else f"\\{char}" for char in quoted]
            position += 2 + len(quoted) + len(mark)
        else:
            parts.append(text[position : position + 2])
            position += 2
    return "".join(parts)


# -- the parser ------------------------------------------------------------------------------


class _Parser:
    """Recursive descent; builds the automaton as it reads."""

    def __init__(self, text: str) -> None:
        self.text = _unquoted(text)
        self.position = 0
        self.states: list[_State] = []
        self.ignores_case = False
        self.depth = 0

    def parse(self) -> _Piece:
        piece = self._alternatives()
        if self.position < len(self.text):
            raise InvalidPattern("unexpected )")
        return piece

    # Reading.

    def _peek(self) -> str:
        return self.text[self.position : self.position + 1]

    def _take(self) -> str:
        char = self._peek()
        if not char:
            raise InvalidPattern("unexpected end of expression")
        self.position += 1
        return char

    def _accept(self, text: str) -> bool:
        if self.text.startswith(text, self.position):
            self.position += len(text)
            return True
        return False

    # Building.

    def _new(self, state: _State) -> int:
        if len(self.states) >= MAX_STATES:
            raise InvalidPattern("expression too large")
        self.states.append(state)
        return len(self.states) - 1

    def _char(self, chars: int) -> _Piece:
        end = self._new(_State())
        return _Piece(self._new(_State(chars, end)), end)

    def _nothing(self, look: Look | None = None) -> _Piece:
        end = self._new(_State())
        return _Piece(self._new(_State(empty=[end], look=look)), end)

    # Grammar.

    def _alternatives(self) -> _Piece:
        ignores_case = self.ignores_case
        branches = [self._sequence()]
        while self._accept("|"):
            branches.append(self._sequence())
        self.ignores_case = ignores_case
        if len(branches) == 1:
            return branches[0]
        start = self._new(_State(empty=[one.start for one in branches]))
        end = self._new(_State())
        for one in branches:
            self.states[one.end].empty.append(end)
        return _Piece(start, end)

    def _sequence(self) -> _Piece:
        whole = self._nothing()
        while self._peek() not in ("", "|", ")"):
            first = self.position
            ignores_case = self.ignores_case
            piece = self._atom()
            piece = self._repeated(piece, first, ignores_case)
            self.states[whole.end].empty.append(piece.start)
            whole.end = piece.end
        return whole

    def _repeated(self, piece: _Piece, first: int, ignores_case: bool) -> _Piece:
        last = self.position
        bounds = self._bounds()
        if bounds is None:
            return piece
        self._accept("?")  # lazy or not: the whole name has to match
        if self._peek() and self._peek() in "*+?":
            raise InvalidPattern("nested repetition operator")
        least, most = bounds
        copies = max(least, most or 0, 1) - 1
        again = [self._again(first, last, ignores_case) for _ in range(copies)]
        return self._repeat([piece, *again], least, most)

    def _again(self, first: int, last: int, ignores_case: bool) -> _Piece:
        """Reads the atom at `first` once more: a copy of its part of the automaton."""
        here, self.position = self.position, first
        flag, self.ignores_case = self.ignores_case, ignores_case
        piece = self._atom()
        assert self.position == last, "an atom reads the same twice"
        self.position, self.ignores_case = here, flag
        return piece

    def _repeat(self, pieces: list[_Piece], least: int, most: int | None) -> _Piece:
        """The first `least` are needed; the rest may be left out, the last may loop."""
        end = self._new(_State())
        start = self._new(_State(empty=[pieces[0].start]))
        if least == 0:
            self.states[start].empty.append(end)
        for number, piece in enumerate(pieces, 1):
            after = self.states[piece.end].empty
            if number < len(pieces):
                after.append(pieces[number].start)
            elif most is None:
                after.append(piece.start)
            if number >= least:
                after.append(end)
        if most == 0:
            return self._nothing()
        return _Piece(start, end)

    def _bounds(self) -> tuple[int, int | None] | None:
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._accept(sign):
                return bounds
        if self._peek() != "{":
            return None
        end = self.text.find("}", self.position)
        parts = self.text[self.position + 1 : end].split(",") if end > 0 else []
        is_count = 1 <= len(parts) <= 2 and parts[0].isdecimal()
        if not is_count or not (parts[-1].isdecimal() or not parts[-1]):
            return None  # a brace that is just a brace
        self.position = end + 1
        least = int(parts[0])
        most = least if len(parts) == 1 else int(parts[1]) if parts[1] else None
        if least > MAX_REPEAT or (most or 0) > MAX_REPEAT or (most is not None and most < least):
            raise InvalidPattern("bad repetition count")
        return least, most

    def _atom(self) -> _Piece:
        char = self._take()
        if char in "*+?":
            raise InvalidPattern(f"nothing to repeat before {char}")
        if char == "(":
            return self._group()
        if char == "[":
            return self._char(self._class())
        if char == ".":
            return self._char(_ALL)
        if char == "^":
            return self._nothing(Look.BEGIN)
        if char == "$":
            return self._nothing(Look.END)
        if char == "\\":
            return self._escape()
        return self._char(self._literal(char))

    def _literal(self, char: str) -> int:
        """A character no topic name has matches nothing, and is no error."""
        bits = _BIT.get(char, 0)
        if self.ignores_case:
            bits |= _BIT.get(char.lower(), 0) | _BIT.get(char.upper(), 0)
        return bits

    def _group(self) -> _Piece:
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise InvalidPattern("expression nests too deep")
        ignores_case = self.ignores_case
        if self._accept("?"):
            if self._accept("P<") or (self._peek() == "<" and self._names_group()):
                name, _, _ = self.text[self.position :].partition(">")
                if not name.isidentifier():
                    raise InvalidPattern("bad group name")
                self.position += len(name) + 1
            elif self._flags():
                self.depth -= 1
                return self._nothing()
        piece = self._alternatives()
        if not self._accept(")"):
            raise InvalidPattern("missing )")
        self.ignores_case = ignores_case
        self.depth -= 1
        return piece

    def _names_group(self) -> bool:
        if self.text[self.position + 1 : self.position + 2] in ("=", "!"):
            raise InvalidPattern("lookbehind is not supported")
        return self._accept("<")

    def _flags(self) -> bool:
        """Flags until `:` (for this group) or `)` (for what follows, then true)."""
        is_on = True
        while True:
            char = self._take()
            if char == ":":
                return False
            if char == ")":
                return True
            if char == "-":
                is_on = False
            elif char == "i":
                self.ignores_case = is_on
            elif char not in "msU":
                raise InvalidPattern(f"group (?{char} is not supported")

    def _escape(self) -> _Piece:
        char = self._take()
        if char in _LOOKS:
            return self._nothing(_LOOKS[char])
        return self._char(self._escaped_chars(char))

    def _escaped_chars(self, char: str) -> int:
        if char in _ESCAPES:
            return _ESCAPES[char]
        if char == "x":
            return self._literal(self._hexadecimal())
        if char in _CONTROL:
            return 0
        if char.isalnum():
            raise InvalidPattern(f"escape \\{char} is not supported")
        return self._literal(char)

    def _hexadecimal(self) -> str:
        if self._accept("{"):
            digits, brace, _ = self.text[self.position :].partition("}")
            self.position += len(digits) + len(brace)
        else:
            digits = self.text[self.position : self.position + 2]
            self.position += 2
        try:
            return chr(int(digits, 16))
        except (ValueError, OverflowError):
            raise InvalidPattern("bad hexadecimal escape") from None

    def _class(self) -> int:
        is_negated = self._accept("^")
        bits, is_first = 0, True
        while is_first or self._peek() != "]":
            is_first = False
            bits |= self._class_item()
        self._take()
        return _ALL & ~bits if is_negated else bits

    def _class_item(self) -> int:
        if self._accept("[:"):
            name, _, _ = self.text[self.position :].partition(":]")
            self.position += len(name) + 2
            is_negated = name.startswith("^")
            if name.lstrip("^") not in _POSIX:
                raise InvalidPattern(f"unknown class [:{name}:]")
            chars = _POSIX[name.lstrip("^")]
            return _ALL & ~chars if is_negated else chars
        low = self._take()
        if low == "\\":
            escape = self._take()
            if escape in _ESCAPES or escape in _CONTROL:
                return self._escaped_chars(escape)
            low = self._hexadecimal() if escape == "x" else escape
        is_range = self._peek() == "-" and self.text[self.position + 1 : self.position + 2] != "]"
        if not is_range:
            return self._literal(low)
        self._take()
        high = self._take()
        if high == "\\":
            escape = self._take()
            high = self._hexadecimal() if escape == "x" else escape
        if high < low:
            raise InvalidPattern(f"bad range {low}-{high}")
        return sum(
            _BIT[char] for char in ALPHABET if low <= char <= high or self._folds(char, low, high)
        )

    def _folds(self, char: str, low: str, high: str) -> bool:
        return self.ignores_case and low <= char.swapcase() <= high
