"""Who is not answered: foreign pages, foreign names, other users, paths out of the page."""

from __future__ import annotations

import json

import pytest
from served import make_state

from agex.studio.gate import BODY_BYTES, page_files

# -- who asks ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1", "127.0.0.1.evil.example", "localhost.evil.example:80", "0.0.0.0", "[::1]"],
)
@pytest.mark.parametrize("target", ["/", "/studio.js", "/api/timeline"])
def test_a_name_that_was_made_to_point_here_is_refused(client, host, target):
    named = f"{host}:{client.port}" if ":" not in host else host
    tried = [host] if host == "127.0.0.1" else [host, named]
    for name in tried:
        response, content = client.send("GET", target, headers=client.key, host=name)
        assert response.status == 403
        assert b"<" not in content


def test_two_hosts_are_refused(client):
    response, _ = client.send("GET", "/", headers={"Host": client.host}, host="evil.example")
    assert response.status == 403
    response, _ = client.send("GET", "/", headers={"Host": "evil.example"})
    assert response.status == 403


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1", "file://"])
def test_another_origin_is_refused_even_with_the_token(client, origin):
    response, _ = client.send("GET", "/api/timeline", headers={**client.key, "Origin": origin})
    assert response.status == 403
    head = client.get("heads")["branches"]
    assert client.fork(headers={**client.own, "Origin": origin}, name="x", at="main", status=403)
    assert client.get("heads")["branches"] == head


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_what_a_foreign_page_embeds_is_refused(client, site):
    response, _ = client.send("GET", "/studio.js", headers={"Sec-Fetch-Site": site})
    assert response.status == 403


def test_no_answer_allows_other_origins_and_a_preflight_is_refused(client):
    asked = {
        "Origin": "https://evil.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type",
    }
    for headers in (asked, {**asked, "Origin": f"http://{client.host}"}):
        response, _ = client.send("OPTIONS", "/api/fork", headers=headers)
        assert response.status in {401, 403}
        assert not [name for name, _ in response.getheaders() if name.lower().startswith("access-control")]


@pytest.mark.parametrize("given", [None, "", "Bearer", "Bearer ", "Bearer x", "Basic x", "Bearer \xe9"])
@pytest.mark.parametrize("what", ["heads", "timeline", "commit?ref=main", "variables?ref=main", "no_such"])
def test_without_the_token_nothing_of_the_state_is_told(client, given, what):
    headers = {} if given is None else {"Authorization": given}
    response, content = client.send("GET", f"/api/{what}", headers=headers)
    assert response.status == 401
    assert set(json.loads(content)) == {"error"}


def test_the_token_does_not_count_in_an_address(client):
    response, _ = client.send("GET", f"/api/heads?token={client.token}")
    assert response.status == 401


def test_the_token_is_unguessable_and_stands_only_in_the_address(client, serve, tmp_path):
    assert len(client.token) >= 43  # 256 bits
    for path in ("/", *(f"/{name}" for name in page_files())):
        response, content = client.send("GET", path)
        assert response.status == 200
        assert client.token.encode() not in content
    assert client.server.address.startswith(f"http://{client.host}/#token=")


# -- what changes something ----------------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_a_fork_is_made_by_nothing_but_a_post(client, method):
    before = client.get("heads")
    response, _ = client.send(method, "/api/fork?name=x&at=main", headers=client.own)
    assert response.status == 405
    assert client.get("heads") == before


def test_a_fork_needs_token_origin_and_json(client):
    before = client.get("heads")
    own = client.own
    for missing, status in [("Authorization", 401), ("Origin", 403), ("Content-Type", 415)]:
        headers = {name: value for name, value in own.items() if name != missing}
        client.fork(headers=headers, name="x", at="main", status=status)
    form = {**own, "Content-Type": "application/x-www-form-urlencoded"}
    client.fork(headers=form, name="x", at="main", status=415)
    assert client.get("heads") == before


@pytest.mark.parametrize("what", ["commit", "timeline", "gc", "reset", "tag"])
def test_nothing_else_can_be_told(client, what):
    before = client.get("heads")
    response, _ = client.send("POST", f"/api/{what}", headers=client.own, body=b"{}")
    assert response.status == 405
    assert client.get("heads") == before


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"at": 1}', b'{"at": {"x": "y"}}', b"\xff", b"null"])
def test_a_body_of_another_shape_is_refused(client, body):
    response, content = client.send("POST", "/api/fork", headers=client.own, body=body)
    assert response.status == 400
    assert json.loads(content)["error"]


