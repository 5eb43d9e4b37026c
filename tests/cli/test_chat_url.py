"""`borrador chat --url` with a server on a real socket."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.api_server import TEXT, ApiServer, Behaviour
from tests.batches import eventually
from tests.cli.conftest import Borrador
from tests.cli.on_terminal import Terminal


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as server:
        yield server


def test_server_answers_and_the_conversation_goes_on(borrador: Borrador, server: ApiServer) -> None:
    result = borrador("chat", "--url", server.url, "--temp", "0.5", stdin=b"One\nTwo\n")
    assert (result.code, result.out) == (0, f"{TEXT}\n{TEXT}\n")
    assert [message["content"] for message in server.asked[1]["messages"]] == ["One", TEXT, "Two"]
    assert (server.asked[0]["model"], server.asked[0]["temperature"], server.asked[0]["stream"]) == ("tiny", 0.5, True)


def test_request_holds_nothing_that_was_not_asked_for(borrador: Borrador, server: ApiServer) -> None:
    borrador("chat", "--url", server.url, stdin=b"One\n/set top_k 3\n/set stop END\nTwo\n")
    first, second = server.asked
    assert set(first) == {"model", "messages", "stream", "stream_options", "temperature", "max_tokens"}
    assert (second["top_k"], second["stop"]) == (3, ["END"])


def test_footer_takes_the_figures_of_the_server(borrador: Borrador, server: ApiServer) -> None:
    result = borrador("chat", "--url", server.url, stdin=b"One\n")
    assert result.err == "50.0 tok/s · 5 tokens · 75 % of tested draft tokens accepted · 2.0x\n"


def test_footer_leaves_out_what_the_server_does_not_say(borrador: Borrador, server: ApiServer) -> None:
    server.behaviour = Behaviour(usage=False, timings={})
    assert borrador("chat", "--url", server.url, stdin=b"One\n").err == "done\n"


def test_drafting_is_turned_on_and_off_where_the_server_understands_it(borrador: Borrador, server: ApiServer) -> None:
    typed = b"One\n/draft off\nTwo\n/draft on 3\nThree\n/draft auto\n/set acceptance rejection\nFour\n"
    assert borrador("chat", "--url", server.url, "--temp", "1", stdin=typed).code == 0
    assert [body.get("speculative") for body in server.asked] == [
        None,
        {"enabled": False},
        {"enabled": True, "draft_tokens": 3},
        {"acceptance": "rejection"},
    ]


@pytest.mark.parametrize("how", ["refused", "ignored"])
def test_drafting_stays_as_it_is_where_the_server_does_not_know_the_field(borrador: Borrador, how: str) -> None:
    with ApiServer(Behaviour(speculative="refused" if how == "refused" else "ignored")) as server:
        result = borrador("chat", "--url", server.url, stdin=b"/draft off\n")
        assert result.code == 2
        assert f"this server cannot be told how to draft: the field speculative is {how}\n" in result.err
        assert borrador("chat", "--url", server.url, "--draft-tokens", "3", stdin=b"Hello\n").code == 2
        assert server.asked == []


def test_setting_that_the_server_does_not_have_is_refused_by_name(borrador: Borrador) -> None:
    with ApiServer(Behaviour(refuses="penalty_window")) as server:
        result = borrador("chat", "--url", server.url, stdin=b"One\n/set penalty_window 3\nTwo\n")
    assert (result.code, result.out) == (1, f"{TEXT}\n")
    assert "error: the server refused the request (400): unknown field penalty_window\n" in result.err


def test_server_that_does_not_count_tokens_is_not_asked_to(borrador: Borrador) -> None:
    with ApiServer(Behaviour(refuses="stream_options")) as server:
        assert borrador("chat", "--url", server.url, stdin=b"One\nTwo\n").code == 0
        assert ["stream_options" in body for body in server.asked] == [False, False]


def test_conversation_that_is_too_long_for_the_server_loses_nothing(borrador: Borrador) -> None:
    with ApiServer(Behaviour(context_tokens=4)) as server:
        result = borrador("chat", "--url", server.url, stdin=b"One two three four five\n")
    assert result.code == 2
    assert "error: the prompt has 5 tokens, and the context 4\n" in result.err
    assert "Nothing was dropped" in result.err


@pytest.mark.parametrize(
    ("behaviour", "told"),
    [
        (Behaviour(dropped=frozenset({0})), "the connection to "),
        (Behaviour(fails_inside=frozenset({0})), "error: the server cut the answer off: out of memory\n"),
    ],
)
def test_answer_that_breaks_off_is_told_after_what_was_written(
    borrador: Borrador, behaviour: Behaviour, told: str
) -> None:
    with ApiServer(behaviour) as server:
        result = borrador("chat", "--url", server.url, stdin=b"One\n")
    assert (result.code, result.out) == (1, "The capital\n")
    assert told in result.err


def test_busy_server_is_a_sentence(borrador: Borrador) -> None:
    with ApiServer(Behaviour(busy=frozenset({0}))) as server:
        result = borrador("chat", "--url", server.url, stdin=b"One\n")
    assert result.code == 1
    assert "is busy: the queue is full\nhint: Try again in 0.01 s.\n" in result.err


def test_key_is_sent_and_its_lack_is_a_sentence(borrador: Borrador, monkeypatch: pytest.MonkeyPatch) -> None:
    with ApiServer(Behaviour(api_key="secret")) as server:
        refused = borrador("chat", "--url", server.url, stdin=b"One\n")
        assert (refused.code, refused.err.splitlines()[1]) == (2, "hint: Give its key with --api-key.")
        assert borrador("chat", "--url", server.url, "--api-key", "secret", stdin=b"One\n").out == f"{TEXT}\n"
        monkeypatch.setenv("BORRADOR_API_KEY", "secret")
        assert borrador("chat", "--url", server.url, stdin=b"One\n").out == f"{TEXT}\n"


def test_model_is_the_one_named_or_the_first(borrador: Borrador) -> None:
    with ApiServer(Behaviour(models=("first", "second"))) as server:
        borrador("chat", "--url", server.url, stdin=b"One\n")
        borrador("chat", "--url", server.url, "--model-name", "second", stdin=b"One\n")
        result = borrador("chat", "--url", server.url, "--model-name", "third", stdin=b"One\n")
        assert [body["model"] for body in server.asked] == ["first", "second"]
    assert (result.code, result.err.splitlines()[1]) == (2, "hint: It lists first, second.")


def test_server_that_is_not_there_is_a_sentence(borrador: Borrador) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, and not listening
        result = borrador("chat", "--url", f"http://127.0.0.1:{taken.getsockname()[1]}", stdin=b"One\n")
    assert result.code == 1
    assert "cannot be reached: Connection refused" in result.err
    assert "Traceback" not in result.err


def test_ctrl_c_stops_the_server_too(server: ApiServer, tmp_path: Path) -> None:
    server.behaviour = Behaviour(tokens=[(" word", "target")] * 5000, token_s=0.02)
    with Terminal(
        "chat", "--url", server.url, "-n", "5000", environment={"BORRADOR_HISTORY": str(tmp_path)}
    ) as terminal:
        terminal.ask("Go on")
        terminal.expect(" word word word")
        terminal.type("\x03")
        terminal.expect("stopped")
        server.behaviour = Behaviour()
        terminal.ask("Which city?")
        terminal.expect(TEXT)
    assert [message["role"] for message in server.asked[1]["messages"]] == ["user", "assistant", "user"]
    assert server.asked[1]["messages"][1]["content"].startswith(" word word word")
    eventually(lambda: server.left == 1)


def test_colours_show_the_origins_that_the_server_tells(server: ApiServer, tmp_path: Path) -> None:
    with Terminal("chat", "--url", server.url, environment={"BORRADOR_HISTORY": str(tmp_path)}) as terminal:
        terminal.ask("/color on")
        terminal.expect("are underlined")
        terminal.ask("Which city?")
        terminal.expect("tok/s")
        assert b"The\x1b[4;32m capital\x1b[0m\x1b[4;32m is\x1b[0m\x1b[36m Rome\x1b[0m." in terminal.shown


def test_colours_are_refused_where_the_server_tells_no_origins(server: ApiServer, tmp_path: Path) -> None:
    server.behaviour = Behaviour(speculative="ignored")
    with Terminal("chat", "--url", server.url, environment={"BORRADOR_HISTORY": str(tmp_path)}) as terminal:
        terminal.ask("/color on")
        terminal.expect("this server does not say where tokens come from")


def test_terminal_does_not_obey_what_a_model_writes(server: ApiServer, tmp_path: Path) -> None:
    server.behaviour = Behaviour(tokens=[("A\x1b]0;title\x07B\x9b31m\n", "target")])
    with Terminal("chat", "--url", server.url, environment={"BORRADOR_HISTORY": str(tmp_path)}) as terminal:
        terminal.ask("Go on")
        terminal.expect("A]0;titleB31m")
