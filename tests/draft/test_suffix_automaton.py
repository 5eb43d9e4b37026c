"""The native suffix automaton against searches through the whole text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from borrador import _native
from borrador.types import Int32Array

LONGEST = _native.longest_match
texts = st.one_of(
    st.lists(st.integers(0, 2), max_size=60),
    st.lists(st.integers(0, 7), max_size=60),
    st.builds(lambda part, times: part * times, st.lists(st.integers(0, 2), min_size=1, max_size=9), st.integers(1, 9)),
)


def ids(tokens: Sequence[int]) -> Int32Array:
    return np.array(tokens, np.int32)


def automaton_of(tokens: Sequence[int], capacity: int = 1000) -> _native.SuffixAutomaton:
    automaton = _native.SuffixAutomaton(capacity)
    automaton.add(ids(tokens))
    return automaton


def followers(text: Sequence[int], string: Sequence[int]) -> Counter[int]:
    """How often each token followed a string; of equally frequent ones the last seen first."""
    ends = range(len(string), len(text))
    return Counter([text[end] for end in reversed(ends) if list(text[end - len(string) : end]) == list(string)])


def occurs(text: Sequence[int], string: Sequence[int]) -> bool:
    return any(list(text[start : start + len(string)]) == list(string) for start in range(len(text) - len(string) + 1))


def longest_suffix(context: Sequence[int], text: Sequence[int]) -> int:
    """The length of the longest suffix of a context that occurs in a text."""
    sizes = range(min(len(context), LONGEST), 0, -1)
    return next((size for size in sizes if occurs(text, context[len(context) - size :])), 0)


def chain(automaton: _native.SuffixAutomaton, match: _native.SuffixMatch, budget: int) -> list[int]:
    return automaton.propose(match, budget=budget, least=0.0, least_path=0.0, chain=True, shortest=1)[0]


def read_first(text: Sequence[int], match: Sequence[int]) -> list[tuple[int, float]]:
    """The definition of the candidates after a match and their probabilities, in order, by one search per suffix."""
    shares: dict[int, float] = {}
    weight, seen = 1.0, -1
    for size in range(len(match), 0, -1):
        suffix = match[len(match) - size :]
        ends = sum(list(text[end - size : end]) == list(suffix) for end in range(size, len(text) + 1))
        if ends == seen:
            continue  # of the strings that end at the same places only the longest counts
        seen, after = ends, followers(text, suffix)
        if weight <= 0.02:
            break
        total = sum(after.values()) + 1.2 / size
        for token, count in after.most_common(4):
            shares[token] = shares.get(token, 0.0) + weight * count / total
        weight *= 1.2 / size / total
    return sorted(shares.items(), key=lambda entry: -entry[1])


@given(texts)
def test_match_is_the_longest_suffix_that_occurred_before(text: list[int]) -> None:
    automaton = automaton_of([])
    for end, token in enumerate(text, 1):
        automaton.add(ids([token]))
        assert automaton.match().length == longest_suffix(text[:end], text[: end - 1])


@given(texts)
def test_counts_are_those_of_a_full_search_for_the_match_and_every_suffix(text: list[int]) -> None:
    automaton = automaton_of(text)
    size = automaton.match().length
    for length in range(size + 1):
        suffix = text[len(text) - length :]
        match = automaton.follow(_native.SuffixMatch(), ids(suffix))
        assert match.length == length
        expected = followers(text, suffix)
        assert automaton.followed(match) == sum(expected.values())
        assert {token: automaton.count(match, token) for token in range(8)} == {t: expected[t] for t in range(8)}


@given(texts, st.lists(st.integers(0, 3), max_size=30))
def test_followed_context_is_the_longest_suffix_that_occurs(text: list[int], context: list[int]) -> None:
    automaton, match = automaton_of(text), _native.SuffixMatch()
    for end, token in enumerate(context, 1):
        match = automaton.follow(match, ids([token]))
        size = match.length
        assert size == longest_suffix(context[:end], text)
        assert automaton.followed(match) == sum(followers(text, context[end - size : end]).values())


@given(texts, texts)
def test_match_of_another_context_stays_right_while_the_text_grows(context: list[int], more: list[int]) -> None:
    automaton = automaton_of([*context, 9])
    match = automaton.follow(_native.SuffixMatch(), ids(context))
    automaton.add(ids(more))
    suffix, text = context[len(context) - match.length :], [*context, 9, *more]
    assert automaton.followed(match) == sum(followers(text, suffix).values())


@given(texts)
def test_first_candidates_are_by_definition_the_likeliest(text: list[int]) -> None:
    automaton = automaton_of(text)
    match = automaton.match()
    expected = read_first(text, text[len(text) - match.length :])
    tokens, parents, confidence = automaton.propose(
        match, budget=64, least=1e-3, least_path=1e-3, chain=False, shortest=1
    )
    top = [index for index, parent in enumerate(parents) if parent == -1]
    found = {tokens[index]: confidence[index] for index in top}
    likely = {token: share for token, share in expected if share >= 1e-3}
    assert len(tokens) == 64 or found.keys() == likely.keys()
    assert all(found[token] == pytest.approx(likely[token], rel=1e-5) for token in found)
    if expected:
        assert confidence[0] == pytest.approx(expected[0][1], rel=1e-5)


@given(texts, st.integers(1, 20))
def test_draft_is_a_tree_with_the_likeliest_paths_first(text: list[int], budget: int) -> None:
    automaton = automaton_of(text)
    tokens, parents, confidence = automaton.propose(
        automaton.match(), budget=budget, least=0.1, least_path=0.02, chain=False, shortest=1
    )
    assert len(tokens) == len(parents) == len(confidence) <= budget
    paths: list[float] = []
    for index, parent in enumerate(parents):
        assert -1 <= parent < index
        assert 0.1 <= confidence[index] < 1.0
        paths.append(confidence[index] * (paths[parent] if parent >= 0 else 1.0))
    assert paths == sorted(paths, reverse=True)
    assert len({*zip(parents, tokens, strict=True)}) == len(tokens)


def test_most_frequent_continuation_wins_and_the_last_seen_of_equals() -> None:
    often = automaton_of(
        [9, 1, 2, 3, 8, 1, 2, 4, 7, 1, 2, 3, 6, 1, 2, 4, 5, 1, 2, 3, 0, 1, 2, 4, 10, 1, 2, 3, 11, 1, 2]
    )
    assert chain(often, often.match(), 1) == [3]
    equal = automaton_of([9, 1, 2, 3, 8, 1, 2, 4, 7, 1, 2])
    assert chain(equal, equal.match(), 1) == [4]


def test_shorter_match_decides_where_the_longer_one_is_of_two_minds() -> None:
    often = [token for filler in range(20, 40) for token in (filler, 2, 3)]
    automaton = automaton_of([9, 1, 2, 3, *often, 8, 1, 2, 4, 7, 1, 2])
    assert automaton.match().length == 2
    tokens, _, confidence = automaton.propose(
        automaton.match(), budget=1, least=0.0, least_path=0.0, chain=True, shortest=1
    )
    assert tokens == [3]  # each once of twice after two tokens; 21 of 22 times after one
    assert confidence == [pytest.approx(1 / 2.6 + 0.6 / 2.6 * 21 / 23.2, rel=1e-5)]


def test_shortest_match_is_kept_to() -> None:
    automaton = automaton_of([9, 1, 3, 8, 1])

    def first(shortest: int) -> list[int]:
        match = automaton.match()
        return automaton.propose(match, budget=1, least=0.0, least_path=0.0, chain=True, shortest=shortest)[0]

    assert first(1) == [3]
    assert first(2) == []


def test_repetition_is_drafted_in_full() -> None:
    automaton = automaton_of([9, 1, 2, 1, 2, 1, 2])
    assert chain(automaton, automaton.match(), 8) == [1, 2, 1, 2, 1, 2, 1, 2]


def test_separated_texts_are_not_drafted_across() -> None:
    automaton = automaton_of([5, 6, 7, -1, 8, 5, 6, 7, -1])
    match = automaton.follow(_native.SuffixMatch(), ids([5, 6]))
    assert chain(automaton, match, 5) == [7]


def test_size_stays_within_its_bounds() -> None:
    rng = np.random.default_rng(1)
    for alphabet in (1, 2, 3, 50, 10_000):
        automaton = automaton_of([])
        for end in range(100, 1001, 100):
            automaton.add(rng.integers(0, alphabet, 100, np.int32))
            assert automaton.length == end
            assert automaton.states <= 2 * end
            assert automaton.edges <= 3 * end


def test_beyond_its_capacity_the_text_stays_and_the_match_goes_on() -> None:
    automaton = automaton_of([1, 2, 3, 4, 1, 2, 7, 7, 7], capacity=4)
    assert (automaton.length, automaton.capacity, automaton.match().length) == (4, 4, 0)
    automaton.add(ids([2, 3]))
    assert automaton.match().length == 2
    assert chain(automaton, automaton.match(), 3) == [4]


def test_capacity_of_zero_never_proposes() -> None:
    automaton = automaton_of([1, 1, 1], capacity=0)
    assert chain(automaton, automaton.match(), 3) == []


def test_longest_match_is_bounded_and_its_counts_are_right() -> None:
    text = [0] * 1000
    automaton = automaton_of(text, capacity=2000)
    match = automaton.match()
    assert match.length == LONGEST
    assert automaton.followed(match) == automaton.count(match, 0) == 1000 - LONGEST


@pytest.mark.parametrize("kind", ["one token", "period of seven", "words", "random"])
def test_tokens_of_a_long_text_take_no_more_steps_than_those_of_a_short_one(kind: str) -> None:
    rng = np.random.default_rng(2)
    words = [rng.integers(0, 500, 6, np.int32) for _ in range(300)]
    text = {
        "one token": np.zeros(20_000, np.int32),
        "period of seven": np.arange(20_000, dtype=np.int32) % 7,
        "words": np.concatenate([words[index] for index in rng.integers(0, 300, 3334)])[:20_000],
        "random": rng.integers(0, 30_000, 20_000, np.int32),
    }[kind]
    automaton, steps = automaton_of([], 20_000), [0]
    for start in range(0, 20_000, 2000):
        automaton.add(text[start : start + 2000])
        steps.append(automaton.steps)
    assert (steps[-1] - steps[-2]) / 2000 < 2 * LONGEST
    assert steps[-1] - steps[-2] < 1.5 * (steps[2] - steps[1])


def test_match_of_a_larger_automaton_is_refused() -> None:
    large = automaton_of(list(range(50)))
    match = large.follow(_native.SuffixMatch(), ids([49]))
    with pytest.raises(ValueError, match="another automaton"):
        automaton_of([1, 2]).follow(match, ids([1]))


def test_capacity_that_indices_cannot_hold_is_refused() -> None:
    with pytest.raises(ValueError, match=r"2\^28"):
        _native.SuffixAutomaton(1 << 28)
