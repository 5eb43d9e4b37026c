"""Decisions in a world with a clock of its own: what passes and drafts cost, and who is right, is scripted."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from borrador.draft.protocol import GoOn, Price, always
from borrador.engine.candidates import LONGEST_DRAFT, PassCost
from borrador.engine.controller import Controller, RequestPlan
from borrador.engine.fixed_length import FixedLength
from borrador.engine.proposer import Desk
from borrador.types import Draft, Verdict

PASS_S = 0.020
STEP_S = 0.008
VOCABULARY = 10**9


def flat(rows: float) -> float:
    """A pass that costs 20 ms, and 3 % more for each further row."""
    return PASS_S * (1 + 0.03 * (rows - 1))


def steep(rows: float) -> float:
    """A pass whose rows cost in full."""
    return PASS_S * rows


@dataclass
class World:
    """The target writes the numbers 0, 1, 2, ... and a pass takes `pass_s`."""

    pass_s: PassCost = flat
    now: float = 0.0
    length: int = 1
    tokens_of_drafts: list[int] = field(default_factory=list)
    drafter_of_rounds: list[str] = field(default_factory=list)

    def clock(self) -> float:
        return self.now

    def play(self, plan: RequestPlan, drafters: Sequence[Clairvoyant], rounds: int, room: int = 10**6) -> float:
        """Tokens per cost of a plain pass."""
        start, length = self.now, self.length
        for _ in range(rounds):
            context = range(self.length)
            draft = plan.draft(Desk({drafter.name: drafter for drafter in drafters}, context, VOCABULARY), room)
            accepted = 0
            while accepted < len(draft.tokens) and draft.tokens[accepted] == self.length + accepted:
                accepted += 1
            count = len(draft.tokens)
            verdict = Verdict(
                tuple(range(accepted)), self.length + accepted, 0 < accepted == count, min(accepted + 1, count)
            )
            self.now += self.pass_s(1 + count)
            self.length += accepted + 1
            plan.learn(draft, verdict, range(len(context), self.length))
            self.tokens_of_drafts.append(count)
            self.drafter_of_rounds.append(draft.drafter if count else "none")
        return (self.length - length) * PASS_S / (self.now - start)


@dataclass
class Clairvoyant:
    """Right with the probability `rate`, which it knows; each token takes `step_s` of the world's time."""

    world: World
    rate: Callable[[int], float]
    name: str = "model"
    step_s: float = STEP_S
    reading_s: float = 0.0
    drawn: bool = False
    confidence: Callable[[int], float] | None = None
    read: int = 0
    generator: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    @property
    def price(self) -> Price:
        return Price(self.step_s, self.reading_s)

    def propose(self, context: Sequence[int], budget: int, go_on: GoOn = always) -> Draft:
        self.world.now += self.unread(context) * self.reading_s
        self.read = len(context)
        tokens: list[int] = []
        confidence: list[float] = []
        while len(tokens) < budget:
            position = len(context) + len(tokens)
            self.world.now += self.step_s
            tokens.append(position if self.generator.random() < self.rate(position) else position + 1)
            confidence.append((self.confidence or self.rate)(position))
            if not go_on(confidence[-1]):
                break
        return Draft(
            tokens=tuple(tokens),
            q=np.ones((len(tokens), 1), np.float32) if self.drawn else None,
            drafter=self.name,
            confidence=tuple(confidence),
        )

    def unread(self, context: Sequence[int]) -> int:
        return len(context) - self.read

    def observe(self, committed: Sequence[int]) -> None:
        pass

    def close(self) -> None:
        pass


def constant(value: float) -> Callable[[int], float]:
    return lambda _position: value


def controller_for(world: World, *drafters: Clairvoyant) -> Controller:
    return Controller(world.pass_s, {drafter.name: drafter.price for drafter in drafters}, world.clock)


def best_fixed_gain(rate: float, step_s: float = STEP_S, pass_s: PassCost = flat) -> float:
    return max(
        sum(rate**i for i in range(length + 1)) * PASS_S / (pass_s(1 + length) + length * step_s)
        for length in range(LONGEST_DRAFT + 1)
    )


def test_a_drafter_that_looks_too_dear_is_tried_once_before_it_rests() -> None:
    """Costs are measured at load, perhaps on a busy machine."""
    world = World(steep)
    drafter = Clairvoyant(world, lambda position: 1.0, step_s=PASS_S)
    plan = Controller(steep, {drafter.name: drafter.price}, world.clock).open()
    world.play(plan, [drafter], 8)
    assert [count for count in world.tokens_of_drafts if count] == [2]


