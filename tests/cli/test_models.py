from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from tests.cli.conftest import Borrador
from tests.tiny_gguf import write_tiny_model

from borrador.cli.output import make_console
from borrador.cli.progress import FetchProgress
from borrador.models import download


@pytest.fixture(autouse=True)
def _own_models_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BORRADOR_MODELS", str(tmp_path / "models"))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.gguf"
    write_tiny_model(path, context=64, vocabulary=320, layers=2)
    return path


def test_list_shows_the_catalogue_and_that_nothing_is_on_disk(borrador: Borrador) -> None:
    entries = json.loads(borrador("list", "--json").out)["models"]
    assert [entry["name"] for entry in entries] == [
        "smollm2-135m",
        "qwen2.5-coder-0.5b",
        "qwen2.5-coder-1.5b",
        "gemma3-270m",
    ]
    assert not any(entry["on_disk"] for entry in entries)
    assert "smollm2-135m" in borrador("list").out


def test_list_tells_a_file_of_the_wrong_size_from_a_whole_one(borrador: Borrador, tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf").write_bytes(b"GGUF")
    line = next(line for line in borrador("list").out.splitlines() if "smollm2-135m" in line)
    assert "damaged" in line


def test_show_states_family_sizes_context_vocabulary_and_template(borrador: Borrador, model: Path) -> None:
    card = json.loads(borrador("show", str(model), "--json").out)
    assert (card["family"], card["layers"], card["supported"]) == ("llama", 2, True)
    assert (card["context_tokens"], card["vocabulary_tokens"], card["chat_template"]) == (64, 320, True)
    assert card["file_bytes"] == model.stat().st_size
    assert card["formats"].keys() == {"F32"}
    assert card["draft_weights_bytes"] < card["weights_bytes"] / 4
    shown = borrador("show", str(model)).out
    assert "MB, wide ones rounded to Q4_0" in shown
    assert "llama, 2 layers" in shown
    assert "64 tokens" in shown


def test_show_does_not_fetch_a_model_of_the_catalogue(borrador: Borrador) -> None:
    result = borrador("show", "qwen2.5-coder-1.5b")
    assert result.code == 3
    assert "borrador pull qwen2.5-coder-1.5b" in result.err


@pytest.mark.parametrize("command", [("show",), ("rows", "-m"), ("run", "Hello", "-m"), ("run", "Hello", "-d")])
@pytest.mark.parametrize(
    "content",
    [
        None,
        b"",
        b"GGUF",
        b"GGUF\x03\x00\x00\x00" + b"\xff" * 64,
        b"\x10\x00\x00\x00\x00\x00\x00\x00{}              ",
        b"not a model at all, only text",
    ],
    ids=["missing", "empty", "magic only", "absurd counts", "safetensors", "text"],
)
def test_bad_model_file_is_one_sentence_and_exit_code_3(
    borrador: Borrador, tmp_path: Path, model: Path, command: tuple[str, ...], content: bytes | None
) -> None:
    path = tmp_path / "bad.gguf"
    if content is not None:
        path.write_bytes(content)
    good = ("-m", str(model)) if command[-1] == "-d" else ()
    result = borrador(*command, str(path), *good)
    assert (result.code, result.out) == (3, "")
    assert [line.split(":")[0] for line in result.err.splitlines()] == ["error", "hint"]
    assert "bad.gguf" in result.err


def test_raw_text_can_be_continued_although_the_chat_template_is_broken(borrador: Borrador, tmp_path: Path) -> None:
    path = str(write_tiny_model(tmp_path / "tiny.gguf", metadata={"tokenizer.chat_template": "{% if %}"}))
    assert borrador("run", "-n", "2", "--raw", "Hello", "-m", path).code == 0
    result = borrador("run", "-n", "2", "Hello", "-m", path)
    assert (result.code, result.out) == (3, "")
    assert "the chat template cannot be read" in result.err
    assert "--raw" in result.err


@pytest.mark.parametrize("command", [("show",), ("rows", "-m"), ("run", "Hello", "-m")])
def test_directory_is_not_a_model(borrador: Borrador, tmp_path: Path, command: tuple[str, ...]) -> None:
    result = borrador(*command, str(tmp_path))
    assert result.code == 3
    assert "is a directory" in result.err


def test_unknown_name_suggests_the_nearest_one(borrador: Borrador) -> None:
    result = borrador("pull", "smolm2-135m")
    assert result.code == 3
    assert "Did you mean smollm2-135m?" in result.err
    assert "path" not in result.err  # which `pull` does not take


def test_pull_prints_the_path_and_says_once_what_it_fetches(
    borrador: Borrador, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetch(name: str, *, progress: download.Progress) -> Path:
        for done in (0, 50, 100):
            progress(done * 10**6, 100 * 10**6, f"fetching {name}")
        return Path("/models/x.gguf")

    monkeypatch.setattr(download, "pull", fetch)
    result = borrador("pull", "smollm2-135m")
    assert (result.out, result.err) == ("/models/x.gguf\n", "fetching smollm2-135m (100 MB)\n")
    assert borrador("pull", "-q", "smollm2-135m").err == ""


def test_progress_bar_is_drawn_on_a_terminal() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    with FetchProgress(make_console(screen), quiet=False) as progress:
        progress(50, 100, "fetching x")
        progress(100, 100, "fetching x")
    assert "fetching x" in screen.getvalue()
    assert "100/100" in screen.getvalue()


@pytest.mark.parametrize("command", ["run", "chat", "bench", "serve"])
def test_the_weights_of_a_draft_model_are_an_option_of_every_command_that_drafts(
    borrador: Borrador, model: Path, command: str
) -> None:
    words = ("--max-tokens", "2") if command == "bench" else ("--port", "1") if command == "serve" else ()
    result = borrador(command, "-m", str(model), "-d", "lookup", "--draft-weights", "file", *words, stdin=b"Hello")
    assert result.code == 2
    assert "draft_weights needs a draft model, got file and lookup" in result.err
