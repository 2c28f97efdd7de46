"""The page for a browser tab as a folder of files, for any web server that serves files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path

from agex.errors import StateError
from agex.studio.figures import FIGURE, drawing, with_figures
from agex.studio.gate import page_files

__all__ = ["build_site"]

_PYODIDE = "pyodide.mjs pyodide.asm.mjs pyodide.asm.wasm python_stdlib.zip pyodide-lock.json".split()


def build_site(out: Path, *, pyodide: Path, wheels: Iterable[Path], modules: Iterable[str] = ()) -> None:
    """Put the page, Pyodide and wheels into a folder.

    Where plotly is installed here, its script goes there too, and the page draws figures with it.

    Args:
        out: the folder; it is made if there is none, and must be empty.
        pyodide: the folder of the npm package of that name.
        wheels: those of agex and of all that it and the modules need in Pyodide.
        modules: what the agent's code may import from the wheels, e.g. ``"plotly"``.

    Raises:
        StateError: the folder is not empty, or something to be put there is missing.
    """
    found = sorted(wheels)
    missing = [name for name in _PYODIDE if not (pyodide / name).is_file()]
    if missing:
        raise StateError(
            f"{pyodide} has no {', '.join(missing)}; give the folder of the npm package pyodide."
        )
    if not any(wheel.name.startswith("agex-") for wheel in found):
        raise StateError("There is no wheel of agex among the wheels; build it: python -m hatchling build.")
    out.mkdir(parents=True, exist_ok=True)
    if any(out.iterdir()):
        raise StateError(f"{out} is not empty; give a new folder.")
    page = page_files()
    figures = drawing()
    if figures is not None:
        page["index.html"] = with_figures(page["index.html"])
        page[FIGURE] = figures.document
    for name, content in page.items():
        (out / name).write_bytes(content)
    for folder, files in (("pyodide", [pyodide / name for name in _PYODIDE]), ("wheels", found)):
        (out / folder).mkdir()
        for file in files:
            shutil.copyfile(file, out / folder / file.name)
    settings = {
        "pyodide": "pyodide/pyodide.mjs",
        "wheels": [f"wheels/{wheel.name}" for wheel in found],
        "modules": [*modules],
    }
    (out / "tab.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
