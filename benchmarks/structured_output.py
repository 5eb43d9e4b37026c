"""Fifty JSON schemas: are the answers valid, the same with and without drafting, and faster than plain decoding?

    python benchmarks/structured_output.py -m qwen2.5-coder-1.5b -d auto,qwen2.5-coder-0.5b --out results.jsonl

The schemas are in `json_schemas.jsonl`. Each is answered twice, plainly and with drafters, under the same masks, and
judged by the jsonschema package. Results are added to `--out` line by line, so that a run can be cut into parts with
`--skip` and `--take`; the report covers the whole file.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema

from borrador import LLM, Completion, SamplingParams, load

SCHEMAS = Path(__file__).with_name("json_schemas.jsonl")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One schema, answered in both ways. Times in seconds of decoding, tokens and passes of each way."""

    name: str
    text: str
    fault: str
    identical: bool
    plain_s: float
    drafted_s: float
    plain_tokens: int
    drafted_tokens: int
    plain_passes: int
    drafted_passes: int
    grammar_tokens: int


def main() -> None:
    options = read_options()
    if options.take:
        cases = [json.loads(line) for line in SCHEMAS.read_text("utf-8").splitlines()]
        with load(options.model, options.draft) as llm, options.out.open("a", encoding="utf-8") as out:
            for result in answer_all(llm, cases[options.skip :][: options.take], options):
                print(f"{result.name:32} {result.plain_s:6.2f} s {result.drafted_s:6.2f} s  {result.fault or 'valid'}")
                out.write(json.dumps(asdict(result), ensure_ascii=False) + "\n")
    results = [Result(**json.loads(line)) for line in options.out.read_text("utf-8").splitlines()]
    print(report(results))


def answer_all(llm: LLM, cases: list[dict[str, Any]], options: argparse.Namespace) -> Iterator[Result]:
    for number, case in enumerate(cases):
        params = SamplingParams(
            json_schema=case["schema"],
            max_tokens=options.max_tokens,
            temperature=options.temperature,
            seed=options.seed if options.temperature else None,
        )
        prompt = [{"role": "user", "content": f"{case['prompt']} Answer in JSON."}]
        # In turn, so that neither way always finds the prompt in the cache.
        ways = (False, True) if number % 2 else (True, False)
        answers = {speculate: llm.generate(prompt, params, speculate=speculate) for speculate in ways}
        yield compare(case, answers[False], answers[True])


def compare(case: dict[str, Any], plain: Completion, drafted: Completion) -> Result:
    return Result(
        name=case["name"],
        text=drafted.text,
        fault=fault_of(drafted, exact(json.dumps(case["schema"]))),
        identical=drafted.token_ids == plain.token_ids and drafted.finish_reason == plain.finish_reason,
        plain_s=plain.stats.decode_s,
        drafted_s=drafted.stats.decode_s,
        plain_tokens=plain.stats.completion_tokens,
        drafted_tokens=drafted.stats.completion_tokens,
        plain_passes=plain.stats.target_passes,
        drafted_passes=drafted.stats.target_passes,
        grammar_tokens=drafted.stats.grammar_tokens,
    )


def fault_of(answer: Completion, schema: dict[str, Any]) -> str:
    """What is wrong with an answer; nothing where it is valid."""
    if answer.finish_reason != "stop":
        return f"cut: {answer.finish_reason}"
    try:
        validator = jsonschema.Draft202012Validator
        jsonschema.validate(exact(answer.text), schema, validator, format_checker=validator.FORMAT_CHECKER)
    except (ValueError, jsonschema.ValidationError) as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return ""


def exact(text: str) -> Any:
    """JSON with decimal fractions as they stand: in binary 19.9 is no multiple of 0.01."""
    return json.loads(text, parse_float=Decimal)


def report(results: list[Result]) -> str:
    count = len(results)
    valid = sum(not result.fault for result in results)
    identical = sum(result.identical for result in results)
    plain_s, drafted_s = sum(result.plain_s for result in results), sum(result.drafted_s for result in results)
    tokens = sum(result.drafted_tokens for result in results)
    forced = sum(result.grammar_tokens for result in results)
    passes = sum(result.drafted_passes for result in results)
    faster = sum(result.drafted_s < result.plain_s for result in results)
    return (
        f"{count} schemas: {valid} valid, {identical} identical with and without drafting\n"
        f"decoding {plain_s:.2f} s plainly, {drafted_s:.2f} s with drafting: {plain_s / drafted_s:.2f}x, "
        f"{faster} of {count} faster\n"
        f"{tokens} tokens, {forced} of them forced by the grammar, {tokens / passes:.2f} tokens per pass"
    )


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("-m", "--model", default="smollm2-135m")
    parser.add_argument("-d", "--draft", default="auto")
    parser.add_argument("-n", "--max-tokens", type=int, default=400)
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=1, help="of sampling, where the temperature is above 0")
    parser.add_argument("--skip", type=int, default=0, help="schemas to leave out at the beginning")
    parser.add_argument("--take", type=int, default=1000, help="how many to answer; 0 only reports")
    parser.add_argument("--out", type=Path, default=Path("structured_output.jsonl"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
