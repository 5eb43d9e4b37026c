"""Endpoints that look something up."""

from __future__ import annotations

import pytest
from tests.server.rig import CREATED, Rig

from borrador import __version__


def test_models_are_those_that_are_served(rig: Rig) -> None:
    listed = rig.client.get("/v1/models").json()
    assert listed["object"] == "list"
    (card,) = listed["data"]
    assert (card["id"], card["object"], card["created"], card["max_model_len"]) == ("tiny", "model", CREATED, 4096)
    assert rig.client.get("/v1/models/tiny").json() == card


@pytest.mark.parametrize("name", ["other", "../../etc/passwd", "a/b", "tiny.gguf"])
def test_other_models_are_not_found(rig: Rig, name: str) -> None:
    response = rig.client.get(f"/v1/models/{name}")
    assert response.status_code == 404
    assert response.json()["error"]["code"] in ("model_not_found", "not_found")


def test_text_becomes_tokens_and_text_again(rig: Rig) -> None:
    told = rig.post("/tokenize", prompt="Hé<|im_end|>", return_token_strs=True).json()
    assert told["tokens"] == [*"Hé".encode(), 258]
    assert told["count"] == 4
    assert told["token_strs"] == ["H", "\\xc3", "\\xa9", "<|im_end|>"]
    assert rig.post("/detokenize", tokens=told["tokens"]).json() == {"prompt": "Hé"}


def test_a_conversation_becomes_the_tokens_of_its_prompt(rig: Rig) -> None:
    told = rig.post("/tokenize", messages=[{"role": "user", "content": "Hi"}]).json()
    assert told["tokens"] == [*b"user: Hi\n", 257]


LONG = "x" * 4096 * len("<|endoftext|>")  # as many times the longest token


def test_tokens_are_counted_beyond_the_context(rig: Rig) -> None:
    told = rig.post("/tokenize", prompt="x" * 5000).json()
    assert (told["count"], told["max_model_len"]) == (5000, 4096)


@pytest.mark.parametrize("body", [{"prompt": LONG}, {"messages": [{"role": "user", "content": LONG}]}])
def test_a_text_that_cannot_fit_by_its_length_is_not_tokenised(rig: Rig, body: dict[str, object]) -> None:
    response = rig.post("/tokenize", **body)
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["param"]) == (400, "context_length_exceeded", *body)
    assert "shorter than the context of 4096 tokens, it has at least 409" in error["message"]


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/tokenize", {}, "prompt"),
        ("/tokenize", {"prompt": "a", "messages": [{"role": "user", "content": "a"}]}, "prompt"),
        ("/tokenize", {"prompt": 5}, "prompt"),
        ("/tokenize", {"content": "a"}, "content"),
        ("/tokenize", {"prompt": "a", "model": "other"}, "model"),
        ("/detokenize", {}, "tokens"),
        ("/detokenize", {"tokens": [260]}, "tokens"),
        ("/detokenize", {"tokens": [-1]}, "tokens[0]"),
        ("/detokenize", {"tokens": [1.5]}, "tokens[0]"),
    ],
)
def test_what_breaks_a_rule_is_refused_by_name(rig: Rig, path: str, body: dict[str, object], param: str) -> None:
    response = rig.post(path, **body)
    assert response.status_code == (404 if param == "model" else 400), response.text
    assert response.json()["error"]["param"] == param


def test_health_and_version(rig: Rig) -> None:
    assert rig.client.get("/health").json() == {"status": "ok"}
    assert rig.client.get("/health/ready").json() == {"status": "ok"}
    assert rig.client.get("/version").json() == {"version": __version__}


def test_stats_balance(rig: Rig) -> None:
    rig.post("/v1/completions", prompt="<|im_start|>", max_tokens=3)
    rig.settle()
    stats = rig.client.get("/v1/borrador/stats").json()
    ended = stats["requests_finished"] + stats["requests_cancelled"] + stats["requests_failed"]
    assert stats["requests_admitted"] == ended > 0
    assert stats["running"] == stats["waiting"] == 0


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/nothing", 404), ("GET", "/tokenize", 405)])
def test_paths_and_methods_that_do_not_exist_are_told_as_json(rig: Rig, method: str, path: str, status: int) -> None:
    response = rig.client.request(method, path)
    assert response.status_code == status
    assert set(response.json()["error"]) == {"message", "type", "param", "code"}
