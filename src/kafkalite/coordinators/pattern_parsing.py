"""Regular expressions in RE2's syntax, read into an automaton of a bounded size.

Owns the grammar and what its classes of characters are. Matches nothing itself: `patterns` does.
Invariant: a character class is a set of the characters that the texts to match have, as bits.
"""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Callable, Iterable
from enum import Enum

from kafkalite.env.dataclasses import dataclass, field

MAX_STATES = 5_000
MAX_REPEAT = 1_000  # as RE2
MAX_NESTING = 100
MAX_LENGTH = 4_096

# What is wrong, in RE2's words, which clients are told.
_NO_CLASS = "invalid character class range"
_NO_ESCAPE = "invalid escape sequence"
_NO_FLAG = "invalid or unsupported Perl syntax"
_NOTHING_ESCAPED = "trailing backslash at end of expression"

TOPIC_CHARACTERS = string.ascii_letters + string.digits + "._-"


class InvalidPattern(Exception):
    """The expression is none, or has something that a linear-time engine cannot do."""


class Look(Enum):
    """What a position must be; it reads no character."""

    BEGIN = "begin"
    END = "end"
    LINE_BEGIN = "begin of a line"
    LINE_END = "end of a line"
    BOUNDARY = "word boundary"
    INSIDE = "no word boundary"


class Alphabet:
    """The characters that the texts have, each a bit; a class is what some of them add up to."""

    def __init__(self, characters: Iterable[str]) -> None:
        self.bit = {char: 1 << index for index, char in enumerate(dict.fromkeys(characters))}
        self.all = (1 << len(self.bit)) - 1

    def of(self, characters: str) -> int:
        return sum(self.bit.get(char, 0) for char in set(characters))

    def where(self, holds: Callable[[str], bool]) -> int:
        return sum(bit for char, bit in self.bit.items() if holds(char))


TOPIC_ALPHABET = Alphabet(TOPIC_CHARACTERS)
WORD = string.ascii_letters + string.digits + "_"
_ESCAPES = {"d": string.digits, "w": WORD, "s": "\t\n\f\r "}
_POSIX = {
    "alnum": string.ascii_letters + string.digits,
    "alpha": string.ascii_letters,
    "ascii": "".join(map(chr, range(128))),
    "blank": "\t ",
    "cntrl": "".join(map(chr, (*range(32), 127))),
    "digit": string.digits,
    "graph": "".join(map(chr, range(33, 127))),
    "lower": string.ascii_lowercase,
    "print": "".join(map(chr, range(32, 127))),
    "punct": string.punctuation,
    "space": "\t\n\v\f\r ",
    "upper": string.ascii_uppercase,
    "word": WORD,
    "xdigit": string.hexdigits,
}
_LOOKS = {"A": Look.BEGIN, "z": Look.END, "b": Look.BOUNDARY, "B": Look.INSIDE}
_CONTROL = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "a": "\a"}
_CATEGORIES = frozenset(
    "C Cc Cf Co Cs L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So"
    " Z Zl Zp Zs".split()
)
# Scripts, by how the names of their characters begin.
_SCRIPTS = {
    **{name: name.upper() for name in (
        "Arabic", "Armenian", "Bengali", "Cyrillic", "Devanagari", "Ethiopic", "Georgian", "Greek",
        "Gujarati", "Gurmukhi", "Hangul", "Hebrew", "Hiragana", "Kannada", "Katakana", "Khmer",
        "Lao", "Latin", "Malayalam", "Mongolian", "Myanmar", "Sinhala", "Tamil", "Telugu", "Thai",
        "Tibetan",
    )},
    "Han": "CJK UNIFIED IDEOGRAPH",
}  # fmt: skip


# -- the automaton ---------------------------------------------------------------------------


@dataclass(slots=True)
class State:
    """Goes on over one character of `chars`, or over nothing where `look` holds."""

    chars: int = 0
    next: int = -1
    empty: list[int] = field(default_factory=list)
    look: Look | None = None


@dataclass(slots=True)
class Piece:
    start: int
    end: int


def _is_of(char: str, category: str, *, folds: bool) -> bool:
    same = (char, char.swapcase()) if folds else (char,)
    return any(unicodedata.category(one[0]).startswith(category) for one in same)


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


