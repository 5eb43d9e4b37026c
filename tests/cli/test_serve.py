from __future__ import annotations

import importlib.util
import logging
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.cli.conftest import Borrador, start
from tests.tiny_gguf import write_tiny_model

from borrador.server import running
from borrador.server.config import ServerConfig
from borrador.server.request_log import ACCESS_LOG


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.gguf"
    write_tiny_model(path)
    return path


@pytest.fixture(autouse=True)
def _log_as_before() -> Iterator[None]:
    log = logging.getLogger(ACCESS_LOG)
    handlers, level, propagate = log.handlers[:], log.level, log.propagate
    yield
    log.handlers[:], log.propagate = handlers, propagate
    log.setLevel(level)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[tuple[ServerConfig, str]]:
    """What would be served, in place of serving it."""
    calls: list[tuple[ServerConfig, str]] = []
    monkeypatch.setattr(running, "serve", lambda config, name, *_: calls.append((config, name)))
    return calls


def test_options_become_the_configuration(borrador: Borrador, served: list[Any], model: Path) -> None:
    result = borrador(
        *("serve", "-m", str(model), "--host", "0.0.0.0", "--port", "0", "--api-key", "one", "--api-key", "two"),
        *("--allowed-origin", "https://a.example", "--allowed-host", "b.example", "--alias", "small"),
        *("--concurrent", "3", "--waiting", "5", "--cache-bytes", "512m", "--timeout", "7", "--drain", "2.5"),
        *("--stream-pacing", "fixed-interval", "--pacing-interval", "0.1", "--quiet"),
    )
    assert (result.code, result.out, result.err) == (0, "", "")
    expected = ServerConfig(
        host="0.0.0.0",
        port=0,
        api_keys=("one", "two"),
        allowed_origins=("https://a.example",),
        allowed_hosts=("b.example",),
        alias="small",
        concurrent=3,
        waiting=5,
        cache_bytes=512 * 2**20,
        request_timeout_s=7.0,
        drain_s=2.5,
        stream_pacing="fixed-interval",
        pacing_s=0.1,
    )
    assert served == [(expected, "tiny")]


def test_without_options_the_defaults_of_the_library_hold(borrador: Borrador, served: list[Any], model: Path) -> None:
    assert borrador("serve", "-m", str(model), "-q").code == 0
    assert served == [(ServerConfig(), "tiny")]


def test_the_environment_sets_options_and_the_command_line_wins(
    borrador: Borrador, served: list[Any], model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "MODEL": str(model),
        "PORT": "1234",
        "API_KEY": "from-environment",
        "WAITING": "9",
        "STREAM_PACING": "token",
        "THREADS": "1",
    }.items():
        monkeypatch.setenv(f"BORRADOR_{name}", value)
    assert borrador("serve", "-q", "--waiting", "2").code == 0
    ((config, _),) = served
    assert (config.port, config.waiting, config.stream_pacing) == (1234, 2, "token")
    assert config.api_keys == ("from-environment",)


