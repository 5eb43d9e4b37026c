"""Places to draw at: a text, and the logits of target and drafter after every short answer that may follow it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from borrador.draft.model import ModelDrafter
from borrador.sampling.shaping import History, Shaper
from borrador.types import Float32Array, Float64Array, Int32Array, SamplingParams
from borrador.verify.draws import DEPTH, TOKENS
from borrador.verify.rig import Rig
from borrador.verify.tables import DisturbedSource, Logits, LogitSource, ModelSource, Prefix, TableModel, shrink

TOP_K = 6  # of both models: an answer or a draft may go on in twelve ways
TREE_ROWS = 1 + 2 * TOP_K + (2 * TOP_K) ** 2
_CANDIDATES = 32
_KEEP = 32  # tokens of each row that the tables keep


@dataclass(frozen=True, slots=True)
class Place:
    """Where answers are drawn: behind a text, with one drafter's logits beside the target's.

    Attributes:
        name: of text, drafter and parameters.
        shaper: makes distributions of both.
        target: the target's logits after every prefix that an answer or a draft can have.
        draft: the drafter's.
        ids: the tokens that the tables know.
        laws: the exact probabilities of the first token, the first two, and all three.
    """

    name: str
    shaper: Shaper
    target: TableModel
    draft: TableModel
    ids: Int32Array
    laws: Sequence[Mapping[Prefix, float]]


def open_place(
    rig: Rig, name: str, tokens: Sequence[int], drafter: ModelDrafter | None, params: SamplingParams
) -> Place:
    """Read the logits for draws behind that beginning of a text where a wrong rule would show most.

    Args:
        rig: the target.
        name: of the text.
        tokens: of the text; the models' contexts must have room for `TREE_ROWS` more.
        drafter: whose logits drafts are drawn from; None disturbs the target's own.
        params: unseeded, with a top-k of at most `TOP_K`.
    """
    size, shaper = rig.vocabulary_size, Shaper(params)
    source = ModelSource(rig.parts.model, rig.parts.context_length, size)
    other = ModelSource(drafter.model, drafter.context_length, size) if drafter else DisturbedSource(source)
    p_rows, q_rows = (one.read_last(tokens, _CANDIDATES) for one in (source, other))
    shown = [_visibility(shaper, p, q) for p, q in zip(p_rows, q_rows, strict=True)]
    context = tokens[: len(tokens) - len(shown) + 1 + int(np.argmax(shown))]
    p, q = read_tables(source, other, context, shaper)
    (target, draft), ids = shrink((p, q), _KEEP)
    return Place(
        name=f"{name}, {drafter.name if drafter else 'disturbed logits'}, {_describe(params)}",
        shaper=shaper,
        target=TableModel(target),
        draft=TableModel(draft),
        ids=ids,
        laws=exact_laws(p, shaper),
    )


def read_tables(
    source: LogitSource, other: LogitSource, context: Sequence[int], shaper: Shaper
) -> tuple[Logits, Logits]:
    """Logits after every prefix of at most two tokens that the target or the drafter may write."""
    prefixes: list[Prefix] = [()]
    for depth in range(DEPTH):
        p, q = source.read(context, prefixes), other.read(context, prefixes)
        for prefix in [prefix for prefix in prefixes if len(prefix) == depth]:
            tokens = {*_law(shaper, p[prefix]), *_law(shaper, q[prefix])}
            prefixes += [(*prefix, token) for token in sorted(tokens)]
    return source.read(context, prefixes), other.read(context, prefixes)


def exact_laws(p: Logits, shaper: Shaper) -> list[dict[Prefix, float]]:
    """Probabilities of the first token, the first two, and all three of an answer."""
    laws: list[dict[Prefix, float]] = [{(): 1.0}]
    for _ in range(TOKENS):
        laws.append(
            {
                (*prefix, token): mass * probability
                for prefix, mass in laws[-1].items()
                for token, probability in _law(shaper, p[prefix]).items()
            }
        )
    return laws[1:]


def _law(shaper: Shaper, row: Float32Array) -> dict[int, float]:
    law = shaper.law(row, History())
    exact = law.probabilities.astype(np.float64)
    ids = range(len(exact)) if law.ids is None else law.ids.tolist()
    return dict(zip(ids, (exact / exact.sum()).tolist(), strict=True))


def _visibility(shaper: Shaper, p_row: Float32Array, q_row: Float32Array) -> float:
    """How far resampling from p would move the law of one token: chi-square for a single draw."""
    p, q = (_dense(shaper, row) for row in (p_row, q_row))
    kept = np.minimum(p, q)
    wrong = kept + (1.0 - kept.sum()) * p
    possible = p > 0.0
    return float(((wrong - p)[possible] ** 2 / p[possible]).sum())


def _dense(shaper: Shaper, row: Float32Array) -> Float64Array:
    dense = np.empty(len(row), np.float32)
    shaper.law(row, History()).write(dense)
    return dense.astype(np.float64)


def _describe(params: SamplingParams) -> str:
    top_p = f", top-p {params.top_p:g}" if params.top_p < 1.0 else ""
    return f"temperature {params.temperature:g}, top-k {params.top_k}{top_p}"
