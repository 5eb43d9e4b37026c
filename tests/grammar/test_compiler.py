from __future__ import annotations

import json
from typing import Any

import pytest
from tests.grammar.shapes import open_matcher, tokens_of
from tests.text.vocabularies import byte_level, sentencepiece

from borrador.sampling.shaping import History
from borrador.text.tokenizer import Tokenizer
from borrador.types import SamplingParams

VOCABULARIES: dict[str, dict[str, Any]] = {
    "byte level": byte_level(pairs=["a b", "ab a", '" a', '" :', '{ "', 'Ġ "']),
    "sentencepiece": sentencepiece(),
    "sentencepiece without space": sentencepiece(add_space_prefix=False),
}


@pytest.fixture(params=VOCABULARIES)
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return Tokenizer.from_metadata(VOCABULARIES[request.param])


@pytest.mark.parametrize("text", ["abab aba", '{"ab": "aba"}', "é ab", "a", " ab", "ab "])
def test_a_certain_text_is_forced_in_the_models_own_tokens(tokenizer: Tokenizer, text: str) -> None:
    schema = SamplingParams(grammar=f"start: {json.dumps(text, ensure_ascii=False)}")
    matcher = open_matcher(schema, tokenizer=tokenizer)
    written: list[int] = []
    while not matcher.is_complete():
        forced = matcher.forced(History(written), 99)
        # The last tokens of a text may be left open: longer ones are tokens of other texts.
        choices = tokens_of(matcher.mask(History(written, forced)), tokenizer.vocabulary_size)
        step = [*forced, *([] if forced else [max(choices, key=lambda token: len(tokenizer.token_bytes(token)))])]
        for token in step:
            matcher.commit(token)
        written += step
    assert tokenizer.decode(written) == text
    assert written == tokenizer.encode(text, specials=False, starts_text=False)


def test_control_tokens_and_missing_tokens_are_not_text(tokenizer: Tokenizer) -> None:
    size = tokenizer.vocabulary_size + 40
    matcher = open_matcher(SamplingParams(regex="(.|\\n)*"), tokenizer=tokenizer, vocabulary_size=size)
    allowed = tokens_of(matcher.mask(History()), size)
    silent = {token for token in range(tokenizer.vocabulary_size) if not tokenizer.token_bytes(token)}
    assert allowed & silent == tokenizer.eog_ids
    assert max(allowed) < tokenizer.vocabulary_size
    assert len(allowed) > 100


def test_bytes_of_a_character_are_allowed_one_by_one() -> None:
    tokenizer = Tokenizer.from_metadata(byte_level())
    matcher = open_matcher(SamplingParams(regex="[à-ü]"), tokenizer=tokenizer)
    assert tokens_of(matcher.mask(History()), 256) == {0xC3}
    assert tokens_of(matcher.mask(History((), [0xC3])), 256) == set(range(0xA0, 0xBD))
