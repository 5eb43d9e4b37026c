from __future__ import annotations

import json

import pytest
from tests.cli.conftest import Borrador
from tests.cli.scripted_llm import ANSWER, ScriptedLLM

from borrador.cli.answer import describe_stats
from borrador.errors import BorradorError, ContextLengthError, MemoryLimitError
from borrador.types import GenerationStats


def test_standard_output_is_the_answer_and_nothing_else(borrador: Borrador, scripted: ScriptedLLM) -> None:
    result = borrador("run", "Which city?")
    assert (result.code, result.out) == (0, ANSWER)
    assert scripted.closed


def test_footer_on_standard_error_states_tokens_speed_passes_and_acceptance(
    borrador: Borrador, scripted: ScriptedLLM
) -> None:
    result = borrador("run", "Which city?")
    assert result.err == (
        "7 tokens, 100.0 tok/s, 3 target passes, 2.33 tokens per pass, acceptance 80% of 5, prompt 5 tokens in 0.05 s\n"
    )


def test_a_single_token_has_no_decoding_speed() -> None:
    stats = GenerationStats(prompt_tokens=1, completion_tokens=1, target_passes=1, prefill_s=0.05)
    assert describe_stats(stats) == (
        "1 token, 1 target pass, 1.00 tokens per pass, acceptance none tested, prompt 1 token in 0.05 s"
    )


def test_tokens_that_the_grammar_wrote_without_a_pass_have_no_decoding_speed() -> None:
    stats = GenerationStats(prompt_tokens=1, completion_tokens=5, grammar_tokens=4, target_passes=1, prefill_s=0.05)
    assert describe_stats(stats).startswith("5 tokens, 4 of them from the grammar, 1 target pass, 5.00 tokens per pass")


def test_quiet_leaves_standard_error_empty(borrador: Borrador, scripted: ScriptedLLM) -> None:
    result = borrador("run", "-q", "Which city?")
    assert (result.out, result.err) == (ANSWER, "")


@pytest.mark.parametrize(
    ("words", "stdin", "asked"),
    [
        (("Sum up:",), b"A text.\n", "Sum up:\n\nA text."),
        (("Sum up:",), b"", "Sum up:"),
        ((), b"A text.\r\nMore.\r\n", "A text.\r\nMore."),
        ((), "\ufeffÜber".encode(), "Über"),
        ((), b"  indented\n\n", "  indented\n"),
    ],
)
def test_argument_and_standard_input_are_joined(
    borrador: Borrador, scripted: ScriptedLLM, words: tuple[str, ...], stdin: bytes, asked: str
) -> None:
    assert borrador("run", *words, stdin=stdin).code == 0
    assert scripted.prompts == [[{"role": "user", "content": asked}]]


def test_system_message_comes_first(borrador: Borrador, scripted: ScriptedLLM) -> None:
    borrador("run", "-s", "Be brief.", "Hello")
    assert scripted.prompts == [[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]]


def test_raw_prompt_is_passed_as_text(borrador: Borrador, scripted: ScriptedLLM) -> None:
    borrador("run", "--raw", " La capital")
    assert scripted.prompts == [" La capital"]


def test_sampling_options_reach_the_model(borrador: Borrador, scripted: ScriptedLLM) -> None:
    sampling = ("--temp", "0.7", "--top-k", "40", "--top_p", "0.9", "--min-p", "0.05", "--seed", "3")
    assert borrador("run", *sampling, "--stop", "END", "--stop", "##", "-n", "2k", "Hello").code == 0
    (params,) = scripted.params
    assert (params.temperature, params.top_k, params.top_p, params.min_p) == (0.7, 40, 0.9, 0.05)
    assert (params.seed, params.stop, params.max_tokens) == (3, ("END", "##"), 2048)


