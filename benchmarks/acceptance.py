"""Acceptance of the rules for sampling on a pair of models, beside what theory expects of their distributions.

    python -m benchmarks.acceptance --rule block --out block.jsonl      one of seeded, rejection, block
    python -m benchmarks.acceptance --show *.jsonl                      the tables of docs/acceptance.md

The project's own prompts are answered with drafts of a fixed length; theory is applied to p and q of every round.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks import acceptance_theory as theory

from borrador.bench.prompts import load_prompts
from borrador.bench.theory import overlap
from borrador.config import EngineConfig
from borrador.draft.model import ModelDrafter
from borrador.engine.answer import Answer
from borrador.engine.fixed_length import FixedLength
from borrador.engine.loading import Parts, open_parts
from borrador.engine.proposer import Proposer
from borrador.engine.round import RoundState, play_round
from borrador.models.target import Target
from borrador.sampling.noise import FreshNoise
from borrador.sampling.rules import AcceptanceRule, BlockRule, ChoiceRule, RejectionRule
from borrador.sampling.shaping import Distribution, History, Shaper
from borrador.text.detokenizer import Detokenizer
from borrador.types import Draft, Float32Array, Float64Array, SamplingParams, Verdict

RULES = ("seeded", "rejection", "block")


@dataclass(frozen=True, slots=True)
class RoundOfDraft:
    """One draft, its verdict, and theory. Lists go by draft token; those of theory know all rows, tested or not.

    Attributes:
        ratios: p(x) / q(x).
        overlap: of p and q; see `borrador.bench.theory`.
        agreement, coincidence: of p and q; see `acceptance_theory`.
    """

    rule: str
    prompt: str
    accepted: int
    tested: int
    ratios: list[float]
    overlap: list[float]
    agreement: list[float]
    coincidence: list[float]


class NotingShaper(Shaper):
    """For a draft model under a seed: remembers the laws that its choices were drawn from."""

    def __init__(self, params: SamplingParams) -> None:
        super().__init__(params)
        self.laws: list[Float64Array] = []

    def choice(self, logits: Float32Array, history: History) -> int:
        self.laws.append(dense(self.law(logits, history), len(logits)))
        return super().choice(logits, history)


class NotingRule:
    """A rule that notes how it judged, and what theory says of the same rows."""

    def __init__(self, rule: AcceptanceRule[Any], shaper: Shaper, drafting: NotingShaper, name: str) -> None:
        self.rounds: list[RoundOfDraft] = []
        self.prompt = ""
        self.wanted = rule.wanted
        self._rule = rule
        self._shaper = shaper
        self._drafting = drafting
        self._name = name

    def accept(self, logits: Float32Array, draft: Draft, context: Sequence[int], /) -> Verdict:
        verdict = self._rule.accept(logits, draft, context)
        count = len(draft.tokens)
        if count:
            size = logits.shape[1]
            p = [
                dense(self._shaper.law(logits[row], History(context, draft.path_to(row))), size) for row in range(count)
            ]
            drawn_from = self._drafting.laws[-count:] if draft.q is None else list(draft.q.astype(np.float64))
            self.rounds.append(self._note(draft.tokens, verdict, p, drawn_from))
        self._drafting.laws.clear()
        return verdict

    def _note(
        self, tokens: Sequence[int], verdict: Verdict, p: Sequence[Float64Array], q: Sequence[Float64Array]
    ) -> RoundOfDraft:
        pairs = list(zip(p, q, strict=True))
        return RoundOfDraft(
            rule=self._name,
            prompt=self.prompt,
            accepted=len(verdict.path),
            tested=verdict.tested,
            ratios=[float(p[token] / q[token]) for token, (p, q) in zip(tokens, pairs, strict=True)],
            overlap=[overlap(*pair) for pair in pairs],
            agreement=[theory.agreement(*pair) for pair in pairs],
            coincidence=[theory.coincidence(*pair) for pair in pairs],
        )


def dense(law: Distribution, size: int) -> Float64Array:
    """All probabilities, normalised in double."""
    out = np.empty(size, np.float32)
    law.write(out)
    return np.asarray(out / out.sum(dtype=np.float64))


def measure(options: argparse.Namespace) -> Iterable[RoundOfDraft]:
    """Answer the prompts with one rule."""
    parts = open_parts(options.target, EngineConfig(draft=(options.draft,), context=1024))
    target = parts.model.open(1024)
    for number, prompt in enumerate(load_prompts(per_task=options.per_task)):
        target.rewind(0)
        seed = options.seed + number if options.rule == "seeded" else None
        params = SamplingParams(temperature=options.temperature, seed=seed, max_tokens=options.max_tokens)
        text = parts.template.render([{"role": "user", "content": prompt.text}])
        tokens = parts.tokenizer.encode_prompt(text, specials=True)
        rounds = answer(parts, target, tokens, params, options)
        print(f"{prompt.id}: {len(rounds)} rounds", file=sys.stderr)
        yield from rounds
    parts.close()


def answer(
    parts: Parts, target: Target, tokens: Sequence[int], params: SamplingParams, options: argparse.Namespace
) -> list[RoundOfDraft]:
    """Write one answer; its rounds, without the first, which has no draft."""
    (drafter,) = parts.drafters
    assert isinstance(drafter, ModelDrafter)
    shaper, drafting = Shaper(params), NotingShaper(params)
    session = drafter.open(drafting)
    rule = NotingRule(make_rule(options.rule, shaper), shaper, drafting, options.rule)
    plan = FixedLength((drafter.name,), options.draft_tokens)
    ending = Answer(Detokenizer(parts.tokenizer), stop=(), end_ids=parts.tokenizer.eog_ids, capacity=options.max_tokens)
    state = RoundState(
        target=target,
        context=list(tokens),
        proposer=Proposer({drafter.name: session}, plan, target.vocabulary_size),
        rule=rule,
        ending=ending,
    )
    while ending.finish_reason is None:
        play_round(state)
    session.close()
    return rule.rounds


def make_rule(name: str, shaper: Shaper) -> AcceptanceRule[Any]:
    if name == "seeded":
        return ChoiceRule(shaper)
    return (BlockRule if name == "block" else RejectionRule)(shaper, FreshNoise())


def tables(rounds: Sequence[RoundOfDraft]) -> str:
    """Measured acceptance by rule, and what the rules expect of the same rows, in Markdown."""
    by_rule = {rule: [entry for entry in rounds if entry.rule == rule] for rule in RULES}
    return "\n".join(
        (
            "| rule | drafts | tokens tested | acceptance | theory | tokens per pass | theory |",
            "|---|---|---|---|---|---|---|",
            *(row_of(rule, own) for rule, own in by_rule.items() if own),
            "",
            *describe_first_rows(rounds),
            *describe_blocks([*by_rule["rejection"], *by_rule["block"]]),
        )
    )


def row_of(rule: str, rounds: Sequence[RoundOfDraft]) -> str:
    """Measured values of one rule beside the expected ones."""
    accepted, tested = (np.array([getattr(entry, name) for entry in rounds]) for name in ("accepted", "tested"))
    acceptance = accepted.sum() / tested.sum()
    error = 1.96 * np.sqrt(acceptance * (1.0 - acceptance) / tested.sum())
    expected, per_pass = expectation(rule, rounds)
    return (
        f"| {rule} | {len(rounds)} | {tested.sum()} | {acceptance:.3f} ± {error:.3f} | {expected:.3f} "
        f"| {1.0 + accepted.mean():.2f} | {'' if per_pass is None else format(per_pass, '.2f')} |"
    )


def expectation(rule: str, rounds: Sequence[RoundOfDraft]) -> tuple[float, float | None]:
    """Acceptance and tokens per pass by theory, given the drafts.

    Acceptance of seeded sampling and rejection is expected token by token, for those that were tested. A block is
    judged as a whole, so its own is the ratio of expected sums. A seeded draft leaves nothing to chance.
    """
    if rule == "block":
        reaches = [theory.block_reach(entry.ratios) for entry in rounds]
        accepted = sum(map(sum, reaches))
        return accepted / (accepted + sum(1.0 - reach[-1] for reach in reaches)), 1.0 + accepted / len(rounds)
    tested = sum(entry.tested for entry in rounds)
    if rule == "seeded":
        return sum(sum(entry.agreement[: entry.tested]) for entry in rounds) / tested, None
    accepted = sum(sum(theory.rejection_reach(entry.ratios)) for entry in rounds)
    return sum(sum(entry.overlap[: entry.tested]) for entry in rounds) / tested, 1.0 + accepted / len(rounds)


def describe_first_rows(rounds: Sequence[RoundOfDraft]) -> Iterator[str]:
    """The rules on equal terms: what each expects of the same pairs of distributions."""
    for name in ("overlap", "agreement", "coincidence"):
        mean = np.mean([getattr(entry, name)[0] for entry in rounds])
        yield f"{name} of p and q over the first rows of all {len(rounds)} drafts: {mean:.3f}"


def describe_blocks(rounds: Sequence[RoundOfDraft]) -> Iterator[str]:
    """Rejection and block verification of the same drawn drafts."""
    if rounds:
        rejection, block = (
            np.mean([sum(reach(entry.ratios)) for entry in rounds])
            for reach in (theory.rejection_reach, theory.block_reach)
        )
        accepted, per_pass = block / rejection - 1.0, (1.0 + block) / (1.0 + rejection) - 1.0
        yield (
            f"expected of the same {len(rounds)} drawn drafts: rejection accepts {rejection:.3f} tokens, a block "
            f"{block:.3f}: {accepted:+.1%}, tokens per pass {per_pass:+.1%}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="qwen2.5-coder-1.5b")
    parser.add_argument("--draft", default="qwen2.5-coder-0.5b")
    parser.add_argument("--rule", choices=RULES, default="block")
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--draft-tokens", type=int, default=4)
    parser.add_argument("--max-tokens", type=int, default=96)
    parser.add_argument("--per-task", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1, help="of the first answer under the seeded rule")
    parser.add_argument("--out", type=Path, help="where the rounds go, one JSON object a line; added to what is there")
    parser.add_argument("--show", type=Path, nargs="+", help="print the tables of rounds that were measured before")
    options = parser.parse_args()
    if options.show:
        rounds = [RoundOfDraft(**json.loads(line)) for path in options.show for line in path.read_text().splitlines()]
    else:
        rounds = list(measure(options))
        if options.out:
            with options.out.open("a") as out:
                out.writelines(json.dumps(asdict(entry)) + "\n" for entry in rounds)
    print(tables(rounds))


if __name__ == "__main__":
    main()
