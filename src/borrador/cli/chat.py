"""`borrador chat`: a conversation in the terminal, with a model on this machine or behind a URL."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from borrador.cli import options as opt
from borrador.cli import url_options as url_opt
from borrador.cli.option_groups import DraftOptions, MachineOptions, ShapingOptions, engine_config, spread_groups
from borrador.cli.output import error_console, standard_output
from borrador.cli.prompt import require_utf8
from borrador.cli.run import follow_plan, open_llm
from borrador.config import EngineConfig
from borrador.errors import UsageError
from borrador.types import SamplingParams

if TYPE_CHECKING:
    from borrador.chat.backend import Backend
    from borrador.chat.lines import Lines
    from borrador.chat.screen import Screen
    from borrador.chat.settings import Settings

_WITH_URL = {
    "max_tokens",
    "system",
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "typical_p",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
    "penalty_window",
    "seed",
    "acceptance",
    "stop",
    "draft_tokens",
    "input_history",
    "quiet",
}


@spread_groups
def chat(
    *,
    command: typer.Context,
    model: opt.ModelOption = opt.MODEL,
    drafts: DraftOptions,
    server: url_opt.UrlOptions,
    max_tokens: opt.MaxTokensOption = opt.SAMPLING.max_tokens,
    system: Annotated[str | None, typer.Option("-s", "--system", metavar="TEXT", help="System message.")] = None,
    shaping: ShapingOptions,
    seed: opt.SeedOption = opt.SAMPLING.seed,
    acceptance: opt.AcceptanceOption = opt.SAMPLING.acceptance,
    stop: opt.StopOption = None,
    machine: MachineOptions,
    input_history: Annotated[
        bool,
        typer.Option(
            "--input-history/--no-input-history",
            help="Save what you type for the next chat, in the folder of --history.",
        ),
    ] = True,
    quiet: opt.QuietOption = False,
) -> None:
    """Talk with a model: each line is a question, until Ctrl-D ends the chat.

    /help lists the commands. Standard output is the answers and nothing else. Questions can also come from a file or a
    pipe, one per line; an error then ends the chat.
    """
    url_opt.require_agreement(command, server.url, _WITH_URL)
    params = SamplingParams(
        seed=seed,
        acceptance=acceptance,
        stop=tuple(stop or ()),
        max_tokens=max_tokens,
        **shaping.as_params(),
    )
    require_utf8("the system message", system)
    config = engine_config(drafts, machine)
    settings = _settings(params, config)
    standard_output()
    if server.url is None:
        config = config if drafts.draft is not None else follow_plan(model, config, quiet=quiet)
        opened = _open_engine(model, config, quiet=quiet)
    else:
        opened = _open_server(server.url, server.api_key, server.model_name)
    with opened as backend:
        _talk(backend, settings, system, keep=input_history, quiet=quiet)


def _settings(params: SamplingParams, config: EngineConfig) -> Settings:
    from borrador.chat.settings import Drafting, Settings

    fixed = config.draft_tokens
    return Settings(sampling=params, drafting=Drafting(speculate=fixed != 0, draft_tokens=fixed or None))


@contextmanager
def _open_engine(model: str, config: EngineConfig, *, quiet: bool) -> Iterator[Backend]:
    """The model is loaded to draft by costs: a fixed number of tokens belongs to the answers, and can be changed."""
    from borrador.chat.local import EngineBackend

    with open_llm(model, replace(config, draft_tokens=None), quiet=quiet) as llm:
        yield EngineBackend(llm, model, drafts=config.draft != ("none",))


@contextmanager
def _open_server(url: str, api_key: str | None, model_name: str | None) -> Iterator[Backend]:
    from borrador.chat.remote import ServerBackend
    from borrador.remote.address import Address
    from borrador.remote.connection import open_client
    from borrador.remote.discovery import find_model

    address = Address.parse(url, api_key)
    with open_client(address) as client:
        yield ServerBackend(client, address, find_model(client, address, model_name))


def _talk(backend: Backend, settings: Settings, system: str | None, *, keep: bool, quiet: bool) -> None:
    from borrador.chat.chat import Chat
    from borrador.chat.loop import talk
    from borrador.chat.screen import Screen

    screen = Screen(standard_output(), error_console(), quiet=quiet)
    chat = Chat(backend, screen, settings, system)
    terminal = _terminal()
    if terminal is not None:
        screen.note(f"{backend.name}, drafting {settings.drafting}; /help lists commands, Ctrl-D ends")
    talk(chat, _lines(terminal, screen, keep=keep), interactive=terminal is not None)


def _terminal() -> TextIO | None:
    """Where a person can be asked; None where the questions come from elsewhere."""
    if sys.stdin is None or not sys.stdin.isatty():
        return None
    return next((stream for stream in (sys.stderr, sys.stdout) if stream is not None and stream.isatty()), None)


def _lines(terminal: TextIO | None, screen: Screen, *, keep: bool) -> Lines:
    from borrador.chat.lines import PlainLines, PromptedLines

    if terminal is None:
        if sys.stdin is None or sys.stdin.closed:
            raise UsageError("a chat needs questions, and standard input is closed", "Start it in a terminal.")
        return PlainLines(sys.stdin.buffer)
    from borrador.chat.terminal import open_editor

    return PromptedLines(open_editor(terminal, keep=keep, warn=screen.note))
