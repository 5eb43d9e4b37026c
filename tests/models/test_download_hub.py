"""`hf:` addresses go through the Hugging Face Hub's client, whose errors become one sentence each."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub import errors

from borrador.errors import ModelError
from borrador.models.download import pull, resolve

ADDRESS = "hf:owner/repo/folder/file.gguf"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> SimpleNamespace:
    """The Hub's client, replaced: `fails` is raised by a download, `cached` is what lies in the cache."""
    state = SimpleNamespace(fails=None, cached=None, downloads=[], size=100)

    def download(repository: str, file_name: str, *, tqdm_class: Any) -> str:
        if state.fails:
            raise state.fails
        state.downloads.append((repository, file_name))
        bar = tqdm_class(total=100, unit="B", disable=False)
        bar.update(100)
        bar.close()
        return str(tmp_path / "file.gguf")

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda repository, name: state.cached)
    monkeypatch.setattr(huggingface_hub, "get_hf_file_metadata", lambda url: SimpleNamespace(size=state.size))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    return state


def test_a_file_is_fetched_with_progress(hub: SimpleNamespace, tmp_path: Path) -> None:
    calls: list[tuple[int, int, str]] = []
    assert resolve(ADDRESS, progress=lambda *call: calls.append(call)) == tmp_path / "file.gguf"
    assert hub.downloads == [("owner/repo", "folder/file.gguf")]
    assert calls[-1] == (100, 100, "fetching folder/file.gguf")


def test_a_cached_file_needs_no_network_unless_pulled(hub: SimpleNamespace, tmp_path: Path) -> None:
    hub.cached = str(tmp_path / "cached.gguf")
    assert resolve(ADDRESS) == tmp_path / "cached.gguf"
    assert hub.downloads == []
    pull(ADDRESS)
    assert len(hub.downloads) == 1


@pytest.mark.parametrize(
    "address",
    [
        "hf:",
        "hf:owner/repo",
        "hf:owner/repo/",
        "hf:owner//f.gguf",
        "hf:owner/repo/model.safetensors",
        "hf:o/r/../f.gguf",
    ],
)
def test_a_malformed_address_gets_the_form(hub: SimpleNamespace, address: str) -> None:
    with pytest.raises(ModelError, match="not the address") as caught:
        resolve(address)
    assert caught.value.hint == "Write hf:OWNER/REPO/FILE.gguf."


def without_response(kind: type[Exception]) -> Exception:
    """An error of the client; its constructor would want an HTTP response."""
    return kind.__new__(kind)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (without_response(errors.GatedRepoError), "accepted its terms"),
        (without_response(errors.RepositoryNotFoundError), "has no repository owner/repo"),
        (errors.LocalEntryNotFoundError("x"), "cannot be reached"),
        (errors.OfflineModeIsEnabled("x"), "cannot be reached"),
        (errors.EntryNotFoundError("x"), "owner/repo has no file folder/file.gguf"),
        (ConnectionResetError(104, "Connection reset by peer"), "cannot be fetched: Connection reset by peer"),
        (OSError(28, "No space left on device"), "No space left"),
        (errors.HFValidationError("Repo id must\nbe so"), "cannot be fetched: Repo id must$"),
        (RuntimeError(), "cannot be fetched: RuntimeError"),
    ],
)
def test_errors_of_the_client_become_one_sentence(hub: SimpleNamespace, error: Exception, message: str) -> None:
    hub.fails = error
    with pytest.raises(ModelError, match=message) as caught:
        resolve(ADDRESS)
    assert "\n" not in str(caught.value)
    assert caught.value.hint


def test_an_interrupt_passes_through(hub: SimpleNamespace) -> None:
    hub.fails = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        resolve(ADDRESS)


def test_a_full_disk_is_told_before_the_download(hub: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.size = shutil.disk_usage("/").total * 10
    with pytest.raises(ModelError, match="free disk"):
        resolve(ADDRESS)
    assert hub.downloads == []


def test_offline_nothing_is_asked_of_the_network(hub: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(url: str) -> None:
        raise AssertionError(url)

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub, "get_hf_file_metadata", refuse)
    hub.fails = errors.LocalEntryNotFoundError("offline")
    with pytest.raises(ModelError, match="cannot be reached") as caught:
        resolve(ADDRESS)
    assert "HF_HUB_OFFLINE" in caught.value.hint
