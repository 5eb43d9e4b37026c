"""borrador: a fast drafter proposes, the target model checks in one pass; the text stays what the target would write.

`import borrador` costs a few milliseconds; everything heavy is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from borrador.config import EngineConfig
    from borrador.engine.llm import LLM
    from borrador.engine.loading import load
    from borrador.engine.stream import AnswerStream
    from borrador.errors import BorradorError
    from borrador.types import (
        Completion,
        GenerationEvent,
        GenerationStats,
        Message,
        Origin,
        RoundRecord,
        SamplingParams,
    )

__version__ = "0.1.0"

__all__ = [
    "LLM",
    "AnswerStream",
    "BorradorError",
    "Completion",
    "EngineConfig",
    "GenerationEvent",
    "GenerationStats",
    "Message",
    "Origin",
    "RoundRecord",
    "SamplingParams",
    "__version__",
    "load",
]

_HOMES = {
    "LLM": "borrador.engine.llm",
    "AnswerStream": "borrador.engine.stream",
    "load": "borrador.engine.loading",
    "EngineConfig": "borrador.config",
    "BorradorError": "borrador.errors",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'borrador' has no attribute {name!r}")
    value = getattr(import_module(_HOMES.get(name, "borrador.types")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
