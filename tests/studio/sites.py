"""What tests of the page in a tab stand on: the site, its server, and a model's endpoint, all on loopback."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILD = ROOT / ".browser"
PYODIDE = BUILD / "node_modules" / "pyodide"
WHEELS = BUILD / "wheels"

NEEDED = (
    "annotated_types", "cloudpickle", "monkeyfs", "pydantic", "pydantic_core", "termish", "typing_extensions",
    "typing_inspection", "xxhash",
)  # fmt: skip
"""What agex imports in a tab; others that may lie there are for other tests."""
FIGURES = ("narwhals", "packaging", "plotly")

needs_pyodide = pytest.mark.skipif(
    not (PYODIDE / "pyodide.mjs").is_file() or not [*WHEELS.glob("pydantic_core-*.whl")],
    reason=f"there is no Pyodide in {BUILD.relative_to(ROOT)}: make browser-page gets it",
)


AGEX = Path(sys.executable).with_name("agex")


def gathered(folder: Path, *more: str) -> Path:
    """Put the wheels that agex needs there, and more of them, into a folder, as pip would."""
    folder.mkdir()
    for name in (*NEEDED, *more):
        for wheel in WHEELS.glob(f"{name}-*.whl"):
            (folder / wheel.name).symlink_to(wheel)
    return folder


@contextmanager
def served_site(folder: Path, *, more: Sequence[str] = (), modules: Sequence[str] = ()) -> Iterator[str]:
    """Make the page and serve it by the command that the documentation names; give its address."""
    wheels = gathered(folder / "wheels", *more)
    command = [AGEX, "studio-site", folder / "site", "--pyodide", PYODIDE, "--wheels", wheels]
    command += [f"--module={name}" for name in modules] + ["--serve", "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield json.loads(process.stdout.readline())["address"].rstrip("/")
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:  # leaving the block would wait without end
                process.kill()
                raise


class Endpoint(BaseHTTPRequestHandler):
    """Chat completions as OpenAI defined them, streamed: each request gets the next of some programs."""

    def do_OPTIONS(self):
        self.send_response(204)
        self._allow()
        self.end_headers()

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(
            {"body": body, "headers": {name.lower(): value for name, value in self.headers.items()}}
        )
        code = self.server.programs.pop(0)
        arguments = json.dumps({"code": code})
        call = {"index": 0, "id": "call-1", "type": "function"}
        half = len(arguments) // 2
        deltas = [
            {"role": "assistant", "content": "Let me see. "},
            {"tool_calls": [{**call, "function": {"name": "python_action", "arguments": arguments[:half]}}]},
            {"tool_calls": [{"index": 0, "function": {"arguments": arguments[half:]}}]},
        ]
        pieces = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
        pieces.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
        pieces.append({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 20}})
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self._allow()
        self.end_headers()
        for piece in pieces:
            self.wfile.write(f"data: {json.dumps(piece)}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")
        self.server.requests[-1]["answered"] = time.monotonic()

    def _allow(self):
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Access-Control-Allow-Headers", "authorization, content-type")

    def log_message(self, *args):
        pass


class Served:
    """A server in a thread."""

    def __init__(self, handler):
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self._thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self._thread.join()
        self.server.server_close()


def serve_model() -> Served:
    made = Served(Endpoint)
    made.server.requests, made.server.programs = [], []
    return made