@pytest.mark.parametrize("rate", [0.2, 0.4, 0.5])
def test_a_drafter_that_hardly_pays_or_does_not_never_costs_much(rate: float) -> None:
    world = World()
    drafter = Clairvoyant(world, constant(rate))
    plan = controller_for(world, drafter).open()
    assert world.play(plan, [drafter], 64) > 0.95
    assert world.play(plan, [drafter], 3000) > 0.99


@pytest.mark.parametrize("rate", [0.7, 0.8, 0.9, 0.97])
def test_no_fixed_draft_length_is_much_faster(rate: float) -> None:
    world = World()
    drafter = Clairvoyant(world, constant(rate))
    plan = controller_for(world, drafter).open()
    world.play(plan, [drafter], 100)
    assert world.play(plan, [drafter], 3000) > 0.97 * best_fixed_gain(rate)


def test_known_doubt_ends_a_draft_and_beats_every_fixed_length() -> None:
    doubtful = np.random.default_rng(3).random(20000) < 0.25

    def rate(position: int) -> float:
        return 0.3 if doubtful[position] else 0.98

    world = World()
    drafter = Clairvoyant(world, rate)
    plan = controller_for(world, drafter).open()
    world.play(plan, [drafter], 200)

    def fixed_gain(length: int) -> float:
        other = World()
        fixed = Clairvoyant(other, rate)
        return other.play(FixedLength((fixed.name,), length), [fixed], 2000)  # type: ignore[arg-type]

    assert world.play(plan, [drafter], 2000) > 1.03 * max(fixed_gain(length) for length in range(1, 8))


def test_confidence_is_calibrated_by_what_is_accepted() -> None:
    world = World()
    boaster = Clairvoyant(world, constant(0.3), confidence=constant(0.97))
    plan = controller_for(world, boaster).open()
    world.play(plan, [boaster], 200)
    assert world.play(plan, [boaster], 1000) > 0.96
    modest = Clairvoyant(world, constant(0.95), name="modest", confidence=constant(0.4))
    plan = controller_for(world, modest).open()
    world.play(plan, [modest], 100)
    assert world.play(plan, [modest], 1000) > 0.95 * best_fixed_gain(0.95)


def test_an_always_wrong_drafter_costs_under_five_percent_after_64_rounds() -> None:
    for confidence in (0.1, 0.6, 0.99):
        world = World()
        drafter = Clairvoyant(world, constant(0.0), confidence=constant(confidence))
        plan = controller_for(world, drafter).open()
        assert world.play(plan, [drafter], 64) > 0.95
        assert world.play(plan, [drafter], 2000) > 0.99


def test_a_drafter_that_is_wrong_in_every_request_is_not_believed_again_in_each() -> None:
    world = World()
    drafter = Clairvoyant(world, constant(0.0), confidence=constant(0.9))
    controller = controller_for(world, drafter)
    for _ in range(4):
        world.play(controller.open(), [drafter], 32)
    assert world.play(controller.open(), [drafter], 32) > 0.97


def test_trials_become_rarer_while_they_are_in_vain() -> None:
    world = World()
    drafter = Clairvoyant(world, constant(0.0), confidence=constant(0.9))
    world.play(controller_for(world, drafter).open(), [drafter], 2000)
    rounds = [number for number, tokens in enumerate(world.tokens_of_drafts) if tokens]
    gaps = [later - earlier for earlier, later in itertools.pairwise(rounds)]
    assert gaps[-1] > 150
    assert gaps[-1] > 4 * next(gap for gap in gaps if gap > 1)


@pytest.mark.parametrize("wrong_rounds", [100, 3000])
def test_a_drafter_that_becomes_right_is_used_again_within_600_rounds(wrong_rounds: int) -> None:
    world = World()
    drafter = Clairvoyant(world, constant(0.0), confidence=constant(0.9))
    plan = controller_for(world, drafter).open()
    world.play(plan, [drafter], wrong_rounds)
    drafter.rate = constant(0.9)
    world.play(plan, [drafter], 600)
    world.tokens_of_drafts.clear()
    assert world.play(plan, [drafter], 200) > 0.9 * best_fixed_gain(0.9)
    assert world.tokens_of_drafts.count(0) < 10


