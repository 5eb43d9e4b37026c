from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Borrador
from tests.cli.scripted_llm import ScriptedLLM

from borrador.cli.answer import describe_stats
from borrador.types import GenerationStats

SCHEMA = '{"type": "object", "properties": {"é": {"type": "integer"}}}'


def test_a_schema_is_given_in_place_or_in_a_file(borrador: Borrador, scripted: ScriptedLLM, tmp_path: Path) -> None:
    file = tmp_path / "schema.json"
    file.write_text("\ufeff" + SCHEMA, encoding="utf-8")
    for argument in (SCHEMA, f" {SCHEMA}", str(file)):
        assert borrador("run", "--json-schema", argument, "Hello").code == 0
    assert [params.json_schema for params in scripted.params] == [json.dumps(json.loads(SCHEMA))] * 3


def test_a_regular_expression_is_given_in_place_and_a_grammar_in_a_file(
    borrador: Borrador, scripted: ScriptedLLM, tmp_path: Path
) -> None:
    file = tmp_path / "answer.lark"
    file.write_text('start: "yes" | "no"\n')
    assert borrador("run", "--regex", "yes|no", "Well?").code == 0
    assert borrador("run", "--grammar", str(file), "Well?").code == 0
    assert [(params.regex, params.grammar) for params in scripted.params] == [
        ("yes|no", None),
        (None, 'start: "yes" | "no"\n'),
    ]


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        (("--regex", "(a"), "regex cannot be enforced: unclosed group"),
        (("--regex", "\udce4"), "regex must be valid Unicode"),
        (("--json-schema", '{"type": "strin"}'), "json_schema cannot be enforced: Invalid type: strin"),
        (("--json-schema", '{"type": '), "json_schema must be JSON: Expecting value"),
        (("--json-schema", '{"a": "\udce4"}'), "--json-schema must be UTF-8"),
        (("--json-schema", "none.json"), "--json-schema must name a file that can be read, got 'none.json': No such"),
        (("--grammar", "none\0.lark"), "--grammar must name a file that can be read, got 'none\\x00.lark': it is no"),
        (("--grammar", "latin-1"), "the file of --grammar must be UTF-8, and 'latin-1' is not"),
        (("--grammar", "large"), "the file of --grammar may hold at most 1048576 bytes"),
        (("--grammar", "."), "--grammar must name a file that can be read, got '.': Is a directory"),
        (("--grammar", "/dev/null"), "grammar must be text that is not empty"),
        (("--regex", "a", "--json-schema", "{}"), "at most one shape, got json_schema and regex"),
    ],
)
def test_shapes_that_are_no_shapes_end_with_one_sentence(
    borrador: Borrador, words: tuple[str, ...], rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("latin-1").write_bytes(b'start: "\xe4"')
    Path("large").write_bytes(b" " * (2**20 + 1))
    result = borrador("run", *words, "Hello")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("error: ")
    assert rule in result.err
    assert [line.split(":")[0] for line in result.err.splitlines()] == ["error", "hint"]


def test_the_footer_counts_the_tokens_of_the_grammar() -> None:
    stats = GenerationStats(completion_tokens=30, grammar_tokens=12, target_passes=10)
    assert describe_stats(stats).startswith("30 tokens, 12 of them from the grammar, ")
