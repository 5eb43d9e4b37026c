"""A template that means harm is stopped by the work it does, counted, and not by how long that takes."""

from __future__ import annotations

import contextlib
import json
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from borrador.errors import ModelError, UsageError
from borrador.models.gguf import GgufFile
from borrador.text.chat_template import CHATML, ChatTemplate
from borrador.text.tokenizer import Tokenizer
from borrador.types import Message

HELLO: list[Message] = [{"role": "user", "content": "Hello"}]
MOST_CPU_S = 0.3


def nested(body: str) -> str:
    return "{% for i in range(99999) %}{% for j in range(99999) %}" + body + "{% endfor %}{% endfor %}"


def often(body: str) -> str:
    return "{% for i in range(99999) %}" + body + "{% endfor %}"


LARGE = "{% set a = 'a' * 900000 ~ 'b' %}{% set b = 'a' * 900000 ~ 'b' %}"
COSTLY = [
    nested(""),
    nested("text"),
    nested("{{ i }}"),
    nested("{% set x = i * j %}"),
    LARGE + nested("{% if a == b %}{% endif %}"),
    LARGE + nested("{% if 'ab' in a %}{% endif %}"),
    LARGE + nested("{% if a is eq(b) %}{% endif %}"),
    LARGE + nested("{% if a is in(b) %}{% endif %}"),
    LARGE + nested("{% if a.find('c') %}{% endif %}"),
    LARGE + nested("{{ a.count('ab') }}"),
    LARGE + nested("{% set c = a[1:] %}"),
    LARGE + nested("{% if a.startswith(b) %}{% endif %}"),
    LARGE + nested("{% if a.isalpha() %}{% endif %}"),
    LARGE + nested("{% if [a, b] | sort %}{% endif %}"),
    LARGE + nested("{% if [a, b] | unique | list %}{% endif %}"),
    LARGE + nested("{% if [a, b] | max %}{% endif %}"),
    LARGE + nested("{% if {'x': a, 'y': b} | dictsort(by='value') %}{% endif %}"),
    LARGE + nested("{% if [a] | select('in', b) | list %}{% endif %}"),
    LARGE + nested("{% if loop.changed(a, b) %}{% endif %}"),
    LARGE + nested("{% if a | trim %}{% endif %}"),
    "{% set a = 'a b ' * 250000 %}{{ a | title | title | length }}",
    "{% set a = 'a,' * 500000 %}" + often("{% set x = a.split(',') %}"),
    "{% set a = 'a ' * 500000 %}" + often("{% set x = a.split() %}"),
    "{% set a = '\n' * 1000000 %}" + often("{% set x = a.splitlines() %}"),
    LARGE + often("{% set x = a | list %}"),
    LARGE + often("{% set x = a | upper | lower | capitalize %}"),
    LARGE + often("{% set x = [a] | tojson %}"),
    LARGE + often("{% set x = '%s%s' % (a, a) %}"),
    "{{ strftime_now('%A' * 1000000) | length }}",
    often("{% set x = strftime_now('%A' * 100) %}"),
    "{% macro m() %}{{ caller() }}{% endmacro %}" + often("{% call m() %}x{% endcall %}"),
    often("{% filter upper %}xxxx{% endfilter %}"),
    "{% set ns = namespace(x='') %}" + often("{% set ns.x = ns.x ~ 'abcdefgh' %}"),
    "{% set ns = namespace(x=[]) %}" + often("{% set ns.x = ns.x + [i] %}"),
    often("{% set x = range(99999) | list %}"),
    often("{% set x = range(99999) | max %}"),
    often("{% set x = range(99999) | join %}"),
    often("{% set x = 'x' in (range(99999) | map('abs')) %}"),
    often("{% set x = range(99999) | unique | list %}"),
    "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
]
LENGTHY = [
    "{% set x = 1 %}" * 30_000,
    "{{ x }}" * 40_000,
    "{% if x == 1 %}" + "{% elif x == 1 %}" * 8_000 + "{% endif %}",
    "{{ [" + "1," * 40_000 + "] }}",
    "x{# c #}" * 40_000,
    often("{% set x = namespace(a=i) %}") * 5_000,
    "".join(f"{{% block a{i} %}}{{% endblock %}}" for i in range(5_000)),
]
NESTED_INCLUDES = ["{% include 'a' %}" * 1000, "{% for i in range(9) %}{% include ['a', 'b'] %}{% endfor %}"]
ESCAPES = [
    "{{ ''.__class__.__base__.__subclasses__()[40]('/etc/passwd').read() }}",
    "{{ [].__class__.__mro__ | map(attribute='__subclasses__') | list }}{{ [].append(1) }}",
    "{{ messages.__class__.__init__.__globals__['sys'] }}",
    "{{ messages[0].items.__self__.clear() }}",
    "{{ dict.__base__.__subclasses__() }}",
    "{{ dict.fromkeys.__self__.__mro__[1].__subclasses__() }}",
    "{{ range.__class__.__base__ }}",
    "{{ namespace.__class__.mro() }}",
    "{{ loop.__init__.__globals__ }}{% for x in [1] %}{{ loop.__class__.__init__.__globals__.x }}{% endfor %}",
    "{{ self.__class__.__init__.__globals__ }}",
    "{{ caller.__globals__.x }}",
    "{% macro m() %}{% endmacro %}{{ m.__call__.__globals__.x }}",
    "{{ ['x'] | map('attr', '__class__') | list }}",
    "{{ messages | map(attribute='__class__.__base__') | map('string') | first | upper }}{{ [].pop() }}",
    "{{ messages | groupby('__class__') }}",
    "{{ '%c' % 65 }}",
    "{{ ('%s' | format(''))['__class__'].x }}",
    "{{ ''.join.__self__.__class__.x }}",
    "{{ strftime_now.__wrapped__.__globals__.x }}",
    "{{ raise_exception.__closure__[0].cell_contents }}",
    "{{ (messages | map('upper')).gi_code.co_names }}",
    "{{ (1).from_bytes([1], 'big') }}",
    "{{ (1.5).fromhex('0x1') }}",
    "{{ ''.encode().decode() }}",
    "{{ 'a'.translate({97: 98}) }}",
    "{{ messages.sort() }}",
    "{{ messages[0].pop('role') }}",
    "{{ messages[0].setdefault('x', 1) }}",
    "{% set messages[0].role = 'system' %}",
    "{% from 'os' import system %}{{ system('id') }}",
    "{% extends ''.__class__ %}",
    "{{ url_for.__globals__ }}",
    "{{ get_flashed_messages.__globals__.os }}",
]


