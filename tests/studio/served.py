"""States that real tasks made, and a client of a server over one."""

from __future__ import annotations

import http.client
import json

from agex import Agent, Disk, Versioned, connect_fs
from agex.testing import ScriptedModel, python_action, write_file

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360f8cf50"
    "0f00038501802ca1b0d50000000049454e44ae426082"
)
"""One pixel."""

STEPS = [
    [python_action("rows = [{'city': 'Ulm', 'n': 1}, {'city': 'Bern', 'n': 2}]\nprint('read', len(rows))")],
    [write_file("out/report.csv", "city,n\nUlm,1\nBern,2\n")],
    [
        python_action(
            "total = sum(r['n'] for r in rows)\n\n"
            "def double(n):\n    return n * 2\n\n"
            "task_success(f'{double(total)} in all')"
        )
    ],
]


def make_state(where, steps=STEPS, question="How many?"):
    """Let a task work on a state in a directory."""
    state = Versioned(Disk(where, durable=False))
    agent = Agent(name="counter", model=ScriptedModel(steps), fs=connect_fs())

    @agent.task
    def count(question: str) -> str:
        """Answer a question."""

    count(question, state=state)
    return state


class Client:
    """Asks a server as a page does, or otherwise."""

    def __init__(self, server):
        self.server = server
        self.port = server.server_port
        self.host = f"127.0.0.1:{self.port}"
        self.token = server.address.partition("#token=")[2]
        self.targets = []
        """What anybody asked the server for."""
        answer = server.gate.answer
        server.gate.answer = lambda request: (self.targets.append(request.target), answer(request))[1]

    def send(self, method, target, *, headers=None, body=None, host=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
        for name, value in [("Host", host or self.host), *(headers or {}).items()]:
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        response = connection.getresponse()
        content = response.read()
        connection.close()
        return response, content

    @property
    def key(self):
        return {"Authorization": f"Bearer {self.token}"}

    @property
    def own(self):
        """What the page's own script sends with what changes something."""
        return {**self.key, "Origin": f"http://{self.host}", "Content-Type": "application/json"}

    def get(self, target, *, status=200):
        response, content = self.send("GET", f"/api/{target}", headers=self.key)
        assert response.status == status, content
        return json.loads(content)

    def fork(self, *, status=200, headers=None, **document):
        body = json.dumps(document).encode()
        response, content = self.send("POST", "/api/fork", headers=headers or self.own, body=body)
        assert response.status == status, content
        return json.loads(content)
