"""`python -m tests.server.slow_server`: a server in a process of its own, whose model writes slowly.

Arguments, all of them numbers: seconds of a pass, seconds that loading takes, tokens of an answer, seconds to drain,
the port.
"""

from __future__ import annotations

import sys
import time

from tests.server.writing import TEMPLATE, WritingModel
from tests.text.vocabularies import byte_level

from borrador.engine.llm import LLM
from borrador.models.target import Batch
from borrador.server.config import ServerConfig
from borrador.server.running import serve
from borrador.text.chat_template import ChatTemplate
from borrador.text.tokenizer import Tokenizer


class SlowModel(WritingModel):
    """Takes so long for a pass, however many sequences share it."""

    step_s = 0.0

    def _begin_pass(self, batch: Batch) -> None:
        time.sleep(self.step_s)
        super()._begin_pass(batch)


def main(pass_s: float, load_s: float, tokens: int, drain_s: float, port: int) -> None:
    """Serve until a signal comes."""

    def load() -> LLM:
        time.sleep(load_s)
        model = SlowModel(b"a" * tokens)
        model.step_s = pass_s
        tokenizer = Tokenizer.from_metadata(byte_level(pairs=[]))
        return LLM(model, tokenizer, ChatTemplate(TEMPLATE), context_length=4096)

    config = ServerConfig(port=port, drain_s=drain_s)
    serve(config, "slow", load, lambda name, url: print(f"serving {name} at {url}", flush=True))  # noqa: T201


if __name__ == "__main__":
    pass_s, load_s, tokens, drain_s, port = sys.argv[1:]
    main(float(pass_s), float(load_s), int(tokens), float(drain_s), int(port))
