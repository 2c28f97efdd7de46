"""Snippets under plain CPython, each in a child process and a folder of its own.

As a program this imports the modules that its arguments name, reads snippets as lines of JSON, and answers each
with a line of JSON. A child is a fork, so what it imports and sets ends with it.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import types
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Outcome:
    """The output of a snippet, and the class and text of the exception that escaped it."""

    stdout: str
    error: str = ""
    message: str = ""
    refused: bool = False

    @property
    def seen(self) -> tuple[str, str]:
        """The part that is compared."""
        return self.stdout, self.error


def plain(text: str) -> str:
    """Return a text without addresses of memory and times."""
    return re.sub(r" in \d+\.\d+s\b", " in 0s", re.sub(r"0x[0-9a-fA-F]+", "0x", text))


class Native:
    """The process that runs snippets under plain CPython."""

    def __init__(self, modules: Sequence[str]) -> None:
        loads = [each for each in modules if each != "polars"]  # it starts threads, which a fork has not
        self._process = subprocess.Popen(
            [sys.executable, __file__, *loads],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "MPLBACKEND": "Agg"},
        )

    def run(self, source: str) -> Outcome:
        """Run one snippet."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(source) + "\n")
        stdin.flush()
        said = json.loads(stdout.readline())
        return Outcome(plain(said["stdout"]), said["error"])

    def close(self) -> None:
        """End the process."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.wait()


def outcome(source: str) -> dict[str, str]:
    """Return what a snippet prints, and the class of the exception that escapes it."""
    out = io.StringIO()
    names: dict[str, Any] = {"__name__": "__main__", "__doc__": None}
    error = ""
    # As a script: inspect and its kin find the source beside the working folder, which stays empty.
    file = Path("../snippet.py").resolve()
    file.write_text(source, "utf-8")
    names["__file__"] = str(file)
    sys.argv = [str(file)]
    code = compile(source, str(file), "exec", dont_inherit=True)
    warnings.simplefilter("ignore")
    main = types.ModuleType("__main__")
    vars(main).update(names)
    sys.modules["__main__"] = main
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            exec(code, vars(main))
        except SystemExit as ending:
            error = "" if ending.code in {None, 0} else "SystemExit"
        except BaseException as raised:  # noqa: BLE001 - whatever escapes is the outcome
            error = type(raised).__name__
    return {"stdout": out.getvalue(), "error": error}


def answer(source: str) -> str:
    """Run a snippet in a fork; return the outcome as JSON."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reads)
        sys.stdin.close()
        with tempfile.TemporaryDirectory() as folder:
            work = Path(folder, "work")
            work.mkdir()
            os.chdir(work)
            sys.path.insert(0, "")
            try:
                said = outcome(source)
            except BaseException as broken:  # noqa: BLE001 - a broken harness answers too
                said = {"stdout": "", "error": f"harness: {broken!r}"}
            with os.fdopen(writes, "w", encoding="utf-8") as pipe:
                pipe.write(json.dumps(said))
            os.chdir("/")
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads, encoding="utf-8") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return text


def serve() -> None:
    """Answer snippets until the input ends."""
    for name in sys.argv[1:]:
        importlib.import_module(name)
    for line in sys.stdin:
        sys.stdout.write(answer(json.loads(line)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve()
