from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.verify.scripted import make_parts, small_drafter

from borrador.bench.lineup import PLAIN, Lineup, Way
from borrador.bench.prompts import BenchPrompt
from borrador.bench.runner import WARM_UP_PROMPT
from borrador.draft.lookup import LookupDrafter
from borrador.draft.model import ModelDrafter, ModelDraftSession
from borrador.draft.protocol import Price
from borrador.draft.recycle import RecycleDrafter
from borrador.engine.planner import COSTS
from borrador.engine.profile import HeldProfile, Profile
from borrador.types import SamplingParams

PROMPT = BenchPrompt("ab", "letters", "abcabdabcab")
PARAMS = SamplingParams(max_tokens=24)


class BrokenDrafter(LookupDrafter):
    """Cannot say what it costs."""

    name = "broken"

    def price(self) -> Price:
        raise RuntimeError("no price")


def test_every_drafter_alone_then_costs_choose_among_the_free_ones_and_among_all() -> None:
    with Lineup(make_parts(drafters=(LookupDrafter(), RecycleDrafter(), small_drafter()))) as lineup:
        assert lineup.ways == (
            Way(("lookup",)),
            Way(("recycle",)),
            Way(("small",)),
            Way(("lookup", "recycle"), by_costs=True),
            Way(("lookup", "recycle", "small"), by_costs=True),
        )
    with Lineup(make_parts(drafters=(LookupDrafter(), RecycleDrafter()))) as lineup:
        assert [way.by_costs for way in lineup.ways] == [False, False, True]
    with Lineup(make_parts(drafters=(small_drafter(),))) as lineup:
        assert lineup.ways == (Way(("small",)), Way(("small",), by_costs=True))


def test_answers_are_plain_decodings_in_every_way_and_length() -> None:
    with Lineup(make_parts()) as lineup:
        lineup.warm_up(PARAMS)
        plain = lineup.answer(PLAIN, PROMPT, PARAMS, 8)
        assert len(plain.token_ids) == plain.decoded + 1
        assert not any(record.draft.tokens for record in plain.rounds)
        assert plain.prompt_tokens == lineup.prompt_tokens(PROMPT) == 11
        for way in lineup.ways:
            for length in (1, 3, 8):
                trace = lineup.answer(way, PROMPT, PARAMS, length)
                assert trace.token_ids == plain.token_ids
                drafters = {record.draft.drafter for record in trace.rounds if record.draft.tokens}
                assert drafters <= {*way.drafters, "+".join(way.drafters), "+".join(reversed(way.drafters))}
                assert way.by_costs or max(len(record.draft.tokens) for record in trace.rounds) == length


def test_a_draft_model_reads_every_prompt_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    unread: list[int] = []
    real = ModelDraftSession.steps

    def steps(self: ModelDraftSession, context: Sequence[int], *arguments: object) -> object:
        unread.append(self.unread(context))
        return real(self, context, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(ModelDraftSession, "steps", steps)
    with Lineup(make_parts(drafters=(small_drafter(),))) as lineup:
        for _ in range(2):
            lineup.answer(Way(("small",)), PROMPT, PARAMS, 4)
            other, first, *_ = unread
            unread.clear()
            assert other > len(WARM_UP_PROMPT) // 2
            assert first == 11 + 1


def test_what_was_learnt_is_told_at_the_end(tmp_path: Path) -> None:
    profile = Profile(tmp_path / "profile.json")
    held = HeldProfile(profile)
    with Lineup(make_parts(), held) as lineup:
        lineup.answer(lineup.ways[-1], PROMPT, PARAMS, 8)
    assert set(held.read()) >= {COSTS, "drafters"}
    assert set(held.read()["drafters"]) == {"lookup", "small"}
    assert not profile.path.exists()


def test_parts_are_closed_where_the_lineup_cannot_be_made() -> None:
    small = small_drafter()
    with pytest.raises(RuntimeError, match="no price"):
        Lineup(make_parts(drafters=(small, BrokenDrafter())))
    assert isinstance(small, ModelDrafter)
    assert getattr(small.model, "closed", False)
