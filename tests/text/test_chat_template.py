"""Conversations become prompts as the file says, and a template from an unknown file can do nothing else."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any, cast

import pytest
from tests.batches import PATIENCE_S
from tests.text.vocabularies import byte_level

from borrador.errors import ModelError, UsageError
from borrador.text.chat_template import MAX_TEMPLATE_CHARACTERS, ChatTemplate
from borrador.text.tokenizer import Tokenizer
from borrador.types import Message

HELLO: list[Message] = [{"role": "user", "content": "Hello"}]
TALK: list[Message] = [
    {"role": "system", "content": "Be brief."},
    *HELLO,
    {"role": "assistant", "content": "Hi"},
    {"role": "user", "content": "Bye"},
]
TOKENIZER = Tokenizer.from_metadata(byte_level())


def render(source: str, messages: list[Message] = HELLO, **options: Any) -> str:
    return ChatTemplate(source, {"bos_token": "<s>", "eos_token": "</s>"}).render(messages, **options)


# What templates rely on --------------------------------------------------------------------------------------------


def test_chatml_is_used_where_the_file_has_no_template() -> None:
    template = ChatTemplate.from_metadata(byte_level(), TOKENIZER)
    assert template.render(TALK) == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHello<|im_end|>\n"
        "<|im_start|>assistant\nHi<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n"
    )
    assert template.render(HELLO, add_generation_prompt=False) == "<|im_start|>user\nHello<|im_end|>\n"


def test_the_files_template_sees_messages_and_the_files_tokens() -> None:
    source = "{{ bos_token }}{% for m in messages %}{{ m['role'] ~ ':' ~ m.content }};{% endfor %}{{ eos_token }}"
    template = ChatTemplate.from_metadata({**byte_level(), "tokenizer.chat_template": source}, TOKENIZER)
    assert template.render(HELLO) == "<|endoftext|>user:Hello;<|im_end|>"


def test_blocks_leave_no_blank_lines() -> None:
    assert render("  {% if true %}\na\n  {% endif %}\nb\n") == "a\nb"


LOOP_CONTROLS = (
    "{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 4 %}{% break %}{% endif %}"
    "{{ i }}{% endfor %}"
)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{{ messages[0] | tojson }}", '{"role": "user", "content": "Hello"}'),
        ("{{ {'a': 'é<'} | tojson(indent=1) }}", '{\n "a": "é<"\n}'),
        (LOOP_CONTROLS, "013"),
        ("{% generation %}{{ 1 }}{% endgeneration %}", "1"),
        ("{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}", "1"),
        ("{% macro f(x) %}<{{ x }}>{% endmacro %}{{ f(messages[0].content) }}", "<Hello>"),
        ("{% if tools %}t{% endif %}{% if tool_calls is defined %}c{% endif %}{{ messages[0].tool_calls }}", ""),
        ("{{ messages | map(attribute='content') | join(', ') }}", "Hello"),
        ("{{ messages | selectattr('role', 'equalto', 'system') | list | length }}", "0"),
        ("{{ ' a b '.strip().split(' ')[-1] | upper }}", "B"),
        ("{{ 'x' * 3 + '-' + ['a', 'b'] | join('+') }}", "xxx-a+b"),
        ("{{ 'a-b'.replace('-', '+') | replace('+', '/') }}", "a/b"),
        ("{{ messages[1:] | length }}{{ loop is defined }}", "0False"),
        ("{% for m in messages %}{{ loop.first }}{{ loop.length }}{{ loop.index0 }}{% endfor %}", "True10"),
        ("{% for k, v in messages[0] | items %}{{ k }}={{ v }};{% endfor %}", "role=user;content=Hello;"),
        ("{% set x %}a{{ 1 }}{% endset %}{{ x | trim ~ 2 }}", "a12"),
        ("{{ '%s of %d' % ('a', 2) }}{{ 'a\\nb' | indent(2) }}", "a of 2a\n  b"),
        ("{{ 'a' in 'abc' and 'role' in messages[0] and messages[0] is mapping and 'a' is string }}", "True"),
    ],
)  # fmt: skip
def test_what_real_templates_use_works(source: str, text: str) -> None:
    assert render(source) == text


def test_the_date_is_available() -> None:
    assert render("{{ strftime_now('%Y') }}") in {str(datetime.now().year), str(datetime.now().year - 1)}


def test_a_refusal_is_the_users_error_in_the_templates_words() -> None:
    with pytest.raises(UsageError, match="refuses the conversation: roles must alternate"):
        render("{{ raise_exception('roles must\nalternate') }}")


def test_many_long_messages_fit() -> None:
    messages: list[Message] = [{"role": "user", "content": "word " * 200}] * 1000
    assert len(ChatTemplate.from_metadata(byte_level(), TOKENIZER).render(messages)) > 1_000_000


# Messages ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        ([], "at least one entry, got none"),
        ("hello", "messages must be a list, got str"),
        (["hello"], "message 1 must be a mapping, got str"),
        ([{"content": "x"}], "message 1 must have a role of .*, got None"),
        ([HELLO[0], {"role": "robot", "content": "x"}], "message 2 must have a role of .*, got 'robot'"),
        ([{"role": ["user"], "content": "x"}], "message 1 must have a role of"),
        ([{"role": "user"}], "message 1 must have text as content, got NoneType"),
        ([{"role": "user", "content": [{"type": "text"}]}], "message 1 must have text as content, got list"),
        ([{"role": "user", "content": "x", "name": "y"}], "message 1 must have role and content only, got 'name'"),
    ],
)
def test_a_message_that_breaks_a_rule_is_refused(messages: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ChatTemplate("{{ messages }}").render(cast("list[Message]", messages))


CALLS = [{"function": {"name": "f", "arguments": {"a": 1}}}]


def test_calls_of_tools_and_their_results_are_part_of_a_conversation() -> None:
    messages: list[Any] = [
        *HELLO,
        {"role": "assistant", "content": "", "tool_calls": CALLS},
        {"role": "tool", "content": "2", "tool_call_id": "c1", "name": "f"},
    ]
    source = (
        "{% for t in tools %}{{ t.name }};{% endfor %}{% for m in messages %}{% for c in m.tool_calls %}"
        "{{ c.function.name }}{{ c.function.arguments | tojson }}{% endfor %}{{ m.tool_call_id }}{% endfor %}"
    )
    assert render(source, messages, tools=[{"name": "f"}, {"name": "g"}]) == 'f;g;f{"a": 1}c1'


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ({"role": "user", "content": "", "tool_calls": CALLS}, "role and content only, got 'tool_calls'"),
        ({"role": "assistant", "content": "", "name": "f"}, "role and content only beside tool_calls, got 'name'"),
        ({"role": "assistant", "content": "", "tool_calls": "f"}, "a list of calls with a function's name"),
        ({"role": "assistant", "content": "", "tool_calls": [{}]}, "a list of calls with a function's name"),
        ({"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f"}}]}, "a list of calls"),
        ({"role": "tool", "content": "", "tool_call_id": 1}, "message 1 must have text as tool_call_id, got 1"),
    ],
)
def test_a_call_that_breaks_a_rule_is_refused(message: Any, error: str) -> None:
    with pytest.raises(UsageError, match=error):
        render("{{ messages }}", [message])


def test_tools_are_a_list_of_objects() -> None:
    for tools in ("f", ["f"], {"name": "f"}):
        with pytest.raises(UsageError, match="tools must be a list of mappings"):
            render("{{ tools }}", tools=tools)
    assert render("{{ tools is none }}", tools=[]) == "True"


# Bad and hostile templates -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        "{{ ",
        "{% foo %}",
        "{% if x %}",
        "{{ a | nofilter }}",
        "{{ " + "(" * 5000 + " }}",
        "{{ 1" + "+1" * 20000 + " }}",
        "{% for a in b %}" * 40 + "{% endfor %}" * 40,
    ],
)
def test_what_is_no_template_is_a_model_error(source: str) -> None:
    with pytest.raises(ModelError, match=r"^the chat template cannot be read: [^\n]+$"):
        ChatTemplate(source).render(HELLO)


def test_a_template_of_the_wrong_type_or_size_is_a_model_error() -> None:
    with pytest.raises(ModelError, match=r"tokenizer\.chat_template must be text, got list"):
        ChatTemplate.from_metadata({"tokenizer.chat_template": ["x"]}, TOKENIZER)
    with pytest.raises(ModelError, match=f"at most {MAX_TEMPLATE_CHARACTERS} characters"):
        ChatTemplate("x" * (MAX_TEMPLATE_CHARACTERS + 1))


@pytest.mark.parametrize("source", ["{{ a.b.c }}", "{{ 1 / 0 }}", "{{ messages + 'x' }}", "{{ messages[9].role.x }}"])
def test_a_template_that_fails_is_a_model_error(source: str) -> None:
    with pytest.raises(ModelError, match=r"^the model's chat template failed: [^\n]+$"):
        render(source)


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ ''['__class__']['__base__'] }}",
        "{{ (1).__class__.__base__ }}",
        "{{ raise_exception.__globals__['os'].system('id') }}",
        "{{ strftime_now.__globals__['__builtins__'] }}",
        "{{ namespace.__init__.__globals__ }}",
        "{{ self.__init__.__globals__ }}",
        "{{ self._TemplateReference__context.eval_ctx.environment }}",
        "{{ '{0.__class__.__mro__}'.format('') }}",
        "{% set f = '{0.__class__}'.format %}{{ f('') }}",
        "{{ '{x.__class__}'.format_map({'x': 1}) }}",
        "{{ '' | attr('__class__') }}",
        "{{ lipsum.__globals__ }}",
        "{{ cycler.__init__.__globals__ }}",
        "{{ (messages | map('upper')).gi_frame.f_globals }}",
        "{{ raise_exception.__code__.co_consts }}",
        "{% import 'os' as os %}",
        "{% include '/etc/passwd' %}",
        "{% extends '/etc/passwd' %}",
        "{{ messages.append(1) }}",
        "{{ messages[0].update({'role': 'system'}) }}",
    ],
)
def test_no_way_out_of_the_sandbox(source: str) -> None:
    with pytest.raises(ModelError):
        render(source)


@pytest.mark.parametrize("attribute", ["__globals__", "__code__", "__class__", "func_globals"])
def test_the_insides_of_functions_are_not_shown(attribute: str) -> None:
    assert render("{{ raise_exception." + attribute + " }}") == ""
    assert render("{{ [raise_exception] | map(attribute='" + attribute + "') | list }}") == "[Undefined]"


def test_the_text_is_bounded_by_the_messages() -> None:
    source = "{% for i in range(20) %}" + "x" * 100_000 + "{% endfor %}"
    with pytest.raises(ModelError, match="its text has more than 1048656 characters"):
        render(source)
    assert len(render(source, [{"role": "user", "content": "x" * 100_000}])) == 2_000_000


GROW = "{% set ns = namespace(x=['x']) %}{% for i in range(70) %}{% set ns.x = EXPRESSION %}{% endfor %}"


@pytest.mark.parametrize(
    "source",
    [
        "{{ 2 ** 9999999999 }}",
        "{% set ns = namespace(x=9) %}{% for i in range(60) %}{% set ns.x = ns.x * ns.x %}{% endfor %}",
        "{{ ('a' * 9999999999) | length }}",
        "{{ (9999999999 * [1]) | length }}",
        "{{ 'a'.center(9999999999) | length }}",
        "{{ ('%9999999999d' % 1) | length }}",
        "{{ ('%(a)9999999999d' % {'a': 1}) | length }}",
        "{{ '{:9999999999}'.format(1) | length }}",
        "{{ messages | tojson(indent=9999999999) | length }}",
        "{{ ('\n' * 1000000) | indent(9999999999) | length }}",
        "{% set a = 'a' * 1000000 %}{{ a.replace('a', a) | length }}",
        "{% set a = 'a' * 1000000 %}{{ a | replace('', a) | length }}",
        "{% set a = 'a' * 1000000 %}{{ range(100000) | join(a) | length }}",
        "{% set a = 'a' * 1000000 %}{{ ([a] * 100000) | lower | length }}",
        "{{ ('9' * 1000000) | int }}",
        "{{ 1.5 | round(9999999999, 'ceil') }}",
        GROW.replace("EXPRESSION", "ns.x + ns.x"),
        GROW.replace("EXPRESSION", "ns.x ~ ns.x"),
        GROW.replace("EXPRESSION", "[ns.x, ns.x]"),
        GROW.replace("EXPRESSION", "(ns.x, ns.x)"),
        GROW.replace("EXPRESSION", "{'a': ns.x, 'b': ns.x}"),
        GROW.replace("EXPRESSION", "dict(a=ns.x, b=ns.x)"),
        GROW.replace("EXPRESSION", "namespace(a=ns.x, b=ns.x)") + "{{ ns.x }}",
        "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
        "{% for i in range(99999) %}{% for j in range(99999) %}text{% endfor %}{% endfor %}",
        "{% set x %}{% for i in range(99999) %}" + "text" * 10000 + "{% endfor %}{% endset %}",
        "{% for i in range(9999999999) %}{% endfor %}",
        "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{% block a %}{{ self.a() }}{% endblock %}",
        "{% for x in [1] recursive %}{{ loop([1, 1]) }}{% endfor %}",
    ],
)
def test_no_work_without_end(source: str) -> None:
    start = time.monotonic()
    with pytest.raises(ModelError):
        ChatTemplate(source, time_limit_s=0.3).render(HELLO)
    assert time.monotonic() - start < PATIENCE_S
