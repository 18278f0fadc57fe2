"""The options of a tool as data, and how joptsimple reads them from the words of a call.

What is wrong with an option's value is told when the value is asked for, as joptsimple does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from kafkalite.tools.failures import Failure, WrongUse
from kafkalite.tools.java_numbers import INT, LONG, whole

VERSION = "4.3.1"


@dataclass(frozen=True, slots=True)
class Option:
    """One option.

    argument: what its argument is called in the help; None for a flag.
    type: of the argument: str, int or float; is_long: an int that Java calls Long.
    default: what it is when it is not given, shown in the help.
    without: options that it cannot be given with.
    choices: what it may be, in capital letters; given in any.
    choices_shown: these, if not as a list.
    only_with: options of which one has to be given with it."""

    name: str
    description: str
    argument: str | None = None
    type: type[Any] = str
    default: Any = None
    aliases: tuple[str, ...] = ()
    is_long: bool = False
    may_lack_argument: bool = False
    without: frozenset[str] = frozenset()
    choices: tuple[str, ...] = ()
    choices_shown: str = ""
    only_with: tuple[str, ...] = ()
    is_required: bool = False


    @property
    def kind(self) -> str:
        """What its argument is, as a help has it."""
        if self.choices:
            return self.choices_shown or f"[{','.join(self.choices)}]"
        if self.is_long:
            return "Long"
        return {str: "String", int: "Integer", float: "Double"}[self.type]


HELP = Option("help", "Print usage information.")
SHOW_VERSION = Option("version", "Display Kafka version.")


class Given:
    """What was given in one call, and the checks of it."""

    def __init__(self, options: Sequence[Option]) -> None:
        self.options = [*options, HELP, SHOW_VERSION]
        self._known = {name: each for each in self.options for name in (each.name, *each.aliases)}
        self._values: dict[str, list[str]] = {}
        self.named: list[str] = []  # the options, each time that one was given
        self.others: list[str] = []  # words that belong to no option

    def read(self, words: Sequence[str]) -> Given:
        rest = list(reversed(words))
        while rest:
            word = rest.pop()
            if word == "--":
                self.others += reversed(rest)
                break
            if not word.startswith("-") or word == "-":
                self.others.append(word)
                continue
            name, has_value, value = word.removeprefix("-").removeprefix("-").partition("=")
            is_short = not word.startswith("--") and name not in self._known
            self._take(name[:1] if is_short else name, value if has_value else None, rest)
        self._check_together()
        return self

    def _check_together(self) -> None:
        needed = (each.name for each in self.options if each.is_required)
        missing = [name for name in needed if not self.has(name)]
        if missing and not self.has(HELP.name):
            message = f"Missing required option(s) [{', '.join(missing)}]"
            raise Failure("joptsimple.MissingRequiredOptionsException", message)
        alone = [
            each.name
            for each in self.options
            if each.only_with and self.has(each.name) and not any(map(self.has, each.only_with))
        ]
        if alone and not self.has(HELP.name):
            names = ", ".join(alone)
            message = f"Option(s) [{names}] are unavailable given other options on the command line"
            raise Failure("joptsimple.UnavailableOptionException", message)

    def _take(self, name: str, value: str | None, rest: list[str]) -> None:
        option = self._known.get(name)
        if option is None:
            message = f"{name} is not a recognized option"
            raise Failure("joptsimple.UnrecognizedOptionException", message)
        self.named.append(option.name)
        values = self._values.setdefault(option.name, [])
        if option.argument is None:
            return
        if value is None and option.may_lack_argument:
            value = rest.pop() if rest and _may_be_its(option, rest[-1]) else None
        elif value is None:
            value = rest.pop() if rest else _lacks_argument(name)
        if value is not None:
            values.append(value)

    def has(self, name: str) -> bool:
        return name in self._values

    def one(self, name: str) -> Any:
        """The value of an option, or its default."""
        found = self.all(name)
        if len(found) > 1:
            message = f"Found multiple arguments for option {name}, but you asked for only one"
            raise Failure("joptsimple.MultipleArgumentsForOptionException", message)
        return found[0] if found else self._known[name].default

    def all(self, name: str) -> list[Any]:
        """The values of an option that may be given several times."""
        option = self._known[name]
        return [_converted(option, text) for text in self._values.get(name, [])]

    def require(self, *names: str) -> None:
        for name in names:
            if not self.has(name):
                raise WrongUse(f'Missing required argument "[{name}]"')

    def refuse(self, used: str, *names: str) -> None:
        """None of these goes with the used one, if that is used."""
        for name in names:
            if self.has(used) and self.has(name):
                raise WrongUse(f'Option "[{used}]" can\'t be used with option "[{name}]"')

    def refuse_together(self) -> None:
        """As the table of the options says which exclude each other."""
        for option in self.options:
            self.refuse(option.name, *sorted(option.without))


def _may_be_its(option: Option, word: str) -> bool:
    """Whether a word is the argument of an option that may lack one; a number may begin with -."""
    if option.type is str and word != "-" and word.startswith("-"):
        return False
    try:
        _converted(option, word)
    except Failure:
        return False
    return True


def _lacks_argument(name: str) -> NoReturn:
    message = f"Option {name} requires an argument"
    raise Failure("joptsimple.OptionMissingRequiredArgumentException", message)


def _converted(option: Option, text: str) -> Any:
    if option.choices:
        return _chosen(option, text)
    try:
        return whole(text, LONG if option.is_long else INT) if option.type is int else text
    except ValueError:
        message = f"Cannot parse argument '{text}' of option {option.name}"
        number = Failure("java.lang.NumberFormatException", f'For input string: "{text}"')
        reflection = "joptsimple.internal.ReflectionException"
        cause = Failure(reflection, f"{number.java}: {number.message}", number)
        raise Failure("joptsimple.OptionArgumentConversionException", message, cause) from None


def _chosen(option: Option, text: str) -> str:
    if text.upper() in option.choices:
        return text.upper()
    message = f"Cannot parse argument '{text}' of option {option.name}"
    said = f"Value [{text}] is not one of [{option.kind}]"
    cause = Failure("joptsimple.ValueConversionException", said)
    raise Failure("joptsimple.OptionArgumentConversionException", message, cause)
