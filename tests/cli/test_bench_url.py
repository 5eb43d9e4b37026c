"""`borrador bench --url` with a server on a real socket."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from rich.console import Console
from tests.api_server import TOKENS, ApiServer, Behaviour
from tests.cli.conftest import Borrador, Result

from borrador.bench.client import Answer
from borrador.bench.load import Block, Level, Outcome, Question, Series
from borrador.bench.load_report import LoadReport
from borrador.bench.prompts import BenchPrompt
from borrador.cli.load import tabulate, tabulate_times


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as server:
        yield server


def report(result: Result) -> dict[str, Any]:
    entry: dict[str, Any] = json.loads(result.out.splitlines()[-1])
    return entry


def test_every_level_is_measured_with_drafts_and_without(borrador: Borrador, server: ApiServer) -> None:
    server.behaviour = Behaviour(token_s=0.01)
    result = borrador("bench", "--url", server.url, "--concurrency", "1,4", "--json")
    entry = report(result)
    assert result.code == 0
    assert (entry["model"], entry["speculative_field"], entry["tokens_from"]) == ("tiny", "understood", "usage")
    assert [(level["clients"], level["compared"], level["identical"]) for level in entry["levels"]] == [
        (1, 8, 8),
        (4, 8, 8),
    ]
    for level in entry["levels"]:
        assert [(series["speculation"], series["ok"], series["tokens"]) for series in level["series"]] == [
            (True, 8, 40),
            (False, 8, 40),
        ]
    assert server.most_at_once == 4
    asked = [body["speculative"]["enabled"] for body in server.asked]
    assert (asked.count(True), asked.count(False)) == (1 + 9 + 12, 1 + 9 + 12)
    assert {body["temperature"] for body in server.asked} == {0.0}


def test_figures_are_those_of_a_server_with_known_delays(borrador: Borrador, server: ApiServer) -> None:
    server.behaviour = Behaviour(first_s=0.1, token_s=0.02, speculative="ignored")
    result = borrador("bench", "--url", server.url, "--concurrency", "4", "--json")
    ((series,),) = (level["series"] for level in report(result)["levels"])
    assert 0.1 <= series["ttft_s"]["p50"] < series["e2e_s"]["p50"]
    assert 0.0 <= series["tpot_s"]["p50"] < series["e2e_s"]["p99"] / 4
    assert series["e2e_s"]["p50"] >= 0.18
    assert series["ttft_s"]["p50"] <= series["ttft_s"]["p95"] <= series["ttft_s"]["p99"]
    assert 8 * 5 / (8 * series["e2e_s"]["p99"]) < series["tokens_per_second"] <= 4 * 5 / 0.18


def test_table_has_a_row_for_each_series(borrador: Borrador, server: ApiServer) -> None:
    result = borrador("bench", "--url", server.url, "--concurrency", "2", "-q")
    rows = [line.split() for line in result.out.splitlines()]
    assert rows[0][:4] == ["clients", "drafts", "ok", "429"]
    assert [row[:5] for row in rows[2:4]] == [["2", "on", "8", "0", "0"], ["2", "off", "8", "0", "0"]]
    assert rows[2][-1] == "8/8"
    assert rows[2][-2].endswith("x")
    assert [row[:2] for row in rows[7:9]] == [["2", "on"], ["2", "off"]]
    assert [len(row[2].split("/")) for row in rows[7:9]] == [3, 3]
    assert "…" not in result.out
    assert result.err == ""


def test_ratio_has_its_interval_beside_it(borrador: Borrador, server: ApiServer) -> None:
    result = borrador("bench", "--url", server.url, "--concurrency", "1", "--json", "-q")
    (level,) = report(result)["levels"]
    low, high = level["interval"]
    assert low <= level["ratio"] <= high
    assert f"{level['ratio']:.2f}x {low:.2f}-{high:.2f}" in result.out


def test_tables_of_slow_answers_to_many_clients_fit_80_columns() -> None:
    answer = Answer("text", 100, True, 123.456, 1234.5)
    outcomes = [Outcome(Question(number, BenchPrompt("a", "qa", "?")), answer) for number in range(512)]
    ways = tuple(Series(way, [Block(outcomes, 1.0)] * 4) for way in (True, False))
    found = LoadReport.of([Level(1024, ways)])
    for table in (tabulate(found), tabulate_times(found)):
        assert Console(width=200).measure(table).maximum <= 80


@pytest.mark.parametrize("how", ["refused", "ignored"])
def test_server_that_cannot_be_told_how_to_draft_has_one_series(borrador: Borrador, how: str) -> None:
    with ApiServer(Behaviour(speculative="refused" if how == "refused" else "ignored")) as server:
        result = borrador("bench", "--url", server.url, "--concurrency", "1", "--json")
    assert result.code == 0
    assert f"one series: the server cannot be told how to draft, its field speculative is {how}\n" in result.out
    assert [series["speculation"] for series in report(result)["levels"][0]["series"]] == [None]
    assert all("speculative" not in body for body in server.asked)


def test_answers_that_drafts_changed_end_with_exit_code_5(borrador: Borrador, server: ApiServer) -> None:
    server.behaviour = Behaviour(plain_tokens=(*TOKENS[:3], (" Paris", "target")))
    result = borrador("bench", "--url", server.url, "--concurrency", "1", "--json")
    assert result.code == 5
    assert report(result)["levels"][0]["identical"] == 0
    assert "differs at character 15: 'Rome.' with drafts, 'Paris' without\n" in result.err


def test_requests_that_a_busy_server_refuses_are_counted_and_no_failure(borrador: Borrador, server: ApiServer) -> None:
    server.behaviour = Behaviour(busy=frozenset({3, 5, 6}), speculative="ignored")
    result = borrador("bench", "--url", server.url, "--concurrency", "2", "--json")
    ((series,),) = (level["series"] for level in report(result)["levels"])
    assert (result.code, series["ok"], series["rejected_429"], series["failed"]) == (0, 5, 3, 0)


def test_connections_that_break_are_failures_and_end_with_exit_code_1(borrador: Borrador, server: ApiServer) -> None:
    server.behaviour = Behaviour(dropped=frozenset({2}), fails_inside=frozenset({4}), speculative="ignored")
    result = borrador("bench", "--url", server.url, "--concurrency", "2", "--json")
    ((series,),) = (level["series"] for level in report(result)["levels"])
    assert (result.code, series["ok"], series["failed"], series["tokens"]) == (1, 6, 2, 30)
    assert result.err.splitlines()[-2].startswith("error: 2 of 8 requests failed, the first one with: ")


def test_tokens_that_the_server_does_not_count_are_events(borrador: Borrador, server: ApiServer) -> None:
    server.behaviour = Behaviour(usage=False)
    result = borrador("bench", "--url", server.url, "--concurrency", "1", "--json")
    assert (report(result)["tokens_from"], report(result)["levels"][0]["series"][0]["tokens"]) == ("events", 40)
    assert "events with text are counted instead\n" in result.out


def test_number_of_requests_and_tokens_can_be_chosen(borrador: Borrador, server: ApiServer) -> None:
    words = ("--concurrency", "2", "--requests", "10", "-n", "3", "--per-task", "1", "--json")
    result = borrador("bench", "--url", server.url, *words)
    assert [(series["ok"], series["tokens"]) for series in report(result)["levels"][0]["series"]] == [(10, 30)] * 2


@pytest.mark.parametrize(
    "words",
    [
        ("--url", "http://127.0.0.1:1", "-m", "smollm2-135m"),
        ("--url", "http://127.0.0.1:1", "-d", "lookup"),
        ("--url", "http://127.0.0.1:1", "--history", "mine"),
        ("--url", "127.0.0.1:1"),
        ("--url", "http://127.0.0.1:1", "--concurrency", "0"),
        ("--url", "http://127.0.0.1:1", "--concurrency", "1,,2"),
        ("--url", "http://127.0.0.1:1", "--concurrency", "8", "--requests", "8"),
        ("--concurrency", "2"),
        ("--requests", "20"),
        ("--api-key", "secret"),
        ("--model-name", "tiny"),
    ],
)
def test_options_that_contradict_each_other_are_refused(borrador: Borrador, words: tuple[str, ...]) -> None:
    result = borrador("bench", *words)
    assert (result.code, result.out) == (2, "")
    assert [line.split(":")[0] for line in result.err.splitlines()] == ["error", "hint"]


def test_server_that_is_not_there_or_lists_no_model_is_a_sentence(borrador: Borrador, server: ApiServer) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, and not listening
        absent = borrador("bench", "--url", f"http://127.0.0.1:{taken.getsockname()[1]}")
    assert (absent.code, "cannot be reached" in absent.err) == (1, True)
    server.behaviour = Behaviour(models=())
    empty = borrador("bench", "--url", server.url)
    assert (empty.code, "lists no model" in empty.err) == (1, True)
    other = borrador("bench", "--url", f"{server.url}/elsewhere")
    assert (other.code, "the server refused the request (404): not found" in other.err) == (1, True)
