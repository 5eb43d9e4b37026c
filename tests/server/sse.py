"""Reads streams of server-sent events as a client does."""

from __future__ import annotations

import json
from typing import Any

import httpx
from tests.server.rig import Rig


def stream(rig: Rig, path: str, **body: Any) -> list[dict[str, Any]]:
    """The chunks of a stream, which must be complete and say so at its end."""
    with rig.client.stream("POST", path, json={**body, "stream": True}) as response:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
        return chunks_of(response)


def chunks_of(response: httpx.Response) -> list[dict[str, Any]]:
    text = "".join(response.iter_text())
    *events, last = [event for event in text.split("\n\n") if event]
    assert last == "data: [DONE]", last
    assert all(event.startswith("data: ") for event in events)
    return [json.loads(event.removeprefix("data: ")) for event in events]


def text_of(chunks: list[dict[str, Any]], index: int = 0) -> str:
    """The text of an answer, of a chat or a completion."""
    choices = [choice for chunk in chunks for choice in chunk["choices"] if choice["index"] == index]
    return "".join(choice.get("text") or choice.get("delta", {}).get("content") or "" for choice in choices)
