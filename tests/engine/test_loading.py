"""From files to answers: the whole path on small random models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.tiny_gguf import write_tiny_model

from borrador import load
from borrador.config import DRAFT_WEIGHTS, DraftWeights
from borrador.errors import ModelError, UsageError
from borrador.types import SamplingParams


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "target.gguf"
    write_tiny_model(path, layers=2, seed=1)
    return path


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "small.gguf"
    write_tiny_model(path, layers=1, seed=2)
    return path


@pytest.mark.parametrize("draft_tokens", [None, 1, 5])
@pytest.mark.parametrize(
    "params",
    [
        SamplingParams(max_tokens=40, ignore_eos=True),
        SamplingParams(max_tokens=40, ignore_eos=True, temperature=0.8, seed=4),
        SamplingParams(max_tokens=40, ignore_eos=True, temperature=0.8, top_k=9, top_p=0.9, min_p=0.02, seed=4),
    ],
)
def test_speculation_leaves_the_answer_of_a_real_engine_unchanged(
    target: Path, small: Path, params: SamplingParams, draft_tokens: int | None
) -> None:
    with load(target, f"lookup,suffix,{small},{target}", draft_tokens=draft_tokens, threads=1) as llm:
        for prompt in ("abcabcabc", "the cat", "x" * 30):
            plain = llm.generate(prompt, params, speculate=False)
            speculative = llm.generate(prompt, params)
            assert speculative.token_ids == plain.token_ids
            assert speculative.text == plain.text
            assert len(plain.token_ids) == 40


def test_a_model_that_drafts_for_itself_is_always_right(target: Path) -> None:
    for params in (SamplingParams(max_tokens=31), SamplingParams(max_tokens=31, temperature=1.0, seed=2)):
        with load(target, str(target), draft_tokens=5, draft_weights="file", threads=1) as llm:
            completion = llm.generate("abc", params)
        assert completion.stats.acceptance == 1.0
        assert completion.stats.target_passes <= 6


def test_unseeded_answers_differ_and_a_seed_repeats_them(target: Path, small: Path) -> None:
    with load(target, str(small), draft_tokens=3, threads=1) as llm:
        fresh = {llm.generate("abc", SamplingParams(max_tokens=30, temperature=1.0)).token_ids for _ in range(3)}
        seeded = {
            llm.generate("abc", SamplingParams(max_tokens=30, temperature=1.0, seed=9)).token_ids for _ in range(3)
        }
    assert len(fresh) == 3
    assert len(seeded) == 1


@pytest.mark.parametrize(
    "params", [SamplingParams(max_tokens=40), SamplingParams(max_tokens=40, temperature=1, seed=5)]
)
def test_a_draft_model_with_another_vocabulary_changes_no_answer(
    target: Path, tmp_path: Path, params: SamplingParams, caplog: pytest.LogCaptureFixture
) -> None:
    other = tmp_path / "other.gguf"
    write_tiny_model(other, layers=1, vocabulary=420)
    with load(target, str(other), draft_tokens=4, threads=1) as llm:
        for prompt in ("abcabcabc", "the cat", "¿qué?"):
            plain, drafted = llm.generate(prompt, params, speculate=False), llm.generate(prompt, params)
            assert drafted.token_ids == plain.token_ids
            assert drafted.stats.draft_tokens_proposed > 0
    assert "has another vocabulary: token" in caplog.text


@pytest.mark.parametrize(("threads", "told"), [(2, True), (1, False)])
def test_more_threads_than_processors_are_told_of(
    target: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, threads: int, told: bool
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    load(target, "none", threads=threads).close()
    assert ("threads are 2 and processors 1;" in caplog.text) == told


def test_a_missing_draft_model_is_refused(target: Path) -> None:
    with pytest.raises(ModelError, match=r"no model file .*/nowhere\.gguf"):
        load(target, "lookup,/nowhere.gguf")


def test_a_draft_model_without_a_tokenizer_is_named(target: Path, tmp_path: Path) -> None:
    mute = write_tiny_model(tmp_path / "mute.gguf", tokenizer=False)
    with pytest.raises(ModelError, match=r"mute\.gguf: the file must hold a tokenizer"):
        load(target, str(mute))


def test_a_misspelt_drafter_gets_the_nearest_one(target: Path) -> None:
    with pytest.raises(ModelError) as caught:
        load(target, "sufix")
    assert "Did you mean suffix?" in caught.value.hint


def test_a_context_beyond_the_models_own_is_refused(target: Path) -> None:
    with load(target, "none") as llm:
        limit = llm.context_length
    with pytest.raises(UsageError, match=f"at most the {limit} tokens this model was trained for, got {limit + 1}"):
        load(target, "none", context=limit + 1)
    with load(target, "none", context=limit - 1) as llm:
        assert llm.context_length == limit - 1


@pytest.mark.parametrize(
    "params", [SamplingParams(max_tokens=30), SamplingParams(max_tokens=30, temperature=1, seed=5)]
)
def test_a_shortlist_changes_what_is_proposed_and_never_the_answer(target: Path, params: SamplingParams) -> None:
    accepted = []
    for size in (0, 40, 318, 10**6):
        with load(target, str(target), draft_tokens=4, draft_shortlist=size, draft_weights="file", threads=1) as llm:
            plain, drafted = llm.generate("abc", params, speculate=False), llm.generate("abc", params)
        assert drafted.token_ids == plain.token_ids
        accepted.append(drafted.stats.acceptance)
    assert accepted[0] == accepted[3] == 1.0
    assert accepted[1] < 1.0


@pytest.mark.parametrize(
    "params", [SamplingParams(max_tokens=30), SamplingParams(max_tokens=30, temperature=1, seed=5)]
)
def test_rounded_weights_change_what_is_proposed_and_never_the_answer(target: Path, params: SamplingParams) -> None:
    accepted: dict[DraftWeights, float] = {}
    for weights in DRAFT_WEIGHTS:
        with load(target, str(target), draft_tokens=4, draft_weights=weights, threads=1) as llm:
            plain, drafted = llm.generate("abc", params, speculate=False), llm.generate("abc", params)
        assert drafted.token_ids == plain.token_ids
        accepted[weights] = drafted.stats.acceptance
    assert 0.0 < accepted["q4_0"] == accepted["auto"] < accepted["file"] == 1.0


def test_what_is_learnt_of_a_draft_model_is_kept_by_its_weights(
    target: Path, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BORRADOR_PROFILES", str(tmp_path))
    for weights in ("file", "q4_0"):
        with load(target, f"suffix,{small}", draft_weights=weights, threads=1) as llm:
            llm.generate("abc", SamplingParams(max_tokens=30))
    (profile,) = tmp_path.glob("*.json")
    assert json.loads(profile.read_text())["drafters"].keys() == {"suffix", str(small), f"{small} q4_0"}


@pytest.mark.parametrize("option", [{"draft_shortlist": 40}, {"draft_weights": "q4_0"}])
def test_an_option_of_draft_models_is_refused_where_there_is_none(target: Path, option: dict[str, Any]) -> None:
    ((name, value),) = option.items()
    with pytest.raises(UsageError, match=f"{name} needs a draft model, got {value} and lookup"):
        load(target, "lookup", **option)


def test_history_drafts_what_an_earlier_request_wrote(
    target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BORRADOR_HISTORY", str(tmp_path))
    params = SamplingParams(max_tokens=30, ignore_eos=True)
    with load(target, "suffix", draft_tokens=6, threads=1, history="work") as llm:
        first, again = llm.generate("the cat", params), llm.generate("the cat", params)
    with load(target, "suffix", draft_tokens=6, threads=1, history="work") as llm:
        later = llm.generate("the cat", params)
    with load(target, "suffix", draft_tokens=6, threads=1, history="home") as llm:
        elsewhere = llm.generate("the cat", params)
    assert first.token_ids == again.token_ids == later.token_ids == elsewhere.token_ids
    assert elsewhere.stats.target_passes == first.stats.target_passes
    assert max(again.stats.target_passes, later.stats.target_passes) < first.stats.target_passes
    assert len(list(tmp_path.glob("*.history"))) == 2


def test_history_that_no_drafter_uses_is_refused_before_anything_is_loaded() -> None:
    with pytest.raises(UsageError, match="history needs the drafter suffix, and draft is lookup"):
        load("/nowhere/model.gguf", "lookup", history="work")