class Parser:
    """Recursive descent; builds the automaton as it reads."""

    def __init__(self, text: str, alphabet: Alphabet) -> None:
        self.text = _unquoted(text)
        self.alphabet = alphabet
        self.position = 0
        self.states: list[State] = []
        self.flags: frozenset[str] = frozenset()
        self.depth = 0
        self.names: dict[str, int] = {}  # of groups, and where each is

    def parse(self) -> Piece:
        piece = self._alternatives()
        if self.position < len(self.text):
            raise InvalidPattern("regexp/syntax: internal error")
        return piece

    # Reading.

    def _peek(self) -> str:
        return self.text[self.position : self.position + 1]

    def _take(self, wrong: str = "missing closing ]") -> str:
        char = self._peek()
        if not char:
            raise InvalidPattern(wrong)
        self.position += 1
        return char

    def _accept(self, text: str) -> bool:
        if self.text.startswith(text, self.position):
            self.position += len(text)
            return True
        return False

    # Building.

    def _new(self, state: State) -> int:
        if len(self.states) >= MAX_STATES:
            raise InvalidPattern("expression too large")
        self.states.append(state)
        return len(self.states) - 1

    def _char(self, chars: int) -> Piece:
        end = self._new(State())
        return Piece(self._new(State(chars, end)), end)

    def _nothing(self, look: Look | None = None) -> Piece:
        end = self._new(State())
        return Piece(self._new(State(empty=[end], look=look)), end)

    # Grammar.

    def _alternatives(self) -> Piece:
        flags = self.flags
        branches = [self._sequence()]
        while self._accept("|"):
            branches.append(self._sequence())
        self.flags = flags
        if len(branches) == 1:
            return branches[0]
        start = self._new(State(empty=[one.start for one in branches]))
        end = self._new(State())
        for one in branches:
            self.states[one.end].empty.append(end)
        return Piece(start, end)

    def _sequence(self) -> Piece:
        whole = self._nothing()
        while self._peek() not in ("", "|", ")"):
            first = self.position
            flags = self.flags
            piece = self._atom()
            piece = self._repeated(piece, first, flags)
            self.states[whole.end].empty.append(piece.start)
            whole.end = piece.end
        return whole

    def _repeated(self, piece: Piece, first: int, flags: frozenset[str]) -> Piece:
        last = self.position
        bounds = self._bounds()
        if bounds is None:
            return piece
        self._accept("?")  # lazy or not: the whole name has to match
        if self._bounds() is not None:
            raise InvalidPattern("invalid nested repetition operator")
        least, most = bounds
        copies = max(least, most or 0, 1) - 1
        again = [self._again(first, last, flags) for _ in range(copies)]
        return self._repeat([piece, *again], least, most)

    def _again(self, first: int, last: int, flags: frozenset[str]) -> Piece:
        """Reads the atom at `first` once more: a copy of its part of the automaton."""
        here, self.position = self.position, first
        present, self.flags = self.flags, flags
        piece = self._atom()
        assert self.position == last, "an atom reads the same twice"
        self.position, self.flags = here, present
        return piece

    def _repeat(self, pieces: list[Piece], least: int, most: int | None) -> Piece:
        """The first `least` are needed; the rest may be left out, the last may loop."""
        end = self._new(State())
        start = self._new(State(empty=[pieces[0].start]))
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
        return Piece(start, end)

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
            raise InvalidPattern("invalid repeat count")
        return least, most

    def _is_count_before(self, position: int) -> bool:
        self.position = position - 1
        is_count = self._bounds() is not None
        self.position = position
        return is_count

    def _atom(self) -> Piece:
        char = self._take()
        if char in "*+?" or (char == "{" and self._is_count_before(self.position)):
            raise InvalidPattern("missing argument to repetition operator")
        if char == "(":
            return self._group()
        if char == "[":
            return self._char(self._class())
        if char == ".":
            is_any = "s" in self.flags
            return self._char(self.alphabet.all & ~(0 if is_any else self.alphabet.of("\n")))
        if char == "^":
            return self._nothing(Look.LINE_BEGIN if "m" in self.flags else Look.BEGIN)
        if char == "$":
            return self._nothing(Look.LINE_END if "m" in self.flags else Look.END)
        if char == "\\":
            return self._escape()
        return self._char(self._literal(char))

    def _literal(self, char: str) -> int:
        """A character that no text has matches nothing, and is no error."""
        if "i" not in self.flags:
            return self.alphabet.bit.get(char, 0)
        bit = self.alphabet.bit
        return bit.get(char, 0) | bit.get(char.lower(), 0) | bit.get(char.upper(), 0)

    def _group(self) -> Piece:
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise InvalidPattern("expression nests too deep")
        flags = self.flags
        if self._accept("?"):
            if self._accept("P<") or (self._peek() == "<" and self._names_group()):
                name, _, _ = self.text[self.position :].partition(">")
                if not name.isidentifier():
                    raise InvalidPattern("invalid named capture")
                if self.names.setdefault(name, self.position) != self.position:
                    raise InvalidPattern("duplicate capture group name")
                self.position += len(name) + 1
            elif self._flags():
                self.depth -= 1
                return self._nothing()
        piece = self._alternatives()
        if not self._accept(")"):
            raise InvalidPattern("missing closing )")
        self.flags = flags
        self.depth -= 1
        return piece

    def _names_group(self) -> bool:
        if self.text[self.position + 1 : self.position + 2] in ("=", "!"):
            raise InvalidPattern("invalid named capture")
        return self._accept("<")

    def _flags(self) -> bool:
        """Flags until `:` (for this group) or `)` (for what follows, then true)."""
        is_on = True
        while True:
            char = self._take(_NO_FLAG)
            if char == ":":
                return False
            if char == ")":
                return True
            if char == "-":
                is_on = False
            elif char in "imsU":
                self.flags = self.flags | {char} if is_on else self.flags - {char}
            else:
                raise InvalidPattern(_NO_FLAG)

    def _escape(self) -> Piece:
        char = self._take(_NOTHING_ESCAPED)
        if char in _LOOKS:
            return self._nothing(_LOOKS[char])
        return self._char(self._escaped_chars(char))

    def _escaped_chars(self, char: str) -> int:
        if char.lower() in _ESCAPES:
            bits = self.alphabet.of(_ESCAPES[char.lower()])
            return bits if char.islower() else self.alphabet.all & ~bits
        if char in "pP":
            return self._category(is_negated=char == "P")
        return self._literal(self._escaped_char(char))

    def _escaped_char(self, char: str) -> str:
        if char == "x":
            return self._hexadecimal()
        if char in _CONTROL:
            return _CONTROL[char]
        if char in "01234567":
            return self._octal(char)
        if char.isalnum():
            raise InvalidPattern(_NO_ESCAPE)
        return char

    def _octal(self, first: str) -> str:
        """A digit that is not 0 and has no other behind it would be a reference back."""
        following = self.text[self.position : self.position + 2]
        digits = first
        for digit in following:
            if digit not in string.octdigits:
                break
            digits += digit
        if first != "0" and len(digits) == 1:
            raise InvalidPattern(_NO_ESCAPE)
        self.position += len(digits) - 1
        return chr(int(digits, 8))

    def _category(self, *, is_negated: bool) -> int:
        if self._accept("{"):
            name, brace, _ = self.text[self.position :].partition("}")
            if not brace:
                raise InvalidPattern(_NO_CLASS)
            self.position += len(name) + 1
        else:
            name = self._take(_NO_CLASS)
        if name.startswith("^"):
            name, is_negated = name[1:], not is_negated
        bits = self._category_bits(name)
        return self.alphabet.all & ~bits if is_negated else bits

    def _category_bits(self, name: str) -> int:
        if name == "Any":
            return self.alphabet.all
        if name in _CATEGORIES:
            folds = "i" in self.flags
            return self.alphabet.where(lambda char: _is_of(char, name, folds=folds))
        if name in _SCRIPTS:
            script = _SCRIPTS[name]
            return self.alphabet.where(lambda char: unicodedata.name(char, "").startswith(script))
        raise InvalidPattern(_NO_CLASS)

    def _hexadecimal(self) -> str:
        if self._accept("{"):
            digits, brace, _ = self.text[self.position :].partition("}")
            self.position += len(digits) + len(brace)
        else:
            digits = self.text[self.position : self.position + 2]
            self.position += 2
        try:
            return chr(int(digits, 16) if digits.isalnum() else -1)
        except (ValueError, OverflowError):
            raise InvalidPattern(_NO_ESCAPE) from None

    def _class(self) -> int:
        is_negated = self._accept("^")
        bits, is_first = 0, True
        while is_first or self._peek() != "]":
            is_first = False
            bits |= self._class_item()
        self._take()
        return self.alphabet.all & ~bits if is_negated else bits

    def _class_item(self) -> int:
        if self._accept("[:"):
            name, _, _ = self.text[self.position :].partition(":]")
            self.position += len(name) + 2
            is_negated = name.startswith("^")
            if name.lstrip("^") not in _POSIX:
                raise InvalidPattern(_NO_CLASS)
            chars = self.alphabet.of(_POSIX[name.lstrip("^")])
            return self.alphabet.all & ~chars if is_negated else chars
        low = self._take()
        if low == "\\":
            escape = self._take(_NOTHING_ESCAPED)
            if escape in "pP" or escape.lower() in _ESCAPES:
                return self._escaped_chars(escape)
            low = self._escaped_char(escape)
        is_range = self._peek() == "-" and self.text[self.position + 1 : self.position + 2] != "]"
        if not is_range:
            return self._literal(low)
        self._take()
        high = self._take()
        if high == "\\":
            high = self._escaped_char(self._take(_NOTHING_ESCAPED))
        if high < low:
            raise InvalidPattern(_NO_CLASS)
        folds = "i" in self.flags
        return self.alphabet.where(
            lambda char: low <= char <= high or (folds and low <= char.swapcase() <= high)
        )
