from __future__ import annotations

import pytest

from borrador.models.prefix import CachedSequence, common_prefix, prefill
from borrador.models.scripted import ScriptedModel


@pytest.mark.parametrize(
    ("a", "b", "length"),
    [([], [], 0), ([1], [], 0), ([1, 2], [1, 2, 3], 2), ([1, 2, 3], [1, 9, 3], 1), ([1], [2], 0)]
    + [([7] * 200, [7] * index + [8] * 200, index) for index in (0, 63, 64, 65, 127, 128, 199, 200)],
)
def test_common_prefix_counts_equal_tokens_at_the_beginning(a: list[int], b: list[int], length: int) -> None:
    assert common_prefix(a, b) == length
    assert common_prefix(b, a) == length


def test_resuming_keeps_what_is_shared_but_leaves_one_token_to_do() -> None:
    sequence = CachedSequence(ScriptedModel(8).open(2000))
    context = [1, 2, 3] * 300
    prefill(sequence.target, context)
    assert sequence.target.length == 512
    sequence.settle(context)
    assert sequence.tokens == context[:512]
    sequence.resume([1, 2, 3, 7])
    assert sequence.target.length == 3
    sequence.resume([1, 2, 3])
    assert sequence.target.length == 2
    assert sequence.tokens == [1, 2]


def test_settling_drops_what_the_context_does_not_cover() -> None:
    sequence = CachedSequence(ScriptedModel(8).open(2000))
    context = [1, 2, 3] * 300
    prefill(sequence.target, context)
    sequence.settle(context[:100])
    assert sequence.target.length == 100
    assert sequence.tokens == context[:100]
