"""Step 3: a row's logits are the same bits in prefill, verification and plain passes, any chunks, any threads."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from borrador.models.prefix import PREFILL_ROWS
from borrador.models.target import Rows
from borrador.types import Float32Array
from borrador.verify.answers import AnswerStep
from borrador.verify.extent import Extent
from borrador.verify.finding import Divergence, TokenLogit
from borrador.verify.report import StepReport
from borrador.verify.rig import Rig

_SPARE_ROWS = 16  # of a pass beyond its text, for wrong tokens

_BEST = 8

# Rows of each pass, and those of them that are committed.
Passes = Iterator[tuple[Rows, Sequence[int]]]


@dataclass(frozen=True, slots=True)
class Text:
    """Tokens whose logits are computed in every way.

    Attributes:
        name: for people.
        tokens: of prompt and answer, more than `tail`.
        tail: how many of the last positions are compared; the others only fill the cache.
    """

    name: str
    tokens: Sequence[int]
    tail: int


# Passes over a text; given the vocabulary to take wrong tokens from.
Ways = Callable[[Text, int], Passes]
# Given the logits of plain passes, and what to say of the way where it differs.
Compare = Callable[[Rig, Text, Float32Array, str], Divergence | None]


class LogitStep:
    """Compares the logits of some texts with those of plain passes over one row each.

    Args:
        name: of the step.
        greedy: gives the texts: prompts and what plain decoding answered.
        extent: how much to do.
    """

    def __init__(self, name: str, greedy: AnswerStep, extent: Extent) -> None:
        self.name = name
        self._greedy = greedy
        self._extent = extent
        self._texts: Sequence[Text] = ()
        self._plain: dict[str, Float32Array] = {}
        self._rows = 0
        self._finding: Divergence | None = None

    def run(self, rig: Rig) -> None:
        self._texts = self._texts or self._cut(rig.parts.context_length)
        for text in self._texts:
            if text.name not in self._plain:
                self._plain[text.name] = _compute(rig, PLAIN, text)
            plain = self._plain[text.name]
            for name, compare in COMPARISONS.items():
                if self._finding is not None:
                    return
                self._finding = compare(rig, text, plain, f"{text.name}, {name}, threads {rig.threads}")
                self._rows += len(plain)

    def report(self) -> StepReport:
        vocabulary_size = max((logits.shape[1] for logits in self._plain.values()), default=0)
        return StepReport(
            name=self.name,
            checked=f"{self._rows} rows of {vocabulary_size} logits, computed in {len(COMPARISONS)} ways",
            figures={"rows": self._rows, "vocabulary": vocabulary_size, "ways": list(COMPARISONS)},
            finding=self._finding,
        )

    def _cut(self, context_length: int) -> Sequence[Text]:
        most = min(self._extent.text_tokens, context_length - _SPARE_ROWS)
        answers = list(self._greedy.plain.items())[: self._extent.texts]
        texts = [(name, (*answer.prompt, *answer.tokens)[:most]) for name, answer in answers]
        return [Text(name, tokens, min(self._extent.tail, len(tokens) - 1)) for name, tokens in texts]


def _same_bits(ways: Ways) -> Compare:
    """Computes all logits of the text's tail and compares them bit by bit."""

    def compare(rig: Rig, text: Text, plain: Float32Array, where: str) -> Divergence | None:
        other = _compute(rig, ways, text)
        differs = plain.view(np.uint32) != other.view(np.uint32)
        if not differs.any():
            return None
        row = int(differs.any(axis=1).argmax())
        with np.errstate(invalid="ignore"):
            distance = np.nan_to_num(np.abs(plain[row] - other[row]), nan=np.inf)
        token = int(np.where(differs[row], distance, -1.0).argmax())
        expected, found = ((token, logits[row, token]) for logits in (plain, other))
        return _divergence(rig, text, where, row, expected, found)

    return compare


def _same_best(rig: Rig, text: Text, plain: Float32Array, where: str) -> Divergence | None:
    """Asks for the most likely tokens alone, as greedy decoding does, and compares ids and logits."""
    target = rig.parts.model.open(rig.parts.context_length)
    row = 0
    for rows, path in _all_right(_prefill_and(8))(text, rig.vocabulary_size):
        best = target.best(rows, _BEST)
        target.commit(path)
        for ids, logits in zip(best.ids, best.logits, strict=True):
            order = np.argsort(-plain[row], kind="stable")[:_BEST]
            expected, found = zip(order, plain[row, order], strict=True), zip(ids, logits, strict=True)
            for left, right in zip(expected, found, strict=True):
                if left != right:
                    return _divergence(rig, text, where, row, left, right)
            row += 1
    return None


