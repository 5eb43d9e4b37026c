"""Chance for requests without a seed. One request draws from one generator, and no variate is used twice.

Seeded requests need no state: their noise is a function of seed, position and token id, computed where it is used
(`native/sampler.h` defines it).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from borrador import _native
from borrador.types import Float32Array


class Noise(Protocol):
    """The two decisions that sampling leaves to chance, each independent of all others."""

    def accepts(self, probability: float) -> bool:
        """True with this probability."""
        ...

    def pick(self, weights: Float32Array) -> int:
        """An index, drawn in proportion to its weight (not all 0)."""
        ...


class FreshNoise:
    """Noise from the operating system's entropy, or from a generator that a test controls."""

    def __init__(self, generator: np.random.Generator | None = None) -> None:
        self._uniform = (generator or np.random.default_rng()).random

    def accepts(self, probability: float) -> bool:
        return self._uniform() < probability

    def pick(self, weights: Float32Array) -> int:
        return _native.pick(weights, self._uniform())
