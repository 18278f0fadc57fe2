"""Tools that take a command before their options, with help and complaints as argparse4j has them.

Owns how words are read; `subcommand_help` owns what is printed of the options.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from kafkalite.tools import subcommand_help
from kafkalite.tools.arguments import Action, Argument, Command, Program
from kafkalite.tools.java_numbers import INT, LONG, SHORT, whole


class WrongWords(Exception):
    """What is wrong with the words, behind the usage."""


class _Ends(Exception):
    """An argument that ends the tool."""


def tell_terse(wrong: str) -> None:
    print(f"Command line error: {wrong}. Type --help for help.", end="", file=sys.stderr)


class Parser(Program):
    __slots__ = ()

    def read(self, words: Sequence[str]) -> tuple[str, dict[str, Any]] | int:
        """The command, and the values of its options; or what the tool ends with, when that was
        said instead."""
        command = None
        try:
            found, rest = _values(self.before, words)
            command = self._command(rest)
            more, others = _values(command, rest[1:])
            if others:
                raise WrongWords(f"unrecognized arguments: '{' '.join(others)}'")
            _check_needed(command, more)
            name, command = command.name, None
            _check_needed(self.before, found)
            return name, found | more
        except _Ends as end:
            return self._end(end.args[0], command)
        except WrongWords as wrong:
            self._complain(str(wrong), command)
            return 1

    def _command(self, words: Sequence[str]) -> Command:
        if not words:
            raise WrongWords("too few arguments")
        for each in self.commands:
            if each.name == words[0]:
                return each
        names = ", ".join(f"'{each.name}'" for each in self.commands)
        raise WrongWords(f"invalid choice: '{words[0]}' (choose from {names})")

    def _end(self, action: Action, command: Command | None) -> int:
        if action is Action.VERSION:
            print(subcommand_help.VERSION_AND_COMMIT)
            return 0
        print(subcommand_help.of_command(self, command) if command else subcommand_help.of(self),
              end="")  # fmt: skip
        return self.help_code

    def _complain(self, wrong: str, command: Command | None) -> None:
        if self.is_terse:
            tell_terse(wrong)
            return
        print(subcommand_help.complaint(self, command, wrong), end="", file=sys.stderr)


_NUMBER = re.compile(r"-?\d+")


def _values(command: Command, words: Sequence[str]) -> tuple[dict[str, Any], Sequence[str]]:
    """What is given up to the first word that belongs to no option, and the words from that on."""
    by_flag = {flag: each for each in command.options for flag in each.flags}
    found: dict[str, Any] = {
        each.name: False for each in command.arguments if each.action is Action.STORE_TRUE
    }
    given: list[Argument] = []
    rest = list(reversed(words))
    while rest and rest[-1].startswith("-"):
        argument, value = _argument(by_flag, rest.pop())
        if argument.action.ends:
            raise _Ends(argument.action)
        _check_alone(argument, given)
        given.append(argument)
        if argument.action is Action.STORE_TRUE:
            found[argument.name] = True
            continue
        if value is None and (not rest or _is_option(rest[-1])):
            raise WrongWords(f"argument {_named(argument)}: expected one argument")
        worth = _value(argument, rest.pop() if value is None else value)
        if argument.action is Action.APPEND:
            found.setdefault(argument.name, []).append(worth)
        else:
            found[argument.name] = worth
    return found, rest[::-1]


def _is_option(word: str) -> bool:
    return len(word) > 1 and word.startswith("-") and not _NUMBER.fullmatch(word)


def _named(argument: Argument) -> str:
    return "/".join(argument.flags)


def _argument(by_flag: dict[str, Argument], word: str) -> tuple[Argument, str | None]:
    """What a word names, by its beginning if need be, and the value that is in the word itself."""
    flag, has_value, value = word.partition("=")
    if flag in by_flag:
        return by_flag[flag], value if has_value else None
    if word[:2] in by_flag and not word.startswith("--"):
        return by_flag[word[:2]], word[2:]
    like = sorted(each for each in by_flag if flag.startswith("--") and each.startswith(flag))
    if len(like) > 1:
        raise WrongWords(f"ambiguous option: {flag} could match {', '.join(like)}")
    if not like:
        raise WrongWords(f"unrecognized arguments: '{word}'")
    return by_flag[like[0]], value if has_value else None


def _check_alone(argument: Argument, given: Sequence[Argument]) -> None:
    for other in given:
        if argument.exclusive and other.exclusive is argument.exclusive and other != argument:
            raise WrongWords(
                f"argument {_named(argument)}: not allowed with argument {_named(other)}"
            )


def _check_needed(command: Command, given: Mapping[str, Any]) -> None:
    for each in sorted(command.arguments, key=lambda each: each.name):
        if each.is_required and each.name not in given:
            raise WrongWords(f"argument {_named(each)} is required")
    for group in dict.fromkeys(each.exclusive for each in command.arguments):
        members = [each for each in command.arguments if group and each.exclusive is group]
        if group and group.is_required and not any(each.name in given for each in members):
            names = " ".join(_named(each) for each in members)
            raise WrongWords(f"one of the arguments {names} is required")


_JAVA_NUMBERS = {SHORT: "Short", INT: "Integer", LONG: "Long"}


def _value(argument: Argument, text: str) -> Any:
    if argument.type is not int:
        return argument.type(text)
    try:
        return whole(text, argument.bits)
    except ValueError:
        kind = _JAVA_NUMBERS[argument.bits]
        why = _why_no_number(text, argument.bits)
    raise WrongWords(f"argument {_named(argument)}: could not convert '{text}' to {kind} ({why})")


def _why_no_number(text: str, bits: int) -> str:
    """Java reads a short as an int, and looks at its size then."""
    try:
        whole(text)
    except ValueError:
        bits = INT
    if bits == SHORT:
        return f'Value out of range. Value:"{text}" Radix:10'
    return f'For input string: "{text}"'
