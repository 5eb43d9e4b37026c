"""`borrador run`: write an answer to standard output."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from borrador.cli import options as opt
from borrador.cli import token_options as tok
from borrador.cli.answer import Answer, Show, answer_as_json, describe_stats, show_rounds, stream_text
from borrador.cli.models import find_models
from borrador.cli.output import encodes, error_console, print_json, print_wrapped, share_a_screen, standard_output
from borrador.cli.prompt import as_messages, read_prompt, require_utf8
from borrador.cli.shape import read_schema, read_shape, require_enforceable
from borrador.cli.trace import ASCII_MARKS, UNICODE_MARKS, describe_marks, drafter_width
from borrador.config import EngineConfig
from borrador.draft.registry import expand_specs
from borrador.errors import UsageError
from borrador.types import SamplingParams

if TYPE_CHECKING:
    from borrador.engine.llm import LLM, Prompt
    from borrador.engine.stream import AnswerStream


def run(
    prompt: Annotated[
        str | None,
        typer.Argument(metavar="PROMPT", help="What to write; standard input is added to it.", show_default=False),
    ] = None,
    model: opt.ModelOption = opt.MODEL,
    draft: opt.DraftOption = None,
    draft_tokens: opt.DraftTokensOption = opt.ENGINE.draft_tokens,
    max_tokens: opt.MaxTokensOption = opt.SAMPLING.max_tokens,
    system: Annotated[str | None, typer.Option("-s", "--system", metavar="TEXT", help="System message.")] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Continue the text as it stands, without chat template.")] = False,
    temperature: opt.TemperatureOption = opt.SAMPLING.temperature,
    top_k: opt.TopKOption = opt.SAMPLING.top_k,
    top_p: opt.TopPOption = opt.SAMPLING.top_p,
    min_p: opt.MinPOption = opt.SAMPLING.min_p,
    typical_p: tok.TypicalPOption = opt.SAMPLING.typical_p,
    repetition_penalty: tok.RepetitionPenaltyOption = opt.SAMPLING.repetition_penalty,
    presence_penalty: tok.PresencePenaltyOption = opt.SAMPLING.presence_penalty,
    frequency_penalty: tok.FrequencyPenaltyOption = opt.SAMPLING.frequency_penalty,
    penalty_window: tok.PenaltyWindowOption = opt.SAMPLING.penalty_window,
    logit_bias: tok.LogitBiasOption = None,
    allow_token: tok.AllowTokenOption = None,
    ban_token: tok.BanTokenOption = None,
    seed: opt.SeedOption = opt.SAMPLING.seed,
    acceptance: opt.AcceptanceOption = opt.SAMPLING.acceptance,
    lenience: opt.LenienceOption = opt.SAMPLING.lenience,
    stop: opt.StopOption = None,
    stop_token: tok.StopTokenOption = None,
    min_tokens: tok.MinTokensOption = opt.SAMPLING.min_tokens,
    ignore_eos: tok.IgnoreEosOption = opt.SAMPLING.ignore_eos,
    logprobs: tok.LogprobsOption = opt.SAMPLING.logprobs,
    json_schema: opt.JsonSchemaOption = None,
    regex: opt.RegexOption = None,
    grammar: opt.GrammarOption = None,
    threads: opt.ThreadsOption = opt.ENGINE.threads,
    context: opt.ContextOption = opt.ENGINE.context,
    json: opt.JsonOption = False,
    quiet: opt.QuietOption = False,
    trace: Annotated[bool, typer.Option("--trace", help="Show every round on standard error.")] = False,
) -> None:
    """Write an answer to PROMPT and standard input, joined.

    Standard output is the answer and nothing else; statistics go to standard error.
    """
    params = SamplingParams(
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        min_p=min_p,
        typical_p=typical_p,
        repetition_penalty=repetition_penalty,
        presence_penalty=presence_penalty,
        frequency_penalty=frequency_penalty,
        penalty_window=penalty_window,
        logit_bias=tok.biases(logit_bias),
        allowed_token_ids=tok.allowed_ids(allow_token),
        banned_token_ids=tok.token_ids("--ban-token", ban_token),
        seed=seed,
        acceptance=acceptance,
        lenience=lenience,
        stop=tuple(stop or ()),
        stop_token_ids=tok.token_ids("--stop-token", stop_token),
        min_tokens=min_tokens,
        max_tokens=max_tokens,
        ignore_eos=ignore_eos,
        logprobs=logprobs,
        json_schema=read_schema(json_schema),
        regex=regex,
        grammar=read_shape("--grammar", grammar),
    )
    require_enforceable(params)
    config = opt.engine_config(draft, threads, context, draft_tokens)
    _require_agreement(raw=raw, system=system, logprobs=logprobs, json=json)
    standard_output()
    question = read_prompt(prompt)
    if lenience < 1.0 and not quiet:
        _announce_lenience(lenience)
    with open_llm(model, config, quiet=quiet) as llm:
        request = question if raw else as_messages(question, system)
        rounds = [_trace_view(llm, config, params)] if trace else []
        if json:
            setup = {"model": model, "draft": list(config.draft)}
            interrupted = _write_json(llm, request, params, rounds, setup)
        else:
            interrupted = _write_text(llm, request, params, rounds, quiet=quiet)
    if interrupted:
        raise KeyboardInterrupt


def _require_agreement(*, raw: bool, system: str | None, logprobs: int | None, json: bool) -> None:
    """Refuse options that would have no effect beside the others."""
    if logprobs is not None and not json:
        raise UsageError("--logprobs needs --json, and it is not given", "Add --json.")
    if raw and system is not None:
        raise UsageError("--system needs the chat template, and --raw turns it off", "Drop one of the two.")
    require_utf8("the system message", system)


def open_llm(model: str, config: EngineConfig, *, quiet: bool) -> LLM:
    """Find the models, fetching those of the catalogue on first use, and load them."""
    from borrador.engine.loading import load

    find_models(model, config, quiet=quiet)
    return load(model, config.draft, threads=config.threads, context=config.context, draft_tokens=config.draft_tokens)


def _announce_lenience(lenience: float) -> None:
    note = f"note: --lenience {lenience:g} accepts tokens that the model would not have written; answers may change"
    print_wrapped(error_console(), note)


def _write_text(llm: LLM, request: Prompt, params: SamplingParams, rounds: list[Show], *, quiet: bool) -> bool:
    """Write the answer and the footer; True where the user stopped it."""
    answer = Answer()
    held_back = bool(rounds) and share_a_screen()
    views: list[Show] = [] if held_back else [stream_text]
    with llm.stream(request, params) as stream:
        interrupted = _follow(stream, answer, views + rounds)
        stats = stream.stats
    _end_text(answer.text, held_back)
    if not quiet:
        print_wrapped(error_console(), describe_stats(stats), style="dim")
    return interrupted


def _write_json(
    llm: LLM, request: Prompt, params: SamplingParams, rounds: list[Show], setup: Mapping[str, Any]
) -> bool:
    """Write the answer as one object, which holds the statistics too; True where the user stopped it."""
    answer = Answer()
    with llm.stream(request, params) as stream:
        interrupted = _follow(stream, answer, rounds)
        stats = stream.stats
    print_json(answer_as_json(answer, stats, params, setup, llm.token_text))
    return interrupted


def _follow(stream: AnswerStream, answer: Answer, views: list[Show]) -> bool:
    """Show every event of an answer; True where the user stopped it."""
    try:
        for event in stream:
            answer.add(event)
            for show in views:
                show(event)
    except KeyboardInterrupt:
        return True
    return False


def _trace_view(llm: LLM, config: EngineConfig, params: SamplingParams) -> Show:
    """A view that prints every round; the marks are explained first."""
    console = error_console()
    marks = UNICODE_MARKS if encodes(sys.stderr, UNICODE_MARKS.all) else ASCII_MARKS
    print_wrapped(console, describe_marks(marks, shaped=params.structured))
    return show_rounds(console, llm.token_text, marks, drafter_width(expand_specs(config.draft)))


def _end_text(text: str, held_back: bool) -> None:
    """On a screen the answer ends its line; a file or a pipe gets it as it is."""
    output = standard_output()
    if held_back:
        output.write(text)
    if (output.isatty() or share_a_screen()) and text and not text.endswith("\n"):
        output.write("\n")
    output.flush()
