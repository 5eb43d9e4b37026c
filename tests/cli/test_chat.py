"""`borrador chat` with questions from a pipe."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Borrador, start
from tests.cli.scripted_llm import ANSWER, ScriptedLLM

from borrador.errors import BorradorError, ContextLengthError

FOOTER = "100.0 tok/s · 7 tokens · 80 % of tested draft tokens accepted"


def test_every_line_is_a_question_and_the_conversation_goes_on(borrador: Borrador, scripted: ScriptedLLM) -> None:
    result = borrador("chat", "-s", "Be brief.", stdin=b"Which city?\n\nSure?\n")
    assert (result.code, result.out) == (0, f"{ANSWER}\n{ANSWER}\n")
    assert scripted.prompts[1] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Which city?"},
        {"role": "assistant", "content": ANSWER},
        {"role": "user", "content": "Sure?"},
    ]
    assert scripted.closed


def test_footer_states_speed_tokens_and_acceptance(borrador: Borrador, scripted: ScriptedLLM) -> None:
    assert borrador("chat", stdin=b"Which city?\n").err == f"{FOOTER}\n"
    assert borrador("chat", "-q", stdin=b"Which city?\n").err == ""


@pytest.mark.parametrize(
    ("typed", "asked"),
    [
        ('"""Two\nlines"""\n', "Two\nlines"),
        ('"""\nTwo\n\nlines\n"""\n', "Two\n\nlines"),
        ('"""left open\n', "left open"),
        ('say """this"""\n', 'say """this"""'),
        (" /help is a command\r\n", " /help is a command"),
    ],
)
def test_quotes_hold_several_lines(borrador: Borrador, scripted: ScriptedLLM, typed: str, asked: str) -> None:
    assert borrador("chat", stdin=typed.encode()).code == 0
    assert scripted.prompts == [[{"role": "user", "content": asked}]]


def test_options_and_settings_reach_the_model(borrador: Borrador, scripted: ScriptedLLM) -> None:
    words = ("chat", "--temp", "0.7", "--seed", "3", "--stop", "END", "-n", "9", "--draft-tokens", "2")
    typed = "One\n/set temperature 0.2\n/set seed none\n/set top-k 5\n/draft off\nTwo\n"
    typed += "/draft auto\nThree\n/draft on 7\nFour\n"
    assert borrador(*words, stdin=typed.encode()).code == 0
    first, second, *_ = scripted.params
    assert (first.temperature, first.seed, first.stop, first.max_tokens) == (0.7, 3, ("END",), 9)
    assert (second.temperature, second.seed, second.top_k, second.max_tokens) == (0.2, None, 5, 9)
    assert scripted.drafting == [(True, 2), (False, None), (True, None), (True, 7)]


def test_regen_writes_the_last_answer_again(borrador: Borrador, scripted: ScriptedLLM) -> None:
    result = borrador("chat", stdin=b"One\nTwo\n/regen\n")
    assert result.out == f"{ANSWER}\n" * 3
    assert "at temperature 0 the same answer comes again" in result.err
    assert scripted.prompts[2] == scripted.prompts[1]


def test_clear_begins_a_new_conversation_and_keeps_the_system_message(
    borrador: Borrador, scripted: ScriptedLLM
) -> None:
    borrador("chat", stdin=b"One\n/system Be brief.\n/clear\nTwo\n/system -\nThree\n")
    assert scripted.prompts[1] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Two"}]
    assert [message["role"] for message in scripted.prompts[2]] == ["user", "assistant", "user"]


def test_saved_chat_is_private_json_and_goes_on_where_it_was(
    borrador: Borrador, scripted: ScriptedLLM, tmp_path: Path
) -> None:
    path = tmp_path / "chat.json"
    borrador(
        "chat", "-s", "Be brief.", "--temp", "0.5", stdin=f"One\n/save {path}\n/draft off\n/save {path}\n".encode()
    )
    entry = json.loads(path.read_text())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [message["role"] for message in entry["messages"]] == ["system", "user", "assistant"]
    assert (entry["settings"]["temperature"], entry["settings"]["draft"]) == (0.5, "off")
    assert list(tmp_path.iterdir()) == [path]
    result = borrador("chat", stdin=f"/load {path}\nTwo\n".encode())
    assert result.err.startswith("loaded 1 question with answers, and the settings\n")
    assert [message["content"] for message in scripted.prompts[-1]] == ["Be brief.", "One", ANSWER, "Two"]
    assert (scripted.params[-1].temperature, scripted.drafting[-1]) == (0.5, (False, None))


def test_stats_add_up_all_answers(borrador: Borrador, scripted: ScriptedLLM) -> None:
    result = borrador("chat", "-q", "--top-k", "3", stdin=b"One\nTwo\n/stats\n")
    lines = result.err.splitlines()
    assert lines[0] == (
        "2 answers, 14 tokens, 100.0 tok/s, 2.33 tokens per pass, 80 % of 10 tested draft tokens accepted"
    )
    assert lines[1].startswith("last answer: ended by stop, 5 tokens before it, first token after ")
    assert lines[2:] == ["context: 12 of 64 tokens", "drafting auto, top_k 3"]


