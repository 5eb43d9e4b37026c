"""`borrador run`: write an answer to standard output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from borrador.cli import options as opt
from borrador.cli import token_options as tok
from borrador.cli.answer import show_reasons
from borrador.cli.models import find_model, find_models
from borrador.cli.option_groups import DraftOptions, MachineOptions, ShapingOptions, engine_config, spread_groups
from borrador.cli.output import error_console, print_wrapped, standard_output
from borrador.cli.prompt import as_messages, read_prompt, require_utf8
from borrador.cli.shape import ShapeOptions, require_enforceable
from borrador.cli.token_options import EndOptions, TokenOptions
from borrador.cli.write import trace_view, write_json, write_text
from borrador.config import EngineConfig
from borrador.errors import UsageError
from borrador.params import MAX_COMPLETIONS
from borrador.types import SamplingParams
from borrador.values import integer

if TYPE_CHECKING:
    from borrador.engine.llm import LLM
    from borrador.engine.settings import Settings


@spread_groups
def run(
    prompt: Annotated[
        str | None,
        typer.Argument(metavar="PROMPT", help="The prompt; standard input is appended to it.", show_default=False),
    ] = None,
    *,
    model: opt.ModelOption = opt.MODEL,
    drafts: DraftOptions,
    max_tokens: opt.MaxTokensOption = opt.SAMPLING.max_tokens,
    system: Annotated[str | None, typer.Option("-s", "--system", metavar="TEXT", help="System message.")] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="Continue the text as it stands, without the chat template.")
    ] = False,
    shaping: ShapingOptions,
    tokens: TokenOptions,
    seed: opt.SeedOption = opt.SAMPLING.seed,
    n: opt.CompletionsOption = None,
    acceptance: opt.AcceptanceOption = opt.SAMPLING.acceptance,
    lenience: opt.LenienceOption = opt.SAMPLING.lenience,
    end: EndOptions,
    logprobs: tok.LogprobsOption = opt.SAMPLING.logprobs,
    shape: ShapeOptions,
    machine: MachineOptions,
    json: opt.JsonOption = False,
    quiet: opt.QuietOption = False,
    trace: Annotated[bool, typer.Option("--trace", help="Show every round on standard error.")] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say on standard error why each round drafted what it did.")
    ] = False,
) -> None:
    """Write an answer to PROMPT, with standard input appended to it.

    Standard output is the answer and nothing else; with --n, a line above each answer numbers it. Statistics go to
    standard error.
    """
    params = SamplingParams(
        max_tokens=max_tokens,
        seed=seed,
        acceptance=acceptance,
        lenience=lenience,
        logprobs=logprobs,
        **shaping.as_params(),
        **tokens.as_params(),
        **end.as_params(),
        **shape.as_params(),
    )
    require_enforceable(params)
    config = engine_config(drafts, machine)
    _require_agreement(raw=raw, system=system, logprobs=logprobs, json=json, explain=explain, config=config)
    answers = [params.for_completion(index) for index in range(_count_answers(n, params))]
    standard_output()
    question = read_prompt(prompt)
    if lenience < 1.0 and not quiet:
        _announce_lenience(lenience)
    if drafts.draft is None:
        config = follow_plan(model, config, quiet=quiet, explain=explain)
    with open_llm(model, config, quiet=quiet) as llm:
        request = question if raw else as_messages(question, system)
        rounds = [show_reasons(error_console())] if explain else []
        rounds += [trace_view(llm, config, params)] if trace else []
        several = n is not None
        if json:
            setup = {"model": model, "draft": list(config.draft)}
            interrupted = write_json(llm, request, answers, rounds, setup, several=several, explain=explain)
        else:
            interrupted = write_text(llm, request, answers, rounds, several=several, quiet=quiet, explain=explain)
    if interrupted:
        raise KeyboardInterrupt


def _require_agreement(
    *, raw: bool, system: str | None, logprobs: int | None, json: bool, explain: bool, config: EngineConfig
) -> None:
    """Refuse options that would have no effect beside the others."""
    if explain and (config.draft_tokens is not None or config.draft == ("none",)):
        fixed = "--draft none" if config.draft == ("none",) else f"--draft-tokens {config.draft_tokens}"
        raise UsageError(
            f"--explain needs drafts that costs decide on, and {fixed} leaves no choice", "Drop one of the two."
        )
    if logprobs is not None and not json:
        raise UsageError("--logprobs needs --json, and it is not given", "Add --json.")
    if raw and system is not None:
        raise UsageError("--system needs the chat template, and --raw turns it off", "Drop one of the two.")
    require_utf8("the system message", system)


def _count_answers(n: int | None, params: SamplingParams) -> int:
    """How many answers to write; several that must be equal are refused."""
    if n is None:
        return 1
    count = integer("--n", n, 1, MAX_COMPLETIONS)
    if count > 1 and params.greedy:
        raise UsageError(
            f"--n {count} needs a temperature above 0, where answers differ, and it is 0", "Add --temperature 0.8."
        )
    return count


def follow_plan(model: str, config: EngineConfig, *, quiet: bool, explain: bool = False) -> EngineConfig:
    """What a plan recommends for this model, where there is one and the options leave the choice to it; and says so.

    Raises:
        UsageError: the plan leaves costs no choice that could be explained.
    """
    from borrador.engine import settings

    config, plan = settings.follow_plan(find_model(model, quiet=quiet), config)
    if explain and plan is not None and (plan.draft_tokens is not None or plan.draft == ("none",)):
        raise UsageError(
            f"--explain needs drafts that costs decide on, and this model runs {describe_plan(plan)}", "Add -d auto."
        )
    if plan is not None and not quiet:
        print_wrapped(error_console(), describe_plan(plan), style="dim")
    return config


def describe_plan(plan: Settings) -> str:
    length = "lengths by costs" if plan.draft_tokens is None else f"draft length {plan.draft_tokens}"
    how = "no drafts" if plan.draft == ("none",) else f"{', '.join(plan.draft)}, {length}"
    return f"as planned on {plan.date}: {how} ({plan.speedup:.2f}x then)"


def open_llm(model: str, config: EngineConfig, *, quiet: bool) -> LLM:
    """Find the models, fetching those of the catalogue on first use, and load them."""
    from borrador.engine.loading import load

    find_models(model, config, quiet=quiet)
    return load(
        model,
        config.draft,
        threads=config.threads,
        context=config.context,
        draft_tokens=config.draft_tokens,
        draft_shortlist=config.draft_shortlist,
        draft_weights=config.draft_weights,
        profile=config.profile,
        history=config.history,
    )


def _announce_lenience(lenience: float) -> None:
    note = f"note: --lenience {lenience:g} accepts tokens that the model would not have written; answers may change"
    print_wrapped(error_console(), note)
