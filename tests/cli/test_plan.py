from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.cli.conftest import Borrador
from tests.tiny_gguf import write_tiny_model
from tests.verify.scripted import WrongModel, make_parts, small_drafter

from borrador.cli import plan
from borrador.config import EngineConfig
from borrador.draft.lookup import LookupDrafter, LookupSession
from borrador.draft.protocol import Drafter, GoOn, always
from borrador.engine.profile import HeldProfile, Profile
from borrador.engine.settings import Settings, read_settings
from borrador.models.scripted import ScriptedModel
from borrador.types import Draft

TEXTS = ("abcabdabcab", "nomnonomn", "jihjihjih", "aabbaabb")


@pytest.fixture
def prompts(tmp_path: Path) -> str:
    path = tmp_path / "prompts.jsonl"
    entries = [{"id": f"p-{index}", "task": "letters", "prompt": text} for index, text in enumerate(TEXTS)]
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return str(path)


class Scripted:
    """The models behind `plan`, and their profile."""

    def __init__(self, path: Path) -> None:
        self.model: ScriptedModel | None = None
        self.drafters: Sequence[Drafter] | None = None
        self.profile = Profile(path)
        self.opened: list[EngineConfig] = []

    def open(self, _model: str, config: EngineConfig, *, quiet: bool) -> object:
        self.opened.append(config)
        held = HeldProfile(self.profile) if config.profile else None
        return make_parts(self.model, self.drafters), held


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Scripted:
    models = Scripted(tmp_path / "profiles" / "model.json")
    monkeypatch.setattr(plan, "open_parts", models.open)
    return models


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def make(borrador: Borrador, prompts: str) -> Run:
    def invoke(*words: str) -> tuple[int, str, str]:
        result = borrador("plan", "--prompts", prompts, "-n", "16", *words)
        return result.code, result.out, result.err

    return invoke


def test_tables_hold_every_way_and_the_recommendation_is_saved(scripted: Scripted, make: Run) -> None:
    code, out, err = make("--json")
    entry = json.loads(out.splitlines()[-1])
    rows = [line.split() for line in out.splitlines()]
    assert code == 0
    assert [row[0] for row in rows if row[1:2] == ["1"]] == ["lookup", "small"]
    assert [row[:3] for row in rows if row[1:3] == ["costs", "costs"]] == [["lookup,", "costs", "costs"]]
    assert [row[:4] for row in rows if row[1:2] == ["drafters,"]] == [["2", "drafters,", "costs", "costs"]]
    assert "T(m)/T(1): " in out
    assert "4 of 4 prompts answered identically" in out
    assert len(entry["ways"]) == 2 * 6 + 2
    assert sum(way["measured"] is not None for way in entry["ways"]) == 4
    assert (entry["prompts"], entry["identical"], entry["model"]) == (4, 4, "smollm2-135m")
    settings = read_settings(scripted.profile)
    assert settings is not None
    recommended = entry["recommended"] or {"draft": ["none"], "draft_tokens": None, "measured": 1.0}
    assert list(settings.draft) == recommended["draft"]
    assert settings.draft_tokens == recommended["draft_tokens"]
    assert settings.speedup == pytest.approx(recommended["measured"], abs=1e-3)
    assert set(scripted.profile.read()["drafters"]) == {"lookup", "small"}
    assert err.splitlines()[0].startswith("4 prompts in 5 ways: about ")
    assert [line.split(":")[0] for line in err.splitlines()[1:]] == [
        f"{n}/4 p-{i}" for n, i in ((1, 0), (2, 2), (3, 1), (4, 3))
    ] + ["saved"]


