"""Loading a model and letting it make some passes."""

from __future__ import annotations

import time

from borrador.bench.row_cost import fill_context, measure_rows
from borrador.doctor.disk import find_profile
from borrador.doctor.facts import ModelFile, Speed, Trial
from borrador.doctor.memory import huge_bytes
from borrador.doctor.system import System
from borrador.models.native import NativeModel

_CONTEXT_TOKENS = 64
_LONGEST_S = 1.0
_MOST_PASSES = 15


def try_model(model: ModelFile, speed: Speed, system: System) -> Trial:
    """Load a model, and time passes over one row behind a few tokens. Raises BorradorError as loading does."""
    before = huge_bytes(system)
    start = time.perf_counter()
    loaded = NativeModel.load(model.path)
    load_s = time.perf_counter() - start
    try:
        after = huge_bytes(system)
        profile = find_profile(model.path, loaded.isa, loaded.threads)
        return Trial(
            model=model.name,
            load_s=load_s,
            weights_bytes=loaded.weights_bytes,
            huge_share=_share(before, after, loaded.weights_bytes),
            pass_s=_measure_pass(loaded),
            limit_s=max(loaded.weights_bytes / speed.read_bandwidth, loaded.row_macs / speed.integer_peak),
            profile=profile is not None and bool(profile.read()),
        )
    finally:
        loaded.close()


def _share(before: int | None, after: int | None, weights_bytes: int) -> float | None:
    if before is None or after is None:
        return None
    return min(max(after - before, 0) / weights_bytes, 1.0)


def _measure_pass(model: NativeModel) -> float:
    """Seconds of the median pass; fewer passes of a model that is slow."""
    target = model.open(_CONTEXT_TOKENS + 1)
    tokens = [number * 7919 % target.vocabulary_size for number in range(_CONTEXT_TOKENS + 1)]
    fill_context(target, tokens[:-1])
    once = measure_rows(target, tokens[-1:], 1, (1,))[1]
    passes = min(max(round(_LONGEST_S / once), 1), _MOST_PASSES)
    return measure_rows(target, tokens[-1:], passes, (1,))[1]
