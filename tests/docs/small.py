"""Commands of the documentation, made cheap: the same words with tiny models and short answers.

- The catalogue's models are tiny random ones. They lie in a folder of their own, named and sized as the catalogue says,
  as files with holes, so that commands find them by name and nothing is fetched.
- `LIMITS` are added to a command: the last of two equal options counts.
- `PLACEHOLDERS` stand for words such as MODEL.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.tiny_gguf import write_tiny_model

from borrador.cli import entry
from borrador.models.catalogue import CATALOGUE, CatalogueEntry

LIMITS: Mapping[str, tuple[str, ...]] = {
    "run": ("--max-tokens", "12", "--threads", "1"),
    "chat": ("--max-tokens", "12"),
    "bench": ("--per-task", "1", "--max-tokens", "4"),
    "plan": ("--per-task", "1", "--max-tokens", "8", "--threads", "1", "--no-save"),
    "verify": ("--quick", "--threads", "1"),
    "rows": ("--repeats", "15", "--threads", "1"),
    "serve": ("--port", "0", "--threads", "1"),
}
URL_LIMITS = ("--requests", "4", "--concurrency", "1,2")
SUBCOMMANDS = (["compare"], ["report"])  # of `bench`, which measure nothing
PLACEHOLDERS: Mapping[str, str] = {
    "MODEL": "smollm2-135m",
    "DRAFT": "qwen2.5-coder-0.5b",
    "COMMAND": "run",
    "FILE": "prompts.jsonl",
    "NAME": "letters",
    "PROMPT": "the hello",
    "N": "2",
}
SERVER = "http://127.0.0.1:8080"
FILES: Mapping[str, str] = {
    "notes.txt": "The hello and the other.\n",
    "person.json": '{"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}',
    "answer.lark": 'start: "yes" | "no"\n',
    "prompts.jsonl": "".join(f'{{"id": "{i}", "task": "own", "turns": ["the hello {i}"]}}\n' for i in range(3)),
}


def set_up(folder: Path) -> dict[str, str]:
    """Put models and files that commands name into a folder; the environment that makes commands find them."""
    models = folder / "models"
    models.mkdir()
    for seed, entry_ in enumerate(CATALOGUE.values()):
        _write_model(entry_, models, seed)
    write_tiny_model(folder / "model.gguf", width=64, ffn=128, context=4096)
    for name, content in FILES.items():
        (folder / name).write_text(content, encoding="utf-8")
    names = ("models", "profiles", "history")
    return {f"BORRADOR_{name.upper()}": str(folder / name) for name in names}


def shrink(words: Sequence[str], server: str) -> list[str]:
    """The words of a command with a cheaper effect.

    Args:
        words: after `borrador`.
        server: the address of a server that runs, in the place of the documentation's.
    """
    pattern = re.compile(rf"\b({'|'.join(PLACEHOLDERS)})\b")
    known = [pattern.sub(lambda match: PLACEHOLDERS[match[0]], word) for word in words]
    if known[-1:] == ["--url"]:
        known.append("URL")
    placed = [server if word == "URL" else word.replace(SERVER, server) for word in known]
    if "--help" in placed or not placed or placed[1:2] in SUBCOMMANDS:
        return placed
    if "--url" in placed:
        return [*placed, *(URL_LIMITS if placed[0] == "bench" else ()), *LIMITS[placed[0]][-2:]]
    return [*placed, *LIMITS.get(placed[0], ())]


def main() -> int:
    """`borrador` of shell commands."""
    return entry.main(shrink(sys.argv[1:], os.environ["TEST_SERVER"]))


def _write_model(entry_: CatalogueEntry, folder: Path, seed: int) -> None:
    path = write_tiny_model(folder / entry_.file_name, width=64, ffn=128, context=4096, seed=seed)
    os.truncate(path, entry_.size_bytes)
    note = f"{entry_.sha256} {entry_.size_bytes} {path.stat().st_mtime_ns}\n"
    path.with_name(f".{entry_.file_name}.verified").write_text(note, encoding="ascii")


if __name__ == "__main__":
    sys.exit(main())
