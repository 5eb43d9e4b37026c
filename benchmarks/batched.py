"""Several requests decoded together: is their throughput with speculation ever below that without, and are the texts
the same?

    python benchmarks/batched.py -m qwen2.5-coder-1.5b -d auto --together 1 2 4 8 16

The same weights serve with drafters and without: where those of a second copy lay in memory would make a difference of
a few percent. For every number of requests both answer the same prompts together, token by token in turn, so that they
meet the same machine. Reported are the tokens per second of all requests once every prompt is read, their ratio, and
how many answers have, both times, the tokens that their prompt gets alone.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from borrador import LLM, SamplingParams
from borrador.bench.prompts import load_prompts
from borrador.config import EngineConfig
from borrador.engine.loading import open_parts
from borrador.engine.stream import BatchStream
from borrador.types import Message

Prompt = Sequence[Message]


@dataclass(slots=True)
class Run:
    """Answers to some prompts that are written together.

    Attributes:
        answers: their tokens so far.
        seconds: spent on them since each had its first token.
        counted: tokens written in these seconds.
    """

    stream: BatchStream
    answers: list[list[int]]
    seconds: float = 0.0
    counted: int = 0

    def advance(self) -> bool:
        """Wait for the next token; False where all answers are finished."""
        counts, start = all(self.answers), time.perf_counter()
        event = next(self.stream, None)
        if counts:
            self.seconds += time.perf_counter() - start
        if event is None:
            return False
        index, written = event
        self.answers[index].extend(written.token_ids)
        self.counted += counts * len(written.token_ids)
        return True

    @property
    def rate(self) -> float:
        return self.counted / self.seconds


def main() -> None:
    options = read_options()
    params = SamplingParams(
        max_tokens=options.max_tokens, ignore_eos=True, temperature=options.temperature, seed=options.seed
    )
    prompts = chosen_prompts(max(options.together), options.rotate)
    config = EngineConfig(draft=options.draft, threads=options.threads, context=2048, profile=False)
    parts = open_parts(options.model, config)
    with parts.assemble() as drafting, replace(parts, drafters=()).assemble() as plain:
        alone = [plain.generate(prompt, params).token_ids for prompt in prompts]
        print("together    plain   drafts    ratio  accepted/verified  the same    (tokens per second of all requests)")
        for together in options.together:
            report([compare(plain, drafting, prompts[:together], params) for _ in range(options.repeats)], alone)


def compare(plain: LLM, drafting: LLM, prompts: Sequence[Prompt], params: SamplingParams) -> tuple[Run, Run]:
    """Answer the prompts together in both ways, in turn."""
    with (
        plain.stream_many(prompts, params, concurrent=len(prompts)) as one,
        drafting.stream_many(prompts, params, concurrent=len(prompts)) as other,
    ):
        runs = Run(one, [[] for _ in prompts]), Run(other, [[] for _ in prompts])
        going = list(runs)
        while going:
            going = [run for run in going if run.advance()]
        return runs


def report(pairs: Sequence[tuple[Run, Run]], alone: Sequence[tuple[int, ...]]) -> None:
    together = len(pairs[0][0].answers)
    plain, drafting = (
        sum(run.counted for run in runs) / sum(run.seconds for run in runs) for runs in zip(*pairs, strict=True)
    )
    stats = [run.stream.stats(index) for _, run in pairs for index in range(together)]
    accepted, verified = sum(s.draft_tokens_accepted for s in stats), sum(s.draft_tokens_proposed for s in stats)
    same = sum(
        all(tuple(run.answers[index]) == alone[index] for pair in pairs for run in pair) for index in range(together)
    )
    rates = f"{plain:8.1f} {drafting:8.1f} {drafting / plain:8.3f}"
    print(f"{together:8d} {rates}  {accepted:8d}/{verified:<8d}  {same:4d} of {together}", flush=True)


def chosen_prompts(count: int, rotate: int) -> list[Prompt]:
    """Prompts of all tasks in turn, repeated where there are too few."""
    loaded = load_prompts()
    by_task: dict[str, list[str]] = {}
    for prompt in loaded:
        by_task.setdefault(prompt.task, []).append(prompt.text)
    most = max(map(len, by_task.values()))
    mixed = [texts[index] for index in range(most) for texts in by_task.values() if index < len(texts)]
    return [[{"role": "user", "content": mixed[(rotate + index) % len(mixed)]}] for index in range(count)]


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model", default="smollm2-135m")
    parser.add_argument("-d", "--draft", default="auto")
    parser.add_argument("--together", type=int, nargs="+", default=[1, 2, 4, 8, 16], help="requests at a time")
    parser.add_argument("--max-tokens", type=int, default=96)
    parser.add_argument("--repeats", type=int, default=1, help="runs for each number of requests")
    parser.add_argument("--rotate", type=int, default=0, help="begin with another prompt")
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=None)
    return parser.parse_args()


if __name__ == "__main__":
    main()
