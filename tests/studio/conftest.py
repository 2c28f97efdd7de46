"""Servers over states."""

from __future__ import annotations

import threading

import pytest
from served import Client, make_state
from sites import serve_model, served_site

from agex.studio import Api
from agex.studio.server import StudioServer


@pytest.fixture
def serve():
    """Return a function that serves a state and gives a client."""
    running = []

    def start(state, name="demo"):
        server = StudioServer(Api(state, name))
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        running.append((server, thread, state))
        return Client(server)

    yield start
    for server, thread, state in running:
        server.shutdown()
        thread.join()
        server.server_close()
        state.close()


@pytest.fixture
def client(serve, tmp_path):
    return serve(make_state(tmp_path / "state"))


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """Return the address of the page for a tab, served by its own command."""
    with served_site(tmp_path_factory.mktemp("site")) as address:
        yield address


@pytest.fixture
def model():
    with serve_model() as served:
        yield served