def test_a_change_of_the_text_is_followed_in_both_directions() -> None:
    world = World()
    drafter = Clairvoyant(world, lambda position: 0.95 if position // 400 % 2 else 0.35)
    plan = controller_for(world, drafter).open()
    world.play(plan, [drafter], 1500)
    assert world.play(plan, [drafter], 3000) > 1.15


def test_nothing_is_drafted_where_rows_cost_in_full() -> None:
    world = World(pass_s=steep)
    drafter = Clairvoyant(world, constant(0.6))
    assert world.play(controller_for(world, drafter).open(), [drafter], 200) > 0.98


def test_the_first_draft_is_made_at_once_even_where_measured_costs_promise_little() -> None:
    world = World(pass_s=lambda rows: PASS_S * (1 + 0.15 * (rows - 1)))
    drafter = Clairvoyant(world, constant(0.9), step_s=0.014)
    plan = controller_for(world, drafter).open()
    assert plan.gain("model") < 1.02
    world.play(plan, [drafter], 1)
    assert world.tokens_of_drafts[0] > 0


def test_prices_are_corrected_by_what_drafting_really_takes() -> None:
    world = World()
    drafter = Clairvoyant(world, constant(0.6))
    controller = Controller(flat, {"model": Price(0.001)}, world.clock)
    drafter.step_s = 0.018
    plan = controller.open()
    world.play(plan, [drafter], 100)
    assert world.play(plan, [drafter], 500) > 0.97


def test_the_room_left_limits_the_draft() -> None:
    world = World()
    drafter = Clairvoyant(world, constant(0.99))
    world.play(controller_for(world, drafter).open(), [drafter], 20, room=2)
    assert max(world.tokens_of_drafts) == 2


def test_free_tokens_are_verified_while_their_rows_pay() -> None:
    world = World()
    drafter = Clairvoyant(world, constant(0.9), name="copies", step_s=0.0)
    plan = controller_for(world, drafter).open()
    draft = plan.draft(Desk({"copies": drafter}, range(8), VOCABULARY), 100)
    speeds = [sum(0.9**i for i in range(length + 1)) / flat(1 + length) for length in range(LONGEST_DRAFT + 1)]
    assert len(draft.tokens) == int(np.argmax(speeds))


def test_free_drafts_that_are_not_used_are_judged_by_what_was_written() -> None:
    world = World()
    drafter = Clairvoyant(world, constant(0.0), name="copies", step_s=0.0, confidence=constant(0.7))
    plan = controller_for(world, drafter).open()
    world.play(plan, [drafter], 100)
    assert world.play(plan, [drafter], 200) > 0.995
    drafter.rate = constant(0.95)
    world.play(plan, [drafter], 60)
    assert world.play(plan, [drafter], 200) > 0.95 * best_fixed_gain(0.95, 0.0)


def test_a_round_in_which_all_rest_begins_without_asking_and_counts_as_if_asked() -> None:
    def asking_rounds(*, first_ask_whether_all_rest: bool) -> list[int]:
        world = World(steep)
        drafter = Clairvoyant(world, constant(0.0), name="copies", step_s=PASS_S / 2000)
        plan = Controller(steep, {"copies": Price()}, world.clock).open()
        found: list[int] = []
        for number in range(100):
            desk = Desk({"copies": drafter}, range(world.length), VOCABULARY)
            drafter.read = 0
            if not (first_ask_whether_all_rest and plan.rests(desk.load)):
                plan.draft(desk, 100)
            found += [number] if drafter.read else []
            plan.learn(Draft(), Verdict((), world.length, False, 0), (world.length,))
            world.length += 1
        return found

    asked = asking_rounds(first_ask_whether_all_rest=True)
    assert 4 < len(asked) < 20
    assert asked == asking_rounds(first_ask_whether_all_rest=False)


def test_no_round_goes_by_while_a_drafter_has_its_turn_or_costs_time() -> None:
    world = World(steep)
    model = Clairvoyant(world, constant(0.0))
    assert not controller_for(world, model).open().rests(Desk({"model": model}, range(8), VOCABULARY).load)
    copies = Clairvoyant(world, constant(0.0), name="copies", step_s=0.0)
    assert not controller_for(world, copies).open().rests(Desk({"copies": copies}, range(8), VOCABULARY).load)


def test_copies_are_taken_where_they_promise_more_and_the_model_elsewhere() -> None:
    world = World()

    def copied(position: int) -> float:
        return 0.95 if position // 30 % 2 else 0.05

    copies = Clairvoyant(world, copied, name="copies", step_s=0.0)
    model = Clairvoyant(world, constant(0.8))
    plan = controller_for(world, copies, model).open()
    both = world.play(plan, [copies, model], 1500)
    asked = [name.split("+") for name in world.drafter_of_rounds[-200:]]
    assert any("model" in names for names in asked)
    assert any("model" not in names for names in asked)
    for alone in (copies, model):
        other = World()
        drafter = Clairvoyant(other, alone.rate, alone.name, alone.step_s)
        assert both > 1.03 * other.play(controller_for(other, drafter).open(), [drafter], 1500)


def test_a_drafter_that_says_it_costs_nothing_and_does_is_found_out() -> None:
    """It is wrong and takes more than a third of a pass, which it does not say."""
    world = World()
    drafter = Clairvoyant(world, constant(0.0), name="copies", step_s=PASS_S / 40, confidence=constant(0.01))
    plan = Controller(flat, {"copies": Price()}, world.clock).open()
    world.play(plan, [drafter], 30)
    assert world.play(plan, [drafter], 300) > 0.95


def test_a_long_prompt_is_not_read_for_a_short_answer() -> None:
    for prompt, room, is_read in ((1000, 40, False), (1000, 10**6, False), (40, 40, True)):
        world = World(length=prompt)
        drafter = Clairvoyant(world, constant(0.8), reading_s=0.06 * PASS_S)
        world.play(controller_for(world, drafter).open(), [drafter], 10, room)
        assert bool(drafter.read) == is_read


def test_a_long_answer_makes_up_for_a_long_prompt() -> None:
    world = World(length=1000)
    drafter = Clairvoyant(world, constant(0.9), reading_s=0.04 * PASS_S)
    plan = controller_for(world, drafter).open()
    world.play(plan, [drafter], 600)
    assert drafter.read > 1000


def test_drawn_tokens_are_never_left_out() -> None:
    world = World()
    drafter = Clairvoyant(world, constant(0.0), drawn=True, confidence=constant(0.01))
    plan = controller_for(world, drafter).open()
    world.play(plan, [drafter], 3)
    assert min(world.tokens_of_drafts) >= 1


def test_a_request_starts_with_what_earlier_ones_taught() -> None:
    world = World()
    drafter = Clairvoyant(world, constant(0.95))
    controller = controller_for(world, drafter)
    before = controller.open().gain("model")
    world.play(controller.open(), [drafter], 200)
    assert controller.open().gain("model") > before + 0.2


def test_a_fixed_length_is_kept_within_the_room_and_the_first_draft_is_heard() -> None:
    world = World()
    silent = Clairvoyant(world, constant(1.0), name="silent")
    silent.propose = lambda context, budget, go_on=always: Draft(drafter="silent")  # type: ignore[method-assign]
    desk = Desk({"silent": silent, "model": Clairvoyant(world, constant(1.0))}, range(4), VOCABULARY)
    plan = FixedLength(("silent", "model"), 5)
    assert plan.draft(desk, 9).tokens == (4, 5, 6, 7, 8)
    assert plan.draft(desk, 9).drafter == "model"
    assert plan.draft(desk, 3).tokens == (4, 5, 6)
    assert plan.draft(desk, 0) == Draft()
    assert FixedLength(("model",), 0).draft(desk, 9) == Draft()


def test_a_fixed_length_hears_the_first_sure_draft_else_the_most_hopeful_and_drawn_ones_as_they_come() -> None:
    world = World()

    def offer(name: str, confidence: float, *, drawn: bool = False) -> Clairvoyant:
        return Clairvoyant(world, constant(1.0), name=name, confidence=constant(confidence), drawn=drawn)

    def heard(*offers: Clairvoyant) -> str:
        desk = Desk({each.name: each for each in offers}, range(4), VOCABULARY)
        return FixedLength([each.name for each in offers], 4).draft(desk, 9).drafter

    sure, unsure, surer = offer("sure", 0.8), offer("unsure", 0.3), offer("surer", 0.9)
    assert heard(sure, surer) == "sure"
    assert heard(unsure, surer) == "surer"
    assert heard(offer("less", 0.2), unsure) == "unsure"
    assert heard(unsure, offer("drawn", 0.01, drawn=True), surer) == "drawn"
