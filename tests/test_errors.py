"""Errors of others are told in words."""

from __future__ import annotations

import pytest

from borrador.errors import in_words


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("[Errno 111] Connection refused", "Connection refused"),
        ("[WinError 10061] No connection could be made", "No connection could be made"),
        ("[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)", "TLS: wrong version number"),
        (
            "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate (_ssl.c:1006)",
            "TLS: certificate verify failed: self-signed certificate",
        ),
        ("disk [Errno 5] of many", "disk [Errno 5] of many"),
    ],
)
def test_numbers_and_places_in_code_are_left_out(reason: str, words: str) -> None:
    assert in_words(reason) == words
