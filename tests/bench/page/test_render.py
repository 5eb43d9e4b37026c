from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
from typing import Any

import pytest
from tests.bench.page.reading import Element, cells, read_page
from tests.bench.records import PAIRS, SETTINGS, make_pair, make_record, make_run

from borrador.bench.page.numbers import FORMS, resolve
from borrador.bench.page.render import render_page
from borrador.bench.record import ModelFile, Record
from borrador.bench.runs import Pair
from borrador.bench.summary import summarise

NASTY = "<script>alert('1')</script>&amp;\"</style>"


@pytest.fixture(scope="module")
def record() -> Record:
    return make_record()


@pytest.fixture(scope="module")
def page(record: Record) -> Element:
    return read_page(render_page(record))


@pytest.fixture(scope="module")
def document(record: Record) -> Any:
    return json.loads(record.to_json())


def shown(page: Element, path: str) -> set[str]:
    return {number.text for number in page.all("data", **{"data-path": path})}


def table_of(page: Element, title: str) -> list[list[str]]:
    """The numbers below the chart of that title."""
    (figure,) = [figure for figure in page.all("figure") if figure.all("h3")[0].text == title]
    (table,) = figure.all("table")
    return cells(table)


def test_every_number_of_the_record_is_shown_as_it_stands_there(page: Element, document: Any) -> None:
    numbers = [number for number in page.all("data") if "data-path" in number.attributes]
    assert len(numbers) > 60
    for number in numbers:
        value = resolve(document, number.attributes["data-path"])
        assert float(number.attributes["value"]) == value
        assert number.text == FORMS[number.attributes["data-form"]](value)


def test_numbers_worked_out_for_the_page_are_written_by_the_same_forms(page: Element) -> None:
    numbers = [number for number in page.all("data") if "data-path" not in number.attributes]
    assert len(numbers) > 20
    for number in numbers:
        assert number.text == FORMS[number.attributes["data-form"]](float(number.attributes["value"]))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/summary/total/decode/paired/median", "1.55x"),
        ("/summary/total/identical", "3"),
        ("/summary/total/prompts", "3"),
        ("/summary/total/decode/plain_tok_s", "10.0"),
        ("/summary/per_task/code/decode/paired/median", "3.05x"),
        ("/summary/per_task/qa/decode/paired/interval/0", "1.05x"),
        ("/summary/per_task/qa/decode/paired/interval/1", "1.55x"),
        ("/summary/per_task/qa/acceptance", "50%"),
        ("/summary/plain_time/forward_s", "1.20 s"),
        ("/summary/drafters/0/tested/0", "12"),
        ("/row_costs/seconds/8", "18.0 ms"),
        ("/machine/memory_bytes", "8.0 GiB"),
    ],
)
def test_a_number_that_can_be_worked_out_by_hand_is_there(page: Element, path: str, text: str) -> None:
    assert shown(page, path) == {text}


def test_every_column_of_the_tasks_is_what_its_head_says(page: Element) -> None:
    (table,) = page.all("table", **{"class": "wide tasks"})
    assert cells(table)[1:] == [
        ["qa", "2", "10.0", "12.5", "1.25x", "1.30x (1.05x to 1.55x)", "1.19x", "1.67", "50%", "2"],
        ["code", "1", "10.0", "30.5", "3.05x", "3.05x", "2.16x", "1.67", "50%", "1"],
        ["all", "3", "10.0", "15.6", "1.56x", "1.55x (1.05x to 3.05x)", "1.40x", "1.67", "50%", "3"],
    ]


def test_the_headline_has_the_speeds_of_both_ways(page: Element) -> None:
    tiles = [" ".join(tile.text.split()) for tile in page.all("dl", **{"class": "tiles"})[0].all("div")]
    assert tiles == [
        "Speed-up in decoding 1.55x median of 3 prompts, 95 % interval 1.05x to 3.05x",
        "Identical answers 3 of 3 token for token",
        "Tokens per second 15.6 plain decoding 10.0, so 1.56x over all tokens",
        "Tokens per pass 1.67 50% of tested draft tokens accepted",
    ]


def test_machine_models_and_settings_are_told(page: Element) -> None:
    terms = {
        term.text: " ".join(told.text.split())
        for table in page.all("dl", **{"class": "terms"})
        for term, told in zip(table.all("dt"), table.all("dd"), strict=True)
    }
    assert {name: terms[name] for name in ("Target", "Processor", "Cores", "Memory bandwidth", "Drafters")} == {
        "Target": "target.gguf 0 MB",
        "Processor": "A Processor",
        "Cores": "2",
        "Memory bandwidth": "10.0 GB/s",
        "Drafters": "suffix, draft.gguf",
    }
    assert {name: terms[name] for name in ("Draft length", "Longest answer", "Temperature", "Seed", "Repeats")} == {
        "Draft length": "by measured costs",
        "Longest answer": "64 tokens",
        "Temperature": "0",
        "Seed": "-",
        "Repeats": "2",
    }


