from __future__ import annotations

import json
from typing import Any

import pytest
from website import trace


@pytest.fixture
def run() -> dict[str, Any]:
    run: dict[str, Any] = json.loads(trace.RECORD.read_text(encoding="utf-8"))
    return run


def test_the_page_shows_the_trace_that_is_kept(run: dict[str, Any]) -> None:
    page = trace.PAGE.read_text(encoding="utf-8")
    assert trace.update(page, trace.render(run)) == page
    assert run["prompt"] in " ".join(page.replace("\n> ", " ").split())


def test_a_round_is_shown_with_its_proposal_and_what_it_wrote(run: dict[str, Any]) -> None:
    run["pieces"] = {"1": "a", "2": "b", "3": " c|"}
    run["rounds"] = [
        {
            "number": 1,
            "draft": {"tokens": [1, 2], "parents": None, "drafter": "suffix"},
            "verdict": {"path": [0], "next_token": 3, "bonus": False, "tested": 2},
            "committed": [1, 3],
            "origins": ["draft", "target"],
            "draft_s": 0.001,
            "forward_s": 0.02,
            "total_s": 0.022,
        }
    ]
    shown = trace.render(run)
    assert '✓ "a" ✗ "b" → " c|"  [draft 1.0 ms, pass 20.0 ms]' in shown
    assert '| 1 | suffix | 2 | 1 | 2 | <code>"a c&#124;"</code> |' in shown
    assert "2 tokens were written in 1 passes: 2.00 tokens per pass. 2 draft tokens were tested and 1" in shown


def test_a_page_without_a_place_for_the_trace_is_refused() -> None:
    with pytest.raises(ValueError, match=r"written by website/trace\.py"):
        trace.update("# How it works\n", "an example")
