"""docs/papers.md is what docs/papers.json says."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.papers.page import render, save
from benchmarks.papers.predictions import CHAINS, lines
from benchmarks.papers.results import Results, read, write
from benchmarks.papers.sections import LIMIT

DOCS = Path(__file__).parents[3] / "docs"


@pytest.fixture(scope="module")
def results() -> Results:
    return read(DOCS / "papers.json")


def test_the_page_is_what_its_results_render_to(results: Results) -> None:
    assert (DOCS / "papers.md").read_text("utf-8") == render(results)


def test_predicted_and_measured_walltime_factors_are_within_ten_percent(results: Results) -> None:
    for case in CHAINS:
        rows = lines(results, case)
        assert [line.gamma for line in rows] == list(range(1, 9))
        assert max(abs(line.factor[1] / line.factor[2] - 1.0) for line in rows) <= LIMIT == 0.10


def test_every_draft_length_met_the_same_prompts(results: Results) -> None:
    chain = [each for each in results.answers if each.part == "chain"]
    prompts = {(each.temperature, each.gamma): set() for each in chain}  # type: dict[tuple[float, int], set[str]]
    for each in chain:
        prompts[each.temperature, each.gamma].add(each.prompt)
    assert len({frozenset(each) for each in prompts.values()}) == 1


def test_a_page_of_other_results_is_another_page(results: Results) -> None:
    """The page holds no number of its own: with passes twice as slow every predicted factor falls."""
    slower = [replace(each, pass_s=(each.pass_s[0], *(2 * s for s in each.pass_s[1:]))) for each in results.probes]
    changed = render(replace(results, probes=tuple(slower)))
    assert changed != render(results)
    assert (
        lines(replace(results, probes=tuple(slower)), CHAINS[0])[3].factor[1] < lines(results, CHAINS[0])[3].factor[1]
    )


def test_results_survive_saving(results: Results, tmp_path: Path) -> None:
    write(results, tmp_path / "papers.json")
    assert read(tmp_path / "papers.json") == results
    assert read(tmp_path / "missing.json") == Results(setups={}, models={})


def test_newer_measurements_replace_older_ones_of_the_same_thing(results: Results) -> None:
    newer = replace(results.answers[0], pass_s=99.0)
    merged = results.with_more("chain", answers=[newer])
    assert len(merged.answers) == len(results.answers)
    assert newer in merged.answers
    assert results.answers[0] not in merged.answers


def test_each_part_keeps_where_it_was_measured(results: Results) -> None:
    elsewhere = {**results.setups["chain"], "processor": "Another One"}
    moved = replace(results, setups={**results.setups, "chain": elsewhere})
    text = " ".join(render(moved).split())
    assert f"Machine of simulation, alpha, sizes: {results.setups['sizes']['processor']}, " in text
    assert "Machine of chain: Another One, " in text
    assert moved.with_more("sizes").setups["chain"] == elsewhere
    assert moved.with_more("sizes").setups["sizes"]["processor"] != "Another One"


def test_plots_are_saved_beside_the_page_and_show_on_any_background(results: Results, tmp_path: Path) -> None:
    save(results, tmp_path)
    images = re.findall(r"!\[[^]]+\]\(([^)]+)\)", (tmp_path / "papers.md").read_text("utf-8"))
    assert sorted(images) == sorted(path.name for path in tmp_path.glob("*.svg"))
    for image in images:
        text = (tmp_path / image).read_text("utf-8")
        ground = re.search(r'id="patch_1">\s*<path[^>]*>', text)
        assert ground
        assert "fill: #ffffff" in ground.group()
        words = "".join(ET.fromstring(text).itertext())
        assert "draft" in words
