"""All steps of a verification, with the models loaded once for each number of threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing

from borrador.bench.prompts import BenchPrompt
from borrador.engine.loading import Parts
from borrador.errors import ContextLengthError
from borrador.verify.answers import AnswerStep, greedy_cases, seeded_cases
from borrador.verify.extent import Extent
from borrador.verify.law import LawStep
from borrador.verify.logits import LogitStep
from borrador.verify.place import TREE_ROWS
from borrador.verify.report import Report, Step
from borrador.verify.rig import Rig

LEAST_CONTEXT = TREE_ROWS + 16

OpenParts = Callable[[int], Parts]
Notice = Callable[[str], None]


def verify(
    open_parts: OpenParts,
    threads: Sequence[int],
    prompts: Sequence[BenchPrompt],
    extent: Extent,
    *,
    notice: Notice,
    break_residual: bool = False,
) -> Report:
    """Take all steps, whatever they find.

    Args:
        open_parts: loads target and drafters with a number of threads; they are closed before it is called again.
        threads: to compare; the first writes what the others must write too.
        prompts: at least one.
        extent: how much to check.
        notice: told what is being done.
        break_residual: judge drafts by a wrong rule in the last step, which must then find that.

    Raises:
        ContextLengthError: the model's context is too short, or a prompt is too long for it.
    """
    steps = make_steps(spread(prompts, extent.prompts), extent, break_residual=break_residual)
    for number in threads:
        with closing(open_parts(number)) as parts:
            rig = Rig(parts, number)
            _require_room(rig, prompts)
            for place, step in enumerate(steps, 1):
                notice(f"step {place} of {len(steps)}: {step.name}, threads {number}")
                step.run(rig)
    return Report(threads, [step.report() for step in steps])


def make_steps(prompts: Sequence[BenchPrompt], extent: Extent, *, break_residual: bool = False) -> Sequence[Step]:
    """The steps of a verification, in order."""
    greedy = AnswerStep("greedy answers", greedy_cases(prompts, extent), extent)
    return (
        greedy,
        AnswerStep("seeded answers", seeded_cases(prompts, extent), extent),
        LogitStep("logits", greedy, extent),
        LawStep("sampling law", greedy, extent, break_residual=break_residual),
    )


def spread(prompts: Sequence[BenchPrompt], count: int) -> Sequence[BenchPrompt]:
    """At most `count` prompts, from all over a file, its first and last too: tasks stand together in it."""
    if len(prompts) <= count:
        return prompts
    return [prompts[index * (len(prompts) - 1) // max(count - 1, 1)] for index in range(count)]


def _require_room(rig: Rig, prompts: Sequence[BenchPrompt]) -> None:
    limit = rig.parts.context_length
    if limit < LEAST_CONTEXT:
        raise ContextLengthError(
            f"verify needs a context of at least {LEAST_CONTEXT} tokens, this model has {limit}", "Use another model."
        )
    for prompt in prompts:
        if (tokens := len(rig.tokenize(prompt.text))) >= limit:
            raise ContextLengthError(
                f"a prompt must be shorter than the context of {limit} tokens, {prompt.id} has {tokens}",
                "Leave it out of the prompt file.",
            )
