"""A trace says of every token where it came from, and of every round what became of its draft."""

from __future__ import annotations

from tests.cli.scripted_llm import make_round
from tests.server.writing import writing_llm

from borrador.server.logprobs import TokenNames
from borrador.server.trace import trace_of
from borrador.types import GenerationEvent, Origin, RoundRecord, TokenLogprobs


def events_of(record: RoundRecord) -> list[GenerationEvent]:
    last = len(record.committed) - 1
    return [
        GenerationEvent(
            text=chr(token),
            token_ids=(token,),
            origin=origin,
            round=record.number,
            record=record if index == last else None,
            logprobs=TokenLogprobs(token, -0.5, ()) if index else None,
        )
        for index, (token, origin) in enumerate(zip(record.committed, record.origins, strict=True))
    ]


def trace(*events: GenerationEvent) -> dict[str, list[dict[str, object]]]:
    return trace_of(events, TokenNames(writing_llm("").tokenizer))


def test_accepted_tokens_name_their_drafter_and_the_others_do_not() -> None:
    tokens = trace(*events_of(make_round(2, [97, 98, 99, 100], 2, 120)))["tokens"]
    assert [token["origin"] for token in tokens] == ["draft", "draft", "target"]
    assert [token["drafter"] for token in tokens] == ["lookup", "lookup", None]
    assert [token["token_id"] for token in tokens] == [97, 98, 120]
    assert [token["logprob"] for token in tokens] == [None, -0.5, -0.5]
    assert {token["round"] for token in tokens} == {2}


def test_a_round_tells_what_was_refused() -> None:
    (told,) = trace(*events_of(make_round(2, [97, 98, 99, 100], 2, 120)))["rounds"]
    assert told == {
        "number": 2,
        "proposed": 4,
        "accepted": 2,
        "drafter": "lookup",
        "refused": ["c", "d"],
        "draft_ms": 0.1,
        "verify_ms": 14.2,
    }


def test_a_draft_probability_is_that_of_the_tokens_own_row() -> None:
    record = make_round(3, [97, 98, 99], 2, 120, parents=(-1, -1, 1))
    record = RoundRecord(
        **{
            **{name: getattr(record, name) for name in record.__slots__},
            "draft": type(record.draft)(
                tokens=record.draft.tokens, parents=(-1, -1, 1), drafter="model", confidence=(0.1, 0.6, 0.3)
            ),
            "verdict": type(record.verdict)((1, 2), 120, True, 3),
            "committed": (98, 99, 120),
        }
    )
    traced = trace(*events_of(record))
    assert [token["draft_probability"] for token in traced["tokens"]] == [0.6, 0.3, None]
    assert traced["rounds"][0]["refused"] == ["a"]


def test_text_behind_the_last_token_is_a_token_without_an_id() -> None:
    closing = GenerationEvent(text="!", token_ids=(), origin=Origin.TARGET, round=0, finish_reason="timeout")
    traced = trace(closing)
    assert [(token["text"], token["token_id"]) for token in traced["tokens"]] == [("!", None)]
    assert traced["rounds"] == []
