"""Scripted targets for tests of verification: right ones, and some that are wrong in a way of their own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tests.scripted import VOCABULARY, JoinedMessages, letter_tokenizer

from borrador.bench.prompts import BenchPrompt
from borrador.draft.lookup import LookupDrafter
from borrador.draft.model import ModelDrafter
from borrador.draft.protocol import Drafter
from borrador.engine.loading import Parts
from borrador.models.scripted import ScriptedModel, ScriptedTarget
from borrador.models.target import Rows
from borrador.types import Float32Array
from borrador.verify.extent import Extent
from borrador.verify.rig import Rig

CONTEXT = 256
EXTENT = Extent(
    prompts=2,
    max_tokens=40,
    draft_lengths=(2, 5),
    ways=2,
    answers_on_other_threads=2,
    texts=2,
    text_tokens=64,
    tail=12,
    places=1,
    draws=1500,
)
PROMPTS = (BenchPrompt("ab", "letters", "abcabdabcab"), BenchPrompt("no", "letters", "nomnonomn"))


def right_model() -> ScriptedModel:
    return ScriptedModel(VOCABULARY, seed=17, memory=1, sharpness=3.0)


def small_model() -> ScriptedModel:
    """Less certain of the same tokens."""
    return ScriptedModel(VOCABULARY, seed=17, memory=1, sharpness=1.5)


def small_drafter() -> ModelDrafter:
    return ModelDrafter("small", small_model(), context_length=CONTEXT, vocabulary_size=VOCABULARY)


def make_parts(model: ScriptedModel | None = None, drafters: Sequence[Drafter] | None = None) -> Parts:
    """A target of letters with lookup and a draft model."""
    chosen: Sequence[Drafter] = (LookupDrafter(), small_drafter()) if drafters is None else drafters
    return Parts(model or right_model(), letter_tokenizer(), JoinedMessages(), chosen, CONTEXT)


def make_rig(model: ScriptedModel | None = None, drafters: Sequence[Drafter] | None = None, threads: int = 1) -> Rig:
    return Rig(make_parts(model, drafters), threads)


class WrongModel(ScriptedModel):
    """A model whose passes over several rows, or over trees alone, give other logits.

    Args:
        amount: is added to the logit of `token`.
        token: whose logit is wrong.
        least_rows: passes over fewer rows are right.
        trees_only: passes over chains are right.
    """

    def __init__(self, *, amount: float, token: int = 3, least_rows: int = 2, trees_only: bool = False) -> None:
        super().__init__(VOCABULARY, seed=17, memory=1, sharpness=3.0)
        self.amount = amount
        self.token = token
        self.least_rows = least_rows
        self.trees_only = trees_only

    def open(self, context_length: int) -> ScriptedTarget:
        return _WrongTarget(self, context_length)


class _WrongTarget(ScriptedTarget):
    def __init__(self, model: WrongModel, context_length: int) -> None:
        super().__init__(model, context_length)
        self._wrong = model

    def forward(self, rows: Rows) -> Float32Array:
        logits = super().forward(rows)
        count = len(rows.tokens)
        chain = np.array_equal(rows.parents, np.arange(-1, count - 1))
        if count >= self._wrong.least_rows and not (chain and self._wrong.trees_only):
            logits[:, self._wrong.token] += np.float32(self._wrong.amount)
        return logits


class ForgetfulModel(ScriptedModel):
    """A model whose sequences keep the rows of refused tokens."""

    def __init__(self) -> None:
        super().__init__(VOCABULARY, seed=17, memory=1, sharpness=3.0)

    def open(self, context_length: int) -> ScriptedTarget:
        return _ForgetfulTarget(self, context_length)


class _ForgetfulTarget(ScriptedTarget):
    """Remembers a refused token, and lets it into what is committed next: the cache was not rewound."""

    def __init__(self, model: ForgetfulModel, context_length: int) -> None:
        super().__init__(model, context_length)
        self._dirt = 0.0

    def forward(self, rows: Rows) -> Float32Array:
        logits = super().forward(rows)
        logits[:, 0] += np.float32(self._dirt)
        return logits

    def commit(self, path: Sequence[int]) -> None:
        if self._rows is not None and len(path) < len(self._rows.tokens):
            self._dirt += 1.0
        super().commit(path)
