"""α by the distributions themselves: how far drafts of several kinds overlap with the target along its own answers."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from benchmarks.papers.results import Acceptance
from benchmarks.papers.writing import CONTEXT, Desk, Way, Writer, read_prompt
from numpy.typing import NDArray

from borrador.bench.prompts import BenchPrompt
from borrador.bench.theory import overlap
from borrador.draft.model import ModelDrafter
from borrador.models.target import Model, Rows
from borrador.sampling.shaping import History
from borrador.types import Float64Array


@dataclass(frozen=True, slots=True)
class Text:
    """A prompt and the target's answer to it, as tokens."""

    prompt: BenchPrompt
    context: Sequence[int]
    answer: Sequence[int]


class Grams:
    """Unigrams and bigrams, counted. A bigram that begins with a token never seen falls back to unigrams."""

    def __init__(self, texts: Iterable[Sequence[int]], vocabulary_size: int) -> None:
        self._size = vocabulary_size
        self._tokens: Counter[int] = Counter()
        self._followers: defaultdict[int, Counter[int]] = defaultdict(Counter)
        for text in texts:
            self._tokens.update(text)
            for token, following in itertools.pairwise(text):
                self._followers[token][following] += 1

    def unigram(self, _previous: int) -> Float64Array:
        return self._law(self._tokens)

    def bigram(self, previous: int) -> Float64Array:
        return self._law(self._followers.get(previous) or self._tokens)

    def _law(self, counts: Mapping[int, int]) -> Float64Array:
        law = np.zeros(self._size)
        law[list(counts)] = list(counts.values())
        return np.asarray(law / law.sum())


def measure_alpha(desk: Desk, prompts: Sequence[BenchPrompt], seed: int) -> Iterator[Acceptance]:
    """α of unigrams, bigrams and the desk's draft models that have the target's vocabulary.

    n-grams are counted in the prompts and answers of all other texts.
    """
    texts = [write(desk, prompt, (seed, index)) for index, prompt in enumerate(prompts)]
    size = desk.parts.model.open(1).vocabulary_size
    drafts = {
        name: drafter.model
        for name, drafter in desk.drafters.items()
        if isinstance(drafter, ModelDrafter) and drafter.shortlist is None
    }
    for text in texts:
        p = laws_along(desk, desk.parts.model, text, size)
        for name, model in drafts.items():
            yield _acceptance(desk, name, text, p, laws_along(desk, model, text, size))
        grams = Grams([(*other.context, *other.answer) for other in texts if other is not text], size)
        previous = [text.context[-1], *text.answer[:-1]]
        for name, law in (("unigram", grams.unigram), ("bigram", grams.bigram)):
            yield _acceptance(desk, name, text, p, (standardised(law(token), desk.temperature) for token in previous))


def write(desk: Desk, prompt: BenchPrompt, seed: Sequence[int]) -> Text:
    """Answer a prompt plainly."""
    context = desk.encode(prompt)
    writer = Writer(desk, Way(), context, read_prompt(desk, context), seed)
    while writer.goes_on:
        writer.play()
    return Text(prompt, context, writer.state.context[len(context) :])


def laws_along(desk: Desk, model: Model, text: Text, size: int) -> list[Float64Array]:
    """A model's law of each token of an answer, given those before it: `size` probabilities."""
    context, shaper = len(text.context), desk.shaper()
    logits = model.open(CONTEXT).forward(Rows.chain((*text.context, *text.answer[:-1]), logits_from=context - 1))
    if not desk.temperature:
        return [standardised(row[:size], 0.0) for row in logits]
    tokens, laws = [*text.context, *text.answer], []
    for index, row in enumerate(logits):
        law = np.empty(len(row), np.float32)
        shaper.law(row, History(tokens[: context + index])).write(law)
        laws.append(law[:size].astype(np.float64))
    return laws


def standardised(weights: NDArray[np.floating[Any]], temperature: float) -> Float64Array:
    """Temperature 0 makes a point mass of a law (section 2.2 of arXiv 2211.17192); others leave it as it is here."""
    law = np.asarray(weights, np.float64)
    return law if temperature else (np.arange(len(law)) == law.argmax()).astype(np.float64)


def _acceptance(desk: Desk, draft: str, text: Text, p: Iterable[Float64Array], q: Iterable[Float64Array]) -> Acceptance:
    overlaps = [overlap(*pair) for pair in zip(p, q, strict=True)]
    return Acceptance(
        draft=draft,
        temperature=desk.temperature,
        prompt=text.prompt.id,
        tokens=len(overlaps),
        alpha=float(np.mean(overlaps)),
    )
