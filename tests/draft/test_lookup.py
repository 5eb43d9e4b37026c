from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from borrador.draft.lookup import LONGEST_MATCH, SHORTEST_MATCH, LookupDrafter, LookupSession
from borrador.sampling.shaping import Shaper
from borrador.types import SamplingParams


def read_draft(context: Sequence[int], budget: int) -> tuple[int, ...]:
    """The definition: for every length from longest to shortest, the most recent earlier occurrence of the tail."""
    for size in range(LONGEST_MATCH, SHORTEST_MATCH - 1, -1):
        for start in range(len(context) - size - 1, -1, -1):
            if size < len(context) and context[start : start + size] == context[-size:]:
                extended = list(context)
                while len(extended) < len(context) + budget:
                    extended.append(extended[start + size + len(extended) - len(context)])
                return tuple(extended[len(context) :])
    return ()


@given(st.lists(st.integers(0, 2), min_size=1, max_size=60), st.integers(0, 9), st.data())
def test_lookup_copies_what_a_full_search_would_copy(context: list[int], budget: int, data: st.DataObject) -> None:
    session = LookupSession()
    growing = 0
    while growing < len(context):
        growing = data.draw(st.integers(growing + 1, len(context)))
        draft = session.propose(context[:growing], budget)
        assert draft.tokens == read_draft(context[:growing], budget)
        assert draft.q is None
        assert draft.parents is None


def test_the_longest_match_wins_over_a_more_recent_shorter_one() -> None:
    context = [1, 2, 3, 7, 0, 2, 3, 8, 0, 1, 2, 3]
    assert LookupSession().propose(context, 2).tokens == (7, 0)


def test_of_equal_matches_the_most_recent_wins() -> None:
    context = [2, 3, 7, 0, 2, 3, 8, 1, 2, 3]
    assert LookupSession().propose(context, 1).tokens == (8,)


def test_repetition_is_drafted_in_full() -> None:
    assert LookupSession().propose([9, 1, 2, 1, 2, 1, 2], 5).tokens == (1, 2, 1, 2, 1)


def test_confidence_grows_with_the_match_and_along_the_copy() -> None:
    def confidence(context: list[int]) -> tuple[float, ...]:
        return LookupSession().propose(context, 3).confidence

    short, longer = confidence([1, 2, 3, 7, 8, 9, 2, 3]), confidence([1, 2, 3, 7, 8, 9, 1, 2, 3])
    assert short[1:] == longer[:2]
    assert 0.0 < short[0] < short[1] < short[2] < 1.0
    passage = list(range(10, 22))
    assert confidence([*passage, 5, 6, 7, *passage])[0] == confidence([9, *passage, 5, 6, 7, 8, *passage])[0] == 0.9


def test_nothing_is_proposed_without_a_match() -> None:
    assert LookupSession().propose([1, 2, 3, 4], 4).tokens == ()
    assert LookupSession().propose([5], 4).tokens == ()


def test_sessions_share_nothing() -> None:
    drafter = LookupDrafter()
    first, second = drafter.open(Shaper(SamplingParams())), drafter.open(Shaper(SamplingParams()))
    assert first.propose([1, 2, 3, 1, 2], 1).tokens == (3,)
    assert second.propose([1, 2], 1).tokens == ()


def test_each_token_is_indexed_once() -> None:
    class Counting(list[int]):
        reads = 0

        def __getitem__(self, key):  # type: ignore[no-untyped-def]
            Counting.reads += 1
            return list.__getitem__(self, key)

    session = LookupSession()
    context = Counting(range(1000))
    session.propose(context, 4)
    Counting.reads = 0
    context.append(7)
    session.propose(context, 4)
    assert Counting.reads < 20


def test_a_hint_is_what_followed_the_longest_tail_of_context_and_path() -> None:
    session = LookupSession()
    context = [1, 2, 3, 4, 5, 9, 1, 2]
    session.propose(context, 1)
    assert session.hint(context, (), 3) == (3, 4, 5)
    assert session.hint(context, (3, 4), 3) == (5, 9, 1)
    assert session.hint(context, (7, 3, 4), 2) == (5, 9)
    assert session.hint(context, (7,), 2) == ()


@given(st.lists(st.integers(0, 2), min_size=1, max_size=30), st.lists(st.integers(0, 2), max_size=4), st.integers(1, 6))
def test_a_hint_is_what_a_draft_after_the_path_would_copy_but_for_what_the_path_itself_repeats(
    context: list[int], path: list[int], count: int
) -> None:
    session = LookupSession()
    before = session.propose(context, 5)
    hint = session.hint(context, path, count)
    whole = [*context, *path]
    assert len(hint) in (0, count)
    if hint:
        matches = [
            source
            for source in range(2, len(context))
            if all([*whole, *hint][source + index] == token for index, token in enumerate(hint))
            and whole[source - 2 : source] == whole[-2:]
        ]
        assert matches
    else:
        assert all(whole[source - 2 : source] != whole[-2:] for source in range(2, len(context)))
    assert session.propose(context, 5) == before
    if not path:
        assert hint == session.propose(context, count).tokens
