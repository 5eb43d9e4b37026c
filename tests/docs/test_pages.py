"""What pages name is there, and pages of two languages say the same."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.docs.snippets import PAGES, ROOT, commands, spans

from borrador.cli.app import app

READMES = ("README.md", "README.es.md")
CODE = [path for folder in ("src", "native", "benchmarks") for path in (ROOT / folder).rglob("*") if path.is_file()]


def options_of(command: Any) -> Iterator[str]:
    context = command.context_class(command, info_name="borrador")
    for parameter in command.get_params(context):
        yield from (*parameter.opts, *parameter.secondary_opts)
    for member in getattr(command, "commands", {}).values():
        yield from options_of(member)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_options_in_sentences_are_options_of_the_program(page: Path) -> None:
    known = set(options_of(typer.main.get_command(app)))
    own = [span for span in spans(page) if not span.text.startswith("python ")]
    named = {(span.place, option) for span in own for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", span.text)}
    assert {(place, option) for place, option in named if option not in known} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_in_tables_has_no_escaped_bars_which_the_site_would_show(page: Path) -> None:
    assert [
        line for line in page.read_text(encoding="utf-8").splitlines() if re.search(r"`[^`|]*\\\|[^`]*`", line)
    ] == []


def test_variables_of_the_environment_are_read_by_the_program() -> None:
    served = {parameter.envvar for parameter in typer.main.get_command(app).commands["serve"].params}  # type: ignore[attr-defined]
    code = "\n".join(
        path.read_text(encoding="utf-8", errors="replace") for path in CODE if path.suffix in (".py", ".cpp", ".h")
    )
    for page in PAGES:
        for name in re.findall(r"BORRADOR_[A-Z]+(?:_[A-Z]+)*", page.read_text(encoding="utf-8")):
            assert name in served or f'"{name}"' in code, f"{page.name} names {name}"


@pytest.mark.parametrize("name", [*READMES, "CONTRIBUTING.md", "SECURITY.md"])
def test_files_that_a_page_outside_the_site_links_to_are_there(name: str) -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", (ROOT / name).read_text(encoding="utf-8"))
    missing = [link for link in links if not link.startswith("https://") and not (ROOT / link).exists()]
    assert links
    assert missing == []


@pytest.mark.parametrize(("english", "spanish"), [READMES, ("docs/first-run.md", "docs/es/first-run.md")])
def test_spanish_pages_show_the_commands_of_the_english_ones(english: str, spanish: str) -> None:
    assert set(shapes(spanish)) <= set(shapes(english))
    assert len(set(shapes(spanish))) > 5


def shapes(page: str) -> Iterator[tuple[str, ...]]:
    """The commands of a page without what is said in a language: prompts, and names of files made up for it."""
    for command in commands(ROOT / page):
        words = shlex.split(command.text, comments=True)
        yield tuple(word for word in words if " " not in word and not word.endswith(".txt"))
