"""The masks of a matcher, compared with all texts that a pattern matches."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from tests.grammar.shapes import allowed_after, open_matcher, reference
from tests.scripted import END, LETTERS, ids

from borrador.errors import UsageError
from borrador.grammar.matcher import Matcher
from borrador.sampling.shaping import History
from borrador.types import SamplingParams

PATTERNS = ["(ab|ba)c?(a|bb){1,2}", "a*b", "(abc|acb|b+c)", "c?b?a?", "((a|b)(b|c)){0,3}", "abcabc|abccba"]


def as_ids(letters: set[str]) -> set[int]:
    return {token for letter in letters for token in ids(letter)}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_mask_allows_what_can_still_become_a_match(pattern: str) -> None:
    expected = reference(pattern, "abc", 10)
    generator = random.Random(pattern)
    for _ in range(20):
        matcher = open_matcher(SamplingParams(regex=pattern))
        text = ""
        while not matcher.is_complete() and len(text) < 6:
            assert allowed_after(matcher, ()) == as_ids(expected(text))
            look_ahead(matcher, expected, text, generator)
            letter = generator.choice(sorted(expected(text)))
            if letter == "!":
                break
            matcher.commit(LETTERS.index(letter))
            text += letter
        assert matcher.is_complete() == (expected(text) == {"!"})


def look_ahead(matcher: Matcher, expected: Callable[[str], set[str]], text: str, generator: random.Random) -> None:
    """Ask about paths as drafts have them, right and wrong, in any order; none of it may disturb the next answer."""
    for _ in range(4):
        path = "".join(generator.choices("abc", k=generator.randrange(1, 3)))
        right = 0
        while right < len(path) and path[right] in expected(text + path[:right]):
            right += 1
        assert matcher.allowed((), ids(path)) == right
        assert allowed_after(matcher, ids(path[:right])) == as_ids(expected(text + path[:right]))


def test_tokens_of_the_prompt_do_not_count_and_uncommitted_ones_of_the_context_do() -> None:
    matcher = open_matcher(SamplingParams(regex="abcd"), start=3)
    prompt = ids("ooo")
    assert allowed_after(matcher, (), prompt) == {0}
    matcher.commit(0)
    assert allowed_after(matcher, (), [*prompt, 0]) == {1}
    assert allowed_after(matcher, (), [*prompt, 0, 1]) == {2}
    assert allowed_after(matcher, [2], [*prompt, 0, 1]) == {3}
    assert matcher.allowed([*prompt, 0, 1], [2, 3, 4]) == 2
    assert matcher.allowed([*prompt, 0], [3]) == 0


def test_forced_tokens_are_those_without_an_alternative() -> None:
    matcher = open_matcher(SamplingParams(regex="abc(d|e)fgh"))
    assert matcher.forced(History(), 10) == tuple(ids("abc"))
    assert matcher.forced(History(), 2) == tuple(ids("ab"))
    assert matcher.forced(History((), ids("abc")), 10) == ()
    assert matcher.forced(History((), ids("abce")), 10) == tuple(ids("fgh"))
    assert matcher.forced(History((), ids("abce")), 0) == ()


def test_the_end_is_allowed_where_the_answer_may_end_and_is_never_forced() -> None:
    matcher = open_matcher(SamplingParams(regex="ab?"))
    assert allowed_after(matcher, ids("a")) == {1, END}
    assert matcher.allowed((), [0, END]) == 2
    assert matcher.forced(History(), 9) == (0,)
    assert matcher.forced(History((), ids("ab")), 9) == ()
    matcher.commit(0)
    assert not matcher.is_complete()
    matcher.commit(1)
    assert matcher.is_complete()
    assert allowed_after(matcher, ()) == {END}


@pytest.mark.parametrize("path", [ids("c"), ids("ac"), [*ids("ab"), END, 0], [0, END, END]])
def test_rows_behind_a_refused_token_or_the_end_have_no_mask_to_break(path: list[int]) -> None:
    matcher = open_matcher(SamplingParams(regex="ab?"))
    assert allowed_after(matcher, path) == set(range(END + 1))
    assert allowed_after(matcher, ()) == {0}


def test_a_token_that_is_not_allowed_cannot_be_committed() -> None:
    matcher = open_matcher(SamplingParams(regex="ab"))
    with pytest.raises(ValueError, match="token 1 is not allowed here"):
        matcher.commit(1)
    matcher.commit(0)
    assert allowed_after(matcher, ()) == {1}


def test_a_vocabulary_that_cannot_write_what_the_shape_asks_for_is_refused() -> None:
    with pytest.raises(UsageError, match="regex cannot be enforced: no text fits it"):
        open_matcher(SamplingParams(regex="z"))


def test_a_dead_end_later_on_is_one_sentence() -> None:
    matcher = open_matcher(SamplingParams(regex="abz|acz"))
    with pytest.raises(UsageError, match="cannot be followed any further"):
        matcher.mask(History((), ids("ab")))


def test_a_limit_that_is_reached_while_a_token_is_committed_is_one_sentence() -> None:
    matcher = open_matcher(SamplingParams(regex="(a?){500}a{500}"))
    with pytest.raises(UsageError, match=r"cannot be followed any further: .*too many"):
        matcher.commit(0)
