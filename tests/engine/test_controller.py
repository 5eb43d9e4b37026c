from __future__ import annotations

import itertools

import numpy as np
import pytest

from borrador.engine.controller import LONGEST_DRAFT, Controller, FixedLength, Turn


def flat(rows: int) -> float:
    """A pass that costs 20 ms, and 2 % more for each further row."""
    return 0.020 * (1 + 0.02 * (rows - 1))


def steep(rows: int) -> float:
    """A pass whose rows cost in full."""
    return 0.020 * rows


def make_controller(step_s: float = 0.006, cost=flat, prior: float = 0.7) -> Controller:  # type: ignore[no-untyped-def]
    return Controller(cost, {"model": step_s}, {"model": prior})


def taught(controller: Controller, acceptance: float, rounds: int = 100, name: str = "model") -> Controller:
    generator = np.random.default_rng(0)
    for _ in range(rounds):
        accepted = 0
        while accepted < 4 and generator.random() < acceptance:
            accepted += 1
        controller.observe(name, min(accepted + 1, 4), accepted)
    return controller


def budgets(controller: Controller, limit: int = 64) -> list[Turn]:
    return list(controller.plan(limit))


def test_the_length_maximises_tokens_per_second() -> None:
    controller = taught(make_controller(), 0.8)
    rate = controller.acceptance("model")
    assert rate == pytest.approx(0.8, abs=0.08)
    speeds = {
        length: sum(rate**i for i in range(length + 1)) / (flat(1 + length) + length * 0.006)
        for length in range(LONGEST_DRAFT + 1)
    }
    assert budgets(controller) == [Turn("model", max(speeds, key=speeds.__getitem__))]


def test_better_drafters_may_draft_more() -> None:
    lengths = [budgets(taught(make_controller(), rate))[0].budget for rate in (0.4, 0.7, 0.95)]
    assert lengths == sorted(lengths)
    assert lengths[0] < lengths[2]


def test_nothing_is_drafted_where_rows_cost_in_full() -> None:
    assert budgets(make_controller(cost=steep)) == []


def test_the_room_left_limits_the_draft() -> None:
    controller = taught(make_controller(), 0.95)
    assert budgets(controller, 2) == [Turn("model", 2)]
    assert budgets(controller, 0) == []


def test_the_most_promising_drafter_is_asked_first() -> None:
    controller = Controller(flat, {"lookup": 0.0, "model": 0.006}, {"lookup": 0.5, "model": 0.7})
    taught(controller, 0.1, name="lookup")
    taught(controller, 0.9, name="model")
    assert [turn.drafter for turn in controller.plan(16)] == ["model", "lookup"]


def simulate(controller: Controller, rates: list[float]) -> tuple[float, int]:
    """Seconds and tokens of one round for each acceptance rate."""
    generator = np.random.default_rng(1)
    seconds, tokens = 0.0, 0
    for rate in rates:
        turns = controller.plan(64)
        budget = turns[0].budget if turns else 0
        accepted = 0
        while accepted < budget and generator.random() < rate:
            accepted += 1
        if turns:
            controller.observe("model", min(accepted + 1, budget), accepted)
        seconds += flat(1 + budget) + budget * 0.006
        tokens += accepted + 1
    return seconds, tokens


def test_a_drafter_that_is_always_wrong_costs_under_five_percent_after_64_rounds() -> None:
    controller = make_controller()
    simulate(controller, [0.0] * 64)
    seconds, tokens = simulate(controller, [0.0] * 512)
    assert seconds / tokens < 1.05 * flat(1)


def test_an_abandoned_drafter_is_probed_and_comes_back() -> None:
    controller = make_controller()
    simulate(controller, [0.0] * 200)
    assert budgets(controller) == []
    seconds, tokens = simulate(controller, [0.95] * 600)
    assert seconds / tokens < 0.75 * flat(1)


def test_probes_back_off() -> None:
    controller = make_controller()
    simulate(controller, [0.0] * 20)
    probes = []
    for number in range(300):
        if controller.plan(16):
            probes.append(number)
            controller.observe("model", 1, 0)
    gaps = [later - earlier for earlier, later in itertools.pairwise(probes)]
    assert gaps == [33, 65, 129]


def test_empty_drafts_teach_nothing() -> None:
    controller = make_controller()
    before = controller.acceptance("model")
    controller.observe("none", 0, 0)
    controller.observe("model", 0, 0)
    assert controller.acceptance("model") == before


def test_a_fixed_length_is_kept_within_the_room() -> None:
    plan = FixedLength(("lookup", "model"), 5)
    assert plan.plan(9) == [Turn("lookup", 5), Turn("model", 5)]
    assert plan.plan(3) == [Turn("lookup", 3), Turn("model", 3)]
    assert plan.plan(0) == ()
    assert FixedLength(("lookup",), 0).plan(9) == ()
