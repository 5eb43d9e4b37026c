"""The files around the code say the same as the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from borrador import __version__

ROOT = Path(__file__).parents[2]
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def test_version_and_licence_are_the_same_everywhere() -> None:
    assert f'\nversion = "{__version__}"\n' in PROJECT
    assert f'\nlicense = "{CITATION["license"]}"\n' in PROJECT
    assert CITATION["version"] == __version__


def test_citation_is_of_the_format_1_2() -> None:
    assert CITATION["cff-version"] == "1.2.0"
    assert CITATION["type"] == "software"
    assert CITATION["authors"] == [{"name": "The borrador authors"}]
    assert CITATION["message"]
    known = {"cff-version", "message", "type", "title", "abstract", "authors", "version", "license", "keywords"}
    assert CITATION.keys() == known | {"references"}
    for reference in CITATION["references"]:
        assert reference.keys() == {"type", "title", "authors", "year", "url", "identifiers"}
        assert all(author.keys() == {"family-names", "given-names"} for author in reference["authors"])
        assert reference["url"].endswith(reference["identifiers"][0]["value"].removeprefix("arXiv:"))


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "SECURITY.md"])
def test_links_lead_to_files_that_are_there(name: str) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", (ROOT / name).read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_map_of_the_code_names_every_package_and_nothing_else() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[^|]+) \|", text.partition("## A map")[2].partition("The engine is")[0], re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`([a-z_./]+)`", row)}
    source = ROOT / "src" / "borrador"
    packages = {f"{path.name}/" for path in source.iterdir() if (path / "__init__.py").is_file()}
    modules = {path.name for path in source.glob("*.py")} - {"__init__.py", "__main__.py"}
    assert named == packages | modules


def test_every_native_source_is_on_the_map() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    sources = {path.name for path in (ROOT / "native").glob("*.cpp")}
    assert {name for name in sources if f"`{name}`" not in text} == set()


def test_every_target_of_make_that_is_described_exists() -> None:
    described = set(re.findall(r"`make ([a-z-]+)`", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")))
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert described <= targets
    assert {"dist", "dist-check", "run"} <= described