def test_tables_below_charts_have_what_is_drawn(page: Element) -> None:
    assert table_of(page, "Acceptance by position")[1:] == [
        ["suffix", "1", "12", "12", "100%"],
        ["suffix", "2", "12", "0", "0%"],
    ]
    assert table_of(page, "Tokens per pass as answers go on")[1:] == [
        ["1", "6", "12", "2.00"],
        ["2", "6", "12", "2.00"],
    ]
    assert table_of(page, "What a pass costs, T(m)")[1] == ["1", "10.0 ms", "1.00x", "9.0 ms", "90%"]
    assert table_of(page, "What a pass costs, T(m)")[-1] == ["16", "30.0 ms", "3.00x", "26.7 ms", "89%"]
    assert table_of(page, "Where the time went")[2] == ["target's passes", "1.20 s", "50%", "0.77 s", "50%"]


def test_charts_say_what_they_show(page: Element) -> None:
    drawings = page.all("svg", role="img")
    assert len(drawings) == 5
    for drawing in drawings:
        title, description = drawing.attributes["aria-labelledby"].split()
        assert drawing.all("title", id=title)[0].text
        assert drawing.all("desc", id=description)[0].text
    dots = [circle.all("title")[0].text for circle in drawings[0].all("circle")]
    assert dots == ["qa: 1.30x", "code: 3.05x", "all: 1.55x"]


def test_worst_prompts_come_first(page: Element) -> None:
    (table,) = [table for table in page.all("table") if "Prompt" in cells(table)[0]]
    assert cells(table)[1:] == [
        ["qa-1", "qa", "1.05x", "10.0", "10.5", "5"],
        ["qa-2", "qa", "1.55x", "10.0", "15.5", "5"],
        ["code-1", "code", "3.05x", "10.0", "30.5", "5"],
    ]


def test_nothing_in_the_page_leads_out_of_it_or_runs(page: Element, record: Record) -> None:
    assert page.all("script") == page.all("link") == page.all("img") == []
    assert all(link.attributes["href"].startswith("#") for link in page.all("a"))
    assert "url(" not in render_page(record)
    assert not [element for element in page.all("html") if element.attributes.get("style")]


def test_the_policy_allows_this_style_and_nothing_else(page: Element) -> None:
    (policy,) = page.all("meta", **{"http-equiv": "Content-Security-Policy"})
    (style,) = page.all("style")
    digest = base64.b64encode(hashlib.sha256(style.text.encode()).digest()).decode()
    assert policy.attributes["content"] == (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


def test_names_are_text_whatever_they_hold() -> None:
    run = make_run(0.2, passes=3)
    drafters = (dataclasses.replace(run.drafters[0], drafter=NASTY),)
    pair = dataclasses.replace(make_pair(NASTY, NASTY, 2.0), speculative=dataclasses.replace(run, drafters=drafters))
    record = make_record((pair,), dataclasses.replace(SETTINGS, prompts=NASTY, draft=(NASTY,)))
    record = dataclasses.replace(
        record,
        date=NASTY,
        model=ModelFile(name=NASTY, bytes=1, sha256="0" * 64),
        machine=dataclasses.replace(record.machine, cpu=NASTY, isa=NASTY, os=NASTY),
        versions=dataclasses.replace(record.versions, borrador=NASTY),
    )
    text = render_page(record)
    page = read_page(text)
    assert page.all("script") == []
    assert page.all("h1")[0].text == NASTY
    assert text.count("</style>") == 1
    assert {NASTY} == {row[0] for table in page.all("table", **{"class": "wide"}) for row in cells(table)[1:]}


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ((make_pair("qa-1", "qa", 2.0),), "of one prompt, which tells nothing of the spread"),
        ((), "nothing was decoded"),
        (PAIRS, "median of 3 prompts, 95 % interval 1.05x to 3.05x"),
    ],
)
def test_the_headline_says_how_sure_it_is(pairs: tuple[Pair, ...], said: str) -> None:
    page = read_page(render_page(make_record(pairs)))
    (tile,) = page.all("div", **{"class": "first"})
    assert said in " ".join(tile.text.split())


def test_what_was_not_measured_is_left_out() -> None:
    record = dataclasses.replace(make_record(), row_costs=None)
    titles = [title.text for title in read_page(render_page(record)).all("h3")]
    assert "What a pass costs, T(m)" not in titles
    plain = tuple(dataclasses.replace(pair, speculative=pair.plain) for pair in PAIRS)
    titles = [title.text for title in read_page(render_page(make_record(plain))).all("h3")]
    assert "Acceptance by position" not in titles


def test_draws_are_said_not_to_be_compared() -> None:
    page = read_page(render_page(make_record(settings=dataclasses.replace(SETTINGS, temperature=1.0))))
    assert "drawn without a seed, so not compared" in page.text
    assert "temperature 1 without a seed" in page.text


def test_a_changed_answer_stands_at_the_top() -> None:
    pairs = (*PAIRS, make_pair("qa-3", "qa", 1.0, token_ids=(1, 2, 9)))
    record = make_record(pairs)
    assert record.summary == summarise(pairs)
    (alarm,) = read_page(render_page(record)).all("p", **{"class": "alarm"})
    assert alarm.text == "Speculation changed an answer: prompt qa-3, token 2."
