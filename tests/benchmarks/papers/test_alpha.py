"""n-grams, and laws as α needs them."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.papers.alpha import Grams, standardised


def test_bigrams_are_shares_of_what_followed() -> None:
    grams = Grams([[1, 2, 1, 3, 1, 2], [2, 1]], 5)
    assert grams.bigram(1) == pytest.approx([0, 0, 2 / 3, 1 / 3, 0])
    assert grams.bigram(2) == pytest.approx([0, 1, 0, 0, 0])


def test_unigrams_are_shares_of_the_text_and_stand_in_for_unknown_bigrams() -> None:
    grams = Grams([[1, 2, 1, 3]], 5)
    assert grams.unigram(2) == pytest.approx([0, 0.5, 0.25, 0.25, 0])
    assert grams.bigram(4) == pytest.approx(grams.unigram(0))
    assert grams.bigram(3) == pytest.approx(grams.unigram(0))  # nothing followed


def test_at_temperature_0_a_law_is_its_likeliest_token() -> None:
    law = np.array([0.2, 0.5, 0.3])
    assert standardised(law, 0.0).tolist() == [0.0, 1.0, 0.0]
    assert standardised(law, 1.0).tolist() == law.tolist()
