"""The page for a browser tab as a folder of files, for any web server that serves files."""

from __future__ import annotations

import difflib
import importlib.resources
import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from agex.errors import StateError
from agex.studio.figures import FIGURE, drawing, with_figures
from agex.studio.gate import page_files
from agex.studio.wheels import modules_of, with_own

__all__ = ["assemble", "build_site", "prepare"]

_LIBRARY = "python_stdlib.zip"
_PYODIDE = ["pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", _LIBRARY, "pyodide-lock.json"]
_SETTINGS = "tab.json"
_SECONDS = 600
"""For trying and compiling every module; plotly alone has thousands."""


def build_site(out: Path, *, pyodide: Path, wheels: Iterable[Path], modules: Sequence[str] = ()) -> None:
    """Put the page, Pyodide and wheels into a folder, all of it tried and compiled ahead.

    Where plotly is installed here, its script goes there too, and the page draws figures with it.

    Args:
        out: the folder; it is made if there is none, and must be empty.
        pyodide: the folder of the npm package of that name.
        wheels: those of all that agex and the modules need in Pyodide. The wheel of agex itself is made
            from the running package; one that is among them must be this project's, and of this version.
        modules: what the agent's code may import from the wheels, e.g. ``"plotly"``.

    Raises:
        StateError: the folder is not empty, something to be put there is missing or another project's, or
            cannot be imported there.
    """
    out = out.absolute()
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=".studio-site-") as scratch:
        made = Path(scratch, "site")
        assemble(made, out=out, pyodide=pyodide, wheels=wheels, modules=modules)
        prepare(made)
        if out.exists():
            out.rmdir()
        made.rename(out)


def assemble(
    made: Path, *, out: Path, pyodide: Path, wheels: Iterable[Path], modules: Sequence[str] = ()
) -> None:
    """Check what a site is made of, and put it into a folder as it came.

    Args:
        made: a folder that is not there yet.
        out: the folder that is asked for.
        pyodide: see `build_site`.
        wheels: see `build_site`.
        modules: see `build_site`.

    Raises:
        StateError: see `build_site`.
    """
    missing = [name for name in _PYODIDE if not (pyodide / name).is_file()]
    if missing:
        raise StateError(
            f"{pyodide} has no {', '.join(missing)}; give the folder of the npm package pyodide."
        )
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        served = (
            f", or serve it as it is: agex studio-site {out} --serve" if (out / _SETTINGS).exists() else ""
        )
        raise StateError(f"{out} is not empty; give a new folder{served}.")
    with tempfile.TemporaryDirectory() as scratch:
        found = with_own(wheels, Path(scratch))
        _require_modules(modules, [pyodide / _LIBRARY, *found])
        made.mkdir()
        for folder, files in (("pyodide", [pyodide / name for name in _PYODIDE]), ("wheels", found)):
            (made / folder).mkdir()
            for file in files:
                shutil.copyfile(file, made / folder / file.name)
    page = page_files()
    figures = drawing()
    if figures is not None:
        page["index.html"] = with_figures(page["index.html"])
        page[FIGURE] = figures.document
    for name, content in page.items():
        (made / name).write_bytes(content)
    settings = {
        "pyodide": "pyodide/pyodide.mjs",
        "wheels": [f"wheels/{wheel.name}" for wheel in found],
        "modules": [*modules],
    }
    (made / _SETTINGS).write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


def _require_modules(modules: Iterable[str], archives: Iterable[Path]) -> None:
    """Refuse a module that nothing there holds."""
    known = set[str]().union(*map(modules_of, archives))
    for name in modules:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            meant = f" Did you mean {close[0]!r}?" if close else ""
            raise StateError(
                f"--module {name}: no wheel there holds a module of that name.{meant} Add its wheel, and "
                "those of what it needs, to the folder of wheels."
            )


def prepare(site: Path) -> None:
    """Try every package of an assembled site in its own Pyodide, and compile every module ahead.

    Node runs it, which came with npm. It imports the wheels, as a tab will.

    Raises:
        StateError: there is no node, or something there cannot be imported.
    """
    node = shutil.which("node")
    if node is None:
        raise StateError("There is no node here, which compiles the packages; npm comes with it: nodejs.org.")
    settings = json.loads((site / _SETTINGS).read_text(encoding="utf-8"))
    given = {
        "site": str(site),
        "wheels": [Path(path).name for path in settings["wheels"]],
        "modules": settings["modules"],
    }
    with importlib.resources.as_file(importlib.resources.files("agex.studio") / "prepare.mjs") as script:
        command = [node, str(script), json.dumps(given)]
        done = subprocess.run(  # noqa: S603 - our own program
            command, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    if done.returncode:
        raise StateError(
            f"Pyodide does not start under {node}: {(done.stderr or done.stdout).strip()[-1000:]}"
        )
    told = json.loads(done.stdout.strip().rpartition("\n")[2])
    if "error" in told:
        raise StateError(told["error"])
