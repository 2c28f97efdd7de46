"""The server of a site: its files and no others, isolated from other origins, on loopback."""

from __future__ import annotations

import http.client
import threading

import pytest
from typer.testing import CliRunner

from agex.cli.app import app
from agex.errors import StateError
from agex.studio.site_server import SiteServer


@pytest.fixture
def site(tmp_path):
    folder = tmp_path / "site"
    (folder / "pyodide").mkdir(parents=True)
    for name in ("index.html", "tab.json", "worker.js", "pyodide/pyodide.mjs", "pyodide/pyodide.asm.wasm"):
        (folder / name).write_text(name)
    (tmp_path / "secret.txt").write_text("secret")
    return folder


@pytest.fixture
def server(site):
    with SiteServer(site) as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def get(server, path, *, method="GET", headers=None, host=None):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    connection.putrequest(method, path, skip_host=True)
    for name, value in {"Host": host or f"127.0.0.1:{server.server_port}", **(headers or {})}.items():
        connection.putheader(name, value)
    connection.endheaders()
    response = connection.getresponse()
    content = response.read()
    connection.close()
    return response, content


def test_every_answer_isolates_the_page_from_other_origins(server):
    for path in ("/", "/index.html?name=notes", "/worker.js", "/pyodide/pyodide.mjs", "/nowhere"):
        response, _ = get(server, path)
        assert response.headers["Cross-Origin-Opener-Policy"] == "same-origin"
        assert response.headers["Cross-Origin-Embedder-Policy"] == "require-corp"
        assert response.headers["Cross-Origin-Resource-Policy"] == "same-origin"


def test_files_are_answered_with_their_types(server):
    types = {"/": "text/html", "/worker.js": "text/javascript", "/pyodide/pyodide.mjs": "text/javascript"}
    types |= {"/pyodide/pyodide.asm.wasm": "application/wasm", "/tab.json": "application/json"}
    for path, kind in types.items():
        response, content = get(server, path)
        assert response.status == 200
        assert response.headers["Content-Type"].partition(";")[0] == kind
        assert content.decode() == path[1:] or path == "/"


def test_what_did_not_change_is_not_sent_again(server):
    response, _ = get(server, "/worker.js")
    again, content = get(server, "/worker.js", headers={"If-None-Match": response.headers["ETag"]})
    assert (again.status, content) == (304, b"")
    response, content = get(server, "/worker.js", method="HEAD")
    assert (response.status, response.headers["Content-Length"], content) == (200, "9", b"")


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/pyodide/../../secret.txt",
        "/%2e%2e/secret.txt",
        "/..%2fsecret.txt",
        "//etc/passwd",
        "/pyodide",
    ],
    ids=range(6),
)
def test_nothing_beside_the_site_is_answered(server, path):
    response, content = get(server, path)
    assert (response.status, b"secret" in content) == (404, False)


def test_it_listens_on_loopback_and_answers_under_its_own_name_only(server):
    assert server.server_address[0] == "127.0.0.1"
    assert get(server, "/", host=f"localhost:{server.server_port}")[0].status == 200
    assert get(server, "/", host=f"rebound.example:{server.server_port}")[0].status == 403
    assert get(server, "/", method="POST")[0].status == 501


def test_a_folder_that_is_no_site_and_a_port_that_is_taken_are_said(tmp_path, server, site):
    with pytest.raises(StateError, match="is no site"):
        SiteServer(tmp_path)
    result = CliRunner().invoke(app, ["studio-site", str(tmp_path), "--serve"])
    assert (result.exit_code, "is no site" in result.output) == (2, True)
    result = CliRunner().invoke(app, ["studio-site", str(site), "--serve", "--port", str(server.server_port)])
    assert (result.exit_code, "give another --port" in result.output) == (2, True)
