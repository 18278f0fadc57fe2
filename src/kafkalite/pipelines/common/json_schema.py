"""JSON values held against JSON Schemas: whether one is of its schema, and what is the matter else.

Owns schemas as one text, with those that they refer to, and the answer in one sentence. Nothing is
fetched while a value is looked at.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from kafkalite.pipelines.common.outcomes import PipelineError

MISSING = "JSON Schema needs jsonschema: pip install 'kafkalite[json-schema]'"
LONGEST = 200


def bundle(schema: Any, others: Mapping[str, Any]) -> str:
    """A schema with those that it refers to, by the names that it has for them."""
    return json.dumps({"schema": schema, "others": others})


def fault_of_schema(text: str) -> str | None:
    """Why a text is no JSON Schema."""
    try:
        from jsonschema import validators
        from jsonschema.exceptions import SchemaError
    except ImportError:
        raise PipelineError(MISSING) from None
    try:
        schema = json.loads(text)
        validators.validator_for(schema, validators.Draft202012Validator).check_schema(schema)
    except (ValueError, RecursionError) as error:
        return str(error) or type(error).__name__
    except SchemaError as error:
        return _short(error.message)
    return None


def misfit(schemas: Mapping[int, str]) -> Callable[[int | None, str | None], str | None]:
    """A function that says of a value why it is not of the schema of this id.

    Spark hands it to processes of its own, each of which makes its validators once.
    """
    validators: dict[int, Any] = {}

    def said(number: int | None, text: str | None) -> str | None:
        if number is None or text is None or number not in schemas:
            return None
        if number not in validators:
            validators[number] = _validator(schemas[number])
        return _fault(validators[number], text)

    return said


def _validator(bundled: str) -> Any:
    from jsonschema import validators
    from referencing import Registry, Resource
    from referencing.jsonschema import DRAFT202012

    given = json.loads(bundled)
    # Of its own: by default one fetches what a schema refers to from wherever it says.
    registry: Any = Registry()
    for name, other in given["others"].items():
        resource: Any = Resource.from_contents(other, default_specification=DRAFT202012)
        registry = registry.with_resource(name, resource)
    kind = validators.validator_for(given["schema"], validators.Draft202012Validator)
    return kind(given["schema"], registry=registry)


def _fault(validator: Any, text: str) -> str | None:
    from jsonschema.exceptions import best_match
    from referencing.exceptions import Unresolvable

    try:
        found = best_match(validator.iter_errors(json.loads(text)))
    except Unresolvable as error:
        return f"its schema needs {error.ref}, which is nowhere"
    except (ValueError, RecursionError) as error:
        return _short(str(error) or type(error).__name__)
    return None if found is None else _short(f"{found.json_path}: {found.message}")


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