def refused_within(source: str) -> float:
    """Seconds of this thread's processor until a template was refused."""
    start = time.thread_time()
    with pytest.raises(ModelError):
        ChatTemplate(source).render(HELLO)
    return time.thread_time() - start


@pytest.mark.parametrize("source", COSTLY)
def test_work_is_counted_and_bounded(source: str) -> None:
    with pytest.raises(ModelError, match=r"it takes more than \d+ steps|its text has more than"):
        ChatTemplate(source, time_limit_s=3600.0).render(HELLO)


@pytest.mark.parametrize("source", LENGTHY)
def test_a_template_of_too_many_words_is_not_compiled(source: str) -> None:
    with pytest.raises(ModelError, match=r"cannot be read: it takes more than \d+ steps"):
        ChatTemplate(source, time_limit_s=3600.0).render(HELLO)


@pytest.mark.parametrize("source", [*ESCAPES, *NESTED_INCLUDES])
def test_there_is_no_way_out(source: str) -> None:
    refused_within(source)


@pytest.mark.long
@pytest.mark.parametrize("source", [*COSTLY, *LENGTHY, *ESCAPES, *NESTED_INCLUDES])
def test_harm_is_refused_within_300_ms_of_one_processor(source: str) -> None:
    """The time is for a machine that does nothing else; the best of three."""
    assert min(refused_within(source) for _ in range(3)) < MOST_CPU_S


PARTS = [
    *("{{ ", " }}", "{% ", " %}", "{#", "#}", "for", "in", "if", "set", "endfor", "endif", "macro", "endmacro"),
    *("block", "call", "x", "messages", "range(99999)", "namespace(a=1)", "loop", "'a' * 99999", "'9' * 30", ".x"),
    *("__class__", " | join('x')", " | tojson", " | sort", "[::-1]", " ~ ", " + ", " * ", " ** ", "%", " == ", "-"),
    *("\x00", "🟥"),
]


@pytest.mark.parametrize("count", [200, pytest.param(10_000, marks=pytest.mark.long)])
def test_damaged_templates_give_a_text_or_an_error_of_our_own(count: int) -> None:
    chance = random.Random(count)
    sources = [source for source in [CHATML, *COSTLY, *ESCAPES] if len(source) < 500]
    for _ in range(count):
        source = chance.choice(sources)
        for _ in range(chance.randint(1, 4)):
            start = chance.randrange(len(source) + 1)
            source = source[:start] + chance.choice(PARTS) + source[start + chance.choice([0, 0, 1, 5, 20]) :]
        with contextlib.suppress(ModelError, UsageError):
            ChatTemplate(source, time_limit_s=3600.0).render(HELLO)


@pytest.mark.real_model
@pytest.mark.parametrize("name", ["smollm2-135m", "qwen2.5-coder-1.5b", "gemma3-270m"])
def test_five_hundred_turns_with_tools_are_nowhere_near_the_bound(
    name: str, model_path: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tenth of the units is enough for what real templates do with a long chat."""
    metadata = GgufFile.open(model_path(name)).metadata
    monkeypatch.setattr("borrador.text.chat_template._SPARE_UNITS", 40_000)
    monkeypatch.setattr("borrador.text.chat_template._UNITS_PER_TURN", 100)
    monkeypatch.setattr("borrador.text.chat_template._UNITS_PER_CHARACTER", 0.2)
    template = ChatTemplate.from_metadata(metadata, Tokenizer.from_metadata(metadata))
    turns: list[Message] = [
        {"role": "assistant" if number % 2 else "user", "content": "A line of text.\n" * 60} for number in range(501)
    ]
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
    prompt = template.render(turns, tools=[tool] * 20 if "tools" in template.source else None)
    assert prompt.count("A line of text.") == 501 * 60
    assert json.dumps("look") in prompt or "tools" not in template.source
