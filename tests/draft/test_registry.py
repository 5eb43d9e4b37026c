from __future__ import annotations

import pytest

from borrador.draft.lookup import LookupDrafter
from borrador.draft.registry import expand_specs, open_drafters
from borrador.errors import ModelError, UsageError


@pytest.mark.parametrize(
    ("specs", "expanded"),
    [
        (["none"], ()),
        (["auto"], ("lookup", "recycle")),
        (["lookup"], ("lookup",)),
        (["recycle"], ("recycle",)),
        (["small.gguf", "auto"], ("lookup", "recycle", "small.gguf")),
        (["auto", "small.gguf", "lookup", "small.gguf"], ("lookup", "recycle", "small.gguf")),
        (["small.gguf"], ("small.gguf",)),
    ],
)
def test_specs_name_drafters_with_built_in_ones_first(specs: list[str], expanded: tuple[str, ...]) -> None:
    assert expand_specs(specs) == expanded


def test_none_beside_another_drafter_is_refused() -> None:
    with pytest.raises(UsageError, match="excludes other drafters, got also lookup"):
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
