"""The scripted model keeps the contract that it checks others for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from borrador.errors import ContextLengthError, MemoryLimitError
from borrador.models.scripted import ScriptedModel, ScriptedTarget
from borrador.models.target import Rows


def test_logits_of_a_row_do_not_depend_on_the_pass_it_is_in() -> None:
    model = ScriptedModel(8, seed=2)
    whole = model.open(16).forward(Rows.chain([1, 2, 3, 4])).copy()
    target = model.open(16)
    for index, token in enumerate([1, 2, 3, 4]):
        assert np.array_equal(target.forward(Rows.chain([token]))[0], whole[index])
        target.commit([0])


def test_tree_rows_follow_their_parents() -> None:
    model = ScriptedModel(8, seed=2)
    target = model.open(16)
    rows = Rows(np.array([1, 2, 3, 4], np.int32), np.array([-1, 0, 0, 2], np.int32), 1)
    logits = target.forward(rows)
    expected = [model.logits_after(path) for path in ([1, 2], [1, 3], [1, 3, 4])]
    assert np.array_equal(logits, np.array(expected))
    target.commit([0, 2, 3])
    assert target.tokens == [1, 3, 4]


def test_logits_are_taken_away_at_the_next_pass() -> None:
    target = ScriptedModel(8).open(16)
    old = target.forward(Rows.chain([1]))
    target.forward(Rows.chain([2]))
    assert np.isnan(old).all()


def test_a_script_is_followed_with_certainty() -> None:
    model = ScriptedModel(8, script=[3, 1, 4])
    assert [int(model.logits_after(prefix).argmax()) for prefix in ([], [3], [3, 1])] == [3, 1, 4]


def rows(tokens: list[int], parents: list[int]) -> Rows:
    return Rows(np.array(tokens, np.int32), np.array(parents, np.int32))


@pytest.mark.parametrize(
    ("misuse", "error"),
    [
        (lambda target: target.commit([0]), "without a pass"),
        (lambda target: target.rewind(1), "rewind to 1"),
        (lambda target: target.forward(rows([], [])), "malformed"),
        (lambda target: target.forward(rows([1], [0])), "before its children"),
        (lambda target: target.forward(rows([9], [-1])), "outside the vocabulary"),
        (lambda target: (target.forward(rows([1, 2], [-1, 0])), target.commit([1])), "does not follow"),
        (lambda target: (target.forward(rows([1], [-1])), target.rewind(0), target.commit([0])), "without a pass"),
    ],
)
def test_misuse_is_an_error(misuse: Callable[[ScriptedTarget], object], error: str) -> None:
    with pytest.raises(RuntimeError, match=error):
        misuse(ScriptedModel(8).open(16))


def test_rows_beyond_the_context_are_refused() -> None:
    with pytest.raises(ContextLengthError):
        ScriptedModel(8).open(3).forward(Rows.chain([1, 2, 3, 4]))


def test_memory_is_a_byte_for_each_token_that_sequences_hold() -> None:
    model = ScriptedModel(8)
    first, second = model.open(16), model.open(16)
    first.forward(Rows.chain([1, 2, 3]))
    assert model.cache_usage() == (3, None)
    first.commit([0, 1])
    second.copy_from(first, 1)
    assert model.cache_usage() == (3, None)
    assert model.cache_bytes(7) == 7
    del second
    first.rewind(0)
    assert model.cache_usage() == (0, None)


def test_a_pass_beyond_the_limit_of_memory_changes_nothing() -> None:
    model = ScriptedModel(8)
    sequences = [model.open(16) for _ in range(3)]
    model.limit_cache(5)
    batch = [(sequence, Rows.chain([1, 2])) for sequence in sequences]
    with pytest.raises(MemoryLimitError, match="may take 5 bytes, and 6 are needed"):
        model.forward(batch)
    assert model.cache_usage() == (0, 5)
    assert not any(sequence.passes for sequence in sequences)
    model.forward(batch[:2])
    with pytest.raises(MemoryLimitError):
        sequences[2].forward(Rows.chain([1, 2]))
    sequences[0].commit([])
    assert len(sequences[2].forward(Rows.chain([1, 2]))) == 2
