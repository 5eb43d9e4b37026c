"""A pass that requests share, and what is done where it fails: nobody suffers for what is not his own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from borrador.engine.member import Member
from borrador.errors import MemoryLimitError
from borrador.models.passes import evaluate_batch
from borrador.models.target import Model, Rows, Target
from borrador.types import Draft

_log = logging.getLogger("borrador")


def verify(model: Model, live: Sequence[Member], make_room: Callable[[], bool]) -> bool:
    """Evaluate the rows of all in one pass, and let each commit what the pass brought.

    Where the pass fails, each is evaluated alone and without a draft, which gives the same answers: then only those
    fail whose rows the model cannot evaluate.

    Args:
        model: of all of them.
        live: the requests, some of which may have no rows. What `make_room` changes is seen here.
        make_room: called where memory is short, until it is not; False where there is no room to be made.

    Returns:
        Whether all went well at the first attempt.
    """
    attempts = 0
    while True:
        attempts += 1
        members = [member for member in live if member.rows is not None]
        if not members:
            return attempts == 1
        try:
            found = evaluate_batch(model, _batch(members), [member.wanted for member in members])
        except MemoryLimitError as error:
            if make_room():
                continue
            _verify_alone(model, members, error)
            return False
        except Exception as error:  # noqa: BLE001 - whatever it is, it is nobody's or somebody's own
            _verify_alone(model, members, error)
            return False
        for member, evidence in zip(members, found, strict=True):
            member.accept(evidence)
        return attempts == 1


def withdraw_drafts(members: Sequence[Member]) -> bool:
    """Let nobody verify a draft in this step; whether anyone would have."""
    drafting = [member for member in members if member.round is not None and member.round.draft.tokens]
    for member in drafting:
        member.place(Draft())
    return bool(drafting)


def _verify_alone(model: Model, members: Sequence[Member], error: Exception) -> None:
    if len(members) > 1:
        _log.warning("a pass over %d requests failed, and each is evaluated alone: %r", len(members), error)
    for member in members:
        member.target.rewind(member.target.length)
    withdraw_drafts(members)
    for member in members:
        try:
            (evidence,) = evaluate_batch(model, _batch([member]), [member.wanted])
        except Exception as own:  # noqa: BLE001 - a request fails alone, whatever it is
            member.fail(own)
        else:
            member.accept(evidence)


def _batch(members: Sequence[Member]) -> list[tuple[Target, Rows]]:
    return [(member.target, member.rows) for member in members if member.rows is not None]
