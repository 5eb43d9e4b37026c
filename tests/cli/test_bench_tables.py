from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console
from tests.bench.records import PAIRS, SETTINGS, make_pair, make_record

from borrador.bench.record import Settings
from borrador.bench.summary import Ratio, summarise
from borrador.cli.bench_tables import describe, show_ratio, tabulate


def test_table_fits_a_terminal_of_80_columns() -> None:
    pairs = (*PAIRS, make_pair("s-1", "summarization", 10.25), make_pair("s-2", "summarization", 11.5))
    shown = io.StringIO()
    Console(file=shown, width=80).print(tabulate(summarise(pairs)))
    assert "…" not in shown.getvalue()
    assert "summarization        2   10.0  108.4    10.84x" in shown.getvalue()


def test_ratio_is_shown_with_what_is_known() -> None:
    assert show_ratio(Ratio.of([1.0, 2.0])) == "1.50x 1.00-2.00"
    assert show_ratio(Ratio.of([1.0])) == "1.00x -"
    assert show_ratio(None) == "-"


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (SETTINGS, "each prompt was answered 2 times in both ways, the median of them counts"),
        (replace(SETTINGS, start="cold"), "cold start: drafters had learnt nothing before each prompt"),
        (
            replace(SETTINGS, start="warm", warm_up_prompts=("a",)),
            "warm start: drafters had learnt from 1 other prompt,",
        ),
    ],
)
def test_how_it_was_measured_is_said(settings: Settings, sentence: str) -> None:
    assert sentence in "\n".join(describe(make_record().summary, settings))


def test_sentences_tell_acceptance_time_and_the_worst_prompt() -> None:
    sentences = list(describe(summarise((make_pair("qa-1", "qa", 2.0),)), SETTINGS))
    assert "suffix: 2 drafts, accepted by position 100% 0%" in sentences
    assert "time of decoding: draft 25.0%, verify 50.0%, sample 10.0%, other 15.0%" in sentences
    assert "worst prompt: qa-1 (qa), 2.00x" in sentences
    assert "prefill 200 tok/s, 1 of 1 answers identical" in sentences
