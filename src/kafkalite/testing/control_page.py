"""The page that shows what may be asked over HTTP: one file, which fetches nothing from anywhere.

Owns its looks; what it tells are the fields of control_shape.py.
"""

from __future__ import annotations

from html import escape

from kafkalite import __version__
from kafkalite.testing.control_shape import Endpoint, Field

_HEAD = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>kafkalite's controls</title>
<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">
<style>
:root {{ color-scheme: light dark }}
body {{ font: 1rem/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto }}
code, summary b {{ font-family: ui-monospace, monospace }}
details {{ border-top: 1px solid #8884; padding: .4rem 0 }}
summary {{ cursor: pointer }}
summary b {{ display: inline-block; min-width: 5rem }}
ul {{ margin: .2rem 0 }}
</style></head><body>
<h1>kafkalite's controls</h1>
<p>kafkalite {escape(__version__)}. Requests and answers are JSON; an error says in
<code>error</code> why, and what to do. For programs: <a href="openapi.json">openapi.json</a>.</p>
"""


def page(endpoints: tuple[Endpoint, ...]) -> str:
    return _HEAD + "".join(map(_endpoint, endpoints)) + "</body></html>\n"


def _endpoint(each: Endpoint) -> str:
    parts = (("Query", each.query), ("Body", each.body), ("Answer", each.answer))
    tables = "".join(f"<h4>{name}</h4>{_fields(fields)}" for name, fields in parts if fields)
    return (
        f"<details><summary><b>{each.method}</b> <code>{escape(each.path)}</code> "
        f"{escape(each.about)}</summary>{tables}</details>\n"
    )


def _fields(fields: tuple[Field, ...]) -> str:
    return f"<ul>{''.join(map(_field, fields))}</ul>"


def _field(field: Field) -> str:
    types = " or ".join(field.types.split()) or "any"
    facts = [types, *(["required"] if field.is_required else [])]
    if field.default is not None:
        facts.append(f"{field.default!r} unless it is given")
    if field.choices:
        facts.append(f"one of {', '.join(field.choices)}")
    below = _fields(field.fields) if field.fields else ""
    about = f"<code>{escape(field.name)}</code> ({escape(', '.join(facts))}): "
    return f"<li>{about}{escape(field.about)}{below}</li>"
