"""JSON documents held against the schemas that ``overhead-lens schema`` publishes."""

from __future__ import annotations

import functools
import json
from typing import Any, NoReturn

import jsonschema

from overhead_lens.documents.registry import SUMMARIES, json_schema, schema_id


def validated(text: str) -> dict[str, Any]:
    """The document that a command printed, sound by the schema that it names.

    Raises:
        jsonschema.ValidationError: It is not what its schema says.
        ValueError: It is no JSON, which has no NaN and no infinity either.
    """
    document: dict[str, Any] = json.loads(text, parse_constant=_refuse)
    _validators()[document["schema"]].validate(document)
    return document


@functools.cache
def _validators() -> dict[str, jsonschema.Draft202012Validator]:
    return {schema_id(name): jsonschema.Draft202012Validator(json_schema(name)) for name in SUMMARIES}


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"JSON has no {constant}")
