"""The page at `/`: a fixed set of files, read once from the package and served from memory.

No path of a request ever reaches the file system. The files tell nothing about the model or its users; the page asks
for an API key where the API does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import PurePosixPath
from types import MappingProxyType

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

CONTENT_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

# Text that a model wrote is shown on this page. `require-trusted-types-for` makes the browser refuse to parse it.
SECURITY_RULES = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
)
HEADERS = {
    "Content-Security-Policy": "; ".join(SECURITY_RULES),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFile:
    """A file as it is sent; `tag` changes with its content."""

    content: bytes
    content_type: str
    tag: str


def load_page() -> Mapping[str, PageFile]:
    """The files by the path that they are served at."""
    folder = resources.files("borrador.server") / "page"
    files = {entry.name: entry.read_bytes() for entry in folder.iterdir() if _suffix(entry.name) in CONTENT_TYPES}
    return MappingProxyType({_path(name): _describe(name, content) for name, content in sorted(files.items())})


def page_routes(files: Mapping[str, PageFile] | None = None) -> Sequence[Route]:
    """A route for each file, and none for anything else."""
    return [_route(path, file) for path, file in (load_page() if files is None else files).items()]


def _route(path: str, file: PageFile) -> Route:
    headers = {**HEADERS, "ETag": file.tag, "Content-Type": file.content_type}

    async def send(request: Request) -> Response:
        if request.headers.get("If-None-Match") == file.tag:
            return Response(status_code=304, headers=headers)
        return Response(file.content, headers=headers)

    return Route(path, send, methods=["GET"], include_in_schema=False)


def _describe(name: str, content: bytes) -> PageFile:
    tag = hashlib.sha256(content).hexdigest()[:32]
    return PageFile(content=content, content_type=CONTENT_TYPES[_suffix(name)], tag=f'"{tag}"')


def _path(name: str) -> str:
    return "/" if name == "index.html" else f"/page/{name}"


def _suffix(name: str) -> str:
    return PurePosixPath(name).suffix
