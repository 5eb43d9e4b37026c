"""The shape of an answer, as given on the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from borrador.cli.prompt import require_utf8
from borrador.errors import UsageError
from borrador.structure import MAX_CHARACTERS
from borrador.types import SamplingParams

_MAX_BYTES = 4 * MAX_CHARACTERS

JsonSchemaOption = Annotated[
    str | None,
    typer.Option("--json-schema", metavar="FILE|JSON", help="Write JSON that fits this schema; {} allows any JSON."),
]
RegexOption = Annotated[
    str | None,
    typer.Option("--regex", metavar="REGEX", help="Write text that this regular expression matches as a whole."),
]
GrammarOption = Annotated[
    str | None, typer.Option("--grammar", metavar="FILE", help="Write text that this grammar in Lark's syntax allows.")
]


@dataclass(frozen=True, kw_only=True)
class ShapeOptions:
    """What an answer must fit; at most one of these."""

    json_schema: JsonSchemaOption = None
    regex: RegexOption = None
    grammar: GrammarOption = None

    def as_params(self) -> dict[str, Any]:
        """Arguments of SamplingParams. Raises UsageError as `read_shape` does."""
        return {
            "json_schema": read_schema(self.json_schema),
            "regex": self.regex,
            "grammar": read_shape("--grammar", self.grammar),
        }


def read_schema(argument: str | None) -> str | None:
    """A JSON schema: the argument itself where it begins with a brace, else the file it names."""
    if argument is None or argument.lstrip().startswith("{"):
        require_utf8("--json-schema", argument)
        return argument
    return read_shape("--json-schema", argument)


def read_shape(option: str, path: str | None) -> str | None:
    """The text of a file.

    Raises:
        UsageError: it cannot be read, is larger than 1 MiB, or is not UTF-8.
    """
    if path is None:
        return None
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - names that hold NUL or are too long are errors here too
            content = file.read(_MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a file name"
        raise UsageError(
            f"{option} must name a file that can be read, got {path!r:.80}: {reason}", "Check it."
        ) from None
    if len(content) > _MAX_BYTES:
        raise UsageError(f"the file of {option} may hold at most {_MAX_BYTES} bytes, it holds more", "Simplify it.")
    try:
        return content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError:
        raise UsageError(f"the file of {option} must be UTF-8, and {path!r:.80} is not", "Convert it.") from None


def require_enforceable(params: SamplingParams) -> None:
    """Raise UsageError for a shape that cannot be enforced, before a model is loaded for it."""
    if params.structured:
        from borrador.grammar.source import source_of

        source_of(params)
