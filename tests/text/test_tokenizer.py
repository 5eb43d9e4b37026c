"""Text becomes the ids the model was trained on, and comes back unchanged."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.text.vocabularies import CONTROL, NORMAL, UNUSED, USER_DEFINED, byte_level, sentencepiece

from borrador.errors import ModelError, UsageError
from borrador.text import tokenizer as module
from borrador.text.tokenizer import Tokenizer, first_difference

BYTE_LEVEL = Tokenizer.from_metadata(byte_level())
SENTENCEPIECE = Tokenizer.from_metadata(sentencepiece())
COUNT = BYTE_LEVEL.vocabulary_size


def pieces(tokenizer: Tokenizer, text: str, *, specials: bool = False) -> list[str]:
    return [tokenizer.vocabulary[i] for i in tokenizer.encode(text, specials=specials)]


# Byte-level BPE ----------------------------------------------------------------------------------------------------


def test_merges_apply_in_order_of_rank() -> None:
    assert pieces(BYTE_LEVEL, "the hello") == ["the", "Ġ", "hello"]


def test_a_word_does_not_merge_with_the_next_one() -> None:
    joined = Tokenizer.from_metadata(byte_level(pairs=["a Ġ", "aĠ b", "Ġ b"]))
    assert pieces(joined, "a b") == ["a", "Ġb"]


@pytest.mark.parametrize(
    ("pre", "words"),
    [
        ("qwen2", ["1", "2", "3", "4"]),
        ("smollm", ["1", "2", "3", "4"]),
        ("llama-bpe", ["123", "4"]),
        ("default", ["123", "4"]),
    ],
)
def test_each_pre_tokenizer_cuts_digits_its_own_way(pre: str, words: list[str]) -> None:
    assert pieces(Tokenizer.from_metadata(byte_level(pre)), "1234") == words


def test_llama_bpe_keeps_a_word_whole_that_no_merge_reaches() -> None:
    more = {"tokens": [*byte_level()["tokenizer.ggml.tokens"], "xyz"]}
    kinds = {"token_type": [*byte_level()["tokenizer.ggml.token_type"], int(NORMAL)]}
    assert pieces(Tokenizer.from_metadata(byte_level("llama-bpe", **more, **kinds)), "xyz") == ["xyz"]
    assert pieces(Tokenizer.from_metadata(byte_level("qwen2", **more, **kinds)), "xyz") == ["x", "y", "z"]


@pytest.mark.parametrize(("alias", "name"), [("llama-v3", "llama-bpe"), ("deepseek-r1-qwen", "qwen2"), ("", "default")])
def test_other_names_of_a_pre_tokenizer_mean_the_same(alias: str, name: str) -> None:
    text = "it's 12345 $x\n\n y"
    renamed, plain = (Tokenizer.from_metadata(byte_level(pre)) for pre in (alias, name))
    assert renamed.encode(text, specials=False) == plain.encode(text, specials=False)


def test_a_pair_listed_twice_has_its_first_rank() -> None:
    twice = Tokenizer.from_metadata(byte_level(pairs=["a b", "b c"], merges=["a b", "b c", "a b"]))
    assert pieces(twice, "abc") == ["ab", "c"]


def test_a_byte_without_a_token_is_left_out_and_parts_its_neighbours() -> None:
    metadata = byte_level()
    tokens = metadata["tokenizer.ggml.tokens"]
    tokens[tokens.index("x")] = "no byte"
    assert pieces(Tokenizer.from_metadata(metadata), "txhe") == ["t", "he"]


# Special tokens ----------------------------------------------------------------------------------------------------


def test_control_tokens_in_text_are_recognised_only_on_request() -> None:
    assert pieces(BYTE_LEVEL, "a<|im_end|>b", specials=True) == ["a", "<|im_end|>", "b"]
    assert pieces(BYTE_LEVEL, "a<|im_end|>b") == list("a<|im_end|>b")


def test_user_defined_tokens_are_recognised_always() -> None:
    assert pieces(BYTE_LEVEL, "a<tool>b") == ["a", "<tool>", "b"]
    assert pieces(SENTENCEPIECE, "a<tag>")[-1] == "<tag>"


def test_the_longest_special_token_wins() -> None:
    metadata = byte_level()
    metadata["tokenizer.ggml.tokens"] += ["<tool><tool>"]
    metadata["tokenizer.ggml.token_type"] += [int(USER_DEFINED)]
    assert pieces(Tokenizer.from_metadata(metadata), "<tool><tool><tool>") == ["<tool><tool>", "<tool>"]


def test_every_end_token_of_the_file_ends_an_answer() -> None:
    assert {BYTE_LEVEL.vocabulary[i] for i in BYTE_LEVEL.eog_ids} == {"<|im_end|>", "<|endoftext|>"}
    assert {SENTENCEPIECE.vocabulary[i] for i in SENTENCEPIECE.eog_ids} == {"</s>"}
    declared = Tokenizer.from_metadata(byte_level(eot_token_id=104, eom_token_id=105))
    assert {104, 105} < declared.eog_ids


def test_an_end_name_is_a_control_token_even_where_the_file_forgot() -> None:
    forgetful = Tokenizer.from_metadata(byte_level(token_type=None))
    end = forgetful.vocabulary.index("<|im_end|>")
    assert forgetful.is_control(end)
    assert end in forgetful.eog_ids


def test_html_that_looks_like_an_end_token_ends_nothing() -> None:
    metadata = byte_level()
    metadata["tokenizer.ggml.tokens"] += ["</s>"]
    metadata["tokenizer.ggml.token_type"] += [int(USER_DEFINED)]
    html = Tokenizer.from_metadata(metadata)
    assert html.vocabulary.index("</s>") not in html.eog_ids


def test_harmony_ends_at_return_and_not_at_the_end_of_a_message() -> None:
    metadata = byte_level()
    metadata["tokenizer.ggml.tokens"] += ["<|return|>", "<|call|>", "<|end|>"]
    metadata["tokenizer.ggml.token_type"] += [int(CONTROL)] * 3
    harmony = Tokenizer.from_metadata(metadata)
    ends = {harmony.vocabulary[i] for i in harmony.eog_ids}
    assert {"<|return|>", "<|call|>"} < ends
    assert "<|end|>" not in ends


def test_a_prompt_begins_with_one_beginning_token_where_the_model_wants_it() -> None:
    llama = Tokenizer.from_metadata(byte_level("llama-bpe"))
    bos = llama.bos_id
    assert llama.add_bos
    assert llama.encode_prompt("a", specials=True) == [bos, 97]
    assert llama.encode_prompt("<|endoftext|>a", specials=True) == [bos, 97]
    assert BYTE_LEVEL.encode_prompt("a", specials=True) == [97]
    assert Tokenizer.from_metadata(byte_level(add_bos_token=True)).encode_prompt("a", specials=False) == [bos, 97]


# SentencePiece -----------------------------------------------------------------------------------------------------


def test_the_best_scored_piece_is_merged_first() -> None:
    assert pieces(SENTENCEPIECE, "ba") == ["▁", "ba"]
    assert pieces(SENTENCEPIECE, "aba") == ["▁ab", "a"]


def test_the_leftmost_of_equal_pieces_is_merged_first() -> None:
    equal = Tokenizer.from_metadata(sentencepiece({"a": 0, "aa": 0}, add_space_prefix=False))
    assert pieces(equal, "aaa") == ["aa", "a"]


def test_characters_without_a_piece_become_their_bytes() -> None:
    assert pieces(SENTENCEPIECE, "a🙂é") == ["▁a", "<0xF0>", "<0x9F>", "<0x99>", "<0x82>", "é"]


def test_characters_without_a_piece_are_unknown_where_bytes_have_no_tokens() -> None:
    metadata = sentencepiece()
    metadata["tokenizer.ggml.tokens"] = [text.replace("<0xF0>", "<byte>") for text in metadata["tokenizer.ggml.tokens"]]
    lacking = Tokenizer.from_metadata(metadata)
    assert pieces(lacking, "a🙂zé") == ["▁a", "<unk>", "é"]
    assert lacking.least_tokens("z" * 1000) == 0
    few = {key: metadata[f"tokenizer.ggml.{key}"][:3] for key in ("tokens", "token_type", "scores")}
    assert pieces(Tokenizer.from_metadata(sentencepiece(**few, unknown_token_id=1)), "a") == ["<s>"]


def test_a_space_goes_before_the_text_and_after_special_tokens_where_the_file_says_so() -> None:
    assert pieces(SENTENCEPIECE, "a<s>a", specials=True) == ["▁a", "<s>", "▁a"]
    bare = Tokenizer.from_metadata(sentencepiece(add_space_prefix=False))
    assert pieces(bare, "a<s>a a", specials=True) == ["a", "<s>", "a", "▁a"]


def test_the_space_before_a_text_is_removed_from_a_whole_text_and_kept_in_its_continuation() -> None:
    ids = SENTENCEPIECE.encode("ab a", specials=False)
    assert SENTENCEPIECE.decode(ids, starts_text=True) == "ab a"
    assert SENTENCEPIECE.decode(ids) == " ab a"


def test_sentencepiece_defaults_hold_where_the_file_is_silent() -> None:
    assert (SENTENCEPIECE.bos_id, SENTENCEPIECE.eos_id, SENTENCEPIECE.add_bos) == (1, 2, True)


# Both --------------------------------------------------------------------------------------------------------------


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_any_text_comes_back_unchanged(text: str) -> None:
    assert BYTE_LEVEL.decode(BYTE_LEVEL.encode(text, specials=False)) == text
    if "<tag>" not in text and "▁" not in text:
        assert SENTENCEPIECE.decode(SENTENCEPIECE.encode(text, specials=False), starts_text=True) == text


@given(
    st.lists(st.text(max_size=3) | st.sampled_from(["hello", " the", "<|im_end|>", "<tag>", "aba", "é"])).map("".join)
)
def test_a_text_never_has_fewer_tokens_than_its_length_says(text: str) -> None:
    for tokenizer in (BYTE_LEVEL, SENTENCEPIECE):
        with contextlib.suppress(UsageError):
            assert tokenizer.least_tokens(text) <= len(tokenizer.encode(text, specials=True))


def test_the_least_tokens_of_a_text_are_its_bytes_over_those_of_the_longest_token() -> None:
    longest = max(len(token.encode()) for token in BYTE_LEVEL.vocabulary)
    assert BYTE_LEVEL.least_tokens("<|endoftext|>" * 100) == 100 == -(-1300 // longest)
    assert BYTE_LEVEL.least_tokens("é" * 1300) == 200


def test_a_text_may_have_no_token_at_all_where_bytes_are_left_out() -> None:
    metadata = byte_level()
    metadata["tokenizer.ggml.tokens"][ord("x")] = "no byte"
    assert Tokenizer.from_metadata(metadata).least_tokens("x" * 1000) == 0


@pytest.mark.parametrize(("tokenizer", "text"), [(BYTE_LEVEL, "hello the "), (SENTENCEPIECE, "abababaaabba")])
def test_other_threads_go_on_while_a_long_text_is_encoded(tokenizer: Tokenizer, text: str) -> None:
    """What one text takes is one call of the library: without its leave no other thread would count meanwhile. On a
    busy machine it may take a few calls until one does."""
    counted, done, during = 0, threading.Event(), list[int]()

    def count() -> None:
        nonlocal counted
        while not done.is_set():
            counted += 1
            time.sleep(0.0001)

    thread = threading.Thread(target=count)
    thread.start()
    while len(during) < 50 and max(during, default=0) <= 5:
        before = counted
        tokenizer.encode(text * 50_000, specials=False)
        during.append(counted - before)
    done.set()
    thread.join()
    assert max(during) > 5


@pytest.mark.parametrize("tokenizer", [BYTE_LEVEL, SENTENCEPIECE])
def test_a_lone_surrogate_is_refused(tokenizer: Tokenizer) -> None:
    with pytest.raises(UsageError, match=r"character 2 is the lone surrogate '\\udcff'"):
        tokenizer.encode("ab\udcff", specials=False)


def test_text_longer_than_any_context_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CHARACTERS", 10)
    assert BYTE_LEVEL.encode(" " * 10, specials=False)
    with pytest.raises(UsageError, match="at most 10 characters, got 11"):
        BYTE_LEVEL.encode(" " * 11, specials=False)


def test_token_bytes_are_what_the_text_gets() -> None:
    assert BYTE_LEVEL.token_bytes(0xF0) == b"\xf0"
    assert BYTE_LEVEL.token_bytes(BYTE_LEVEL.vocabulary.index("Ġthe")) == b" the"
    assert BYTE_LEVEL.token_bytes(BYTE_LEVEL.vocabulary.index("<tool>")) == b"<tool>"
    assert BYTE_LEVEL.token_bytes(BYTE_LEVEL.vocabulary.index("<|im_end|>")) == b""
    assert SENTENCEPIECE.token_bytes(3 + 0x0A) == b"\n"
    assert SENTENCEPIECE.token_bytes(SENTENCEPIECE.vocabulary.index("▁ab")) == b" ab"


def test_an_unused_token_gives_no_text() -> None:
    row = padded(1)
    assert row.token_bytes(COUNT) == b""
    assert row.token_text(COUNT) == f"[PAD{COUNT}]"


def test_token_text_is_readable() -> None:
    assert BYTE_LEVEL.token_text(BYTE_LEVEL.vocabulary.index("Ġthe")) == " the"
    assert BYTE_LEVEL.token_text(BYTE_LEVEL.vocabulary.index("<|im_end|>")) == "<|im_end|>"
    assert BYTE_LEVEL.token_text(0xF0) == r"\xf0"


@pytest.mark.parametrize("token_id", [-1, BYTE_LEVEL.vocabulary_size])
def test_an_id_outside_the_vocabulary_is_an_error(token_id: int) -> None:
    with pytest.raises(ModelError, match=f"got {token_id}"):
        BYTE_LEVEL.token_bytes(token_id)


# Two vocabularies --------------------------------------------------------------------------------------------------


def padded(count: int, kind: int = UNUSED) -> Tokenizer:
    metadata = byte_level()
    tokens = metadata["tokenizer.ggml.tokens"]
    metadata["tokenizer.ggml.tokens"] = [*tokens, *(f"[PAD{len(tokens) + i}]" for i in range(count))]
    metadata["tokenizer.ggml.token_type"] += [int(kind)] * count
    return Tokenizer.from_metadata(metadata)


def test_vocabularies_that_differ_in_padding_only_are_the_same() -> None:
    assert first_difference(BYTE_LEVEL, BYTE_LEVEL) is None
    assert first_difference(BYTE_LEVEL, padded(3)) is None
    assert first_difference(padded(5, USER_DEFINED), padded(3)) is None


def test_the_first_difference_is_described() -> None:
    metadata = byte_level()
    metadata["tokenizer.ggml.tokens"][256:258] = ["ht", "the2"]
    metadata["tokenizer.ggml.merges"] = []
    other = Tokenizer.from_metadata(metadata)
    assert first_difference(BYTE_LEVEL, other) == "token 256 is 'th' in the first vocabulary and 'ht' in the second"


def test_a_token_the_other_vocabulary_lacks_is_a_difference() -> None:
    metadata = byte_level()
    count = len(metadata["tokenizer.ggml.tokens"])
    metadata["tokenizer.ggml.tokens"] += ["<think>"]
    metadata["tokenizer.ggml.token_type"] += [int(CONTROL)]
    thinking = Tokenizer.from_metadata(metadata)
    expected = f"token {count} is missing in the first vocabulary and '<think>' in the second"
    assert first_difference(BYTE_LEVEL, thinking) == expected
    assert first_difference(padded(2), thinking) == expected


# Damaged files -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": None}, "tokenizer.ggml.model is missing"),
        ({"model": "t5"}, "tokenizer model 't5' is not supported, only gpt2 and llama"),
        ({"model": 7}, "tokenizer model 7 is not supported"),
        ({"pre": "tekken"}, "pre-tokenizer 'tekken' is not supported, only default, llama-bpe, qwen2, smollm"),
        ({"pre": ["qwen2"]}, "pre-tokenizer .* is not supported"),
        ({"tokens": None}, "tokens is missing"),
        ({"tokens": "abc"}, "tokens must be a list, got str"),
        ({"tokens": []}, "at least one token, got none"),
        ({"tokens": [1, 2]}, "tokens must hold strings only"),
        ({"tokens": ["a", "\ud800"]}, "tokens must be valid UTF-8"),
        ({"tokens": ["a", "b", "a"]}, "every token must occur once .* 'a' occurs twice"),
        ({"token_type": [1]}, f"one entry per token, {COUNT}, got 1"),
        ({"token_type": ["1"] * COUNT}, "token_type must hold finite numbers only"),
        ({"token_type": [1.5] * COUNT}, "token_type must hold finite numbers only"),
        ({"token_type": [[1], [1, 2]] + [1] * (COUNT - 2)}, "token_type must hold finite numbers only"),
        ({"token_type": 3}, "token_type must be a list, got int"),
        ({"merges": None}, "merges is missing"),
        ({"merges": ["t h", 4]}, "merges must hold strings only"),
        ({"merges": ["the"]}, "must be two tokens, got 'the'"),
        ({"merges": ["t h e"]}, "must be two tokens, got 't h e'"),
        ({"merges": ["t "]}, "must be two tokens, got 't '"),
        ({"merges": ["q z"]}, "merges must resolve to tokens"),
        ({"merges": ["nosuch token"]}, "merges must resolve to tokens"),
        ({"eos_token_id": COUNT}, f"eos_token_id must be below the vocabulary's {COUNT} tokens, got {COUNT}"),
        ({"bos_token_id": -1}, "bos_token_id must be below .* got -1"),
        ({"eot_token_id": "2"}, "eot_token_id must be a token id, got '2'"),
        ({"padding_token_id": True}, "padding_token_id must be a token id, got True"),
        ({"unknown_token_id": 1.0}, "unknown_token_id must be a token id, got 1.0"),
        ({"add_bos_token": 1}, "add_bos_token must be true or false, got 1"),
        ({"add_eos_token": "no"}, "add_eos_token must be true or false, got 'no'"),
        ({"add_bos_token": True, "bos_token_id": None}, "bos_token_id must be given"),
    ],
)
def test_a_damaged_byte_level_vocabulary_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        Tokenizer.from_metadata(byte_level(**{"pre": "qwen2", **change}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": None}, "scores is missing"),
        ({"scores": [0.0]}, "one entry per token"),
        ({"scores": [float("nan")] * SENTENCEPIECE.vocabulary_size}, "scores must hold finite numbers only"),
        ({"tokens": ["a"], "token_type": None, "scores": [0.0], "bos_token_id": 3}, "got 3"),
        ({"add_space_prefix": "yes"}, "add_space_prefix must be true or false"),
    ],
)
def test_a_damaged_sentencepiece_vocabulary_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        Tokenizer.from_metadata(sentencepiece(**change))


@pytest.mark.parametrize("metadata", [byte_level(), sentencepiece()])
@given(data=st.data())
def test_no_damage_of_one_key_raises_anything_but_a_model_error(metadata: dict[str, Any], data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(sorted(metadata)))
    values = st.integers() | st.floats() | st.text(max_size=3)
    value = data.draw(st.none() | st.booleans() | values | st.lists(values, max_size=4))
    with contextlib.suppress(ModelError):
        Tokenizer.from_metadata({**metadata, key: value}).encode("ab <s> é", specials=True)


def test_a_large_vocabulary_is_built_in_a_second() -> None:
    pairs = [f"{a} {b}" for a in "abcdefghijklmnopqrstuvwxyz" for b in "abcdefghijklmnopqrstuvwxyz"]
    triples = [f"{p.replace(' ', '')} {c}" for p in pairs for c in "abcdefghijklmnopqrstuvwxyz"]
    quads = [f"{t.replace(' ', '')} {d}" for t in triples for d in "abcdefg"]
    metadata = byte_level(pairs=pairs + triples + quads)
    start = time.process_time()
    tokenizer = Tokenizer.from_metadata(metadata)
    assert time.process_time() - start < 1.5
    assert tokenizer.vocabulary_size > 140_000
