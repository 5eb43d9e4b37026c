"""The reference of the server's API, written from the document that the server itself gives at `/openapi.json`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from website.commands import code_cell, text_cell

from borrador.server.openapi import describe

Schema = Mapping[str, Any]

_INTRODUCTION = """# HTTP reference

This page is generated from the document that a server gives at `/openapi.json`. What the
fields do is in [Server API](server.md). Null is the same as leaving a field out.
"""
_BOUNDS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "above {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "below {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {}",
    "maxItems": "at most {}",
    "maxProperties": "at most {}",
}


def render() -> str:
    """The page, as Markdown."""
    document = describe()
    operations = [
        line
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        for line in _describe_operation(f"{method.upper()} {path}", operation)
    ]
    objects = [
        line for name, schema in document["components"]["schemas"].items() for line in _describe_object(name, schema)
    ]
    return "\n".join([_INTRODUCTION, "## Requests\n", *operations, "## Objects\n", *objects])


def _describe_operation(head: str, operation: Schema) -> Iterator[str]:
    yield f"### `{head}`\n"
    yield f"{operation['summary']}\n"
    if body := operation.get("requestBody"):
        yield f"Sent: {_content(body['content'])}.\n"
    yield "| status | meaning | answer |\n|---|---|---|"
    for status, response in operation["responses"].items():
        yield f"| {status} | {text_cell(response['description'])} | {_content(response['content'])} |"
    yield ""


def _content(content: Schema) -> str:
    return " or ".join(
        describe_type(each["schema"]) if kind == "application/json" else "server-sent events"
        for kind, each in content.items()
    )


def _describe_object(name: str, schema: Schema) -> Iterator[str]:
    yield f"### {name}\n"
    if description := schema.get("description"):
        yield f"{text_cell(description)}\n"
    required = schema.get("required", ())
    yield "| field | type | meaning |\n|---|---|---|"
    for field, value in schema.get("properties", {}).items():
        needed = "**Required.** " if field in required else ""
        yield f"| {code_cell(field)} | {describe_type(value)} | {needed}{text_cell(value.get('description', ''))} |"
    yield ""


def describe_type(schema: Schema) -> str:
    """What a value may be, in words; other objects are links to their sections."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " or ".join(describe_type(choice) for choice in schema[key] if choice.get("type") != "null")
    if "const" in schema:
        return code_cell(str(schema["const"]))
    if "enum" in schema:
        return ", ".join(code_cell(str(value)) for value in schema["enum"])
    return ", ".join([_name_type(schema), *_bounds(schema)])


def _name_type(schema: Schema) -> str:
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {describe_type(schema.get('items', {}))}"
    values = schema.get("additionalProperties")
    if kind == "object" and isinstance(values, Mapping):
        return f"object of {describe_type(values)}"
    return str(kind)


def _bounds(schema: Schema) -> Iterator[str]:
    for key, words in _BOUNDS.items():
        if key in schema:
            yield words.format(schema[key])