def test_keys_are_read_from_a_file(borrador: Borrador, served: list[Any], model: Path, tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("# of the team\n  one  \n\ntwo\n")
    assert borrador("serve", "-q", "-m", str(model), "--api-key-file", str(file), "--api-key", "zero").code == 0
    assert served[0][0].api_keys == ("zero", "one", "two")


@pytest.mark.parametrize("content", [b"", b"# nothing\n", b"\xff\n", None])
def test_a_key_file_without_keys_is_refused(
    borrador: Borrador, served: list[Any], tmp_path: Path, content: bytes | None
) -> None:
    file = tmp_path / "keys"
    if content is not None:
        file.write_bytes(content)
    result = borrador("serve", "--api-key-file", str(file))
    assert (result.code, result.out) == (2, "")
    assert str(file) in result.err
    assert not served


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--host", "0.0.0.0"), "host 0.0.0.0 can be reached from other machines and needs an API key, none is given"),
        (("--port", "65536"), "port must be from 0 to 65535, got 65536"),
        (("--timeout", "0"), "'--timeout' (env var: 'BORRADOR_TIMEOUT'): must be from 0.1 to 86400 seconds, got 0"),
        (("--drain", "nan"), "must be from 0 to 3600 seconds, got nan"),
        (("--port", "http"), "'http' is not a whole number"),
        (("--cache-bytes", "much"), "'much' is not a number of bytes"),
        (("--cache-bytes", "1k"), "cache_bytes must be from 1048576 to 1125899906842624, got 1024"),
        (("--stream-pacing", "slow"), "'slow' is not one of token, fixed-interval, none"),
        (("--pacing-interval", "0.1"), "--pacing-interval 0.1 needs --stream-pacing fixed-interval, which is none"),
        (("--api-key", "two words"), "an API key must be 1 to 256 visible ASCII characters"),
        (("--allowed-origin", "*"), "an allowed origin must be http"),
        (
            ("--api-key", "a", "--api-key", "b", "--history", "work"),
            "--history work would be shared by all who have a key, and there are 2 keys",
        ),
        (("--draft", "none", "--draft-tokens", "3"), "--draft-tokens 3 needs a drafter"),
    ],
)
def test_options_that_break_a_rule_are_refused_in_a_sentence(
    borrador: Borrador, served: list[Any], words: tuple[str, ...], sentence: str
) -> None:
    result = borrador("serve", *words)
    assert (result.code, result.out) == (2, "")
    assert sentence in result.err
    assert "two words" not in result.err
    assert not served


def test_missing_packages_are_named_with_what_installs_them(
    borrador: Borrador, served: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    missing = ("uvicorn", "prometheus_client")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in missing else find(name))
    result = borrador("serve")
    assert (result.code, result.out) == (1, "")
    assert "packages that are not installed: uvicorn, prometheus-client" in result.err
    assert "pip install 'borrador[server]'" in result.err
    assert not served


def test_a_port_in_use_is_said_in_a_sentence(borrador: Borrador, model: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = borrador("serve", "-m", str(model), "--port", port)
    assert (result.code, result.out) == (1, "")
    assert f"port {port} of 127.0.0.1 is in use" in result.err


def test_a_damaged_model_ends_the_server_with_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "damaged.gguf"
    file.write_bytes(b"GGUF" + bytes(60))
    with start("serve", "-m", str(file), "--port", "0", "--threads", "1", module="borrador") as process:
        out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (3, b"")
    assert err.startswith(b"error: ")
    assert b"Traceback" not in err


def test_a_model_is_served_until_a_signal_comes(model: Path) -> None:
    words = ("serve", "-m", str(model), "--port", "0", "--threads", "1", "--no-profile")
    environment = {"BORRADOR_API_KEY": "secret"}
    with start(*words, module="borrador", environment=environment) as process:
        assert process.stdout is not None
        line = process.stdout.readline().decode()
        assert line.startswith("serving tiny at http://127.0.0.1:")
        url = line.split()[3].rstrip(",")
        headers = {"Authorization": "Bearer secret"}
        body = {"prompt": "the", "max_tokens": 4, "ignore_eos": True}
        answer = httpx.post(f"{url}/v1/completions", json=body, headers=headers, timeout=120, trust_env=False)
        refused = httpx.post(f"{url}/v1/completions", json=body, timeout=120, trust_env=False)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=120)
    assert (answer.status_code, refused.status_code) == (200, 401)
    assert answer.json()["usage"]["completion_tokens"] == 4
    assert (process.returncode, out) == (0, b"")
    requests = [line.split(" 127.0.0.1 ")[1] for line in err.decode().splitlines()]
    assert [line[: len("POST /v1/completions 200")] for line in requests] == [
        "POST /v1/completions 200",
        "POST /v1/completions 401",
    ]
    assert "secret" not in err.decode()
