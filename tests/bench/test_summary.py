from __future__ import annotations

from dataclasses import replace

import pytest
from tests.bench.records import PAIRS, make_pair

from borrador.bench.runs import Pair
from borrador.bench.summary import Divergence, Extreme, summarise


def test_totals_divide_all_tokens_by_all_seconds() -> None:
    decode = summarise(PAIRS).total.decode
    seconds = sum(0.4 / speedup for speedup in (1.0, 1.1, 1.5, 1.6, 3.0, 3.1))
    assert decode.plain_tok_s == pytest.approx(10.0)
    assert decode.spec_tok_s == pytest.approx(24 / seconds)
    assert decode.speedup == pytest.approx(2.4 / seconds)


def test_end_to_end_counts_the_prompt_and_the_first_token_too() -> None:
    total = summarise((make_pair("a", "qa", 2.0),)).total
    assert [total.end_to_end.plain_tok_s, total.end_to_end.spec_tok_s] == pytest.approx([10.0, 5 / 0.3])


def test_prompt_has_the_median_of_its_repeats_and_all_prompts_weigh_alike() -> None:
    paired = summarise(PAIRS).total.decode.paired
    assert paired is not None
    assert paired.median == pytest.approx(1.55)
    assert paired.interval is not None
    assert list(paired.interval) == pytest.approx([1.05, 3.05])


def test_one_prompt_has_no_interval() -> None:
    paired = summarise((make_pair("a", "qa", 2.0), make_pair("a", "qa", 1.0, repeat=1))).total.decode.paired
    assert paired is not None
    assert paired.median == pytest.approx(1.5)
    assert paired.interval is None


def test_tasks_are_summarised_apart_in_their_order() -> None:
    summary = summarise(PAIRS)
    assert {task: each.prompts for task, each in summary.per_task.items()} == {"qa": 2, "code": 1}
    assert list(summary.per_task) == ["qa", "code"]
    assert summary.total.prompts == 3


def test_worst_prompt_is_named() -> None:
    worst = summarise(PAIRS).worst
    assert worst is not None
    assert worst == Extreme(prompt="qa-1", task="qa", speedup=worst.speedup)
    assert worst.speedup == pytest.approx(1.05)


def test_time_is_split_without_a_rest() -> None:
    summary = summarise((make_pair("a", "qa", 2.0),))
    assert summary.spec_time.total_s == pytest.approx(0.2)
    spec, plain = summary.spec_time, summary.plain_time
    assert [spec.draft_s, spec.forward_s, spec.sample_s, spec.other_s] == pytest.approx([0.05, 0.1, 0.02, 0.03])
    assert [plain.draft_s, plain.forward_s, plain.sample_s, plain.other_s] == pytest.approx([0.0, 0.2, 0.0, 0.2])


def test_acceptance_and_tokens_per_pass_are_those_of_the_speculative_runs() -> None:
    total = summarise(PAIRS).total
    assert [total.acceptance, total.tokens_per_pass] == pytest.approx([0.5, 5 / 3])
    (figures,) = summarise(PAIRS).drafters
    assert (figures.tested, figures.accepted) == ((12, 12), (12, 0))


def test_prompt_counts_as_identical_if_it_is_so_every_time() -> None:
    changed = make_pair("qa-1", "qa", 1.0, repeat=2, token_ids=(1, 2, 9, 4, 5))
    summary = summarise((*PAIRS, changed))
    assert (summary.total.identical, summary.per_task["code"].identical) == (2, 1)
    assert summary.first_divergence == Divergence(prompt="qa-1", repeat=2, index=2, plain=3, speculative=9)


def test_answer_that_ended_has_no_token_where_it_diverges() -> None:
    summary = summarise((make_pair("a", "qa", 1.0, token_ids=(1, 2)),))
    assert summary.first_divergence == Divergence(prompt="a", repeat=0, index=2, plain=3, speculative=None)


def test_draws_are_not_compared() -> None:
    summary = summarise((make_pair("a", "qa", 1.0, token_ids=(9,)),), compared=False)
    assert (summary.total.identical, summary.first_divergence) == (None, None)


def test_nothing_measured_is_zero_and_no_crash() -> None:
    empty = summarise(())
    assert (empty.total.decode.speedup, empty.total.decode.paired, empty.worst) == (0.0, None, None)
    short = make_pair("a", "qa", 1.0)
    silent = Pair(
        prompt="a",
        task="qa",
        repeat=0,
        plain_first=True,
        plain=replace(short.plain, tokens=1, decode_s=0.0),
        speculative=replace(short.speculative, tokens=1, decode_s=0.0, drafters=()),
    )
    total = summarise((silent,)).total
    assert (total.decode.speedup, total.decode.paired, total.acceptance) == (0.0, None, None)
    assert total.end_to_end.paired is not None
