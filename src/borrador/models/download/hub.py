"""Fetches GGUF files from the Hugging Face Hub, into the Hub's own cache."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from borrador.errors import ModelError, in_words
from borrador.models.download.files import Progress, require_space

HUB_PREFIX = "hf:"
_FORM = "Write hf:OWNER/REPO/FILE.gguf."


def fetch_from_hub(address: str, progress: Progress, *, refresh: bool = False) -> Path:
    """The local file of `hf:OWNER/REPO/FILE.gguf`; fetched where it is not in the Hub's cache yet.

    HF_HOME, HF_HUB_CACHE, HF_TOKEN and HF_HUB_OFFLINE act as they do for every program that uses the Hub.

    Args:
        refresh: ask the Hub for a newer version even if the file is in the cache.

    Raises:
        ModelError: the address is malformed, or the Hub does not give the file.
    """
    repository, file_name = parse_address(address)
    # Importing the client takes longer than a whole `borrador --version` may.
    from huggingface_hub import try_to_load_from_cache

    try:
        cached = None if refresh else try_to_load_from_cache(repository, file_name)
        return Path(cached) if isinstance(cached, str) else _download(repository, file_name, progress)
    except ModelError:
        raise
    except Exception as error:  # noqa: BLE001  the client lets errors of whichever HTTP library it uses through
        raise _explain(error, repository, file_name) from None


def parse_address(address: str) -> tuple[str, str]:
    """Split `hf:OWNER/REPO/FILE.gguf` into repository and file name; the file may lie in a folder.

    Raises:
        ModelError: the address has another form.
    """
    parts = address.removeprefix(HUB_PREFIX).split("/")
    if len(parts) < 3 or not all(parts) or ".." in parts or not parts[-1].lower().endswith(".gguf"):
        raise ModelError(f"{address[:200]!r} is not the address of a GGUF file on the Hugging Face Hub", _FORM)
    return "/".join(parts[:2]), "/".join(parts[2:])


def _download(repository: str, file_name: str, progress: Progress) -> Path:
    from huggingface_hub import constants, get_hf_file_metadata, hf_hub_download, hf_hub_url

    if not constants.HF_HUB_OFFLINE:
        size_bytes = get_hf_file_metadata(hf_hub_url(repository, file_name)).size or 0
        require_space(_nearest_existing(Path(constants.HF_HUB_CACHE)), size_bytes, file_name)
    return Path(hf_hub_download(repository, file_name, tqdm_class=_progress_bar(progress, file_name)))


def _nearest_existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.exists())


def _progress_bar(progress: Progress, label: str) -> Any:
    """A tqdm class that draws nothing and hands its numbers on."""
    from huggingface_hub.utils.tqdm import tqdm

    class Bar(tqdm):
        def display(self, *_: Any, **__: Any) -> None:
            progress(int(self.n), int(self.total or 0), f"fetching {label}")

    return Bar


def _explain(error: Exception, repository: str, file_name: str) -> ModelError:
    from huggingface_hub import errors

    if isinstance(error, errors.GatedRepoError):
        return ModelError(
            f"{repository} gives its files only to users who accepted its terms",
            "Accept them on its page at huggingface.co, then set HF_TOKEN or run `hf auth login`.",
        )
    if isinstance(error, errors.RepositoryNotFoundError):
        return ModelError(
            f"the Hugging Face Hub has no repository {repository}", f"{_FORM} A private one needs HF_TOKEN."
        )
    if isinstance(error, errors.LocalEntryNotFoundError | errors.OfflineModeIsEnabled):
        return ModelError(
            f"{repository}/{file_name} is not in the cache, and the Hugging Face Hub cannot be reached",
            "Check the network connection and whether HF_HUB_OFFLINE is set.",
        )
    if isinstance(error, errors.EntryNotFoundError):
        return ModelError(f"{repository} has no file {file_name}", "Look up the file's name on the repository's page.")
    reason = in_words((str(error).strip().splitlines() or [type(error).__name__])[0][:300])
    return ModelError(f"{repository}/{file_name} cannot be fetched: {reason}", "Check the network connection.")
