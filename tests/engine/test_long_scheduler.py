"""A scheduler that is left running: thousands of requests of all kinds, of which many are cancelled."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.batches import Clerk, eventually, send
from tests.tiny_gguf import write_tiny_model

from borrador.config import EngineConfig
from borrador.engine.loading import Parts, open_parts
from borrador.engine.scheduler import Scheduler, SchedulerLimits
from borrador.errors import QueueFullError
from borrador.types import SamplingParams

pytestmark = pytest.mark.long

REQUESTS = 20_000
WARM_UP = 4_000
WATCHED = SamplingParams(temperature=0.8, seed=3, max_tokens=30, ignore_eos=True)
SHAPED = SamplingParams(max_tokens=40, regex="[ab]{3}-[0-9]{2}")


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parts]:
    path = write_tiny_model(tmp_path_factory.mktemp("models") / "tiny.gguf", context=512, sharpness=2.0)
    small = write_tiny_model(path.with_name("small.gguf"), context=512, layers=1, seed=1)
    opened = open_parts(path, EngineConfig(draft=("suffix", "recycle", str(small)), threads=1, profile=False))
    yield opened
    opened.close()


def resident_bytes() -> int:
    """Memory of this process; 0 where the system does not say."""
    statistics = Path("/proc/self/statm")
    return int(statistics.read_text(encoding="ascii").split()[1]) * 4096 if statistics.exists() else 0


def any_params(chance: random.Random) -> SamplingParams:
    length = chance.randint(1, 40)
    return chance.choice(
        [
            SamplingParams(max_tokens=length),
            SamplingParams(temperature=1.0, max_tokens=length, top_p=0.9),
            replace(WATCHED, max_tokens=length),
            SHAPED,
        ]
    )


def test_nothing_is_lost_or_kept_in_thousands_of_requests(parts: Parts) -> None:
    llm, clerk, chance = parts.assemble(), Clerk(), random.Random(2)
    shared = "You are told to be brief. " * 4
    expected = llm.generate(shared + "one", WATCHED, speculate=False).token_ids
    limits = SchedulerLimits(concurrent=16, waiting=16, cache_bytes=llm._model.cache_bytes(512) * 6)
    warm = 0
    with Scheduler(llm, limits, clerk) as scheduler:
        for number in range(REQUESTS):
            watched = number % 50 == 0
            prompt = shared + (
                "one" if watched else "".join(chance.choices("abcdefgh ", k=chance.choice([3, 30, 300])))
            )
            while True:
                try:
                    deadline_s = None if watched or chance.random() < 0.9 else chance.random() / 10
                    params = WATCHED if watched else any_params(chance)
                    key = send(scheduler, prompt, params, "" if watched else chance.choice("ab"), deadline_s=deadline_s)
                    break
                except QueueFullError:
                    time.sleep(0.002)
            if watched:
                clerk.wait_for(key)
                assert clerk.tokens(key) == expected
            elif chance.random() < 0.2:
                scheduler.cancel(key)
            if number % 100 == 99:
                eventually(lambda: scheduler.snapshot().reserved == 0)
                for ended in list(clerk.events):
                    scheduler.forget(ended)
                clerk.events.clear()
            if number == WARM_UP:
                warm = resident_bytes()
        eventually(lambda: scheduler.snapshot().reserved == 0)
        now = scheduler.snapshot()
    assert not clerk.errors
    assert now.requests_admitted == now.requests_finished + now.requests_cancelled == REQUESTS
    assert now.requests_cancelled > 0
    assert now.requests_timed_out > 0
    fates = now.draft_tokens_accepted + now.draft_tokens_rejected + now.draft_tokens_ignored
    assert now.draft_tokens_proposed == fates > 0
    assert now.cache_bytes_used <= limits.cache_bytes if limits.cache_bytes else False
    while llm._sequences.reclaim():
        pass
    assert llm._model.cache_usage().used_bytes == 0
    assert resident_bytes() <= 1.02 * warm
