from __future__ import annotations

import pytest

from borrador.errors import UsageError
from borrador.remote.address import Address


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/v1"),
        (" http://127.0.0.1:8080/ ", "http://127.0.0.1:8080/v1"),
        ("http://localhost:8080/v1/", "http://localhost:8080/v1"),
        ("https://example.org/openai", "https://example.org/openai/v1"),
        ("https://example.org/api/v3", "https://example.org/api/v3"),
        ("http://[::1]:8080/v1/chat/completions", "http://[::1]:8080/v1"),
        ("http://127.0.0.1:8080/v1/models", "http://127.0.0.1:8080/v1"),
    ],
)
def test_address_ends_where_the_endpoints_are(url: str, base: str) -> None:
    assert Address.parse(url).base == base


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:8080",
        "localhost",
        "ftp://host",
        "http://",
        "http://host:port",
        "http://host:70000",
        "http://user:secret@host",
        "http://host?key=1",
        "http://[::1",
        "http://bücher.example",
        "",
    ],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="--url must be"):
        Address.parse(url)


@pytest.mark.parametrize("key", ["", "two words", "line\nbreak", "schlüssel"])
def test_key_that_cannot_be_sent_is_refused_and_not_repeated(key: str) -> None:
    with pytest.raises(UsageError) as caught:
        Address.parse("http://host", key)
    assert "--api-key must be" in str(caught.value)
    assert not key or key not in str(caught.value)


def test_key_is_not_shown() -> None:
    assert "secret" not in repr(Address.parse("http://host", "secret"))


@pytest.mark.parametrize(
    ("url", "loopback"),
    [("http://localhost:1", True), ("http://127.1.2.3", True), ("http://[::1]", True), ("http://192.168.0.1", False)],
)
def test_this_machine_is_told_from_others(url: str, loopback: bool) -> None:
    assert Address.parse(url).is_loopback is loopback
