"""Whatever is sent, the server answers with what was asked for or with an error that blames the request."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.server.conftest import ANSWER
from tests.server.rig import Rig, serve
from tests.server.test_fields import CHAT, COMPLETION
from tests.server.writing import oracle, writing_llm

PATHS = ["/v1/chat/completions", "/v1/completions", "/tokenize", "/detokenize"]
NUMBERS = [0, -1, 1, 2**31, 2**63, 2**64, -(2**63) - 1, 1e308, 1e-320, 0.5]
TEXTS = ["", "a", "\u0000", "\ud83d", "🟥", "x" * 300, "null", "<|im_start|>", "<tool_call>", "../../x"]

scalars = st.one_of(
    st.none(), st.booleans(), st.sampled_from(NUMBERS), st.integers(), st.floats(), st.sampled_from(TEXTS), st.text()
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
)


def fields_of(table: dict[str, tuple[list[Any], list[Any]]]) -> st.SearchStrategy[dict[str, Any]]:
    """Bodies whose fields hold valid, invalid or arbitrary values."""
    known = {name: st.sampled_from([*valid, *invalid]) | values for name, (valid, invalid) in table.items()}
    return st.fixed_dictionaries({}, optional=known)


bodies = st.one_of(
    fields_of(CHAT).map(lambda fields: {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 3, **fields}),
    fields_of(COMPLETION).map(lambda fields: {"prompt": "Hi", "max_tokens": 3, **fields}),
    fields_of({**CHAT, **COMPLETION}),
    st.dictionaries(st.sampled_from([*CHAT, *COMPLETION, "tokens", "x"]), values, max_size=6),
)
mutations = st.lists(st.tuples(st.integers(0, 400), st.binary(max_size=3)), max_size=2)


@pytest.fixture(scope="module")
def fuzzed() -> Iterator[Rig]:
    with serve(writing_llm(ANSWER, oracle(ANSWER.encode()), context_length=256)) as running:
        yield running


def check(rig: Rig, path: str, body: dict[str, Any], changes: list[tuple[int, bytes]]) -> None:
    data = json.dumps(body).encode()
    for position, replacement in changes:
        data = data[:position] + replacement + data[position + len(replacement) :]
    response = rig.client.post(path, content=data, headers={"content-type": "application/json"})
    assert response.status_code == 200 or 400 <= response.status_code < 500, (data, response.text)
    if response.status_code != 200:
        assert set(response.json()["error"]) == {"message", "type", "param", "code"}
        assert "0x" not in response.text or "0x" in data.decode(errors="replace")


QUIET = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.large_base_example]


@given(st.sampled_from(PATHS), bodies, mutations)
@settings(max_examples=300, suppress_health_check=QUIET)
def test_random_requests_are_answered_or_refused(
    fuzzed: Rig, path: str, body: dict[str, Any], changes: list[tuple[int, bytes]]
) -> None:
    check(fuzzed, path, body, changes)


@pytest.mark.long
@given(st.sampled_from(PATHS), bodies, mutations)
@settings(max_examples=50_000, derandomize=False, suppress_health_check=QUIET)
def test_fifty_thousand_random_requests_are_answered_or_refused(
    fuzzed: Rig, path: str, body: dict[str, Any], changes: list[tuple[int, bytes]]
) -> None:
    check(fuzzed, path, body, changes)


def test_the_server_is_well_after_all_that(fuzzed: Rig) -> None:
    fuzzed.settle()
    assert fuzzed.client.get("/health/ready").status_code == 200
    response = fuzzed.post(PATHS[0], messages=[{"role": "user", "content": "Hi"}])
    assert response.json()["choices"][0]["message"]["content"] == ANSWER
