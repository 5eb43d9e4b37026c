"""Memory of keys and values: sequences share what they have in common, and nobody's logits change by a bit."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.tiny_gguf import write_tiny_model

from borrador.errors import MemoryLimitError
from borrador.models.gguf import TensorFormat
from borrador.models.native import NativeModel, NativeSequence
from borrador.models.target import Rows
from borrador.types import Float32Array

CHUNK = 256
CONTEXT = 800
TOKENS = [int(token) for token in np.random.default_rng(17).integers(0, 320, CONTEXT)]
AFTER = Rows.chain(TOKENS[5:9])


@pytest.fixture
def model(tmp_path: Path) -> Iterator[NativeModel]:
    path = write_tiny_model(tmp_path / "tiny.gguf", "qwen2", format=TensorFormat.Q8_0, width=64, ffn=64)
    loaded = NativeModel.load(path, threads=2)
    yield loaded
    loaded.close()


def sequence_of(model: NativeModel, tokens: Sequence[int]) -> NativeSequence:
    sequence = model.open(CONTEXT)
    extend(sequence, tokens)
    return sequence


def extend(sequence: NativeSequence, tokens: Sequence[int]) -> None:
    if tokens:
        sequence.forward(Rows.chain(tokens, logits_from=len(tokens)))
        sequence.commit(range(len(tokens)))


def copy_of(model: NativeModel, source: NativeSequence, length: int) -> NativeSequence:
    copy = model.open(CONTEXT)
    copy.copy_from(source, length)
    return copy


def logits_of(sequence: NativeSequence, rows: Rows = AFTER) -> Float32Array:
    return np.array(sequence.forward(rows))


def used_chunks(model: NativeModel) -> float:
    return model.cache_usage().used_bytes / model.cache_bytes(1)


def limit_chunks(model: NativeModel, chunks: int) -> None:
    model.limit_cache(chunks * model.cache_bytes(1))


def test_a_sequence_takes_the_memory_of_what_it_holds(model: NativeModel) -> None:
    assert [model.cache_bytes(n) // model.cache_bytes(1) for n in (0, 1, 256, 257, 512, 513)] == [0, 1, 1, 2, 2, 3]
    sequence = model.open(CONTEXT)
    assert model.cache_usage() == (0, None)
    for length, chunks in ((1, 1), (256, 1), (257, 2), (700, 3)):
        extend(sequence, TOKENS[sequence.length : length])
        assert model.cache_usage().used_bytes == chunks * model.cache_bytes(1) == model.cache_bytes(length)
    for length, chunks in ((513, 3), (512, 2), (1, 1), (0, 0)):
        sequence.rewind(length)
        assert used_chunks(model) == chunks


def test_rows_that_are_not_committed_give_their_memory_back(model: NativeModel) -> None:
    sequence = sequence_of(model, TOKENS[:250])
    sequence.forward(Rows.chain(TOKENS[250:270]))
    assert used_chunks(model) == 2
    sequence.commit(range(3))
    assert (sequence.length, used_chunks(model)) == (253, 1)
    sequence.forward(Rows.chain(TOKENS[253:270]))
    sequence.rewind(253)
    assert used_chunks(model) == 1


@pytest.mark.parametrize("length", [1, 255, 256, 257, 300, 512, 600])
def test_copies_share_memory_until_they_go_on_and_then_go_on_as_if_they_were_alone(
    model: NativeModel, length: int
) -> None:
    source = sequence_of(model, TOKENS[:600])
    copies = [copy_of(model, source, length) for _ in range(3)]
    assert used_chunks(model) == 3
    for start, copy in enumerate(copies):
        own = TOKENS[start * 50 : start * 50 + 30]
        extend(copy, own)
        expected = logits_of(sequence_of(model, [*TOKENS[:length], *own]))
        np.testing.assert_array_equal(logits_of(copy), expected)
        copy.rewind(copy.length)
    np.testing.assert_array_equal(logits_of(source), logits_of(sequence_of(model, TOKENS[:600])))


def test_a_copy_takes_memory_for_what_differs_alone(model: NativeModel) -> None:
    source = sequence_of(model, TOKENS[:600])
    copy = copy_of(model, source, 520)
    extend(copy, TOKENS[:5])
    assert used_chunks(model) == 4
    source.rewind(0)
    assert used_chunks(model) == 3
    np.testing.assert_array_equal(logits_of(copy), logits_of(sequence_of(model, [*TOKENS[:520], *TOKENS[:5]])))


def test_the_source_of_copies_goes_on_as_if_there_were_none(model: NativeModel) -> None:
    source = sequence_of(model, TOKENS[:300])
    copies = [copy_of(model, source, length) for length in (300, 280, 40)]
    source.rewind(260)
    extend(source, TOKENS[400:420])
    np.testing.assert_array_equal(logits_of(source), logits_of(sequence_of(model, [*TOKENS[:260], *TOKENS[400:420]])))
    for copy in copies:
        expected = logits_of(sequence_of(model, TOKENS[: copy.length]))
        np.testing.assert_array_equal(logits_of(copy), expected)


def test_a_branch_that_is_committed_after_others_took_a_copy_disturbs_none_of_them(model: NativeModel) -> None:
    source = sequence_of(model, TOKENS[:250])
    tree = Rows(np.array(TOKENS[300:312], np.int32), np.array([-1, 0, -1, *range(2, 11)], np.int32))
    source.forward(tree)
    copies = [copy_of(model, source, length) for length in (250, 249)]
    early = logits_of(copies[1])
    source.commit(range(2, 12))
    copies.append(copy_of(model, source, 260))
    np.testing.assert_array_equal(early, logits_of(sequence_of(model, TOKENS[:249])))
    np.testing.assert_array_equal(logits_of(copies[0]), logits_of(sequence_of(model, TOKENS[:250])))
    whole = sequence_of(model, [*TOKENS[:250], *TOKENS[302:312]])
    expected = logits_of(whole)
    np.testing.assert_array_equal(logits_of(copies[2]), expected)
    np.testing.assert_array_equal(logits_of(source), expected)


class Interleaving:
    """Sequences that fork, go on, go back and end at random; `texts` has what each of them must hold."""

    def __init__(self, model: NativeModel, seed: int) -> None:
        self.model = model
        self.random = np.random.default_rng(seed)
        self.sequences: list[NativeSequence] = []
        self.texts: list[list[int]] = []
        self.refused = 0

    def step(self) -> None:
        actions = [self.open, self.fork, self.fork_onto, self.go_on, self.go_on, self.go_on, self.rewind, self.end]
        action = actions[self.random.integers(len(actions))] if self.sequences else self.open
        if len(self.sequences) > 12:
            action = self.end
        try:
            action()
        except MemoryLimitError:
            self.refused += 1
        assert [sequence.length for sequence in self.sequences] == [len(text) for text in self.texts]

    def any(self) -> int:
        return int(self.random.integers(len(self.sequences)))

    def open(self) -> None:
        self.sequences.append(self.model.open(CONTEXT))
        self.texts.append([])

    def fork(self) -> None:
        source = self.any()
        self.open()
        self.copy(source, len(self.sequences) - 1)

    def fork_onto(self) -> None:
        source, onto = self.any(), self.any()
        if source != onto:
            self.copy(source, onto)

    def copy(self, source: int, onto: int) -> None:
        length = int(self.random.integers(len(self.texts[source]) + 1))
        self.sequences[onto].copy_from(self.sequences[source], length)
        self.texts[onto] = self.texts[source][:length]

    def go_on(self) -> None:
        """Some of the sequences, in one pass: chains of several lengths, a beginning of each of which is committed."""
        counts = [int(self.random.choice([0, 0, 1, 7, 120, 250])) for _ in self.sequences]
        fits = [len(text) + count <= CONTEXT for text, count in zip(self.texts, counts, strict=True)]
        chosen = [at for at, count in enumerate(counts) if count and fits[at]]
        if not chosen:
            return
        rows = [[int(token) for token in self.random.integers(0, 320, counts[at])] for at in chosen]
        batch = [(self.sequences[at], Rows.chain(tokens)) for at, tokens in zip(chosen, rows, strict=True)]
        self.model.forward(batch)
        for at, tokens in zip(chosen, rows, strict=True):
            kept = int(self.random.integers(len(tokens) + 1))
            self.sequences[at].commit(range(kept))
            self.texts[at].extend(tokens[:kept])

    def check(self, reference: NativeModel) -> None:
        """Compare every sequence with a fresh one on another load of the model."""
        for sequence, text in zip(self.sequences, self.texts, strict=True):
            if len(text) + len(AFTER.tokens) <= CONTEXT:
                np.testing.assert_array_equal(logits_of(sequence), logits_of(sequence_of(reference, text)))
                sequence.rewind(len(text))

    def rewind(self) -> None:
        at = self.any()
        length = int(self.random.integers(len(self.texts[at]) + 1))
        self.sequences[at].rewind(length)
        del self.texts[at][length:]

    def end(self) -> None:
        at = self.any()
        del self.sequences[at], self.texts[at]


@pytest.mark.parametrize("limit", [None, 14])
@pytest.mark.parametrize("seed", range(3))
def test_sequences_that_fork_go_on_and_end_at_random_hold_what_fresh_ones_do(
    model: NativeModel, tmp_path: Path, seed: int, limit: int | None
) -> None:
    reference = NativeModel.load(tmp_path / "tiny.gguf", threads=1)
    random = Interleaving(model, seed)
    for step in range(400):
        if limit is not None:
            limit_chunks(model, limit)
        random.step()
        if step % 25 == 24:
            model.limit_cache(None)
            random.check(reference)
    assert (random.refused > 0) == (limit is not None)
    random.sequences.clear()
    gc.collect()
    assert model.cache_usage().used_bytes == 0


def test_a_pass_beyond_the_limit_changes_no_sequence_of_its_batch(model: NativeModel) -> None:
    first, second, third = (sequence_of(model, TOKENS[:length]) for length in (250, 100, 250))
    spare = sequence_of(model, TOKENS[:10])
    fork = copy_of(model, second, 90)
    first.forward(Rows.chain(TOKENS[250:254]))  # pending while the next pass is refused
    limit_chunks(model, 6)
    batch = [(one, Rows.chain(TOKENS[one.length : one.length + 20])) for one in (first, fork, third)]
    assert used_chunks(model) == 4  # and the batch needs three more
    with pytest.raises(MemoryLimitError, match=r"may take \d+\.\d MB of memory, and more is needed") as refused:
        model.forward(batch)
    assert refused.value.hint
    with pytest.raises(MemoryLimitError):
        model.best(batch, 1)
    assert [one.length for one in (first, second, third, fork)] == [250, 100, 250, 90]
    assert used_chunks(model) == 4
    first.commit(range(4))
    spare.rewind(0)
    first.rewind(250)
    found = [np.array(logits) for logits in model.forward(batch)]
    assert used_chunks(model) == 6
    model.limit_cache(None)
    for (one, rows), logits in zip(batch, found, strict=True):
        np.testing.assert_array_equal(logits, logits_of(sequence_of(model, TOKENS[: one.length]), rows))


def test_rows_pending_before_a_refused_pass_can_still_be_committed(model: NativeModel) -> None:
    sequence = sequence_of(model, TOKENS[:250])
    copy = copy_of(model, sequence, 250)
    sequence.forward(Rows.chain(TOKENS[250:255]))
    limit_chunks(model, 2)
    with pytest.raises(MemoryLimitError):
        sequence.forward(Rows.chain(TOKENS[:40]))
    sequence.commit(range(5))
    model.limit_cache(None)
    np.testing.assert_array_equal(logits_of(sequence), logits_of(sequence_of(model, TOKENS[:255])))
    assert copy.length == 250


def test_a_limit_below_what_is_held_takes_nothing_away(model: NativeModel) -> None:
    sequence = sequence_of(model, TOKENS[:600])
    limit_chunks(model, 1)
    assert model.cache_usage() == (model.cache_bytes(600), model.cache_bytes(1))
    logits_of(sequence)  # in the memory that it has
    with pytest.raises(MemoryLimitError, match=r"0\.0 MB that are left"):
        model.open(CONTEXT).forward(AFTER)
    with pytest.raises(MemoryLimitError):
        model.open(CONTEXT).assume(1)


def test_sequences_that_end_on_other_threads_give_their_memory_back(model: NativeModel) -> None:
    source = sequence_of(model, TOKENS[:300])
    expected = logits_of(source)
    copies = [copy_of(model, source, 260 + index % 41) for index in range(200)]
    stop = threading.Event()

    def end() -> None:
        while copies:
            copies.pop()
        stop.set()

    thread = threading.Thread(target=end)
    thread.start()
    while not stop.is_set():
        source.rewind(290)
        extend(source, TOKENS[290:300])
        np.testing.assert_array_equal(logits_of(source), expected)
    thread.join()
    source.rewind(0)
    assert model.cache_usage().used_bytes == 0


def test_memory_that_nobody_holds_goes_back_to_the_system(model: NativeModel) -> None:
    pool = model.engine.cache_pool
    sequences = [sequence_of(model, TOKENS[:1]) for _ in range(3)]
    slab = pool.reserved_bytes
    while pool.reserved_bytes < 3 * slab:
        sequences.append(sequence_of(model, TOKENS[:1]))
    assert pool.reserved_bytes - slab <= pool.used_bytes
    sequences.clear()
    assert (pool.used_bytes, pool.reserved_bytes) == (0, slab)


def test_a_sequence_outlives_its_model(model: NativeModel) -> None:
    sequence = sequence_of(model, TOKENS[:300])
    model.close()
    gc.collect()
    sequence.rewind(10)
    assert sequence.length == 10


def test_a_context_that_no_machine_can_hold_is_refused(model: NativeModel) -> None:
    with pytest.raises(MemoryLimitError, match="does not fit into memory"):
        model.open(1 << 62)
