"""Predictions from measurements made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from benchmarks.papers.predictions import (
    Case,
    Costs,
    acceptance_by_place,
    best_measured,
    best_predicted,
    costs,
    lines,
    predict,
)
from benchmarks.papers.results import DRAFT, PLAIN, TARGET, Answer, Model, Probe, Results

CASE = Case("chain", DRAFT, 0.0)
ALPHA, STEP_S, PASS_S = 0.5, 0.01, {1: 0.1, 2: 0.12, 3: 0.15}


def an_answer(gamma: int, rounds: int, tested: tuple[int, ...], accepted: tuple[int, ...]) -> Answer:
    return Answer(
        part="chain",
        draft=DRAFT if gamma else PLAIN,
        gamma=gamma,
        temperature=0.0,
        prompt="qa-1",
        rounds=rounds,
        tokens=rounds + sum(accepted),
        tested=tested,
        accepted=accepted,
        draft_s=rounds * gamma * STEP_S,
        pass_s=rounds * PASS_S[gamma + 1],
        beside_s=rounds * 0.005,
    )


def model(row_macs: int) -> Model:
    return Model(layers=1, file_bytes=1, weights_bytes=1, row_macs=row_macs)


RESULTS = Results(
    setups={},
    models={TARGET: model(400), DRAFT: model(100)},
    answers=(an_answer(0, 40, (), ()), an_answer(1, 40, (40,), (20,)), an_answer(2, 40, (40, 20), (20, 10))),
    probes=(
        Probe(part="chain", temperature=0.0, prompt="qa-1", pass_s=tuple(PASS_S.values()), step_s={DRAFT: STEP_S}),
        Probe(part="chain", temperature=1.0, prompt="qa-1", pass_s=(9.0, 9.0, 9.0), step_s={DRAFT: 9.0}),
    ),
)


def test_where_places_are_independent_prediction_and_measurement_agree() -> None:
    one, two = lines(RESULTS, CASE)
    assert one.alpha == two.alpha == ALPHA
    assert two.tokens == pytest.approx((1.75, 1.75, 1.75))
    assert two.pass_ratio == pytest.approx(1.5)
    assert two.factor[0] == pytest.approx(1.75 / 1.2)
    assert two.factor[1] == pytest.approx(1.75 * 0.105 / (0.15 + 0.02 + 0.005)) == pytest.approx(two.factor[2])
    assert one.error == pytest.approx(0.0)


def test_operations_are_counted_for_each_token() -> None:
    two = lines(RESULTS, CASE)[1]
    assert two.operations == pytest.approx(((2 * 0.25 + 3) / 1.75, (2 * 0.25 + 3) / 1.75))


def test_costs_are_those_of_the_case() -> None:
    known = costs(RESULTS, CASE)
    assert known.pass_ratios == pytest.approx([1.0, 1.2, 1.5])
    assert known.c == pytest.approx(0.1)
    assert known.plain_beside == pytest.approx(0.05)
    assert known.pass_ratio(5) == pytest.approx(1.5 + 2 * 0.25)


def test_a_draft_that_never_pays_is_best_left_out() -> None:
    known = Costs([1.0, 1.0, 1.0], c=0.7, plain_beside=0.0)
    assert best_predicted(0.5, known) == (0, 1.0)
    assert best_predicted(0.9, known)[0] > 0
    assert best_measured(lines(RESULTS, CASE))[0] == 1
    assert predict(1.0, 2, known, beside=0.0) == pytest.approx(3 / 2.4)


def test_places_count_what_was_tested_there() -> None:
    answers = [an_answer(2, 4, (4, 2), (2, 1)), an_answer(2, 4, (4,), (0,))]
    assert acceptance_by_place(answers) == (0.25, 0.5)
    assert acceptance_by_place(answers[1:]) == (0.0, 0.0)


def test_a_prompt_that_plain_decoding_took_no_round_for_has_no_factor_of_its_own() -> None:
    others = [replace(answer, prompt="qa-2", rounds=answer.rounds * (answer.gamma > 0)) for answer in RESULTS.answers]
    assert [len(line.by_prompt) for line in lines(RESULTS, CASE)] == [1, 1]
    more = lines(replace(RESULTS, answers=(*RESULTS.answers, *others)), CASE)
    assert [line.by_prompt for line in more] == [line.by_prompt for line in lines(RESULTS, CASE)]