def test_options_on_single_tokens_reach_the_model(borrador: Borrador, scripted: ScriptedLLM) -> None:
    penalties = ("--repeat-penalty", "1.1", "--presence-penalty", "0.5", "--frequency-penalty", "-0.5")
    tokens = ("--logit-bias", "3=-2.5,4=1", "--logit-bias", "3=-3", "--ban-token", "7,8", "--allow-token", "1")
    ends = ("--stop-token", "9", "--min-tokens", "2", "--ignore-eos", "--penalty-window", "-1", "--typical-p", "0.9")
    assert borrador("run", *penalties, *tokens, *ends, "Hello").code == 0
    (params,) = scripted.params
    assert (params.repetition_penalty, params.presence_penalty, params.frequency_penalty) == (1.1, 0.5, -0.5)
    assert (params.logit_bias, params.banned_token_ids, params.allowed_token_ids) == ({3: -3.0, 4: 1.0}, (7, 8), (1,))
    assert (params.stop_token_ids, params.min_tokens, params.ignore_eos) == ((9,), 2, True)
    assert (params.penalty_window, params.typical_p, params.logprobs) == (-1, 0.9, None)


def test_json_holds_log_probabilities_where_they_are_asked_for(borrador: Borrador, scripted: ScriptedLLM) -> None:
    entry = json.loads(borrador("run", "--json", "--logprobs", "1", "Hello").out)
    assert [report["token_id"] for report in entry["logprobs"]] == entry["token_ids"]
    assert entry["logprobs"][0] == {
        "token_id": 1,
        "token": "The",
        "logprob": -0.5,
        "top": [{"token_id": 0, "token": "<end>", "logprob": None}],
    }
    assert "logprobs" not in json.loads(borrador("run", "--json", "Hello").out)


def test_the_acceptance_rule_reaches_the_model(borrador: Borrador, scripted: ScriptedLLM) -> None:
    assert borrador("run", "--temp", "1", "--acceptance", "rejection", "Hello").code == 0
    assert borrador("run", "--temp", "1", "--seed", "3", "--acceptance", "seeded", "Hello").code == 0
    assert borrador("run", "Hello").code == 0
    assert [params.acceptance for params in scripted.params] == ["rejection", "seeded", "auto"]


def test_lenience_is_announced_on_standard_error(borrador: Borrador, scripted: ScriptedLLM) -> None:
    lenient = ("run", "--temp", "1", "--lenience", "0.25", "Hello")
    result = borrador(*lenient)
    assert (result.code, result.out) == (0, ANSWER)
    assert result.err.startswith("note: --lenience 0.25 accepts ")
    assert "answers may change" in result.err.splitlines()[0]
    assert borrador(*lenient, "-q").err == ""
    assert [params.lenience for params in scripted.params] == [0.25, 0.25]
    assert "note" not in borrador("run", "--temp", "1", "--lenience", "1", "Hello").err


def test_several_answers_are_numbered_and_take_the_seeds_that_follow(borrador: Borrador, scripted: ScriptedLLM) -> None:
    result = borrador("run", "--n", "3", "--temp", "1", "--seed", str(2**64 - 2), "Hello")
    answers = [
        f"== answer {i} of 3, seed {seed} ==\n{ANSWER}\n" for i, seed in ((1, 2**64 - 2), (2, 2**64 - 1), (3, 0))
    ]
    assert (result.code, result.out) == (0, "\n".join(answers))
    assert [params.seed for params in scripted.params] == [2**64 - 2, 2**64 - 1, 0]
    assert len(result.err.splitlines()) == 3
    assert {line.split(",")[0] for line in result.err.splitlines()} == {"7 tokens"}


def test_several_answers_without_a_seed_are_fresh_draws(borrador: Borrador, scripted: ScriptedLLM) -> None:
    result = borrador("run", "-q", "--n", "2", "--temp", "1", "Hello")
    assert result.out == f"== answer 1 of 2 ==\n{ANSWER}\n\n== answer 2 of 2 ==\n{ANSWER}\n"
    assert [params.seed for params in scripted.params] == [None, None]


