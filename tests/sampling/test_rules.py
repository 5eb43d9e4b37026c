from __future__ import annotations

import numpy as np
import pytest
from tests.sampling.masks import NothingForced

from borrador.errors import ModelError
from borrador.models.scripted import ScriptedModel
from borrador.models.target import BestTokens, Rows, Wanted
from borrador.sampling.noise import FreshNoise
from borrador.sampling.rules import BlockRule, ChoiceRule, GreedyRule, RejectionRule, rule_for
from borrador.sampling.shaping import History, Shaper
from borrador.types import Draft, SamplingParams, Verdict


def make_logits(rows: int, size: int = 8) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    return np.random.default_rng(rows).normal(size=(rows, size)).astype(np.float32)


class AllAllowed(NothingForced):
    def mask(self, history: History, /) -> None:
        return None


def test_the_rule_follows_from_the_sampling_parameters() -> None:
    def rule(params: SamplingParams) -> object:
        return rule_for(Shaper(params))

    assert isinstance(rule(SamplingParams()), GreedyRule)
    assert isinstance(rule(SamplingParams(seed=1)), GreedyRule)
    assert isinstance(rule_for(Shaper(SamplingParams(), masks=AllAllowed())), ChoiceRule)
    assert isinstance(rule(SamplingParams(temperature=0.5, seed=1)), ChoiceRule)
    assert isinstance(rule(SamplingParams(temperature=0.5, seed=1, acceptance="seeded")), ChoiceRule)
    assert type(rule(SamplingParams(temperature=0.5))) is BlockRule
    assert type(rule(SamplingParams(temperature=0.5, acceptance="block"))) is BlockRule
    assert type(rule(SamplingParams(temperature=0.5, acceptance="rejection"))) is RejectionRule
    assert type(rule(SamplingParams(temperature=0.5, lenience=0.3))) is RejectionRule
    assert isinstance(rule(SamplingParams(acceptance="rejection")), GreedyRule)


def test_lenience_reaches_the_rule() -> None:
    logits = np.tile(np.log([0.1, 0.9]).astype(np.float32), (2, 1))
    draft = Draft(tokens=(0,), q=np.array([[0.5, 0.5]], np.float32))
    for lenience, certain in ((0.2, True), (0.9, False)):
        rule = rule_for(Shaper(SamplingParams(temperature=1.0, lenience=lenience)))
        accepted = sum(len(rule.accept(logits, draft, []).path) for _ in range(200))
        assert (accepted == 200) is certain


def test_greedy_accepts_the_most_likely_tokens() -> None:
    logits = make_logits(4)
    best = [int(row.argmax()) for row in logits]
    rule = ChoiceRule(Shaper(SamplingParams()))
    assert rule.accept(logits, Draft(tokens=tuple(best[:3])), [0] * 10) == Verdict((0, 1, 2), best[3], True, 3)


def test_greedy_decoding_without_masks_needs_the_best_tokens_alone() -> None:
    model = ScriptedModel(8, seed=3)
    first = int(model.logits_after([2]).argmax())
    draft = Draft(tokens=(first, (first + 1) % 8, 4), parents=(-1, -1, 0))
    rows = Rows(np.array([2, *draft.tokens], np.int32), np.array([-1, 0, 0, 1], np.int32))
    choices, target = ChoiceRule(Shaper(SamplingParams())), model.open(8)
    expected = choices.accept(target.forward(rows), draft, [2])
    target.rewind(0)
    rule = GreedyRule()
    assert rule.wanted == Wanted(best=1)
    assert rule.accept(target.best(rows, 1), draft, [2]) == expected
    assert expected.path[0] == 0


def test_greedy_decoding_meets_logits_that_are_not_finite_where_plain_decoding_would() -> None:
    best = BestTokens(np.array([[3], [-1]], np.int32), np.zeros((2, 1), np.float32), np.zeros(0, np.float32))
    assert GreedyRule().accept(best, Draft(tokens=(1,)), [0]) == Verdict((), 3, False, 1)
    with pytest.raises(ModelError, match="not finite"):
        GreedyRule().accept(best, Draft(tokens=(3,)), [0])


def test_seeded_choices_are_keyed_by_position_along_chain_and_tree() -> None:
    shaper = Shaper(SamplingParams(temperature=1.0, seed=5))
    context = [0] * 20
    logits = make_logits(3)
    own = [shaper.choice(logits[row], History(range(20 + row))) for row in range(3)]
    chain = Draft(tokens=tuple(own[:2]))
    assert ChoiceRule(shaper).accept(logits, chain, context) == Verdict((0, 1), own[2], True, 2)
    other = (own[0] + 1) % 8
    below = shaper.choice(logits[2], History(range(21)))
    tree = Draft(tokens=(other, own[0]), parents=(-1, -1))
    assert ChoiceRule(shaper).accept(logits, tree, context) == Verdict((1,), below, True, 1)


