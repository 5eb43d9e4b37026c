"""The engine on tiny models: right logits, and the same bits however rows are grouped into passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.reference import kl_divergence, reference_logits
from tests.tiny_gguf import write_tiny_model

from borrador import _native
from borrador.errors import ContextLengthError, MemoryLimitError, ModelError, UsageError
from borrador.models import weights
from borrador.models.gguf import TensorFormat
from borrador.models.native import NativeModel, NativeSequence
from borrador.models.target import Rows
from borrador.types import Float32Array

TOKENS = [int(token) for token in np.random.default_rng(7).integers(0, 320, 330)]
# fmt: off
SHAPES: dict[str, dict[str, object]] = {
    "llama": {"architecture": "llama", "format": TensorFormat.Q4_1, "width": 96, "heads": 3, "kv_heads": 1, "ffn": 160},
    "qwen2": {"architecture": "qwen2", "format": TensorFormat.Q4_K, "tied": True},
    "odd": {"architecture": "qwen2", "format": TensorFormat.F32, "width": 40, "heads": 5, "kv_heads": 5, "ffn": 72},
    "gemma2": {
        "architecture": "gemma2", "format": TensorFormat.Q5_0, "width": 64, "head_dim": 24, "ffn": 96, "tied": True,
        "metadata": {
            "gemma2.attention.sliding_window": 40, "gemma2.attn_logit_softcapping": 2.0,
            "gemma2.final_logit_softcapping": 5.0,
        },
    },
    "qwen3moe": {
        "architecture": "qwen3moe", "format": TensorFormat.Q8_0, "width": 64, "ffn": 32,
        "experts": 6, "experts_used": 3,
    },
    "phi3": {"architecture": "phi3", "format": TensorFormat.Q4_K, "metadata": {"phi3.attention.sliding_window": 270}},
}
# fmt: on


@pytest.fixture(params=sorted(SHAPES))
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return write_tiny_model(tmp_path / "tiny.gguf", layers=3, **SHAPES[request.param])  # type: ignore[arg-type]


@pytest.fixture
def model(path: Path) -> Iterator[NativeModel]:
    loaded = NativeModel.load(path, threads=2)
    yield loaded
    loaded.close()


def prefilled(model: NativeModel, length: int, capacity: int = 512) -> NativeSequence:
    sequence = model.open(capacity)
    if length:
        sequence.forward(Rows.chain(TOKENS[:length], logits_from=length))
        sequence.commit(range(length))
    return sequence


def all_logits(model: NativeModel, chunk: int, count: int = len(TOKENS)) -> Float32Array:
    """Logits of every position, evaluated `chunk` rows at a time."""
    sequence, parts = model.open(512), []
    for start in range(0, count, chunk):
        rows = TOKENS[start : min(start + chunk, count)]
        parts.append(np.array(sequence.forward(Rows.chain(rows))))
        sequence.commit(range(len(rows)))
    return np.concatenate(parts)


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3", "gemma3"])
@pytest.mark.parametrize("stored_as", [TensorFormat.F32, TensorFormat.F16, TensorFormat.BF16], ids=lambda f: f.name)
@pytest.mark.parametrize("tied", [False, True])
def test_logits_of_float_models_are_those_of_the_reference(
    tmp_path: Path, architecture: str, stored_as: TensorFormat, tied: bool
) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf", architecture, format=stored_as, tied=tied)
    found = all_logits(NativeModel.load(path), chunk=300)
    expected = reference_logits(path, TOKENS)
    # Queries, keys, values and attention's weights are 16-bit integers; everything else is float32.
    assert np.abs(found - expected).max() < 2e-3 * np.abs(expected).max()


@pytest.mark.parametrize(("heads", "kv_heads", "width"), [(4, 1, 128), (3, 3, 96)])
def test_attention_over_thousands_of_positions_is_that_of_the_reference(
    tmp_path: Path, heads: int, kv_heads: int, width: int
) -> None:
    path = write_tiny_model(
        tmp_path / "tiny.gguf", format=TensorFormat.F32, layers=1, heads=heads, kv_heads=kv_heads, width=width
    )
    tokens = [int(token) for token in np.random.default_rng(11).integers(0, 320, 4300)]
    sequence = NativeModel.load(path, threads=2).open(len(tokens))
    sequence.forward(Rows.chain(tokens[:4290], logits_from=4290))
    sequence.commit(range(4290))
    found = sequence.forward(Rows.chain(tokens[4290:]))
    expected = reference_logits(path, tokens)[4290:]
    assert np.abs(found - expected).max() < 1e-3 * np.abs(expected).max()


@pytest.mark.parametrize("stored_as", [f for f in TensorFormat if f.block_size > 1], ids=lambda f: f.name)
def test_logits_of_quantised_models_stay_close_to_the_reference(tmp_path: Path, stored_as: TensorFormat) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf", "qwen2", format=stored_as)
    found = all_logits(NativeModel.load(path), chunk=300)
    assert kl_divergence(reference_logits(path, TOKENS), found).mean() < 0.01


def test_logits_are_bit_identical_for_any_number_of_rows_in_a_pass(model: NativeModel) -> None:
    expected = all_logits(model, chunk=1, count=130)
    for chunk in (2, 3, 5, 8, 16, 64, 130):
        np.testing.assert_array_equal(all_logits(model, chunk, count=130), expected)


def test_logits_are_bit_identical_however_a_long_prompt_is_chunked(model: NativeModel) -> None:
    expected = all_logits(model, chunk=1)
    for chunk in (7, 256, 257, len(TOKENS)):
        np.testing.assert_array_equal(all_logits(model, chunk), expected)


def test_logits_are_bit_identical_on_any_number_of_threads(path: Path) -> None:
    one, two, three = (all_logits(NativeModel.load(path, threads=n), chunk=33) for n in (1, 2, 3))
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one, three)


def test_logits_behind_a_long_past_are_bit_identical_for_any_rows_and_threads(tmp_path: Path) -> None:
    """From 1,024 positions on, chunks of the past are spread over the threads where rows are few."""
    path = write_tiny_model(tmp_path / "tiny.gguf", "qwen2", format=TensorFormat.Q8_0, width=64, ffn=64)
    past, rows = [token % 320 for token in range(7, 1507)], TOKENS[:7]
    found = []
    for threads, together in ((1, 7), (2, 1), (4, 7), (4, 3), (3, 2)):
        sequence = NativeModel.load(path, threads=threads).open(2048)
        sequence.forward(Rows.chain(past, logits_from=len(past)))
        sequence.commit(range(len(past)))
        parts = []
        for start in range(0, len(rows), together):
            chain = Rows.chain(rows[start : start + together])
            parts.append(np.array(sequence.forward(chain)))
            sequence.commit(range(len(chain.tokens)))
        found.append(np.concatenate(parts))
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


def test_logits_are_bit_identical_on_any_instruction_set(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for isa in _native.available_isas():
        monkeypatch.setenv("BORRADOR_ISA", isa)
        loaded = NativeModel.load(path)
        assert loaded.isa == isa
        found.append(all_logits(loaded, chunk=50, count=100))
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


@pytest.mark.parametrize("window", [5, 256, 300])
def test_windows_that_hide_whole_chunks_leave_bits_as_they_are(tmp_path: Path, window: int) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf", metadata={"llama.attention.sliding_window": window})
    tokens, found = 4 * TOKENS, []
    for threads, chunk in ((1, len(tokens)), (2, 300), (2, 1)):
        model = NativeModel.load(path, threads=threads)
        sequence = model.open(len(tokens))
        sequence.forward(Rows.chain(tokens[:1200], logits_from=1200))
        sequence.commit(range(1200))
        logits = []
        for start in range(1200, len(tokens), chunk):
            rows = Rows.chain(tokens[start : start + chunk])
            logits.append(np.array(sequence.forward(rows)))
            sequence.commit(range(len(rows.tokens)))
        found.append(np.concatenate(logits))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_rows_before_logits_from_give_no_logits_and_change_none(model: NativeModel) -> None:
    sequence = prefilled(model, 20)
    everything = np.array(sequence.forward(Rows.chain(TOKENS[20:30])))
    sequence.rewind(20)
    tail = sequence.forward(Rows.chain(TOKENS[20:30], logits_from=7))
    np.testing.assert_array_equal(tail, everything[7:])


@pytest.mark.parametrize("committed", [0, 5, 16, 250])
def test_every_branch_of_a_tree_has_the_logits_of_its_own_chain(model: NativeModel, committed: int) -> None:
    parents = np.array([-1, 0, 0, 1, 2, 4, 3, -1, 7, 5], np.int32)
    tokens = np.array(TOKENS[100 : 100 + len(parents)], np.int32)
    tree = np.array(prefilled(model, committed).forward(Rows(tokens, parents)))
    for row in range(len(parents)):
        path = [row]
        while parents[path[0]] >= 0:
            path.insert(0, int(parents[path[0]]))
        chain = prefilled(model, committed).forward(Rows.chain([int(tokens[i]) for i in path]))
        np.testing.assert_array_equal(tree[row], chain[-1])


@pytest.mark.parametrize("committed", [0, 13, 250])
def test_a_committed_branch_leaves_the_cache_of_its_own_chain(model: NativeModel, committed: int) -> None:
    parents = np.array([-1, -1, 1, 0, 2, 4], np.int32)
    tokens = np.array(TOKENS[40:46], np.int32)
    sequence = prefilled(model, committed)
    sequence.forward(Rows(tokens, parents))
    sequence.commit([1, 2, 4])
    assert sequence.length == committed + 3
    fresh = prefilled(model, committed)
    fresh.forward(Rows.chain([TOKENS[41], TOKENS[42], TOKENS[44]]))
    fresh.commit(range(3))
    rows = Rows.chain(TOKENS[60:64])
    np.testing.assert_array_equal(np.array(sequence.forward(rows)), fresh.forward(rows))


def test_random_rewinds_leave_the_cache_of_a_fresh_prefill(model: NativeModel) -> None:
    random, sequence = np.random.default_rng(3), prefilled(model, 40)
    for _ in range(60):
        kept = int(random.integers(20, sequence.length + 1))
        sequence.rewind(kept)
        drafted, accepted = int(random.integers(1, 9)), int(random.integers(0, 9))
        sequence.forward(Rows.chain([int(t) for t in random.integers(0, 320, drafted)]))
        sequence.rewind(kept)
        rows = TOKENS[kept : kept + max(drafted, accepted)]
        found = np.array(sequence.forward(Rows.chain(rows)))[-1]
        sequence.commit(range(min(accepted, len(rows))))
        fresh = prefilled(model, kept).forward(Rows.chain(rows))[-1]
        np.testing.assert_array_equal(found, fresh)
        sequence.rewind(min(sequence.length, 200))


def test_sequences_in_one_pass_have_the_logits_they_have_alone(model: NativeModel) -> None:
    parts = [(0, TOKENS[:9]), (31, TOKENS[31:32]), (17, TOKENS[17:40])]
    alone = [np.array(prefilled(model, n).forward(Rows.chain(tokens))) for n, tokens in parts]
    batch = [(prefilled(model, n), Rows.chain(tokens)) for n, tokens in parts]
    np.testing.assert_array_equal(np.concatenate(model.forward(batch)), np.concatenate(alone))
    for (sequence, rows), (length, _) in zip(batch, parts, strict=True):
        sequence.commit(range(len(rows.tokens)))
        assert sequence.length == length + len(rows.tokens)


def test_the_hidden_state_is_what_the_output_layer_reads(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf", "llama", format=TensorFormat.F32, tied=True)
    from tests.reference import read_matrix

    from borrador.models.gguf import GgufFile

    sequence = prefilled(NativeModel.load(path), 8)
    rows = Rows.chain(TOKENS[8:12])
    logits, hidden = np.array(sequence.forward(rows)), np.array(sequence.hidden(rows))
    with GgufFile.open(path) as file:
        output = read_matrix(file, "token_embd.weight")
    np.testing.assert_allclose(hidden @ output.T, logits, atol=1e-4)


def test_rows_beyond_the_context_are_refused_and_leave_the_cache_as_it_was(model: NativeModel) -> None:
    sequence = prefilled(model, 30, capacity=32)
    sequence.forward(Rows.chain(TOKENS[30:32]))
    with pytest.raises(ContextLengthError, match="holds 32 tokens, and 33"):
        sequence.forward(Rows.chain(TOKENS[30:33]))
    assert sequence.length == 30


@pytest.mark.parametrize(
    ("tokens", "parents"), [([320], [-1]), ([-1], [-1]), ([1], [0]), ([1, 2], [1, -1]), ([1, 2], [-1, -2])]
)
def test_rows_that_make_no_sense_are_refused(model: NativeModel, tokens: list[int], parents: list[int]) -> None:
    sequence = prefilled(model, 3)
    with pytest.raises(ValueError, match=r"vocabulary|parent"):
        sequence.forward(Rows(np.array(tokens, np.int32), np.array(parents, np.int32)))
    assert sequence.length == 3


@pytest.mark.parametrize("path_rows", [[1, 0], [0, 0], [3], [-1]])
def test_a_path_must_ascend_within_the_rows_of_the_last_pass(model: NativeModel, path_rows: list[int]) -> None:
    sequence = prefilled(model, 3)
    sequence.forward(Rows.chain(TOKENS[3:6]))
    with pytest.raises(ValueError, match="ascend"):
        sequence.commit(path_rows)
    assert sequence.length == 3


def test_an_unknown_instruction_set_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BORRADOR_ISA", "avx9000")
    with pytest.raises(UsageError, match="avx9000"):
        NativeModel.load(path)


def test_a_model_that_does_not_fit_into_memory_is_refused_before_it_is_read(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "available_bytes", lambda: 1000)
    with pytest.raises(MemoryLimitError, match=r"0\.0 GB are free"):
        NativeModel.load(path)


def test_a_closed_model_says_so(model: NativeModel) -> None:
    model.close()
    with pytest.raises(ModelError, match="closed"):
        model.open(16)


@pytest.mark.real_model
@pytest.mark.parametrize(
    ("name", "count", "divergence"),
    # The reference takes a minute for 512 tokens of the largest.
    [("smollm2-135m", 512, 0.005), ("qwen2.5-coder-0.5b", 256, 0.0025), ("qwen2.5-coder-1.5b", 256, 0.005)],
)
def test_real_models_stay_close_to_float32(
    name: str, count: int, divergence: float, model_path: Callable[[str], Path]
) -> None:
    from borrador.text.tokenizer import Tokenizer

    path = model_path(name)
    loaded = NativeModel.load(path)
    text = (Path(__file__).parents[2] / "LICENSE").read_text(encoding="utf-8")
    tokens = Tokenizer.from_metadata(loaded.metadata).encode(text, specials=False)[:count]
    found = loaded.open(count).forward(Rows.chain(tokens))
    expected = reference_logits(path, tokens)
    assert kl_divergence(expected, found).mean() < divergence
    assert (expected.argmax(-1) == found.argmax(-1)).mean() > 0.955


@pytest.mark.real_model
def test_a_real_gemma3_stays_close_to_float32_beyond_its_window(model_path: Callable[[str], Path]) -> None:
    from borrador.text.tokenizer import Tokenizer

    path = model_path("gemma3-270m")
    loaded = NativeModel.load(path)
    text = (Path(__file__).parents[2] / "LICENSE").read_text(encoding="utf-8")
    tokens = Tokenizer.from_metadata(loaded.metadata).encode_prompt(text, specials=False)[:560]
    assert max(loaded.config.windows) < len(tokens)
    found = loaded.open(560).forward(Rows.chain(tokens))
    expected = reference_logits(path, tokens)
    assert kl_divergence(expected, found).mean() < 0.0035
    assert (expected.argmax(-1) == found.argmax(-1)).mean() > 0.965
