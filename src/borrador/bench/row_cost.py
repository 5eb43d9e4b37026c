"""What a target pass costs by its number of rows: T(m)."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from borrador import _native
from borrador.models.native import NativeModel
from borrador.models.target import Rows, Target

ROW_COUNTS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32)
MIN_REPEATS = 15
PREFILL_ROWS = 64
_BANDWIDTH_BYTES = 512 * 2**20


@dataclass(frozen=True, slots=True)
class RowCosts:
    """Median time of a pass by its number of rows, and what the machine could give at best.

    Attributes:
        seconds: rows -> median seconds of one pass with logits for every row.
        weights_bytes: bytes of weights that one pass reads.
        read_bandwidth: bytes per second that the same threads read from memory.
        row_macs: multiply-accumulates that one row takes in the matrices.
        integer_peak: byte multiply-accumulates per second that the same threads reach without touching memory.
    """

    seconds: dict[int, float]
    weights_bytes: int
    read_bandwidth: float
    row_macs: int
    integer_peak: float

    def ratio(self, rows: int) -> float:
        """T(rows) / T(1)."""
        return self.seconds[rows] / self.seconds[1]

    def limit_share(self, rows: int) -> float:
        """Limit / measured time of a pass over so many rows; 1 is as fast as the machine can be."""
        return self.limit(rows) / self.seconds[rows]

    def bandwidth_share(self, rows: int) -> float:
        """Share of the memory bandwidth that a pass of so many rows reaches."""
        return self.memory_limit / self.seconds[rows]

    @property
    def memory_limit(self) -> float:
        """Seconds that reading the weights once takes at best, whatever the rows."""
        return self.weights_bytes / self.read_bandwidth

    def integer_limit(self, rows: int) -> float:
        """Seconds that the products of so many rows take at best."""
        return rows * self.row_macs / self.integer_peak

    def limit(self, rows: int) -> float:
        """Seconds below which no pass over so many rows can fall: the roofline."""
        return max(self.memory_limit, self.integer_limit(rows))

    def as_json(self) -> dict[str, Any]:
        return {
            "rows_ms": {str(rows): round(seconds * 1e3, 4) for rows, seconds in self.seconds.items()},
            "weights_bytes": self.weights_bytes,
            "read_bandwidth_bytes_s": round(self.read_bandwidth),
            "row_macs": self.row_macs,
            "integer_peak_mac_s": round(self.integer_peak),
            "limit_ms": {str(rows): round(self.limit(rows) * 1e3, 4) for rows in self.seconds},
        }


def measure_model(model: NativeModel, repeats: int = MIN_REPEATS, context_tokens: int = 64) -> RowCosts:
    """T(m) of a model behind a context, and the limits of the machine, which are measured before and after.

    Args:
        model: gets a sequence of its own, which is let go of.
        repeats: as for `measure_rows`.
        context_tokens: that are there already.
    """
    target = model.open(context_tokens + max(ROW_COUNTS))
    tokens = [number * 7919 % target.vocabulary_size for number in range(context_tokens + max(ROW_COUNTS))]
    fill_context(target, tokens[:context_tokens])
    before = _native.read_bandwidth(model.threads, _BANDWIDTH_BYTES), model.integer_peak()
    seconds = measure_rows(target, tokens[context_tokens:], repeats)
    after = _native.read_bandwidth(model.threads, _BANDWIDTH_BYTES), model.integer_peak()
    bandwidth, peak = (max(pair) for pair in zip(before, after, strict=True))
    return RowCosts(seconds, model.weights_bytes, bandwidth, model.row_macs, peak)


def fill_context(target: Target, tokens: Sequence[int]) -> None:
    """Commit tokens, so that passes are measured with a context of that length."""
    for start in range(0, len(tokens), PREFILL_ROWS):
        chunk = tokens[start : start + PREFILL_ROWS]
        target.forward(Rows.chain(chunk, logits_from=len(chunk) - 1))
        target.commit(range(len(chunk)))


def measure_rows(
    target: Target,
    tokens: Sequence[int],
    repeats: int = MIN_REPEATS,
    row_counts: Sequence[int] = ROW_COUNTS,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[int, float]:
    """Median seconds of a pass for each number of rows; every row's logits are computed, nothing is committed.

    Sizes are interleaved, so that a machine that slows down during the measurement does not favour any of them.

    Args:
        target: a sequence with room for the largest pass.
        tokens: at least max(row_counts) token ids to evaluate.
        repeats: measured passes for each size, after one that is not counted.
    """
    samples: dict[int, list[float]] = {rows: [] for rows in row_counts}
    length = target.length
    for _ in range(repeats + 1):
        for rows in row_counts:
            batch = Rows.chain(tokens[:rows])
            start = clock()
            target.forward(batch)
            samples[rows].append(clock() - start)
            target.rewind(length)
    return {rows: statistics.median(times[1:]) for rows, times in samples.items()}