def test_certain_drafts_without_a_seed_leave_the_targets_law_unchanged() -> None:
    law = np.array([0.6, 0.3, 0.1])
    logits = np.tile(np.log(law).astype(np.float32), (2, 1))
    rule = RejectionRule(Shaper(SamplingParams(temperature=1.0)), FreshNoise(np.random.default_rng(3)))
    draws = 20_000
    counts = np.zeros(3)
    accepted = 0
    for _ in range(draws):
        verdict = rule.accept(logits, Draft(tokens=(1,)), [])
        accepted += len(verdict.path)
        counts[1 if verdict.path else verdict.next_token] += 1
    assert ((counts - draws * law) ** 2 / (draws * law)).sum() < 13.8  # chi-square, 2 degrees, p = 0.001
    assert accepted / draws == pytest.approx(0.3, abs=0.015)


def test_blocks_are_for_chains_of_drawn_tokens() -> None:
    """p = (1/3, 2/3), q = (2/3, 1/3): a block of tokens 0 and 1 is always kept, by rejection half of them."""
    shaper = Shaper(SamplingParams(temperature=1.0))
    logits = np.tile(np.log([1 / 3, 2 / 3]).astype(np.float32), (3, 1))
    q = np.tile(np.array([2 / 3, 1 / 3], np.float32), (2, 1))
    drawn = Draft(tokens=(0, 1), q=q)
    accepted = [
        len(rule(shaper, FreshNoise(np.random.default_rng(seed))).accept(logits, drawn, []).path)
        for rule in (BlockRule, RejectionRule)
        for seed in range(100)
    ]
    assert accepted[:100] == [2] * 100
    assert 30 < accepted[100:].count(2) < 70
    for draft in (Draft(tokens=(0, 1)), Draft(tokens=(0, 1), parents=(-1, -1), q=q)):
        block, rejection = (
            [rule(shaper, FreshNoise(np.random.default_rng(seed))).accept(logits, draft, []) for seed in range(100)]
            for rule in (BlockRule, RejectionRule)
        )
        assert block == rejection


def test_a_lenient_rule_accepts_more() -> None:
    shaper = Shaper(SamplingParams(temperature=1.0))
    logits = np.tile(np.log([0.1, 0.9]).astype(np.float32), (2, 1))
    for draft, exact, lenient in (
        (Draft(tokens=(0,), q=np.array([[0.5, 0.5]], np.float32)), 0.2, 0.4),
        (Draft(tokens=(0,)), 0.1, 0.2),
    ):
        for lenience, expected in ((1.0, exact), (0.5, lenient)):
            rule = RejectionRule(shaper, FreshNoise(np.random.default_rng(9)), lenience)
            accepted = sum(len(rule.accept(logits, draft, []).path) for _ in range(5000))
            assert accepted / 5000 == pytest.approx(expected, abs=0.025)


def test_a_tree_of_drawn_tokens_is_judged_by_the_laws_of_its_parents() -> None:
    logits = np.full((4, 4), -np.inf, np.float32)
    logits[0, 1] = logits[2, 3] = logits[3, 2] = 0.0
    q = np.array([[0.5, 0.5, 0.0, 0.0], [np.nan] * 4, [0.0, 0.0, 0.0, 1.0]], np.float32)
    draft = Draft(tokens=(0, 1, 3), parents=(-1, -1, 1), q=q)
    rule = RejectionRule(Shaper(SamplingParams(temperature=1.0)), FreshNoise())
    assert rule.accept(logits, draft, []) == Verdict((1, 2), 2, True, 2)


class Watching(NothingForced):
    """Allows everything, and remembers for which tokens before a row it was asked."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, ...]] = []

    def mask(self, history: History, /) -> None:
        self.seen.append((*history.context, *history.path))


def test_every_row_is_judged_by_the_tokens_on_its_own_path() -> None:
    logits = np.zeros((6, 8), np.float32)
    logits[[0, 2, 4, 5], [2, 4, 5, 7]] = 90.0
    draft = Draft(tokens=(1, 2, 3, 4, 5), parents=(-1, -1, 1, 1, 3))
    for params in (SamplingParams(), SamplingParams(temperature=1.0), SamplingParams(temperature=1.0, seed=2)):
        watching = Watching()
        rule = rule_for(Shaper(params, masks=watching))
        assert rule.accept(logits, draft, [9, 9]).path == (1, 3, 4)
        assert watching.seen == [(9, 9), (9, 9, 2), (9, 9, 2, 4), (9, 9, 2, 4, 5)]


def test_every_row_of_a_block_is_judged_by_the_tokens_before_it() -> None:
    logits = np.zeros((3, 8), np.float32)
    watching = Watching()
    rule = BlockRule(Shaper(SamplingParams(temperature=1.0), masks=watching), FreshNoise())
    rule.accept(logits, Draft(tokens=(1, 2), q=np.full((2, 8), 0.125, np.float32)), [9])
    assert watching.seen == [(9,), (9, 1), (9, 1, 2)]
