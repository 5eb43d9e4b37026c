"""The acceptance rule of a request, chosen by its sampling parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from borrador.models.target import BestTokens, Wanted
from borrador.sampling.acceptance import LawOfRow, accept_by_block, accept_by_rejection, accept_choices
from borrador.sampling.logprobs import token_logprobs
from borrador.sampling.noise import FreshNoise, Noise
from borrador.sampling.shaping import History, Shaper, first_of
from borrador.types import Draft, Float32Array, Verdict

Evidence = TypeVar("Evidence", contravariant=True)


class AcceptanceRule(Protocol[Evidence]):
    """Judges drafts by the target's logits, or by what of them it needs."""

    @property
    def wanted(self) -> Wanted:
        """What the rule judges by."""
        ...

    def accept(self, evidence: Evidence, draft: Draft, context: Sequence[int], /) -> Verdict:
        """Judge one draft.

        Args:
            evidence: what is wanted, of γ + 1 rows; row 0 follows the context, row i + 1 follows draft token i.
            draft: γ tokens, none of them outside the vocabulary.
            context: prompt and answer so far. A row's own history is this and the draft's path to it.

        Raises:
            ModelError: a row that is looked at is not finite.
            UsageError: nothing is left to choose in row 0.
        """
        ...


def rule_for(shaper: Shaper) -> AcceptanceRule[Any]:
    """Greedy at temperature 0, seeded with a seed, else as `SamplingParams.acceptance` says, with fresh noise."""
    if shaper.params.logprobs is not None:
        return LogprobsRule(_rule_on_logits(shaper), shaper.params.logprobs)
    return GreedyRule() if shaper.takes_best else _rule_on_logits(shaper)


def _rule_on_logits(shaper: Shaper) -> AcceptanceRule[Float32Array]:
    params = shaper.params
    if shaper.chooses:
        return ChoiceRule(shaper)
    if params.acceptance == "rejection" or params.lenience < 1.0:
        return RejectionRule(shaper, FreshNoise(), params.lenience)
    return BlockRule(shaper, FreshNoise())


class GreedyRule:
    """Greedy decoding with nothing between logits and choice: the most likely token decides, and is all it takes."""

    wanted = Wanted(best=1)

    def accept(self, best: BestTokens, draft: Draft, _context: Sequence[int], /) -> Verdict:
        return accept_choices(draft.tokens, draft.parents, lambda row: first_of(best, row))


class _LogitsRule:
    """Judges by whole rows of logits."""

    wanted = Wanted()


class ChoiceRule(_LogitsRule):
    """The target's own choice, greedy or seeded, decides: an answer is token for token what plain decoding writes."""

    def __init__(self, shaper: Shaper) -> None:
        self._shaper = shaper

    def accept(self, logits: Float32Array, draft: Draft, context: Sequence[int], /) -> Verdict:
        def choose(row: int) -> int:
            return self._shaper.choice(logits[row], History(context, draft.path_to(row)))

        return accept_choices(draft.tokens, draft.parents, choose)


class RejectionRule(_LogitsRule):
    """Answers follow the target's distribution exactly, with a fresh draw each time, unless lenience is below 1.

    Args:
        shaper: of the request.
        noise: its chance.
        lenience: as for `accept_by_rejection`.
    """

    def __init__(self, shaper: Shaper, noise: Noise, lenience: float = 1.0) -> None:
        self._shaper = shaper
        self._noise = noise
        self._lenience = lenience

    def accept(self, logits: Float32Array, draft: Draft, context: Sequence[int], /) -> Verdict:
        tokens, parents, p = draft.tokens, draft.parents, self._laws(logits, draft, context)
        return accept_by_rejection(tokens, draft.q, p, self._noise, parents=parents, lenience=self._lenience)

    def _laws(self, logits: Float32Array, draft: Draft, context: Sequence[int]) -> LawOfRow:
        return lambda row: self._shaper.law(logits[row], History(context, draft.path_to(row)))


class BlockRule(RejectionRule):
    """Verifies a chain of drawn tokens as a block, which accepts more of it, with the same law of answers.

    For certain tokens both rules are one; trees of drawn tokens are judged by rejection.
    """

    def __init__(self, shaper: Shaper, noise: Noise) -> None:
        super().__init__(shaper, noise)

    def accept(self, logits: Float32Array, draft: Draft, context: Sequence[int], /) -> Verdict:
        if draft.q is None or draft.parents is not None:
            return super().accept(logits, draft, context)
        return accept_by_block(draft.tokens, draft.q, self._laws(logits, draft, context), self._noise)


class LogprobsRule(_LogitsRule):
    """Another rule's verdicts, with log probabilities of the accepted tokens and the target's own."""

    def __init__(self, rule: AcceptanceRule[Float32Array], count: int) -> None:
        self._rule = rule
        self._count = count

    def accept(self, logits: Float32Array, draft: Draft, context: Sequence[int], /) -> Verdict:
        verdict = self._rule.accept(logits, draft, context)
        rows = (0, *(index + 1 for index in verdict.path))
        tokens = (*(draft.tokens[index] for index in verdict.path), verdict.next_token)
        reports = [token_logprobs(logits[row], token, self._count) for row, token in zip(rows, tokens, strict=True)]
        return replace(verdict, logprobs=tuple(reports))
