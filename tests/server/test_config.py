from __future__ import annotations

from typing import Any

import pytest

from borrador.errors import UsageError
from borrador.server.config import ServerConfig, is_loopback


def test_the_defaults_listen_on_this_machine_only() -> None:
    config = ServerConfig()
    assert (config.host, config.port, config.is_public) == ("127.0.0.1", 8080, False)
    assert (config.body_bytes, config.header_bytes, config.json_depth) == (2097152, 16384, 64)
    assert (config.header_timeout_s, config.body_timeout_s, config.idle_timeout_s) == (10.0, 30.0, 30.0)
    assert (config.request_timeout_s, config.drain_s) == (600.0, 30.0)
    assert (config.waiting, config.completions, config.logit_biases) == (64, 8, 1024)
    assert (config.stop_strings, config.stop_characters) == (8, 256)
    assert (config.schema_bytes, config.schema_depth) == (32768, 16)


@pytest.mark.parametrize(
    ("option", "rule"),
    [
        ({"port": 65536}, "port must be from 0 to 65535, got 65536"),
        ({"port": True}, "port must be a whole number, got True"),
        ({"host": ""}, "host must be an address or a name, got ''"),
        ({"host": None}, "host must be an address or a name, got None"),
        ({"concurrent": 0}, "concurrent must be from 1 to 256, got 0"),
        ({"waiting": -1}, "waiting must be from 0 to 65536, got -1"),
        ({"body_bytes": 0}, "body_bytes must be from 1"),
        ({"json_depth": 257}, "json_depth must be from 1 to 256, got 257"),
        ({"header_timeout_s": 0}, r"header_timeout_s must be in \[0.1, 3600\], got 0"),
        ({"request_timeout_s": float("nan")}, "request_timeout_s must be in .*, got nan"),
        ({"cache_bytes": 1}, "cache_bytes must be from 1048576 to .*, got 1"),
        ({"stream_pacing": "slow"}, "stream_pacing must be one of token, fixed-interval, none, got 'slow'"),
        ({"alias": ""}, "alias must be 1 to 128 printable characters, got ''"),
        ({"alias": "a\nb"}, "alias must be 1 to 128 printable characters"),
        ({"api_keys": "secret"}, "api_keys must be a list of texts, got one str"),
        ({"api_keys": (1,)}, "every one of api_keys must be text, got int"),
        ({"allowed_origins": ("*",)}, r"an allowed origin must be http\(s\)://NAME\[:PORT\] without a path, got '\*'"),
        ({"allowed_origins": ("https://a.org/x",)}, "an allowed origin must be"),
        ({"allowed_origins": ("null",)}, "an allowed origin must be"),
        ({"allowed_hosts": ("*",)}, "an allowed host must be a name without port"),
        ({"allowed_hosts": ("a.org:80",)}, "an allowed host must be a name without port"),
        ({"insecure": 1}, "insecure must be true or false, got 1"),
    ],
)
def test_values_outside_their_rule_are_refused(option: dict[str, Any], rule: str) -> None:
    with pytest.raises(UsageError, match=rule):
        ServerConfig(**option)


@pytest.mark.parametrize("key", ["", "two words", "naïve", "line\n", "k" * 257])
def test_a_wrong_key_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(UsageError, match="an API key must be 1 to 256 visible ASCII characters") as caught:
        ServerConfig(api_keys=(key,))
    assert not key or key not in str(caught.value)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "llm.example.org"])
def test_another_address_needs_a_key_or_the_word_that_it_does_not(host: str) -> None:
    with pytest.raises(UsageError, match=f"host {host} can be reached from other machines and needs an API key"):
        ServerConfig(host=host)
    assert ServerConfig(host=host, api_keys=("secret",)).is_public
    assert ServerConfig(host=host, insecure=True).is_public


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1", "[::1]", "localhost", "LOCALHOST."])
def test_loopback_addresses_are_known(host: str) -> None:
    assert is_loopback(host)


def test_keys_are_not_part_of_what_is_shown() -> None:
    assert "secret" not in repr(ServerConfig(api_keys=("secret",)))


def test_names_are_compared_in_lower_case() -> None:
    config = ServerConfig(allowed_origins=("HTTPS://Chat.Example.org:8443",), allowed_hosts=("LLM.Example.org.",))
    assert config.allowed_origins == ("https://chat.example.org:8443",)
    assert config.allowed_hosts == ("llm.example.org",)
