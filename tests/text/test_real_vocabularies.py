"""The catalogue's models tokenize as the engines they come from do: ids as llama.cpp gives them."""

# ruff: noqa: RUF001 - the texts are hard on purpose

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from borrador.models.gguf import GgufFile
from borrador.text.chat_template import ChatTemplate
from borrador.text.detokenizer import Detokenizer
from borrador.text.tokenizer import Tokenizer, first_difference

pytestmark = pytest.mark.real_model
ModelPath = Callable[[str], Path]

SPECIALS = "<|im_start|>user\nhi<|im_end|>\n"
KNOWN_IDS = {
    "smollm2-135m": {
        "La capital de Italia es": [15319, 3575, 367, 657, 15492, 1599],
        " don't  stop\n\n\tx = 12345": [1326, 982, 216, 2853, 1116, 197, 104, 446, 216, 33, 34, 35, 36, 37],
        "¿Qué? 你好 🙂": [47416, 6317, 2756, 47, 216, 18645, 250, 48392, 138, 47526],
        "   \n\n\n  <td>x</td>": [333, 1116, 3805, 2067, 11474, 46, 104, 9617, 11474, 46],
        SPECIALS: [44, 108, 306, 79, 3738, 108, 46, 4093, 198, 6004, 44, 108, 306, 79, 486, 108, 46, 198],
    },
    "qwen2.5-coder-0.5b": {
        "La capital de Italia es": [8747, 6722, 409, 52122, 1531],
        " don't  stop\n\n\tx = 12345": [1513, 944, 220, 2936, 271, 10225, 284, 220, 16, 17, 18, 19, 20],
        "¿Qué? 你好 🙂": [30182, 65706, 30, 220, 108386, 27484],
        "   \n\n\n  <td>x</td>": [262, 1406, 220, 366, 1296, 28257, 522, 1296, 29],
        SPECIALS: [27, 91, 318, 4906, 91, 29, 872, 198, 6023, 27, 91, 318, 6213, 91, 397],
    },
    "gemma3-270m": {
        "La capital de Italia es": [4967, 5279, 569, 33549, 1115],
        " don't  stop\n\n\tx = 12345": [
            1537, 236789, 236745, 138, 11412, 108, 255968, 236781, 578, 236743, 236770, 236778, 236800, 236812, 236810,
        ],
        "¿Qué? 你好 🙂": [237665, 24338, 236881, 43758, 237389, 57235],
        "   \n\n\n  <td>x</td>": [139, 109, 138, 175, 236781, 183],
        "\x01\uffff": [249732, 477, 429, 429],
    },
}  # fmt: skip
KNOWN_SPECIALS = {
    "smollm2-135m": (SPECIALS, [1, 4093, 198, 6004, 2, 198]),
    "qwen2.5-coder-0.5b": (SPECIALS, [151644, 872, 198, 6023, 151645, 198]),
    "gemma3-270m": ("<bos><start_of_turn>user\nhi<end_of_turn>\n", [2, 105, 2364, 107, 2202, 106, 107]),
}
END_IDS = {
    "smollm2-135m": {0, 2, 4},
    "qwen2.5-coder-0.5b": {151643, 151645, 151662, 151663, 151664},
    "gemma3-270m": {1, 106},
}
HARD_TEXTS = [
    "def f(x):\n    return x ** 2\n\n\nclass A:\n\tpass\n", "I'm you're HE'LL they'd we've it's O'Reilly's 'tis",
    "你好，世界！ こんにちは 안녕하세요 Привет مرحبا שלום हिन्दी ไทย", "🙂👨‍👩‍👧‍👦🇪🇸👍🏽 e\u0301 n\u0303 ﬁ 𝓗 𠀀",
    "\r\n\t \n \u00a0\u3000\u2028\ufeff\x00\x01\x7f\x80\U0010ffff", " " * 70 + "x" + "\n" * 70 + "\t" * 70,
    "1234567890 １２３ ²³½ Ⅷ 1,234.56", "", " ", "\n", "a" * 500,
]  # fmt: skip

each_model = pytest.mark.parametrize("name", list(KNOWN_IDS))


@functools.cache
def metadata_of(path: Path) -> Mapping[str, Any]:
    with GgufFile.open(path) as file:
        return file.metadata


@functools.cache
def tokenizer_of(path: Path) -> Tokenizer:
    return Tokenizer.from_metadata(metadata_of(path))


@each_model
def test_known_texts_have_the_known_ids(model_path: ModelPath, name: str) -> None:
    tokenizer = tokenizer_of(model_path(name))
    for text, ids in KNOWN_IDS[name].items():
        assert tokenizer.encode(text, specials=False) == ids
    text, ids = KNOWN_SPECIALS[name]
    assert tokenizer.encode(text, specials=True) == ids


@each_model
def test_every_end_token_is_known(model_path: ModelPath, name: str) -> None:
    assert tokenizer_of(model_path(name)).eog_ids == END_IDS[name]


@each_model
@pytest.mark.parametrize("text", HARD_TEXTS)
def test_hard_texts_come_back_unchanged_at_once_and_streamed(model_path: ModelPath, name: str, text: str) -> None:
    tokenizer = tokenizer_of(model_path(name))
    ids = tokenizer.encode(text, specials=False)
    assert tokenizer.decode(ids, starts_text=True) == text
    detokenizer = Detokenizer(tokenizer, starts_text=True)
    assert "".join(map(detokenizer.push, ids)) + detokenizer.flush() == text


@each_model
def test_every_token_can_be_shown(model_path: ModelPath, name: str) -> None:
    tokenizer = tokenizer_of(model_path(name))
    assert all(tokenizer.token_text(i) for i in range(tokenizer.vocabulary_size))


def test_gemma_begins_with_its_beginning_token(model_path: ModelPath) -> None:
    assert tokenizer_of(model_path("gemma3-270m")).encode_prompt("hi", specials=True) == [2, 2202]


def test_the_qwen_pair_shares_a_vocabulary_and_smollm_has_another(model_path: ModelPath) -> None:
    small, large = (tokenizer_of(model_path(f"qwen2.5-coder-{size}")) for size in ("0.5b", "1.5b"))
    assert first_difference(small, large) is None
    assert first_difference(large, tokenizer_of(model_path("smollm2-135m"))) == (
        "token 0 is '!' in the first vocabulary and '<|endoftext|>' in the second"
    )


@pytest.mark.parametrize(
    ("name", "system"),
    [
        ("smollm2-135m", "You are a helpful AI assistant named SmolLM, trained by Hugging Face"),
        ("qwen2.5-coder-0.5b", "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."),
        ("qwen2.5-coder-1.5b", "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."),
    ],
)
def test_the_files_chat_template_is_applied(model_path: ModelPath, name: str, system: str) -> None:
    path = model_path(name)
    template = ChatTemplate.from_metadata(metadata_of(path), tokenizer_of(path))
    assert template.render([{"role": "user", "content": "Hi"}]) == (
        f"<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )
