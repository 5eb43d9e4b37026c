from __future__ import annotations

import socket

import pytest

from borrador.errors import BorradorError
from borrador.server.config import ServerConfig
from borrador.server.listening import bind, url_of


def test_port_0_takes_a_free_port() -> None:
    with bind(ServerConfig(port=0)) as listener:
        port = listener.getsockname()[1]
        assert port > 0
        assert url_of(listener) == f"http://127.0.0.1:{port}"


def test_a_port_in_use_is_said_in_a_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(BorradorError, match=f"port {port} of 127.0.0.1 is in use") as caught:
            bind(ServerConfig(port=port))
    assert caught.value.exit_code == 1
    assert "--port" in caught.value.hint


def test_an_address_of_another_machine_is_said_in_a_sentence() -> None:
    with pytest.raises(BorradorError, match=r"cannot listen on 192\.0\.2\.1: "):
        bind(ServerConfig(host="192.0.2.1", port=0, insecure=True))
    with pytest.raises(BorradorError, match=r"the host no\.such\.name\.invalid has no address"):
        bind(ServerConfig(host="no.such.name.invalid", port=0, insecure=True))


@pytest.mark.skipif(not socket.has_ipv6, reason="needs IPv6")
def test_an_ipv6_address_stands_in_brackets() -> None:
    with bind(ServerConfig(host="::1", port=0)) as listener:
        assert url_of(listener) == f"http://[::1]:{listener.getsockname()[1]}"
