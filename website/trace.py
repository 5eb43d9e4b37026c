"""The traced example of docs/how-it-works.md, made from a real run.

python -m website.trace             write the page's example anew from docs/trace.json
python -m website.trace --record    run the models first, and keep what happened in docs/trace.json
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from website.commands import code_cell

import borrador
from borrador.cli.trace import UNICODE_MARKS, describe_marks, describe_round, drafter_width
from borrador.draft.registry import expand_specs
from borrador.types import Draft, Origin, RoundRecord, SamplingParams, Verdict

DOCS = Path(__file__).parents[1] / "docs"
RECORD = DOCS / "trace.json"
PAGE = DOCS / "how-it-works.md"
BEGIN, END = "<!-- written by website/trace.py -->\n", "<!-- end of what website/trace.py writes -->\n"
MODEL, DRAFT = "qwen2.5-coder-1.5b", "auto,qwen2.5-coder-0.5b"
PROMPT = (
    "Correct the spelling and return the whole text: The museeum is opend from Tuesday to Sunday. "
    "Visiters can leave their bags at the entrance. Children do not pay."
)


def record() -> dict[str, Any]:
    """Run the models; what happened, as JSON can hold it."""
    with borrador.load(MODEL, draft=DRAFT, profile=False) as llm:
        # The first answer of a process pays for reading the weights from disk.
        llm.generate("Warm up.", SamplingParams(max_tokens=8))
        messages = [{"role": "user", "content": PROMPT}]
        with llm.stream(messages, SamplingParams(max_tokens=96)) as stream:
            rounds = [event.record for event in stream if event.record]
            stats = stream.stats
        ids = {token for each in rounds for token in (*each.draft.tokens, *each.committed, each.verdict.next_token)}
        pieces = {str(token): llm.token_text(token) for token in sorted(ids)}
    return {
        "borrador": borrador.__version__,
        "date": datetime.date.today().isoformat(),
        "machine": platform.machine(),
        "model": MODEL,
        "draft": DRAFT,
        "prompt": PROMPT,
        "pieces": pieces,
        "rounds": [asdict(each) for each in rounds],
        "stats": asdict(stats),
    }


def render(run: Mapping[str, Any]) -> str:
    """The example as Markdown: the trace as `--trace` prints it, then what each round brought."""
    rounds = [_read_round(each) for each in run["rounds"]]
    lines = ["```text", describe_marks(UNICODE_MARKS).plain, *_trace(rounds, run), "```", "", *_table(rounds, run)]
    return "\n".join([*lines, "", _summary(rounds), ""])


def update(page: str, example: str) -> str:
    """The page with its example replaced."""
    before, _, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"the page must hold the lines {BEGIN.strip()} and {END.strip()}")
    return f"{before}{BEGIN}\n{example}\n{END}{after}"


def _read_round(saved: Mapping[str, Any]) -> RoundRecord:
    draft, verdict = saved["draft"], saved["verdict"]
    parents = draft["parents"]
    return RoundRecord(
        number=saved["number"],
        draft=Draft(
            tokens=tuple(draft["tokens"]),
            parents=None if parents is None else tuple(parents),
            drafter=draft["drafter"],
        ),
        verdict=Verdict(tuple(verdict["path"]), verdict["next_token"], verdict["bonus"], verdict["tested"]),
        committed=tuple(saved["committed"]),
        origins=tuple(Origin(origin) for origin in saved["origins"]),
        draft_s=saved["draft_s"],
        forward_s=saved["forward_s"],
        total_s=saved["total_s"],
    )


def _trace(rounds: Sequence[RoundRecord], run: Mapping[str, Any]) -> Iterator[str]:
    width = drafter_width(expand_specs(tuple(run["draft"].split(","))))
    for each in rounds:
        yield describe_round(each, lambda token: run["pieces"][str(token)], UNICODE_MARKS, width).plain


def _table(rounds: Sequence[RoundRecord], run: Mapping[str, Any]) -> Iterator[str]:
    yield "| round | drafter | proposed | accepted | written | what it wrote |"
    yield "|---|---|---|---|---|---|"
    for each in rounds:
        text = json.dumps("".join(run["pieces"][str(token)] for token in each.committed), ensure_ascii=False)
        proposed, accepted = len(each.draft.tokens), len(each.verdict.path)
        cells = (each.number, each.draft.drafter, proposed, accepted, len(each.committed), code_cell(text))
        yield f"| {' | '.join(map(str, cells))} |"


def _summary(rounds: Sequence[RoundRecord]) -> str:
    written = sum(len(each.committed) for each in rounds)
    tested = sum(each.verdict.tested for each in rounds)
    accepted = sum(len(each.verdict.path) for each in rounds)
    return (
        f"{written} tokens were written in {len(rounds)} passes: {written / len(rounds):.2f} tokens per pass. "
        f"{tested} draft tokens were tested and {accepted} of them accepted. "
        "Plain decoding takes one pass for every token."
    )


def main(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description="Write the traced example of docs/how-it-works.md.")
    parser.add_argument("--record", action="store_true", help="run the models first")
    if parser.parse_args(words).record:
        RECORD.write_text(json.dumps(record(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    example = render(json.loads(RECORD.read_text(encoding="utf-8")))
    PAGE.write_text(update(PAGE.read_text(encoding="utf-8"), example), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
