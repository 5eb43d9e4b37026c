"""Every command and every example of the documentation is run, on tiny models."""

from __future__ import annotations

import contextlib
import io
import re
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.docs import small
from tests.docs.snippets import OTHERS, PAGES, ROOT, SHELLS, Snippet, commands, fences
from tests.docs.stage import Stage, staged

from borrador.cli import verify
from borrador.verify.extent import QUICK

EVERYTHING = [snippet for page in PAGES for snippet in commands(page)]
EXAMPLES = {page.relative_to(ROOT).as_posix(): [f for f in fences(page) if f.kind == "python"] for page in PAGES}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("docs")
    install_drafter(folder)
    with staged(folder) as stage, pytest.MonkeyPatch.context() as patch:
        few = replace(QUICK, prompts=1, max_tokens=6, draft_lengths=(2,), draws=1500, text_tokens=12, tail=4)
        patch.setattr(verify, "QUICK", few)
        yield stage


def install_drafter(folder: Path) -> None:
    """Install the plug-in of docs/drafters.md, made of its own two blocks, as pip would."""
    python, toml = (
        next(f.text for f in fences(ROOT / "docs/drafters.md") if f.kind == kind) for kind in ("python", "toml")
    )
    name = re.match(r"# (\w+\.py):", python)
    assert name
    (folder / name[1]).write_text(python, encoding="utf-8")
    metadata = folder / "echo_drafter-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: echo-drafter\nVersion: 1\n", encoding="utf-8")
    group = re.search(r'^\[project\.entry-points\."(.+)"]\n(\w+) = "(.+)"$', toml, re.MULTILINE)
    assert group
    (metadata / "entry_points.txt").write_text(f"[{group[1]}]\n{group[2]} = {group[3]}\n", encoding="utf-8")


@pytest.mark.parametrize("command", EVERYTHING, ids=lambda command: f"{command.place} {command.text}"[:90])
def test_a_command_does_what_the_documentation_says(stage: Stage, command: Snippet) -> None:
    stage.run(command.text)


@pytest.mark.parametrize("page", [page for page, examples in EXAMPLES.items() if examples])
def test_the_examples_in_python_run(stage: Stage, page: str) -> None:
    names: dict[str, Any] = {"__name__": "example"}
    for example in EXAMPLES[page]:
        source = "\n" * example.line + textwrap.dedent(example.text).replace(small.SERVER, stage.server)
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(source, example.page, "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_is_of_a_kind_that_is_tested_or_never_typed(page: Path) -> None:
    assert {fence.kind for fence in fences(page)} <= {*SHELLS, *OTHERS}


def test_a_command_that_no_test_knows_is_noticed(stage: Stage) -> None:
    with pytest.raises(LookupError, match="no test knows how to run: rm -r build"):
        stage.run("rm -r build")


@pytest.mark.parametrize(
    "command", ["borrador rum", "borrador run --hurry yes", "make lunch", "pip install '.[lunch]'"]
)
def test_a_command_that_does_not_work_is_noticed(stage: Stage, command: str) -> None:
    with pytest.raises(AssertionError):
        stage.run(command)
