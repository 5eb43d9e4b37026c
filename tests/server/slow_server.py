"""`python -m tests.server.slow_server`: a server in a process of its own, whose model loads and writes when it is told.

Arguments, all of them numbers: tokens of an answer, seconds to drain, the port. The first byte on standard input lets
it load its model, the second lets that write without pauses.
"""

from __future__ import annotations

import os
import sys
import threading

from tests.server.writing import TEMPLATE, WritingModel
from tests.text.vocabularies import byte_level

from borrador.engine.llm import LLM
from borrador.models.target import Batch
from borrador.server.config import ServerConfig
from borrador.server.running import serve
from borrador.text.chat_template import ChatTemplate
from borrador.text.tokenizer import Tokenizer

_SLOW_PASS_S = 0.2


class SlowModel(WritingModel):
    """Takes long for a pass until it is told to hurry, however many sequences share it."""

    hurry = threading.Event()

    def _begin_pass(self, batch: Batch) -> None:
        self.hurry.wait(_SLOW_PASS_S)
        super()._begin_pass(batch)


def main(tokens: int, drain_s: float, port: int) -> None:
    """Serve until a signal comes."""
    may_load = threading.Event()

    def follow() -> None:
        for event in (may_load, SlowModel.hurry):
            if os.read(0, 1):
                event.set()

    def load() -> LLM:
        may_load.wait()
        model = SlowModel(b"a" * tokens)
        tokenizer = Tokenizer.from_metadata(byte_level(pairs=[]))
        return LLM(model, tokenizer, ChatTemplate(TEMPLATE), context_length=4096)

    threading.Thread(target=follow, daemon=True).start()
    config = ServerConfig(port=port, drain_s=drain_s)
    serve(config, "slow", load, lambda name, url: print(f"serving {name} at {url}", flush=True))  # noqa: T201


if __name__ == "__main__":
    tokens, drain_s, port = sys.argv[1:]
    main(int(tokens), float(drain_s), int(port))