def test_json_of_several_answers_is_a_list_of_what_one_gives(borrador: Borrador, scripted: ScriptedLLM) -> None:
    sampled = ("run", "--json", "--temp", "1", "--seed", "5", "Hello")
    alone, entries = json.loads(borrador(*sampled).out), json.loads(borrador(*sampled, "--n", "2").out)
    assert [entry["seed"] for entry in entries] == [5, 6]
    assert entries[0] == alone
    assert entries[1]["sampling"]["seed"] == 6
    assert json.loads(borrador(*sampled, "--n", "1").out) == [alone]


def test_options_may_be_written_with_underscores(borrador: Borrador, scripted: ScriptedLLM) -> None:
    assert borrador("run", "--max_tokens", "9", "Hello").code == 0
    assert scripted.params[0].max_tokens == 9


def test_json_is_one_object_with_what_is_needed_to_repeat_the_answer(borrador: Borrador, scripted: ScriptedLLM) -> None:
    result = borrador("run", "--json", "--seed", "7", "-d", "lookup,auto", "Hello")
    entry = json.loads(result.out)
    assert result.out.count("\n") == 1
    assert result.err == ""
    assert entry["text"] == ANSWER
    assert entry["token_ids"] == [1, 2, 3, 4, 6, 7, 8]
    assert entry["origins"] == ["target", "draft", "draft", "target", "draft", "draft", "bonus"]
    assert (entry["finish_reason"], entry["seed"], entry["model"]) == ("stop", 7, "smollm2-135m")
    assert entry["draft"] == ["lookup", "auto"]
    assert entry["stats"]["target_passes"] == 3
    assert entry["stats"]["acceptance"] == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--temperature", "nan"), "temperature"),
        (("--temperature", "-1"), "temperature"),
        (("--temperature", "hot"), "hot"),
        (("--top-p", "0"), "top_p"),
        (("--top-p", "nan"), "top_p"),
        (("--min-p", "1"), "min_p"),
        (("--min-p", "inf"), "min_p"),
        (("--top-k", "-1"), "top_k"),
        (("--seed", "-1"), "seed"),
        (("--typical-p", "0"), "typical_p"),
        (("--repetition-penalty", "0"), "repetition_penalty"),
        (("--presence-penalty", "3"), "presence_penalty"),
        (("--frequency-penalty", "nan"), "frequency_penalty"),
        (("--penalty-window", "-2"), "penalty_window"),
        (("--logit-bias", "3"), "--logit-bias"),
        (("--logit-bias", "a=1"), "--logit-bias"),
        (("--logit-bias", "3=x"), "--logit-bias"),
        (("--logit-bias", "3=101"), "logit_bias"),
        (("--ban-token", "the"), "--ban-token"),
        (("--ban-token", "-3"), "banned_token_ids"),
        (("--allow-token", "1,"), "--allow-token"),
        (("--allow-token", "1", "--ban-token", "1"), "banned"),
        (("--stop-token", "2147483648"), "stop_token_ids"),
        (("--min-tokens", "9", "-n", "8"), "min_tokens"),
        (("--logprobs", "21", "--json"), "logprobs"),
        (("--logprobs", "2"), "--json"),
        (("--stop", "a") * 65, "stop"),
        (("--acceptance", "sure"), "seeded, rejection, block"),
        (("--acceptance", "seeded"), "needs a seed"),
        (("--acceptance", "block", "--seed", "4"), "seed 4"),
        (("--n", "0", "--temp", "1"), "--n"),
        (("--n", "129", "--temp", "1"), "--n"),
        (("--n", "two", "--temp", "1"), "two"),
        (("--n", "2"), "temperature above 0"),
        (("--lenience", "0"), "lenience"),
        (("--lenience", "lax"), "lax"),
        (("--lenience", "0.5"), "temperature 0"),
        (("--lenience", "0.5", "--temp", "1", "--acceptance", "block"), "acceptance block"),
        (("--stop", ""), "stop"),
        (("--stop", "\udcff"), "stop"),
        (("-s", "\udcff"), "system message"),
        (("-n", "0"), "max_tokens"),
        (("-n", "many"), "many"),
        (("-n", "1.5"), "1.5"),
        (("--threads", "0"), "threads"),
        (("--threads", "9999"), "threads"),
        (("--context", "1"), "context"),
        (("--context", "k"), "k"),
        (("--draft-tokens", "65"), "draft_tokens"),
        (("--draft-tokens", "-1"), "draft_tokens"),
        (("--draft-tokens", "4", "-d", "none"), "--draft-tokens"),
        (("--draft-shortlist", "-1"), "draft_shortlist"),
        (("--draft-shortlist", "some"), "some"),
        (("--draft-weights", "q8_0"), "q8_0"),
        (("-d", "lookup,,none"), "draft"),
        (("--raw", "-s", "Be brief."), "--system"),
        (("--temprature", "1"), "--temprature"),
        (("second",), "second"),
        (("-m",), "-m"),
    ],
)
def test_bad_option_is_one_sentence_and_exit_code_2(
    borrador: Borrador, scripted: ScriptedLLM, words: tuple[str, ...], named: str
) -> None:
    result = borrador("run", "Hello", *words)
    lines = result.err.splitlines()
    assert result.code == 2
    assert [line.split(":")[0] for line in lines] == ["error", "hint"]
    assert named in lines[0]
    assert (result.out, scripted.prompts) == ("", [])


