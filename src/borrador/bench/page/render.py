"""The page of a record."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from borrador.bench.page.details import describe_machine, describe_models, describe_settings
from borrador.bench.page.figures import draw_figures
from borrador.bench.page.method import describe_method
from borrador.bench.page.numbers import Number, Places
from borrador.bench.page.tables import tabulate_score, tabulate_tasks, tabulate_worst
from borrador.bench.record import Record


def render_page(record: Record) -> str:
    """One document of HTML with everything in it. Names in the record are shown as text, whatever they hold."""
    files = resources.files("borrador.bench.page")
    style = (files / "page.css").read_text("utf-8")
    environment = Environment(
        loader=DictLoader({"page": (files / "page.html").read_text("utf-8")}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    places = Places(record)
    return environment.get_template("page").render(
        record=record,
        number=places.number,
        paired=places.spread("times", "summary", "total", "decode", "paired"),
        tasks=tabulate_tasks(record, places),
        score=None if record.score is None else tabulate_score(record.score),
        passed=_passed(record),
        worst=tabulate_worst(record),
        figures=draw_figures(record, places),
        details={
            "Models": describe_models(record, places),
            "Machine": describe_machine(record, places),
            "Settings": describe_settings(record, places),
        },
        method=describe_method(record),
        style=Markup(style),
        policy=_policy(style),
    )


def _passed(record: Record) -> tuple[Number, ...]:
    """How many answers passed their tests, plainly and with speculation, and of how many."""
    score = record.score
    counts = () if score is None else (score.plain_passed, score.speculative_passed, score.problems)
    return tuple(Number(count, "count") for count in counts)


def _policy(style: str) -> str:
    """What the browser may do with the page: apply this one style sheet, and nothing else."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
