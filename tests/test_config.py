from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from borrador.config import EngineConfig
from borrador.errors import UsageError


@pytest.mark.parametrize(
    ("given", "draft"),
    [
        (("auto",), ("auto",)),
        (("lookup, small.gguf", "none"), ("lookup", "small.gguf", "none")),
        ("lookup,auto", ("lookup", "auto")),
        (["lookup"], ("lookup",)),
    ],
)
def test_comma_lists_count_as_several_drafters(given: Any, draft: tuple[str, ...]) -> None:
    assert EngineConfig(draft=given).draft == draft


def test_a_file_with_a_comma_in_its_name_is_one_drafter(tmp_path: Path) -> None:
    path = tmp_path / "small,new.gguf"
    assert EngineConfig(draft=(str(path),)).draft == (str(tmp_path / "small"), "new.gguf")
    path.touch()
    assert EngineConfig(draft=("lookup", str(path))).draft == ("lookup", str(path))


@pytest.mark.parametrize(
    ("option", "rule"),
    [
        ({"threads": 0}, "threads must be from 1 to 1024, got 0"),
        ({"threads": 2.0}, "threads must be a whole number, got 2.0"),
        ({"threads": True}, "threads must be a whole number, got True"),
        ({"context": 1}, "context must be from 2 to 16777216, got 1"),
        ({"draft_tokens": 65}, "draft_tokens must be from 0 to 64, got 65"),
        ({"draft_tokens": -1}, "draft_tokens must be from 0 to 64, got -1"),
        ({"draft_shortlist": -1}, "draft_shortlist must be from 0 to 16777216, got -1"),
        ({"draft_weights": "q8_0"}, "draft_weights must be one of auto, q4_0, file, got 'q8_0'"),
        ({"draft_weights": None}, "draft_weights must be one of auto, q4_0, file, got None"),
        ({"draft": ()}, "at least one drafter"),
        ({"draft": ("lookup,",)}, "at least one drafter"),
        ({"draft": 5}, "draft must be a name or a list of names, got 5"),
        ({"draft": None}, "draft must be a name or a list of names, got None"),
        ({"draft": ["lookup", None]}, "draft must be a name or a list of names"),
        ({"history": "Work"}, "history must be 1 to 64 lower-case letters.*, got 'Work'"),
        ({"history": "../x"}, "history must be"),
        ({"history": ""}, "history must be"),
        ({"history": 5}, "history must be .*, got 5"),
        ({"draft": b"none"}, "draft must be a name or a list of names, got b'none'"),
    ],
)
def test_values_outside_their_rule_are_refused(option: dict[str, Any], rule: str) -> None:
    with pytest.raises(UsageError, match=rule):
        EngineConfig(**option)


def test_importing_the_package_imports_nothing_heavy() -> None:
    program = "import sys, borrador; print({'numpy', 'tokenizers', 'jinja2', 'borrador._native'} & set(sys.modules))"
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "set()"


def test_every_public_name_is_there() -> None:
    import borrador

    for name in borrador.__all__:
        assert getattr(borrador, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        borrador.lode  # noqa: B018
