"""Files of settings that are given on the command line, a broker's or a client's.

Owns how such a file is read, and what a person is told of one that cannot be.
"""

from __future__ import annotations

import click

from kafkalite.config import MalformedProperties, parse_properties


class PropertiesFile(click.ParamType[dict[str, str]]):
    """A file of properties: UTF-8, with a mark of that at its beginning or not, or, as Java reads
    it, Latin-1; - is standard input."""

    name = "FILE"

    def convert(
        self, value: str | dict[str, str], param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, str]:
        if isinstance(value, dict):
            return value
        try:
            with click.File("rb").convert(value, param, ctx) as file:
                return parse_properties(_text_of(file.read()))
        except (OSError, MalformedProperties) as error:
            raise click.ClickException(f"{value}, {error}") from None


def _text_of(data: bytes) -> str:
    if b"\0" in data:
        raise MalformedProperties("this is no text but a binary file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")
