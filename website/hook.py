"""What MkDocs calls while it builds: pages that are written from the code, so that none can be stale."""

from __future__ import annotations

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from website import commands, http_api

_ROOT = Path(__file__).parents[1]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages to those of the folder."""
    pages = {
        "commands.md": commands.render(),
        "http.md": http_api.render(),
        "changelog.md": _from_root("CHANGELOG.md"),
        "contributing.md": _from_root("CONTRIBUTING.md"),
    }
    for path, content in pages.items():
        files.append(File.generated(config, path, content=content))
    return files


def _from_root(name: str) -> str:
    """A page that stands beside the folder of the others, with its links to them."""
    return (_ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](")
