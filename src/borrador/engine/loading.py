"""From names of models to what an `LLM` is made of, and to an `LLM`."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from borrador.config import DEFAULT_CONTEXT, DraftWeights, EngineConfig
from borrador.draft.cross import CrossDrafter
from borrador.draft.history import History
from borrador.draft.model import ModelDrafter
from borrador.draft.plugin import DrafterContext, PluginDrafter, find_plugins
from borrador.draft.protocol import Drafter
from borrador.draft.registry import NAMES, open_drafters, require_use_of_history
from borrador.draft.shortlist import Shortlist, automatic_size, frequent_tokens
from borrador.engine.llm import LLM
from borrador.engine.profile import Profile
from borrador.engine.requests import ChatRenderer
from borrador.engine.settings import follow_plan
from borrador.errors import ModelError, UsageError
from borrador.models.download import resolve
from borrador.models.native import NativeModel
from borrador.models.target import Model
from borrador.text.chat_template import ChatTemplate
from borrador.text.tokenizer import Tokenizer, first_difference

_log = logging.getLogger("borrador")
_OTHER_TOKENS = 2  # a text has at most about so many times as many tokens in another vocabulary


@dataclass(frozen=True, slots=True)
class Parts:
    """What an `LLM` is made of.

    Attributes:
        model: the target.
        tokenizer: of the target.
        template: of the target.
        drafters: in order of preference.
        context_length: the most tokens of prompt and answer together.
        profile: where what is learnt is kept; None keeps nothing.
    """

    model: Model
    tokenizer: Tokenizer
    template: ChatRenderer
    drafters: Sequence[Drafter]
    context_length: int
    profile: Profile | None = None

    def assemble(self, draft_tokens: int | None = None) -> LLM:
        """An `LLM` of all parts, which closes them with itself. Arguments as for `load`."""
        return LLM(
            self.model,
            self.tokenizer,
            self.template,
            self.drafters,
            context_length=self.context_length,
            draft_tokens=draft_tokens,
            profile=self.profile,
        )

    def close(self) -> None:
        """Free models and drafters. Not for parts whose `LLM` does it."""
        with ExitStack() as closing:
            closing.callback(self.model.close)
            for drafter in self.drafters:
                closing.callback(drafter.close)


def load(
    model: str | Path,
    draft: str | Sequence[str] | None = None,
    *,
    threads: int | None = None,
    context: int | None = None,
    draft_tokens: int | None = None,
    draft_shortlist: int | None = None,
    draft_weights: DraftWeights = "auto",
    profile: bool = EngineConfig().profile,
    history: str | None = None,
) -> LLM:
    """Load a model and its drafters.

    Args:
        model: a catalogue name, `hf:OWNER/REPO/FILE.gguf`, or a path.
        draft: `none`, `suffix`, `lookup`, `recycle`, a plug-in, a smaller model, or `auto`, which is whatever is
            available; a list of them, or a comma list, counts as several. A model whose vocabulary is not the target's
            works too, if less well. None is what `borrador plan` has found best for the model on this machine, where it
            has, `profile` is on and no option that begins with `draft` and no `history` is given; else `auto`.
        threads: threads for the matrix work; None takes the cores this process may use.
        context: the most tokens of prompt and answer together; None takes the model's own limit, at most 4096.
        draft_tokens: tokens drafted each round, from 0 to 64; None lets measured costs decide.
        draft_shortlist: so many frequent tokens, and those of the request's own text, may be proposed by a draft model,
            which makes its steps cheaper; 0 for any token, None for 32768 where that saves a tenth of a step.
        draft_weights: of a draft model: `q4_0` rounds tensors of more than five bits a weight to Q4_0, which makes its
            steps cheaper; `file` keeps all as in the file; `auto` rounds where that saves 15 % or more of a step.
        profile: keep what is measured and learnt of costs and drafters, and begin with it the next time; in
            `$BORRADOR_PROFILES`, or `~/.cache/borrador-profiles`. It holds no text.
        history: keep the token ids of answers on this disk under this name, in `$BORRADOR_HISTORY` or
            `~/.cache/borrador-history`, and let the drafter `suffix` propose from them; None keeps nothing.

    A catalogue model or one of the Hub is fetched first where it is not on this disk.

    Raises:
        UsageError: an option breaks its rule.
        ModelError: a model is missing, damaged or not supported.
        MemoryLimitError: the models do not fit into memory.
    """
    specs: Any = EngineConfig().draft if draft is None else draft  # checked by the configuration
    config = EngineConfig(
        draft=specs,
        threads=threads,
        context=context,
        draft_tokens=draft_tokens,
        draft_shortlist=draft_shortlist,
        draft_weights=draft_weights,
        profile=profile,
        history=history,
    )
    if draft is None:
        config, _ = follow_plan(resolve(model), config)
    parts = open_parts(model, config)
    with ExitStack() as on_failure:
        on_failure.callback(parts.close)
        llm = parts.assemble(config.draft_tokens)
        on_failure.pop_all()
        return llm


def open_parts(model: str | Path, config: EngineConfig) -> Parts:
    """Load models and drafters. `model` and errors as for `load`."""
    if config.history is not None:
        require_use_of_history(config.draft)
    with ExitStack() as on_failure:
        path = resolve(model)
        _warn_of_many_threads(config.threads)
        target = NativeModel.load(path, config.threads)
        on_failure.callback(target.close)
        tokenizer = _read_tokenizer(target, path)
        context_length = _context_length(config.context, target.config.context_length)

        vocabulary_size, plugins = target.config.vocabulary_size, find_plugins()

        def open_other(name: str) -> Drafter:
            if name in plugins:
                return PluginDrafter.load(plugins[name], _drafter_context(tokenizer, vocabulary_size))
            file = resolve(name, drafters=(*NAMES, *plugins))
            return _open_draft_model(name, file, config, tokenizer, vocabulary_size, context_length)

        history = None if config.history is None else History(config.history, tokenizer.fingerprint())
        drafters = open_drafters(config.draft, open_other, history)
        for drafter in drafters:
            on_failure.callback(drafter.close)
        if not any(isinstance(drafter, ModelDrafter | CrossDrafter) for drafter in drafters):
            _refuse_what_only_draft_models_use(config)
        template = ChatTemplate.from_metadata(target.metadata, tokenizer)
        profile = Profile.of(path, isa=target.isa, threads=target.threads) if config.profile else None
        on_failure.pop_all()
        return Parts(target, tokenizer, template, drafters, context_length, profile)


def _refuse_what_only_draft_models_use(config: EngineConfig) -> None:
    """For drafters among which is no draft model."""
    wanted = {"draft_shortlist": config.draft_shortlist, "draft_weights": config.draft_weights}
    for name, value in wanted.items():
        if value and value != "auto":
            raise UsageError(
                f"{name} needs a draft model, got {value} and {', '.join(config.draft)}",
                "Name a draft model, or leave it out.",
            )


def _warn_of_many_threads(threads: int | None) -> None:
    """A pass waits for each of its threads, so those that wait for a processor themselves hold up all others."""
    processors = os.cpu_count()
    if threads is not None and processors is not None and threads > processors:
        _log.warning(
            "threads are %d and processors %d; more threads than processors slow each other down", threads, processors
        )


def _read_tokenizer(model: NativeModel, file: Path) -> Tokenizer:
    """The tokenizer of a model; errors say in which file, since there may be two models."""
    try:
        return Tokenizer.from_metadata(model.metadata)
    except ModelError as error:
        raise ModelError(f"{file}: {error}", error.hint) from error


def _open_draft_model(
    name: str, file: Path, config: EngineConfig, tokenizer: Tokenizer, vocabulary_size: int, context_length: int
) -> ModelDrafter | CrossDrafter:
    """A draft model; one whose vocabulary is not the target's drafts text, which is encoded anew for either."""
    model = NativeModel.load(file, config.threads, weights=config.draft_weights)
    try:
        own = _read_tokenizer(model, file)
        difference = first_difference(tokenizer, own)
        shared = difference is None
        size = vocabulary_size if shared else model.config.vocabulary_size
        shortlist = _open_shortlist(model, config.draft_shortlist, own, size)
    except BaseException:
        model.close()
        raise
    wanted_context = context_length if shared else _OTHER_TOKENS * context_length
    drafter = ModelDrafter(
        name,
        model,
        context_length=min(wanted_context, model.config.context_length),
        vocabulary_size=size,
        end_ids=tokenizer.eog_ids if shared else own.eog_ids,
        shortlist=shortlist,
        alternatives=shared,
        variant="" if model.rounded_to is None else model.rounded_to.name.lower(),
    )
    if shared:
        return drafter
    _log.warning("the draft model %s has another vocabulary: %s; its text is encoded anew", name, difference)
    return CrossDrafter(drafter, own, tokenizer)


def _drafter_context(tokenizer: Tokenizer, vocabulary_size: int) -> DrafterContext:
    def encode(text: str) -> list[int]:
        return tokenizer.encode(text, specials=False, starts_text=False)

    return DrafterContext(vocabulary_size, tokenizer.eog_ids, encode, tokenizer.decode)


def _open_shortlist(
    model: NativeModel, wanted: int | None, tokenizer: Tokenizer, vocabulary_size: int
) -> Shortlist | None:
    """The tokens that a draft model may propose; None for all."""
    known = min(model.config.vocabulary_size, vocabulary_size)
    size = automatic_size(model.config.vocabulary_size, model.head_share) if wanted is None else wanted
    return Shortlist(model, frequent_tokens(tokenizer, size, known)) if 0 < size < known else None


def _context_length(wanted: int | None, limit: int) -> int:
    if wanted is None:
        return min(limit, DEFAULT_CONTEXT)
    if wanted > limit:
        raise UsageError(
            f"context must be at most the {limit} tokens this model was trained for, got {wanted}",
            "Choose a smaller context.",
        )
    return wanted
