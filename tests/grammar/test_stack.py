"""What the matching library compiles by recursion must not end the process."""

from __future__ import annotations

import threading

import pytest
from tests.grammar.shapes import allowed_after, open_matcher
from tests.scripted import ids

from borrador.errors import UsageError
from borrador.grammar.source import source_of
from borrador.grammar.stack import with_deep_stack
from borrador.types import SamplingParams


def test_results_and_errors_come_back_and_the_usual_size_stays() -> None:
    before = threading.stack_size()
    assert with_deep_stack(lambda: threading.current_thread() is threading.main_thread()) is False
    with pytest.raises(UsageError, match="too deep"):
        with_deep_stack(lambda: (_ for _ in ()).throw(UsageError("too deep")))
    assert threading.stack_size() == before


def test_a_grammar_of_thousands_of_rules_in_a_row_is_followed() -> None:
    chain = "".join(f"r{i}: r{i + 1}\n" for i in range(12_000))
    matcher = open_matcher(SamplingParams(grammar=f'start: r0\n{chain}r12000: "a"'))
    assert allowed_after(matcher, ()) == set(ids("a"))


def test_a_schema_of_thousands_of_references_in_a_row_is_read() -> None:
    chain = {f"a{i}": {"$ref": f"#/$defs/a{i + 1}"} for i in range(4_000)}
    schema = {"$ref": "#/$defs/a0", "$defs": {**chain, "a4000": {"type": "integer"}}}
    found = source_of(SamplingParams(json_schema=schema))
    assert found is not None
    assert found[0] == "json_schema"
