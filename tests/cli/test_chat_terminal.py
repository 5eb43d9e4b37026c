"""`borrador chat` as a person meets it: a process on a terminal of its own."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from tests.cli.on_terminal import Terminal
from tests.cli.scripted_llm import ANSWER


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"BORRADOR_HISTORY": str(tmp_path / "kept")}


def test_question_is_answered_until_ctrl_d(environment: dict[str, str]) -> None:
    with Terminal("chat", environment=environment) as terminal:
        terminal.expect("/help lists commands")
        terminal.ask("Which city?")
        terminal.expect(f"{ANSWER}\r\n100.0 tok/s · 7 tokens · 80 % of tested draft tokens accepted")
        terminal.expect(">>>")
        terminal.type("\x04")
        assert terminal.wait() == 0


def test_several_lines_between_quotes_are_one_question(environment: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    with Terminal("chat", environment=environment) as terminal:
        terminal.ask('"""Two')
        terminal.expect("...")
        terminal.type('lines"""\r')
        terminal.expect(ANSWER)
        terminal.ask("Two\x1b\rmore")  # Alt-Enter
        terminal.expect(ANSWER)
        terminal.ask(f"/save {path}")
        terminal.expect("saved in")
        terminal.ask("/exit")
        assert terminal.wait() == 0
    questions = [message["content"] for message in json.loads(path.read_text())["messages"][::2]]
    assert questions == ["Two\nlines", "Two\nmore"]


def test_ctrl_c_stops_the_answer_and_keeps_what_was_written(environment: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    with Terminal("--slow", "chat", environment=environment) as terminal:
        terminal.ask("Which city?")
        terminal.expect("capital is Rome")
        terminal.type("\x03")
        terminal.expect("stopped · ")
        terminal.ask(f"/save {path}")
        terminal.expect("saved in")
        terminal.ask("/exit")
        assert terminal.wait() == 0
    question, answer = json.loads(path.read_text())["messages"]
    assert question == {"role": "user", "content": "Which city?"}
    assert answer["stopped"] is True
    assert (ANSWER * 1000).startswith(answer["content"])
    assert answer["content"].startswith("The capital is Rome")


def test_second_ctrl_c_leaves(environment: dict[str, str]) -> None:
    with Terminal("--slow", "chat", environment=environment) as terminal:
        terminal.ask("Which city?")
        terminal.expect("capital is Rome")
        terminal.type("\x03")
        terminal.expect("stopped · ")
        terminal.expect(">>>")
        terminal.type("\x03")
        assert terminal.wait() == 130
    assert "Traceback" not in terminal.text


def test_one_ctrl_c_at_the_prompt_only_warns(environment: dict[str, str]) -> None:
    with Terminal("chat", environment=environment) as terminal:
        terminal.expect(">>>")
        terminal.type("half a line\x03")
        terminal.expect("Ctrl-C again leaves")
        terminal.ask("Which city?")
        terminal.expect(ANSWER)
        terminal.expect(">>>")
        terminal.type("\x03")
        terminal.expect("Ctrl-C again leaves")
        terminal.expect(">>>")
        terminal.type("\x03")
        assert terminal.wait() == 130


def test_wrong_command_and_failing_file_do_not_end_the_chat(environment: dict[str, str], tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text("{}")
    with Terminal("chat", environment=environment) as terminal:
        for command, told in (
            ("/hepl", "Did you mean /help?"),
            (f"/load {other}", "is not a saved chat: it is of another program"),
            (f"/save {other}", "exists and is not a saved chat"),
            (f"/save {tmp_path}/missing/chat.json", "cannot be written: No such file or directory"),
            ("/help", "/regen"),
        ):
            terminal.ask(command)
            terminal.expect(told)
        terminal.ask("Which city?")
        terminal.expect(ANSWER)
    assert other.read_text() == "{}"


def test_saved_chat_is_loaded_in_another_one(environment: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    for commands in (("One", f"/save {path}"), (f"/load {path}", "/regen", "Two", f"/save {path}")):
        with Terminal("chat", environment=environment) as terminal:
            for command in commands:
                terminal.ask(command)
                terminal.expect("tok/s" if not command.startswith(("/save", "/load")) else "ed ")
            terminal.ask("/exit")
            assert terminal.wait() == 0
    assert [message["content"] for message in json.loads(path.read_text())["messages"]] == [
        "One",
        ANSWER,
        "Two",
        ANSWER,
    ]


def test_what_is_typed_is_kept_for_its_owner_alone(environment: dict[str, str]) -> None:
    kept = Path(environment["BORRADOR_HISTORY"]) / "chat-input"
    with Terminal("chat", environment=environment) as terminal:
        terminal.ask("Which city?")
        terminal.expect(ANSWER)
        terminal.ask("/exit")
        assert terminal.wait() == 0
    assert "+Which city?\n" in kept.read_text()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    with Terminal("chat", environment=environment) as terminal:
        terminal.expect(">>>")
        terminal.type("\x1b[A\x1b[A\r")  # two up: /exit was the last
        terminal.expect(ANSWER)


def test_nothing_typed_is_kept_where_that_is_turned_off(environment: dict[str, str]) -> None:
    with Terminal("chat", "--no-input-history", environment=environment) as terminal:
        terminal.ask("Which city?")
        terminal.expect(ANSWER)
        terminal.ask("/exit")
        assert terminal.wait() == 0
    assert not Path(environment["BORRADOR_HISTORY"]).exists()


def test_history_that_cannot_be_kept_is_no_obstacle(environment: dict[str, str]) -> None:
    Path(environment["BORRADOR_HISTORY"]).write_text("a file where the folder should be")
    with Terminal("chat", environment=environment) as terminal:
        terminal.expect("what is typed is not kept: ")
        terminal.ask("Which city?")
        terminal.expect(ANSWER)


@pytest.mark.parametrize(("no_color", "drafted"), [("", b"\x1b[4;32m is\x1b[0m"), ("1", b"\x1b[4m is\x1b[0m")])
def test_drafted_tokens_are_green_and_underlined_or_underlined_alone(
    environment: dict[str, str], no_color: str, drafted: bytes
) -> None:
    with Terminal("chat", environment={**environment, "NO_COLOR": no_color}) as terminal:
        terminal.ask("/color on")
        terminal.expect("are underlined")
        terminal.ask("Which city?")
        terminal.expect("tok/s")
        assert drafted in terminal.shown
        assert (b"\x1b[36m" in terminal.shown) is not bool(no_color)
        before = terminal.shown.count(drafted)
        terminal.ask("/color off")
        terminal.expect("like others")
        terminal.ask("Which city?")
        terminal.expect(f"{ANSWER}\r\n100.0 tok/s")
        assert terminal.shown.count(drafted) == before
