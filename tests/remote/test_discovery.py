from __future__ import annotations

from typing import Literal

import httpx
import pytest
from tests.api_server import ApiServer, Behaviour

from borrador.errors import BorradorError, UsageError
from borrador.remote.address import Address
from borrador.remote.connection import open_client
from borrador.remote.discovery import find_model, probe_speculation

ADDRESS = Address.parse("http://server")


def client_that_gets(response: httpx.Response) -> httpx.Client:
    return httpx.Client(transport=httpx.MockTransport(lambda _: response))


@pytest.mark.parametrize("how", ["understood", "refused", "ignored"])
def test_probe_tells_whether_a_server_understands_the_field(
    how: Literal["understood", "refused", "ignored"],
) -> None:
    with ApiServer(Behaviour(speculative=how)) as server:
        address = Address.parse(server.url)
        with open_client(address) as client:
            assert probe_speculation(client, address, "tiny") == how


@pytest.mark.parametrize(
    ("response", "told"),
    [
        (httpx.Response(200, text="<html>"), "is not an OpenAI-compatible API: it does not list models as JSON"),
        (httpx.Response(200, json={"data": [{}]}), "is not an OpenAI-compatible API"),
        (httpx.Response(200, json=["tiny"]), "is not an OpenAI-compatible API"),
        (httpx.Response(404, text="not found"), "is not an OpenAI-compatible API: it answered with status 404"),
        (httpx.Response(302, headers={"Location": "http://elsewhere"}), "it answered with status 302"),
        (httpx.Response(200, json={"data": []}), "lists no model"),
        (
            httpx.Response(503, json={"error": {"message": "loading"}}),
            r"the server refused the request \(503\): loading",
        ),
    ],
)
def test_server_of_another_kind_is_a_sentence(response: httpx.Response, told: str) -> None:
    with client_that_gets(response) as client, pytest.raises(BorradorError, match=told):
        find_model(client, ADDRESS)


def test_model_that_the_server_does_not_list_is_refused() -> None:
    listed = httpx.Response(200, json={"data": [{"id": "tiny"}]})
    with client_that_gets(listed) as client, pytest.raises(UsageError, match="has no model 'large'"):
        find_model(client, ADDRESS, "large")


@pytest.mark.parametrize("error", [httpx.ConnectTimeout(""), httpx.ConnectError("refused"), httpx.ReadTimeout("")])
def test_connection_that_fails_is_a_sentence(error: httpx.HTTPError) -> None:
    def fail(_: httpx.Request) -> httpx.Response:
        raise error

    with httpx.Client(transport=httpx.MockTransport(fail)) as client, pytest.raises(BorradorError) as caught:
        find_model(client, ADDRESS)
    assert str(caught.value).startswith("http://server/v1 ")