def test_recommended_way_has_a_row_for_each_task(
    scripted: Scripted, make: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("borrador.bench.plan.recommend", lambda lines: lines[-1])
    code, out, _ = make("--no-save")
    table = out[out.index("task ") :].splitlines()
    assert code == 0
    assert table[2].split()[0] == "letters"
    assert table[2].split()[2].endswith("x")
    assert "recommended: lookup+small by costs, " in out


def test_nothing_is_saved_where_that_is_not_wanted(scripted: Scripted, make: Run) -> None:
    code, _, err = make("--no-save")
    assert (code, "saved" in err) == (0, False)
    assert not scripted.profile.path.exists()


def test_quiet_says_nothing_but_the_report(scripted: Scripted, make: Run) -> None:
    assert make("-q")[2] == ""
    assert read_settings(scripted.profile) is not None


def test_a_changed_answer_ends_with_exit_code_5_and_nothing_is_saved(scripted: Scripted, make: Run) -> None:
    scripted.model = WrongModel(amount=100.0)
    code, out, err = make("--json")
    assert code == 5
    assert json.loads(out.splitlines()[-1])["identical"] < 4
    assert "prompt p-0 differs with " in err
    assert not scripted.profile.path.exists()


class StoppedDrafter(LookupDrafter):
    """The user presses Ctrl-C at its fortieth draft."""

    def __init__(self) -> None:
        self.drafts = 0

    def open(self, _shaper: object, /) -> LookupSession:
        return StoppedSession(self)


class StoppedSession(LookupSession):
    def __init__(self, drafter: StoppedDrafter) -> None:
        super().__init__()
        self._drafter = drafter

    def propose(self, context: Sequence[int], budget: int, go_on: GoOn = always) -> Draft:
        self._drafter.drafts += 1
        if self._drafter.drafts == 40:
            raise KeyboardInterrupt
        return super().propose(context, budget, go_on)


def test_an_interrupted_plan_saves_nothing(scripted: Scripted, make: Run) -> None:
    small = small_drafter()
    scripted.drafters = (StoppedDrafter(), small)
    code, out, _ = make()
    assert (code, out) == (130, "")
    assert not scripted.profile.path.exists()
    assert getattr(small.model, "closed", False)


def test_a_plan_that_cannot_be_saved_is_told_after_its_report(
    scripted: Scripted, make: Run, caplog: pytest.LogCaptureFixture
) -> None:
    scripted.profile.path.parent.write_text("")
    with caplog.at_level(logging.ERROR, "borrador"):
        code, out, err = make()
    assert code == 1
    assert "recommended: " in out
    assert "error: the plan cannot be saved in " in err
    assert "BORRADOR_PROFILES" in err


def test_a_prompt_that_is_too_long_is_told_before_anything_is_measured(
    scripted: Scripted, borrador: Borrador, tmp_path: Path
) -> None:
    path = tmp_path / "long.jsonl"
    path.write_text('{"id": "short", "prompt": "abc"}\n{"id": "long", "prompt": "' + "a" * 300 + '"}\n')
    result = borrador("plan", "--prompts", str(path))
    assert (result.code, result.out) == (2, "")
    assert "shorter than the context of 256 tokens, long has 300" in result.err


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("--prompts", "missing.jsonl"), "missing.jsonl"),
        (("-n", "7"), "at least 8"),
        (("--per-task", "0"), "at least 1"),
        (("-d", "none"), "--draft is none"),
        (("-d", "none,lookup"), "excludes other drafters"),
        (("--draft-tokens", "4"), "--draft-tokens"),
        (("--threads", "0"), "threads"),
    ],
)
def test_bad_option_is_a_usage_error(borrador: Borrador, scripted: Scripted, words: tuple[str, ...], part: str) -> None:
    result = borrador("plan", *words)
    assert (result.code, result.out, scripted.opened) == (2, "", [])
    assert part in result.err
    assert [line.split(":")[0] for line in result.err.splitlines()] == ["error", "hint"]


def test_one_prompt_cannot_be_split(borrador: Borrador, scripted: Scripted, tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    path.write_text('{"id": "only", "prompt": "abc"}\n')
    result = borrador("plan", "--prompts", str(path))
    assert (result.code, result.out, scripted.opened) == (2, "", [])
    assert "at least 2 prompts" in result.err


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BORRADOR_PROFILES", str(tmp_path / "profiles"))
    path = tmp_path / "target.gguf"
    write_tiny_model(path, layers=2, seed=1)
    return path


def test_run_and_bench_follow_a_plan_and_say_so(
    borrador: Borrador, target: Path, prompts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(target.parent)
    small = target.parent / "small.gguf"
    write_tiny_model(small, layers=1, seed=2)
    made = borrador(
        "plan", "-m", str(target), "-d", "lookup,small.gguf", "--prompts", prompts, "-n", "12", "--threads", "1"
    )
    assert made.code == 0, made.err
    (stored,) = (target.parent / "profiles").iterdir()
    chosen = read_settings(Profile(stored))
    assert chosen is not None
    assert set(chosen.draft) <= {"none", "lookup", str(small)}
    assert set(json.loads(stored.read_text())["drafters"]) == {"lookup", f"{small} q4_0"}

    Profile(stored).write(
        {"settings": Settings(draft=("lookup",), draft_tokens=3, speedup=1.5, date="2026-11-30").as_json()}
    )
    said = "as planned on 2026-11-30: lookup, draft length 3 (1.50x then)\n"
    run = ("run", "-m", str(target), "--threads", "1", "-n", "24", "--raw", "--ignore-eos", "abcabcabc")
    followed, named, without = borrador(*run), borrador(*run, "-d", "auto"), borrador(*run, "--no-profile")
    assert followed.err.startswith(said)
    assert "as planned" not in named.err + without.err
    assert followed.out == named.out == without.out
    assert borrador(*run, "-q").err == ""
    assert json.loads(borrador(*run, "--json").out)["draft"] == ["lookup"]
    explained = borrador(*run, "--explain")
    assert (explained.code, explained.out) == (2, "")
    assert "costs decide on, and this model runs as planned on 2026-11-30: lookup, draft length 3" in explained.err
    assert borrador(*run, "--explain", "-d", "auto").code == 0
    bench = borrador("bench", "-m", str(target), "--threads", "1", "-n", "8", "--prompts", prompts)
    assert (bench.code, bench.err.startswith(said)) == (0, True)
