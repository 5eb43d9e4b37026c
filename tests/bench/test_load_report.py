from __future__ import annotations

import pytest

from borrador.bench.client import Answer
from borrador.bench.load import Block, Level, Outcome, Question, Series
from borrador.bench.load_report import LoadReport, Percentiles
from borrador.bench.prompts import BenchPrompt
from borrador.errors import BorradorError
from borrador.remote.refusal import RefusedError

BUSY = RefusedError("busy", status=429)
BROKEN = BorradorError("the connection broke")


def outcome(number: int, text: str = "same", tokens: int = 11, *, first_s: float = 0.5, end_s: float = 1.5) -> Outcome:
    return Outcome(question(number), answer=Answer(text, tokens, True, first_s, end_s))


def question(number: int) -> Question:
    return Question(number, BenchPrompt(f"qa-{number}", "qa", "?"))


def failed(number: int, error: BorradorError) -> Outcome:
    return Outcome(question(number), error=error)


def series(speculate: bool | None, outcomes: list[Outcome], seconds: float) -> Series:
    return Series(speculate, [Block(outcomes, seconds)])


def level_of_blocks(drafted: list[float], plain: list[float]) -> Level:
    ways = ((True, drafted), (False, plain))
    return Level(2, tuple(Series(way, [Block([outcome(0)], seconds) for seconds in blocks]) for way, blocks in ways))


def test_percentiles_are_interpolated() -> None:
    assert Percentiles.of(float(value) for value in range(101)) == Percentiles(50.0, 95.0, 99.0)
    assert Percentiles.of([1.0, None, 2.0]) == Percentiles(1.5, 1.95, 1.99)
    assert Percentiles.of([None]) is None


def test_series_counts_what_became_of_requests_and_divides_all_tokens_by_all_seconds() -> None:
    outcomes = [outcome(0), outcome(1, tokens=1, first_s=1.5), failed(2, BUSY), failed(3, BUSY), failed(4, BROKEN)]
    report = LoadReport.of([Level(2, (series(None, outcomes, 4.0),))])
    (level,) = report.as_json()["levels"]
    assert level == {
        "clients": 2,
        "series": [
            {
                "speculation": None,
                "ok": 2,
                "rejected_429": 2,
                "failed": 1,
                "tokens": 12,
                "tokens_per_second": 3.0,
                "ttft_s": {"p50": 1.0, "p95": 1.45, "p99": 1.49},
                "tpot_s": {"p50": 0.1, "p95": 0.1, "p99": 0.1},
                "e2e_s": {"p50": 1.5, "p95": 1.5, "p99": 1.5},
            }
        ],
    }
    assert (report.requests, report.failed, report.first_failure) == (5, 1, "the connection broke")


def test_ratio_and_texts_are_of_the_same_questions() -> None:
    drafted = series(True, [outcome(1), outcome(0), outcome(2), failed(3, BUSY)], 1.0)
    plain = series(False, [outcome(0), outcome(1), outcome(3)], 2.0)
    report = LoadReport.of([Level(2, (drafted, plain))])
    assert report.levels[0].ratio == pytest.approx(2.0)
    assert (report.levels[0].compared, report.levels[0].identical, report.difference) == (2, 2, None)


def test_ratio_has_an_interval_by_what_its_pairs_of_blocks_say() -> None:
    (level,) = LoadReport.of([level_of_blocks([1.0, 1.0, 2.0, 2.0], [1.1, 0.9, 2.2, 1.8])]).levels
    assert level.ratio == pytest.approx(1.0)
    assert level.interval is not None
    assert list(level.interval) == pytest.approx([0.9, 1.1], abs=0.02)
    assert level.as_json()["interval"] == [round(bound, 4) for bound in level.interval]


def test_what_slows_both_blocks_of_a_pair_does_not_widen_the_interval() -> None:
    (level,) = LoadReport.of([level_of_blocks([1.0, 5.0, 1.0, 9.0], [1.2, 6.0, 1.2, 10.8])]).levels
    assert level.interval is not None
    assert list(level.interval) == pytest.approx([1.2, 1.2])


def test_ratio_has_no_interval_where_too_few_blocks_tell_of_their_spread() -> None:
    silent = level_of_blocks([1.0] * 4, [1.0] * 4)
    silent.series[0].blocks[2].outcomes[0] = failed(0, BUSY)
    levels = LoadReport.of([level_of_blocks([1.0] * 3, [1.0] * 3), silent]).levels
    assert [level.interval for level in levels] == [None, None]
    assert [level.ratio for level in levels] == [pytest.approx(1.0), pytest.approx(0.75)]


@pytest.mark.parametrize(
    ("left", "right", "told"),
    [
        ("one two", "one 2", "at character 4: 'two' with drafts, '2' without"),
        ("one", "one two", "at character 3: '' with drafts, ' two' without"),
    ],
)
def test_first_text_that_differs_is_named(left: str, right: str, told: str) -> None:
    ways = (series(True, [outcome(0), outcome(7, left)], 1.0), series(False, [outcome(0), outcome(7, right)], 1.0))
    report = LoadReport.of([Level(4, ways)])
    assert (report.levels[0].compared, report.levels[0].identical) == (2, 1)
    assert report.difference == f"with 4 clients, the answer to qa-7 (request 7) differs {told}"


def test_level_without_answers_has_no_ratio_and_no_percentiles() -> None:
    ways = (series(True, [failed(0, BUSY)], 1.0), series(False, [outcome(0)], 1.0))
    (level,) = LoadReport.of([Level(1, ways)]).levels
    assert (level.ratio, level.compared, level.series[0].first_token, level.series[0].tokens_per_second) == (
        None,
        0,
        None,
        0.0,
    )


def test_tokens_are_said_to_be_counted_where_the_server_did_not_count_all() -> None:
    counted = Outcome(question(1), answer=Answer("same", 3, False, 0.5, 1.5))
    assert LoadReport.of([Level(1, (series(None, [outcome(0)], 1.0),))]).counts == "usage"
    assert LoadReport.of([Level(1, (series(None, [outcome(0), counted], 1.0),))]).counts == "events"
