from __future__ import annotations

from tests.scripted import END, OracleDrafter, ids, scripted_answer, scripted_llm

from borrador.draft.lookup import LookupDrafter
from borrador.draft.model import ModelDrafter
from borrador.models.scripted import ScriptedModel, ScriptedTarget
from borrador.types import SamplingParams

PROMPT, ANSWER = "abcdefghij", "kabcdefghijmabcdefghijm!"


class Watched(ScriptedModel):
    """Remembers the last sequence it opened."""

    def open(self, context_length: int) -> ScriptedTarget:
        self.last = super().open(context_length)
        return self.last


def draft_passes(*others: object) -> tuple[int, tuple[int, ...]]:
    """Passes of a draft model that knows the answer, and the answer, beside other drafters that are asked later."""
    script = scripted_answer(PROMPT, ANSWER).script
    small = Watched(len(ids("abcdefghijklmno")) + 1, script=script)
    drafter = ModelDrafter("small", small, context_length=128, vocabulary_size=16, end_ids=frozenset({END}))
    with scripted_llm(scripted_answer(PROMPT, ANSWER), drafter, *others, draft_tokens=4) as llm:  # type: ignore[arg-type]
        answer = llm.generate(PROMPT, SamplingParams(max_tokens=40))
    return len(small.last.passes), answer.token_ids


def test_drafters_that_cost_nothing_hint_at_what_a_draft_model_will_say() -> None:
    alone, answer = draft_passes()
    hinted, same_answer = draft_passes(LookupDrafter())
    silent, _ = draft_passes(OracleDrafter(lambda context: ()))
    assert answer == same_answer
    assert silent == alone
    assert hinted <= alone - 6