def test_error_stays_short_however_long_the_value_is(borrador: Borrador, scripted: ScriptedLLM) -> None:
    result = borrador("run", "Hello", "-n", "9" * 5000)
    assert result.code == 2
    assert len(result.err) < 300


def test_hint_names_the_help_of_the_command_that_was_meant(borrador: Borrador, scripted: ScriptedLLM) -> None:
    assert "See borrador run --help." in borrador("run", "Hello", "-n").err
    assert "See borrador --help." in borrador("--colour").err
    assert "See borrador bench compare --help." in borrador("bench", "compare", "one.json").err
    assert "See borrador bench report --help." in borrador("bench", "report", "one.json", "-o").err
    assert "See borrador bench --help." in borrador("bench", "--colour").err
    assert "See borrador history --help." in borrador("history", "lost").err


def test_quotes_are_advised_where_there_is_a_prompt(borrador: Borrador, scripted: ScriptedLLM) -> None:
    assert "in quotes" in borrador("run", "Hello", "there").err
    assert "hint: See borrador list --help.\n" in borrador("list", "there").err


@pytest.mark.parametrize(
    ("stdin", "sentence"),
    [
        (b"", "the prompt must not be empty"),
        (b"  \n\n", "the prompt must not be empty"),
        (b"abc\xff", "standard input must be UTF-8, byte 3 (0xff) is not"),
    ],
)
def test_bad_prompt_is_a_usage_error(borrador: Borrador, scripted: ScriptedLLM, stdin: bytes, sentence: str) -> None:
    result = borrador("run", stdin=stdin)
    assert (result.code, result.out, scripted.prompts) == (2, "", [])
    assert sentence in result.err


def test_argument_that_is_not_utf8_is_a_usage_error(borrador: Borrador, scripted: ScriptedLLM) -> None:
    result = borrador("run", "caf\udce9")
    assert (result.code, scripted.prompts) == (2, [])


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (ContextLengthError("the prompt is too long"), 2, "the prompt is too long"),
        (MemoryLimitError("it does not fit"), 4, "it does not fit"),
        (MemoryError(), 4, "no memory left"),
        (BorradorError("it failed"), 1, "it failed"),
        (OSError(28, "No space left on device"), 1, "No space left on device"),
        (ZeroDivisionError("division by zero"), 1, "internal error, ZeroDivisionError"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_failure_has_its_exit_code_and_no_traceback(
    borrador: Borrador, scripted: ScriptedLLM, error: BaseException, code: int, sentence: str
) -> None:
    scripted.error = error
    result = borrador("run", "Hello")
    assert result.code == code
    assert sentence in result.err
    assert "Traceback" not in result.err
    assert scripted.closed


def test_debug_variable_shows_where_an_internal_error_happened(
    borrador: Borrador, scripted: ScriptedLLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BORRADOR_DEBUG", "1")
    scripted.error = ZeroDivisionError("division by zero")
    assert "Traceback" in borrador("run", "Hello").err
