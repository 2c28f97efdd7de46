"""What tests of the page in a tab stand on: the site, its server, and a model's endpoint, all on loopback."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Sequence
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from agex.studio.site import build_site

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


def make_site(folder: Path, *, more: Sequence[str] = (), modules: Sequence[str] = ()) -> Path:
    """Build the wheel of this checkout, and the page with it and with more wheels."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "wheel")]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    others = [wheel for name in (*NEEDED, *more) for wheel in WHEELS.glob(f"{name}-*.whl")]
    wheels = [*(folder / "wheel").glob("*.whl"), *others]
    build_site(folder / "site", pyodide=PYODIDE, wheels=wheels, modules=modules)
    return folder / "site"


class _Files(SimpleHTTPRequestHandler):
    extensions_map = {  # noqa: RUF012 - the base class has it so
        **SimpleHTTPRequestHandler.extensions_map,
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
    }

    def end_headers(self):
        # With these the page may share memory with its worker, and so stop code that never gives way.
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        super().end_headers()

    def log_message(self, *args):
        pass


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


def serve_files(folder: Path) -> Served:
    return Served(partial(_Files, directory=str(folder)))


def serve_model() -> Served:
    made = Served(Endpoint)
    made.server.requests, made.server.programs = [], []
    return made