def test_stats_before_any_answer(borrador: Borrador, scripted: ScriptedLLM) -> None:
    assert borrador("chat", stdin=b"/stats\n").err == "0 answers, 0 tokens\ndrafting auto\n"


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("/hepl", "error: there is no command '/hepl'\nhint: Did you mean /help? /help lists them"),
        ("/", "error: there is no command '/'\nhint: /help lists them"),
        ("/set temprature 1", "error: there is no setting 'temprature'\nhint: Did you mean temperature?"),
        ("/set temperature hot", "error: temperature must be a number, got 'hot'"),
        ("/set temperature", "error: /set needs a value for 'temperature'"),
        ("/draft maybe", "error: drafting is on, on N, off or auto, got 'maybe'"),
        ("/draft on 65", "error: N must be from 1 to 64, got 65"),
        ("/draft on many", "error: N must be a whole number, got 'many'"),
        ("/color on", "error: colours need a terminal"),
        ("/color", "error: colours are on or off, got ''"),
        ("/regen", "error: there is no answer yet"),
        ("/save", "error: /save needs a file"),
        ("/load missing.json", "cannot be read: No such file or directory"),
    ],
)
def test_wrong_command_is_a_sentence_and_a_usage_error_where_nobody_can_correct_it(
    borrador: Borrador, scripted: ScriptedLLM, typed: str, sentence: str
) -> None:
    result = borrador("chat", stdin=f"{typed}\nHello\n".encode())
    assert (result.code, result.out, scripted.prompts) == (2, "", [])
    assert sentence in result.err
    assert len(result.err.splitlines()) == 2


@pytest.mark.parametrize(
    "words",
    [
        ("--url", "http://127.0.0.1:1", "-m", "smollm2-135m"),
        ("--url", "http://127.0.0.1:1", "-d", "none"),
        ("--url", "http://127.0.0.1:1", "--threads", "1"),
        ("--url", "http://127.0.0.1:1", "--no-profile"),
        ("--api-key", "secret"),
        ("--model-name", "tiny"),
        ("--temp", "-1"),
        ("--draft-tokens", "2", "-d", "none"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    borrador: Borrador, scripted: ScriptedLLM, words: tuple[str, ...]
) -> None:
    result = borrador("chat", *words, stdin=b"Hello\n")
    assert (result.code, result.out, scripted.prompts) == (2, "", [])
    assert [line.split(":")[0] for line in result.err.splitlines()] == ["error", "hint"]


def test_drafting_cannot_be_turned_on_without_a_drafter(borrador: Borrador, scripted: ScriptedLLM) -> None:
    result = borrador("chat", "-d", "none", stdin=b"/draft on\n")
    assert (result.code, result.err.splitlines()[0]) == (2, "error: drafting needs a drafter, and there is none")


def test_conversation_that_is_too_long_loses_nothing(borrador: Borrador, scripted: ScriptedLLM) -> None:
    scripted.error = ContextLengthError(
        "a prompt must be shorter than the context of 64 tokens, it has 70", "Shorten it."
    )
    result = borrador("chat", stdin=b"Hello\n")
    assert result.code == 2
    assert "error: a prompt must be shorter than the context of 64 tokens, it has 70\n" in result.err
    assert "hint: Nothing was dropped: /save FILE keeps this conversation, /clear begins a new one.\n" in result.err


def test_failing_answer_ends_a_chat_that_nobody_watches(borrador: Borrador, scripted: ScriptedLLM) -> None:
    scripted.error = BorradorError("the engine failed", "Look at it.")
    result = borrador("chat", stdin=b"Hello\nAgain\n")
    assert (result.code, result.out, len(scripted.prompts)) == (1, "", 1)
    assert result.err.splitlines()[-2:] == ["error: the engine failed", "hint: Look at it."]


def test_questions_must_be_utf8(borrador: Borrador, scripted: ScriptedLLM) -> None:
    result = borrador("chat", stdin=b"caf\xe9\n")
    assert (result.code, scripted.prompts) == (2, [])
    assert "byte 3 of a line (0xe9) is not" in result.err


def test_closed_pipe_ends_the_chat_quietly() -> None:
    process = start("--slow", "chat", stdin=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdin.write(b"Hello\n")
    process.stdin.flush()
    process.stdout.read(3)
    process.stdout.close()
    assert process.wait(timeout=120) == 0
    assert process.stderr.read() == b""
    process.stdin.close()
    process.stderr.close()


def test_no_escape_sequence_reaches_a_pipe() -> None:
    process = start("chat", stdin=subprocess.PIPE, environment={"FORCE_COLOR": "1"})
    out, err = process.communicate(b"Hello\n/help\n", timeout=120)
    assert out.decode() == f"{ANSWER}\n"
    assert b"\x1b" not in err
    assert b"/regen" in err


def test_no_history_of_questions_from_a_pipe(tmp_path: Path) -> None:
    process = start("chat", stdin=subprocess.PIPE, environment={"BORRADOR_HISTORY": str(tmp_path)})
    process.communicate(b"Hello\n", timeout=120)
    assert list(tmp_path.iterdir()) == []


def test_other_commands_start_without_what_only_a_chat_needs() -> None:
    program = "import sys, borrador.cli.app; print(sorted(sys.modules))"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True).stdout
    assert not [name for name in ("httpx", "prompt_toolkit", "asyncio", "starlette") if repr(name) in out]
