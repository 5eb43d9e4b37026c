"""What an accepted token saves, where requests share passes. Pure: numbers in, numbers out."""

from __future__ import annotations

from collections.abc import Sequence

from borrador.engine.candidates import Load, PassCost

_AHEAD = 1.0  # a request that is so many steps ahead of another is not the last


def token_values(pass_s: PassCost, load: Load, steps_left: Sequence[float], *, draining: bool) -> list[float]:
    """Seconds that an accepted token of each request saves.

    A pass takes a base, however many rows it has, and something for each row. A token that a draft brought saves its
    row in a later pass. The base it saves where the pass is not needed any more: as long as others wait for their turn
    or are to come, each token brings them a share of a pass nearer. Else passes go on until the last request is
    finished, and only tokens of those that may be the last make them fewer.

    Args:
        pass_s: T(m), seconds of a pass over m rows.
        load: of the pass, without drafts.
        steps_left: of each request that writes a token in it, how many passes it needs yet.
        draining: no more requests wait for a turn, or are expected.
    """
    half = max(load.rows // 2, 1)
    total_s = pass_s(load.rows)
    row_s = (total_s - pass_s(half)) / (load.rows - half) if load.rows > half else 0.0
    base_s = max(total_s - row_s * load.rows, 0.0)
    longest = max(steps_left, default=0.0)
    last = [not draining or steps > longest - _AHEAD for steps in steps_left]
    share_s = base_s / max(sum(last), 1)
    return [row_s + (share_s if is_last else 0.0) for is_last in last]
