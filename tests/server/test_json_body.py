from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from borrador.server.json_body import JsonError, parse_json

_TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXTS, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(_TEXTS, _VALUES))
def test_what_is_json_is_read_as_it_is(value: dict[str, Any]) -> None:
    assert parse_json(json.dumps(value).encode()) == value
    assert parse_json(json.dumps(value, ensure_ascii=False, indent=1).encode()) == value


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        (b"", "the body must be a JSON object, it is empty"),
        (b" \n", "the body must be a JSON object, it is empty"),
        (b"[]", "the body must be a JSON object, got a list"),
        (b"null", "the body must be a JSON object, got null"),
        (b"1.5", "the body must be a JSON object, got a number"),
        (b"true", "the body must be a JSON object, got a truth value"),
        (b'"text"', "the body must be a JSON object, got text"),
        (b"{", "the body must be JSON: "),
        (b"{} x", "the body must be JSON: "),
        (b'{"a": 01}', "the body must be JSON: "),
        (b"{'a': 1}", "the body must be JSON: "),
        (b'{"a": 1,}', "the body must be JSON: "),
        (b'{"a": "\n"}', "the body must be JSON: "),
        (b'{"a": "\0"}', "the body must be JSON: "),
        (b'{"a": "', "the body must be JSON: "),
        (b'{"a": "\\', "the body must be JSON: "),
        (b'\xef\xbb\xbf{"a": 1}', "it begins with a byte order mark"),
        (b'{"a": "\xff"}', "the body must be valid UTF-8, byte 7 is not"),
        (b'{"a": "\xed\xa0\x80"}', "the body must be valid UTF-8, byte 7 is not"),
        ('{"a": 1}'.encode("utf-16"), "the body must be valid UTF-8"),
        ('{"a": 1}'.encode("utf-16-le"), "the body must be JSON: "),
        (b'{"a": 1, "a": 2}', "a key must occur once in an object, 'a' occurs twice"),
        (b'{"b": {"a": 1, "\\u0061": 2}}', "a key must occur once in an object, 'a' occurs twice"),
        (b'{"a": NaN}', "numbers must be finite, NaN is not"),
        (b'{"a": -Infinity}', "numbers must be finite, -Infinity is not"),
        (b'{"a": 1e999}', "numbers must be finite, 1e999 is not"),
        (b'{"a": -1E+400}', "numbers must be finite, -1E.400 is not"),
        (b'{"a": 1' + b"0" * 400 + b".5}", "numbers must be finite, 10000000"),
        (b'{"a": 18446744073709551616}', "whole numbers must fit into 64 bits, 18446744073709551616 does not"),
        (b'{"a": -9223372036854775809}', "whole numbers must fit into 64 bits, -9223372036854775809 does not"),
        (b'{"a": ' + b"9" * 5000 + b"}", "whole numbers must fit into 64 bits, 9999"),
        (b'{"a": "\\ud800"}', "texts must be valid Unicode, one holds a lone surrogate"),
        (b'{"\\uDFFF": 1}', "texts must be valid Unicode, one holds a lone surrogate"),
        (b'{"a": "\\ud83d\\\\ude00"}', "texts must be valid Unicode, one holds a lone surrogate"),
        (b'{"a": "b\\u0000"}', "texts must not hold the character NUL, one does"),
        (b'{"a": ' + b"[" * 64 + b"]" * 64 + b"}", "the body must be nested at most 64 deep, it is 65 deep"),
        (b'{"a": ' + b"[" * 10000 + b"]" * 10000 + b"}", "the body must be nested at most 64 deep, it is 10001 deep"),
        (b'{"a":' * 10000, "the body must be nested at most 64 deep, it is 10000 deep"),
        (b'{"a": [' + b"0," * 300000 + b"0]}", "the body must hold at most 131072 values, it holds more"),
        (b'{"a": [' + b'"",' * 32768 + b"0]}", "the body must hold at most 32768 texts and keys, it holds more"),
        (b'{"a": [' + b"[]," * 140000 + b"0]}", "the body must hold at most 131072 values, it holds more"),
    ],
)
def test_what_is_not_strict_json_is_refused_in_a_sentence(body: bytes, rule: str) -> None:
    with pytest.raises(JsonError, match=rule.replace("+", ".")) as caught:
        parse_json(body)
    assert len(str(caught.value)) < 200
    assert caught.value.hint


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b'{"a": 18446744073709551615, "b": -9223372036854775808}', {"a": 2**64 - 1, "b": -(2**63)}),
        (b'{"a": 1e308, "b": 0.1234567890123456789}', {"a": 1e308, "b": 0.1234567890123456789}),
        (b'{"a": "\\ud83d\\ude00"}', {"a": "\U0001f600"}),
        (b'{"a": "\\\\ud800 \\\\u0000"}', {"a": "\\ud800 \\u0000"}),
        (b'{"a": "[[[\\"[[[\\\\"}', {"a": '[[["[[[\\'}),
        (b'{"a": "' + b"[" * 100 + b'"}', {"a": "[" * 100}),
        (b'{"a": "99999999999999999999 NaN"}', {"a": "99999999999999999999 NaN"}),
        (b'{"a": ' + b"[" * 63 + b"]" * 63 + b"}", None),
    ],
)
def test_what_only_looks_forbidden_is_read(body: bytes, value: dict[str, Any] | None) -> None:
    assert parse_json(body) == (json.loads(body) if value is None else value)


def test_the_depth_can_be_set() -> None:
    assert parse_json(b'{"a": [1]}', depth=2) == {"a": [1]}
    with pytest.raises(JsonError, match="nested at most 1 deep, it is 2 deep"):
        parse_json(b'{"a": [1]}', depth=1)


@pytest.mark.parametrize(
    "body",
    [
        b'"' * 2**21,
        b'"' + b'\\"' * 2**20,
        b'{"a": "' + b"\\\\" * 2**20 + b'"',
        b"[" * 2**21,
        b'{"a": "' + b"\\ud800" * 300000 + b'"}',
        b'{"a": [' + b"1234567890123456789," * 100000 + b"NaN]}",
        b"{" + b",".join(b'"%d": 1' % i for i in range(32000)) + b', "31999": 1}',
        b"9" * 2**21,
        ("{" + '"a": "' + "é" * 2**20 + '"').encode(),
    ],
    ids=["quotes", "escapes", "backslashes", "brackets", "surrogates", "numbers", "keys", "digits", "unicode"],
)
def test_no_body_of_two_megabytes_takes_long(body: bytes) -> None:
    start = time.thread_time()  # which stands still while other programs have the processor
    with pytest.raises(JsonError):
        parse_json(body)
    assert time.thread_time() - start < 1.0
