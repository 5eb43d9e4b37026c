"""Takes out of a draft what cannot become part of the answer, so that no pass evaluates it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from borrador.grammar.matcher import Matcher
from borrador.types import Draft


def trim(draft: Draft, context: Sequence[int], grammar: Matcher) -> Draft:
    """The draft without the tokens that the grammar refuses and those below them.

    A refused token that was drawn at random stays, without what is below it: the acceptance rule has to know what was
    drawn, or answers would no longer follow the target's distribution.
    """
    drawn = draft.q is not None
    if draft.parents is None:
        return draft.first(grammar.allowed(context, draft.tokens) + drawn)
    legal: set[int] = set()
    kept: list[int] = []
    for index, parent in enumerate(draft.parents):
        if parent >= 0 and parent not in legal:
            continue
        path = draft.path_to(index + 1)
        if grammar.allowed(context, path) == len(path):
            legal.add(index)
        if drawn or index in legal:
            kept.append(index)
    return _select(draft, kept)


def end_draft(draft: Draft, end_ids: Collection[int]) -> Draft:
    """The draft without the tokens behind one that ends the answer."""
    ends = [index for index, token in enumerate(draft.tokens) if token in end_ids]
    if not ends:
        return draft
    if draft.parents is None:
        return draft.first(ends[0] + 1)
    over = set(ends)
    kept: list[int] = []
    for index, parent in enumerate(draft.parents):
        if parent in over:
            over.add(index)
        else:
            kept.append(index)
    return _select(draft, kept)


def _select(draft: Draft, kept: Sequence[int]) -> Draft:
    """The tree of these tokens alone, each with its parent."""
    if len(kept) == len(draft.tokens):
        return draft
    assert draft.parents is not None
    new_index = {-1: -1, **{old: new for new, old in enumerate(kept)}}
    return Draft(
        tokens=tuple(draft.tokens[index] for index in kept),
        parents=tuple(new_index[draft.parents[index]] for index in kept),
        q=None if draft.q is None else draft.q[[0, *(index + 1 for index in kept[:-1])]],
        drafter=draft.drafter,
        confidence=draft.confidence and tuple(draft.confidence[index] for index in kept),
    )
