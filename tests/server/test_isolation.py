"""Whoever has one key learns nothing of what was said under another: not from the cache, and not from drafts."""

from __future__ import annotations

from typing import Any

import pytest
from tests.server.whole import Whole, whole
from tests.server.writing import writing_llm

from borrador.draft.lookup import LookupDrafter
from borrador.draft.recycle import RecycleDrafter
from borrador.draft.suffix import SuffixDrafter
from borrador.server.config import ServerConfig

_KEYS = ("first-key", "second-key")
_ANSWER = "Nothing to see. " * 2
_BEFORE = len("user: 0000")  # tokens that any two prompts may share


def _ask(server: Whole, key: str, content: str) -> dict[str, Any]:
    response = server.client.post(
        "/v1/chat/completions",
        headers={"Authorization": f"Bearer {key}"},
        json={"messages": [{"role": "user", "content": content}], "speculative": {"trace": True}},
    )
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def _cached(answer: dict[str, Any]) -> int:
    count: int = answer["usage"]["prompt_tokens_details"]["cached_tokens"]
    return count


def _drafted(answer: dict[str, Any]) -> str:
    """All texts that were proposed for an answer."""
    trace = answer["choices"][0]["speculative"]
    accepted = [token["text"] for token in trace["tokens"] if token["origin"] == "draft"]
    return "".join(accepted + [text for each in trace["rounds"] for text in each["refused"]])


def _interleave(count: int) -> None:
    """Each key asks with its secret, and the other one then asks the very same, in case something was kept."""
    config = ServerConfig(port=0, api_keys=_KEYS)
    drafters = (SuffixDrafter(), LookupDrafter(), RecycleDrafter())
    with whole(writing_llm(_ANSWER, *drafters), config) as server:
        for number in range(0, count, 2):
            owner, other = _KEYS if number % 4 else _KEYS[::-1]
            secret = f"{number:04d} Nothing to seeQZQZ secret {number} " + "and so on " * 5
            own = _ask(server, owner, secret)
            assert _cached(own) <= _BEFORE
            assert _cached(_ask(server, owner, secret)) > _BEFORE  # what is kept is kept for its owner
            stolen = _ask(server, other, secret)
            assert _cached(stolen) <= _BEFORE
            probe = _ask(server, other, f"{number + 1:04d} Nothing to see")
            assert "Q" not in _drafted(probe)
            assert "Z" not in _drafted(probe)
        assert "Q" in "".join(_drafted(_ask(server, owner, f"{n} see. see.QZ see.")) for n in range(3))


def test_two_keys_share_neither_cache_nor_drafts() -> None:
    _interleave(100)


@pytest.mark.long
def test_two_keys_share_neither_cache_nor_drafts_over_a_thousand_requests() -> None:
    _interleave(1000)
