"""A browser, and a server of which each test says what it answers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser
from tests.server.page.browser import Visit, chromium, visit
from tests.server.page.scripted_server import (
    MUSEUM,
    Script,
    create_scripted_app,
    serving,
)


# Playwright keeps an event loop in this thread as long as its browser lives, and other tests need their own.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def script() -> Script:
    return Script(steps=MUSEUM)


@pytest.fixture
def url(script: Script) -> Iterator[str]:
    with serving(create_scripted_app(script)) as url:
        yield url


@pytest.fixture
def here(browser: Browser, url: str) -> Iterator[Visit]:
    with visit(browser, url) as here:
        yield here
