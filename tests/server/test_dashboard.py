from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.server.whole import whole
from tests.server.writing import oracle, writing_llm

_DASHBOARD = Path(__file__).parents[2] / "docs" / "grafana-dashboard.json"
_ANSWER = "Seven tokens"
_CHAT = {"messages": [{"role": "user", "content": "Hello"}]}


def test_every_metric_of_the_dashboard_is_there() -> None:
    dashboard = json.loads(_DASHBOARD.read_text())
    with whole(writing_llm(_ANSWER, oracle(_ANSWER.encode()))) as server:
        assert server.client.post("/v1/chat/completions", json=_CHAT).status_code == 200
        assert server.client.get("/v1/nothing").status_code == 404
        text = server.client.get("/metrics").text
    shown = {re.split(r"[{ ]", line)[0] for line in text.splitlines() if not line.startswith("#")}
    expressions = list(_expressions(dashboard))
    assert len(expressions) >= 15
    for expression in expressions:
        names = set(re.findall(r"borrador:[a-z0-9_]+", expression))
        assert names, expression
        assert names <= shown, names - shown


def _expressions(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("expr"), str):
            yield part["expr"]
        for inner in part.values():
            yield from _expressions(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from _expressions(inner)


def test_the_dashboard_can_be_imported() -> None:
    """What Grafana needs: an input for the data source, panels with ids of their own that lie side by side."""
    dashboard = json.loads(_DASHBOARD.read_text())
    assert {entry["name"] for entry in dashboard["__inputs"]} == {"DS_PROMETHEUS"}
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken = [
        (x, y)
        for panel in panels
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(taken) == len(set(taken))
    assert max(x for x, _ in taken) < 24
    for panel in panels:
        assert panel["title"]
        if panel["type"] != "row":
            assert panel["datasource"] == {"type": "prometheus", "uid": "${DS_PROMETHEUS}"}
            assert panel["targets"]
