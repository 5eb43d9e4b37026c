from __future__ import annotations

import pytest

from borrador.draft.lookup import LookupDrafter
from borrador.draft.registry import expand_specs, open_drafters, require_use_of_history
from borrador.errors import ModelError, UsageError


@pytest.mark.parametrize(
    ("specs", "expanded"),
    [
        (["none"], ()),
        (["auto"], ("suffix", "recycle")),
        (["lookup"], ("lookup",)),
        (["recycle"], ("recycle",)),
        (["small.gguf", "auto"], ("suffix", "recycle", "small.gguf")),
        (["auto", "small.gguf", "lookup", "small.gguf"], ("suffix", "recycle", "lookup", "small.gguf")),
        (["small.gguf"], ("small.gguf",)),
    ],
)
def test_specs_name_drafters_with_built_in_ones_first(specs: list[str], expanded: tuple[str, ...]) -> None:
    assert expand_specs(specs) == expanded


def test_none_beside_another_drafter_is_refused() -> None:
    with pytest.raises(UsageError, match="excludes other drafters, and lookup is given too"):
        expand_specs(["lookup", "none"])


def test_drafters_opened_before_a_failure_are_closed() -> None:
    class Watched(LookupDrafter):
        name = "watched"
        closed = False

        def close(self) -> None:
            self.closed = True

    watched = Watched()

    def open_model(name: str) -> LookupDrafter:
        if name == "missing":
            raise ModelError("there is no such model")
        return watched

    with pytest.raises(ModelError):
        open_drafters(["there", "missing"], open_model)
    assert watched.closed
    assert [drafter.name for drafter in open_drafters(["there", "lookup"], open_model)] == ["lookup", "watched"]


@pytest.mark.parametrize("specs", [["suffix"], ["auto"], ["small.gguf", "suffix"]])
def test_history_is_used_by_suffix(specs: list[str]) -> None:
    require_use_of_history(specs)


@pytest.mark.parametrize("specs", [["lookup"], ["none"], ["small.gguf"]])
def test_history_that_no_drafter_uses_is_refused(specs: list[str]) -> None:
    with pytest.raises(UsageError, match=f"history needs the drafter suffix, and draft is {specs[0]}"):
        require_use_of_history(specs)
