"""A jinja2 sandbox for templates out of files nobody has checked: no way out, and no work without end.

jinja2's own sandbox keeps a template away from Python's internals, but not from filling the memory or running for
hours. Here every step of a loop, every new text and every new container is paid for out of a budget, and the filters,
globals and methods that chat templates do not need are absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from jinja2 import nodes
from jinja2.exceptions import TemplateError
from jinja2.ext import Extension
from jinja2.lexer import Token, TokenStream
from jinja2.parser import Parser
from jinja2.runtime import Context, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from borrador.text.metering import (
    charged,
    compared,
    current_budget,
    indent_text,
    join_texts,
    metered,
    metered_operand,
    metered_steps,
    metered_text,
    metered_value,
    method_cost,
    of_numeral,
    one_by_one,
    operation_cost,
    replace_text,
    spending,
    to_json,
    to_text,
)

_TEXT_FILTERS = frozenset({"capitalize", "e", "escape", "lower", "safe", "title", "trim", "truncate", "upper"})
_COMPARING_FILTERS = frozenset({"dictsort", "max", "min", "sort", "unique"})
_OTHER_FILTERS = frozenset(
    {
        "abs",
        "count",
        "d",
        "default",
        "first",
        "items",
        "last",
        "length",
        "list",
        "map",
        "reject",
        "rejectattr",
        "reverse",
        "select",
        "selectattr",
    }
)
_ONE_BY_ONE = frozenset(
    {"title", "list", "map", "max", "min", "reject", "rejectattr", "reverse", "select", "selectattr", "sort", "unique"}
)
_COMPARING_TESTS = frozenset(
    {"!=", "<", "<=", "==", ">", ">=", "eq", "equalto", "ge", "greaterthan", "gt", "in", "le", "lessthan", "lt", "ne"}
)
_CALL_UNITS = 10
_TEXT_METHODS = frozenset(
    {
        "capitalize",
        "count",
        "endswith",
        "find",
        "index",
        "isalnum",
        "isalpha",
        "isdecimal",
        "isdigit",
        "islower",
        "isnumeric",
        "isspace",
        "istitle",
        "isupper",
        "join",
        "lower",
        "lstrip",
        "partition",
        "removeprefix",
        "removesuffix",
        "replace",
        "rfind",
        "rindex",
        "rpartition",
        "rsplit",
        "rstrip",
        "split",
        "splitlines",
        "startswith",
        "strip",
        "swapcase",
        "title",
        "upper",
    }
)


class RefusalError(TemplateError):
    """A template called `raise_exception`: it does not take these messages."""


class GenerationTag(Extension):
    """`{% generation %}` marks the assistant's text for training; when rendering it changes nothing."""

    tags = {"generation"}  # noqa: RUF012  # declared so by jinja2

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class WordMeter(Extension):
    """Lets every word of a template be paid for when it is read: the longer it is, the longer it takes to compile."""

    def filter_stream(self, stream: TokenStream) -> Iterator[Token]:
        for token in stream:
            current_budget.get().spend()
            yield token


class ChatSandbox(ImmutableSandboxedEnvironment):
    """The environment chat templates expect (as in transformers), metered. Compile and render inside `working_on`."""

    intercepted_binops = frozenset(ImmutableSandboxedEnvironment.default_binop_table)

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            finalize=_finalize,
            extensions=[WordMeter, GenerationTag, "jinja2.ext.loopcontrols"],
        )
        self.globals = {name: self.globals[name] for name in ("range", "dict", "namespace")}
        self.globals |= {"raise_exception": _raise_exception, "strftime_now": _strftime_now}
        known, tests = self.filters, dict[str, Any](self.tests)
        self.filters = {name: metered(known[name], reads_text=True) for name in _TEXT_FILTERS | _COMPARING_FILTERS}
        self.filters |= {name: metered(known[name], reads_text=False) for name in _OTHER_FILTERS}
        self.filters |= {name: metered(of_numeral(known[name]), reads_text=True) for name in ("int", "float")}
        self.filters |= {
            "indent": indent_text,
            "join": join_texts,
            "replace": replace_text,
            "string": to_text,
            "tojson": to_json,
        }
        self.filters |= {name: one_by_one(self.filters[name]) for name in _ONE_BY_ONE}
        self.filters |= {"metered_steps": metered_steps, "metered_value": metered_value}
        self.filters |= {"metered_text": metered_text, "metered_operand": metered_operand}
        self.tests |= {name: compared(tests[name]) for name in _COMPARING_TESTS}

    @staticmethod
    def concat(pieces: Iterable[str]) -> str:
        return "".join(spending(pieces))

    def wrap_str_format(self, value: Any) -> None:
        """`str.format` stays what it is, so that `is_safe_attribute` refuses it: widths there have no bound."""

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if isinstance(obj, str):
            return attr in _TEXT_METHODS
        return not isinstance(obj, int | float | bytes) and super().is_safe_attribute(obj, attr, value)

    def call(self, context: Context, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        owner, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
        current_budget.get().spend(_CALL_UNITS)
        if isinstance(owner, str):
            current_budget.get().spend(method_cost(owner, name, args))
        if isinstance(owner, str) and name == "join":
            return join_texts(args[0], owner)
        if isinstance(owner, str) and name == "replace":
            return replace_text(owner, *args, **kwargs)
        return charged(super().call(context, function, *args, **kwargs))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        current_budget.get().spend(operation_cost(operator, left, right))
        return charged(super().call_binop(context, operator, left, right))

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree: nodes.Template = _Metering().visit(super()._parse(source, name, filename))
        return tree


class _Metering(NodeTransformer):
    """Sends what jinja2 has no hook for through metered filters: loops, joined text, new containers."""

    def visit_For(self, node: nodes.For) -> nodes.For:  # noqa: N802
        self.generic_visit(node)
        node.iter = _through("metered_steps", node.iter)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Expr:  # noqa: N802
        self.generic_visit(node)
        return _through("metered_text", nodes.List(node.nodes, lineno=node.lineno))

    def visit_Compare(self, node: nodes.Compare) -> nodes.Compare:  # noqa: N802
        self.generic_visit(node)
        node.expr = _through("metered_operand", node.expr)
        for operand in node.ops:
            operand.expr = _through("metered_operand", operand.expr)
        return node

    def visit_List(self, node: nodes.List) -> nodes.Expr:  # noqa: N802
        self.generic_visit(node)
        return _through("metered_value", node)

    def visit_Dict(self, node: nodes.Dict) -> nodes.Expr:  # noqa: N802
        self.generic_visit(node)
        return _through("metered_value", node)

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Expr:  # noqa: N802
        self.generic_visit(node)
        return _through("metered_value", node) if node.ctx == "load" else node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Expr:  # noqa: N802
        self.generic_visit(node)
        return _through("metered_value", node) if isinstance(node.arg, nodes.Slice) else node


def _through(filter_name: str, expression: nodes.Node) -> nodes.Filter:
    return nodes.Filter(expression, filter_name, [], [], None, None, lineno=expression.lineno)


def _finalize(value: Any) -> Any:
    return value if isinstance(value, Undefined) else to_text(value)


def _raise_exception(message: str) -> None:
    raise RefusalError(message)


def _strftime_now(format: str) -> str:  # noqa: A002 - templates may name it
    current_budget.get().spend(len(format))
    return datetime.now().strftime(format)
