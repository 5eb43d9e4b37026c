"""The description of the API is true: tools that read it find nothing that the server does otherwise."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.routing import Route
from tests.server.conftest import ANSWER
from tests.server.rig import serve
from tests.server.writing import oracle, writing_llm

from borrador.server.app import create_app
from borrador.server.bridge import Bridge
from borrador.server.config import ServerConfig
from borrador.server.openapi import OPERATIONS, describe

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
SCHEMA = schemathesis.openapi.from_dict(describe())


@pytest.fixture(scope="module")
def url() -> Any:
    with serve(writing_llm(ANSWER, oracle(ANSWER.encode()), context_length=256)) as running:
        yield running.url


def test_every_path_is_described() -> None:
    app = create_app(Bridge(ServerConfig()))
    paths = {route.path.replace(":path", "") for route in app.routes if isinstance(route, Route)}
    assert paths == {operation.path for operation in OPERATIONS} | {"/openapi.json"}


def test_schemas_are_schemas() -> None:
    for schema in describe()["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


def _check(case: Any, url: str) -> None:
    case.call_and_validate(base_url=url, checks=CHECKS, timeout=300)


@SCHEMA.parametrize()
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
def test_what_is_described_is_what_happens(case: Any, url: str) -> None:
    _check(case, url)


@pytest.mark.long
@SCHEMA.parametrize()
@settings(max_examples=2000, derandomize=False, suppress_health_check=list(HealthCheck))
def test_what_is_described_is_what_happens_in_many_cases(case: Any, url: str) -> None:
    _check(case, url)