def test_a_large_or_unsized_body_is_refused(client):
    response, _ = client.send("POST", "/api/fork", headers=client.own, body=b" " * (BODY_BYTES + 1))
    assert response.status == 413
    for extra in ({"Transfer-Encoding": "chunked"}, {"Content-Length": "-1"}, {"Content-Length": "1_0"}):
        response, _ = client.send("POST", "/api/fork", headers={**client.own, **extra})
        assert response.status == 413


# -- paths ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "target",
    [
        "/../gate.py",
        "/..%2fgate.py",
        "/%2e%2e/gate.py",
        "/page/../gate.py",
        "//etc/passwd",
        "/etc/passwd",
        "/....//gate.py",
        "/..\\gate.py",
        "/./studio.js",
        "/studio.js%00",
        "/studio.js/",
        "/__init__.py",
        "/api/../gate.py",
        "//[",
        "/?../../x/../gate.py/..",
    ],
)
def test_a_path_never_leaves_the_page(client, target):
    response, content = client.send("GET", target, headers=client.key)
    assert b"class Gate" not in content
    assert b"root:" not in content
    assert response.status in ({200} if target.startswith("/?") else {400, 404})


@pytest.mark.parametrize(
    "path", ["../../state.db", "/etc/passwd", "out/../out/report.csv", "out", "out/", ""]
)
def test_a_file_of_the_workspace_is_one_by_name_only(client, path):
    status = 404 if path else 400
    assert "error" in client.get(f"file?ref=main&path={path}", status=status)
    assert "error" in client.get(f"bytes?ref=main&path={path}", status=status)


@pytest.mark.parametrize(
    "ref", ["../main", "x" * 5000, "%00", "--help", "'; DROP TABLE kv; --".replace(" ", "+")]
)
def test_a_commit_that_is_none_is_refused(client, ref):
    assert "error" in client.get(f"commit?ref={ref}", status=404)
    assert "error" in client.get(f"variables?ref={ref}", status=404)
    assert "error" in client.get(f"diff?old={ref}&new=main", status=400)


@pytest.mark.parametrize("name", ["x" * 101, "a\nb", "a\x1b[31mb", "a\u202eb", "main"])
def test_a_branch_of_a_strange_or_taken_name_is_not_made(client, name):
    before = client.get("heads")
    client.fork(name=name, at="main", status=400)
    client.fork(name="fine", at="no-such-commit", status=400)
    assert client.get("heads") == before


# -- what a browser is told ----------------------------------------------------------------------


@pytest.mark.parametrize("target", ["/", "/studio.js", "/api/heads", "/no-such"])
def test_each_answer_says_how_little_may_run(client, target):
    response, _ = client.send("GET", target, headers=client.key)
    policy = dict(
        part.strip().partition(" ")[::2] for part in response.headers["Content-Security-Policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    assert "'unsafe-inline'" not in str(policy)
    assert "'unsafe-eval'" not in str(policy)
    assert policy["frame-ancestors"] == "'none'"
    assert policy["base-uri"] == policy["form-action"] == "'none'"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Referrer-Policy"] == "no-referrer"
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["Cross-Origin-Resource-Policy"] == "same-origin"


def test_figures_are_drawn_where_nothing_but_the_drawing_script_runs(client):
    response, content = client.send("GET", "/figure.html")
    policy = dict(
        part.strip().partition(" ")[::2] for part in response.headers["Content-Security-Policy"].split(";")
    )
    assert (policy["sandbox"], policy["default-src"]) == ("allow-scripts", "'none'")
    assert all(each.startswith("'sha256-") for each in policy["script-src"].split())
    assert "connect-src" not in policy  # so it is none
    assert policy["frame-ancestors"] == f"http://127.0.0.1:{client.port} http://localhost:{client.port}"
    assert client.token.encode() not in content


def test_without_plotly_there_is_no_such_document(serve, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    client = serve(make_state(tmp_path / "state"))
    assert client.send("GET", "/figure.html")[0].status == 404
    assert b'name="agex-figures" content=""' in client.send("GET", "/")[1]
