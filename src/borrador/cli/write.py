"""Writes the answers to one prompt: as text while it comes, or as JSON at the end."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from borrador.cli.answer import Answer, Show, answer_as_json, describe_stats, show_rounds, stream_text
from borrador.cli.output import encodes, error_console, print_json, print_wrapped, share_a_screen, standard_output
from borrador.cli.trace import ASCII_MARKS, UNICODE_MARKS, describe_marks, drafter_width
from borrador.config import EngineConfig
from borrador.draft.registry import expand_specs
from borrador.types import GenerationEvent, SamplingParams

if TYPE_CHECKING:
    from borrador.engine.llm import LLM
    from borrador.engine.prompts import Prompt
    from borrador.engine.stream import AnswerStream


def write_text(
    llm: LLM,
    prompt: Prompt,
    answers: Sequence[SamplingParams],
    rounds: Sequence[Show],
    *,
    several: bool,
    quiet: bool,
    explain: bool = False,
) -> bool:
    """Write answers one after another, each with its footer; True where the user stopped them.

    Args:
        llm: writes them.
        prompt: what they answer.
        answers: the parameters of each.
        rounds: views of their rounds.
        several: put a numbered line above each.
        quiet: write no footers.
        explain: let rounds say why they drafted what they did.
    """
    for number, params in enumerate(answers, 1):
        header = _describe_answer(number, len(answers), params.seed) if several else ""
        if _write_one(llm, prompt, params, rounds, header, quiet=quiet, explain=explain):
            return True
    return False


def write_json(
    llm: LLM,
    prompt: Prompt,
    answers: Sequence[SamplingParams],
    rounds: Sequence[Show],
    setup: Mapping[str, Any],
    *,
    several: bool,
    explain: bool = False,
) -> bool:
    """Write each answer as an object, which holds the statistics too; True where the user stopped them.

    Args are those of `write_text`, and `setup`, which is part of every object; with `several` they make a list.
    """
    entries: list[dict[str, Any]] = []
    interrupted = False
    for params in answers:
        answer = Answer()
        with llm.stream(prompt, params, explain=explain) as stream:
            interrupted = _follow(stream, answer, rounds)
            stats = stream.stats
        entries.append(answer_as_json(answer, stats, params, setup, llm.token_text))
        if interrupted:
            break
    print_json(entries if several else entries[0])
    return interrupted


def trace_view(llm: LLM, config: EngineConfig, params: SamplingParams) -> Show:
    """A view that prints every round; the marks are explained first."""
    console = error_console()
    marks = UNICODE_MARKS if encodes(sys.stderr, UNICODE_MARKS.all) else ASCII_MARKS
    print_wrapped(console, describe_marks(marks, shaped=params.structured))
    return show_rounds(console, llm.token_text, marks, drafter_width(expand_specs(config.draft)))


def _describe_answer(number: int, count: int, seed: int | None) -> str:
    """The line above one of several answers, and an empty one before it."""
    named = "" if seed is None else f", seed {seed}"
    return f"{'' if number == 1 else chr(10)}== answer {number} of {count}{named} ==\n"


def _write_one(
    llm: LLM,
    prompt: Prompt,
    params: SamplingParams,
    rounds: Sequence[Show],
    header: str,
    *,
    quiet: bool,
    explain: bool,
) -> bool:
    """Write the answer and the footer; True where the user stopped it."""
    answer = Answer()
    held_back = bool(rounds) and share_a_screen()
    views = [_show_once(header), *([] if held_back else [stream_text]), *rounds]
    with llm.stream(prompt, params, explain=explain) as stream:
        interrupted = _follow(stream, answer, views)
        stats = stream.stats
    _end_text(answer.text, held_back=held_back, several=bool(header))
    if not quiet:
        print_wrapped(error_console(), describe_stats(stats), style="dim")
    return interrupted


def _show_once(header: str) -> Show:
    """A view that writes the header above the first event: an answer that fails before it has none."""
    pending = [header]

    def show(_: GenerationEvent) -> None:
        if pending:
            standard_output().write(pending.pop())
            standard_output().flush()

    return show


def _follow(stream: AnswerStream, answer: Answer, views: Sequence[Show]) -> bool:
    """Show every event of an answer; True where the user stopped it."""
    try:
        for event in stream:
            answer.add(event)
            for show in views:
                show(event)
    except KeyboardInterrupt:
        return True
    return False


def _end_text(text: str, *, held_back: bool, several: bool) -> None:
    """On a screen the answer ends its line, as one of several does everywhere; a file or a pipe gets it as it is."""
    output = standard_output()
    if held_back:
        output.write(text)
    if (several or output.isatty() or share_a_screen()) and text and not text.endswith("\n"):
        output.write("\n")
    output.flush()
