from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from borrador.bench import score as package
from borrador.bench.score.program import Problem
from borrador.bench.score.scoring import Attempt, Score, score
from borrador.bench.score.verdict import Verdict

PROBLEM = Problem(id="p", prompt="def double(x):\n", test="def check(c):\n    assert c(1) == 2\n", entry_point="double")
OWN = Path(package.__file__).parents[1] / "problems.jsonl"
ENTRIES: list[dict[str, Any]] = [json.loads(line) for line in OWN.read_text("utf-8").splitlines()]


def attempt(plain: str, speculative: str) -> Attempt:
    return Attempt(problem=PROBLEM, plain=plain, speculative=speculative)


def test_answers_are_scored_by_the_tests() -> None:
    scored = tuple(score([attempt("    return 2 * x", "    return x"), attempt("No.", "    return x + x")]))
    assert [(entry.plain.outcome, entry.speculative.outcome) for entry in scored] == [
        ("passed", "failed"),
        ("failed", "passed"),
    ]
    result = Score(scored=scored, isolation="some")
    assert (result.plain_passed, result.speculative_passed, result.problems) == (1, 1, 2)
    assert result.as_json()["plain_pass_at_1"] == 0.5
    assert result.as_json()["per_problem"][1] == {
        "id": "p",
        "plain": "failed",
        "plain_detail": "no code in the answer",
        "speculative": "passed",
        "speculative_detail": "",
        "cut": False,
    }


def test_an_answer_that_ran_out_of_tokens_is_told_where_it_did_not_pass() -> None:
    right, wrong = "    return 2 * x", "    return x"
    attempts = [
        Attempt(problem=PROBLEM, plain=plain, speculative=speculative, cut=True)
        for plain, speculative in ((right, right), (wrong, wrong), (right, "No."))
    ]
    assert [each.explanation for each in score(attempts)] == [
        "",
        "AssertionError; an answer ran out of tokens",
        "no code in the answer; an answer ran out of tokens",
    ]


def test_equal_answers_get_one_verdict_of_one_run() -> None:
    runs: list[str] = []

    def tester(program: str, test: str, entry_point: str) -> Verdict:
        runs.append(program)
        return Verdict("passed" if len(runs) == 1 else "failed")

    answer = "    return 2 * x"
    assert [entry.speculative.passed for entry in score([attempt(answer, answer)], tester)] == [True]
    assert len(runs) == 1


def test_a_score_of_nothing_has_no_share() -> None:
    assert Score(scored=(), isolation="").as_json()["plain_pass_at_1"] is None


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: str(entry["entry_point"]))
def test_our_own_problems_can_be_solved_and_are_not_by_the_prompt_alone(entry: dict[str, Any]) -> None:
    problem = Problem(id=entry["task_id"], prompt=entry["prompt"], test=entry["test"], entry_point=entry["entry_point"])
    whole = f"```python\n{entry['prompt']}{entry['canonical_solution']}```"
    solved, empty = score(
        [
            Attempt(problem=problem, plain=entry["canonical_solution"], speculative="    pass"),
            Attempt(problem=problem, plain=whole, speculative=""),
        ]
    )
    assert solved.plain == empty.plain == Verdict("passed")
    assert solved.speculative.outcome == "failed"


def test_our_own_problems_have_names_of_their_own() -> None:
    assert len({entry["task_id"] for entry in ENTRIES}) == len(ENTRIES) == 10