def _compute(rig: Rig, ways: Ways, text: Text) -> Float32Array:
    """The logits after each of the last tokens."""
    target = rig.parts.model.open(rig.parts.context_length)
    first = len(text.tokens) - text.tail
    kept: list[Float32Array] = []
    for rows, path in ways(text, rig.vocabulary_size):
        logits = target.forward(rows)
        rows_kept = [row for at, row in enumerate(path, target.length) if at >= first]
        kept += [np.array(logits[row - rows.logits_from]) for row in rows_kept]
        target.commit(path)
    return np.stack(kept)


def _divergence(
    rig: Rig, text: Text, where: str, row: int, expected: tuple[int, np.float32], found: tuple[int, np.float32]
) -> Divergence:
    """Tokens and their logits, in a row of the text's tail."""
    left, right = (
        TokenLogit(int(token), rig.token_text(int(token)) if token >= 0 else "nothing", _finite(logit))
        for token, logit in (expected, found)
    )
    position = len(text.tokens) - text.tail + row + 1
    return Divergence(where=where, position=position, expected=left, found=right)


def _finite(logit: np.float32) -> float | None:
    return float(logit) if np.isfinite(logit) else None


def _all_right(sizes: Callable[[Text], Iterator[int]]) -> Ways:
    """Passes over as many tokens as `sizes` says, all of them committed."""

    def passes(text: Text, _vocabulary_size: int) -> Passes:
        for start, chunk in _split(text.tokens, sizes(text)):
            yield _chain(chunk, text, start), range(len(chunk))

    return passes


def _with_refused(text: Text, vocabulary_size: int) -> Passes:
    """Three right tokens at a time and three wrong ones behind them, which must leave no trace."""
    random = np.random.default_rng(len(text.tokens))
    for start, chunk in _split(text.tokens, _prefill_and(3)(text)):
        wrong = [int(token) for token in random.integers(0, vocabulary_size, 3)]
        yield _chain([*chunk, *wrong], text, start), range(len(chunk))


def _trees(text: Text, vocabulary_size: int) -> Passes:
    """Four right tokens at a time, each with a wrong one and its wrong child beside it."""
    random = np.random.default_rng(len(text.tokens))
    (start, prefix), *rest = _split(text.tokens, _prefill_and(4)(text))
    yield _chain(prefix, text, start), range(len(prefix))
    for _, chunk in rest:
        tokens: list[int] = []
        parents: list[int] = []
        path = [-1]
        for token in chunk:
            wrong, below = (int(number) for number in random.integers(0, vocabulary_size, 2))
            parents += [path[-1], path[-1], len(tokens)]
            path.append(len(tokens) + 1)
            tokens += [wrong, token, below]
        yield Rows(np.array(tokens, np.int32), np.array(parents, np.int32)), path[1:]


def _split(tokens: Sequence[int], sizes: Iterator[int]) -> Iterator[tuple[int, Sequence[int]]]:
    """Chunks of the tokens with their positions, until the tokens end."""
    start = 0
    while start < len(tokens):
        chunk = tokens[start : start + next(sizes)]
        yield start, chunk
        start += len(chunk)


def _chain(tokens: Sequence[int], text: Text, start: int) -> Rows:
    first = len(text.tokens) - text.tail
    return Rows.chain(tokens, logits_from=min(max(first - start, 0), len(tokens)))


def _always(size: int) -> Callable[[Text], Iterator[int]]:
    return lambda _text: itertools.repeat(size)


def _uneven(text: Text) -> Iterator[int]:
    random = np.random.default_rng(len(text.tokens))
    return (int(random.integers(1, 33)) for _ in itertools.count())


def _prefill_and(size: int) -> Callable[[Text], Iterator[int]]:
    """What is not compared in one pass, then `size` tokens in each."""
    return lambda text: itertools.chain([len(text.tokens) - text.tail], itertools.repeat(size))


PLAIN: Ways = _all_right(_always(1))
COMPARISONS: Mapping[str, Compare] = {
    "plain passes": _same_bits(PLAIN),
    "prefill in one pass": _same_bits(_all_right(_always(PREFILL_ROWS))),
    "prefill in chunks of 7": _same_bits(_all_right(_always(7))),
    "prefill in uneven chunks": _same_bits(_all_right(_uneven)),
    "verification of 1 token": _same_bits(_all_right(_prefill_and(2))),
    "verification of 7 tokens": _same_bits(_all_right(_prefill_and(8))),
    "verification of 15 tokens": _same_bits(_all_right(_prefill_and(16))),
    "verification with refused tokens": _same_bits(_with_refused),
    "verification of trees": _same_bits(_trees),
    "verification by most likely tokens": _same_best,
}
