"""No test reaches the network; a real server on loopback is fine."""

from __future__ import annotations

import socket

import pytest
from pytest_socket import SocketConnectBlockedError

DOCUMENTATION_ADDRESS = ("192.0.2.1", 443)  # RFC 5737: belongs to nobody


# The refusal is a warning and an error; the warning alone would be enough, since warnings are errors here.
@pytest.mark.filterwarnings("ignore:A test tried to use socket")
def test_a_connection_to_another_machine_is_refused() -> None:
    with socket.socket() as client, pytest.raises(SocketConnectBlockedError):
        client.connect(DOCUMENTATION_ADDRESS)


def test_a_connection_to_a_server_on_loopback_is_allowed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as client:
        client.connect(server.getsockname())
        assert client.getpeername() == server.getsockname()
