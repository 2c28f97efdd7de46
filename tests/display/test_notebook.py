"""A notebook that is executed and exported: what a reader of it sees."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from markup import read

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ARTIFACTS = ROOT / "artifacts"
"""Pictures for people to look at; git ignores it."""
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Execute and export the notebook once, with a home of its own."""
    for module in ("nbclient", "nbconvert", "ipykernel", "pandas", "plotly"):
        pytest.importorskip(module, reason="the extra `test` has it")
    folder = tmp_path_factory.mktemp("notebook")
    # Jupyter reads and writes folders of the user's; its sockets have paths of 107 characters at most.
    own = {"HOME": str(folder), "IPYTHONDIR": str(folder), "JUPYTER_CONFIG_DIR": str(folder)}
    command = [sys.executable, str(HERE / "notebook.py"), str(folder)]
    done = subprocess.run(command, env={**os.environ, **own}, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def shown(exported: Path) -> list[str]:
    """Give the HTML that the cells show, in order."""
    notebook: Any = json.loads((exported / "notebook.ipynb").read_text(encoding="utf-8"))
    bundles = [out["data"] for cell in notebook["cells"] for out in cell["outputs"] if "data" in out]
    return ["".join(data["text/html"]) for data in bundles]


def test_every_kind_of_object_shows_itself_in_a_notebook(shown: list[str]) -> None:
    titles = [read(html).text.partition(" · ")[0] for html in shown]
    assert titles[:5] == [
        "analyst",
        "analyst.busiest",
        "✓ analyst.busiest",
        "analyst.busiest",
        "✗ analyst.busiest",
    ]
    assert [title.split(" ")[0] for title in titles[5:]] == [
        "Versioned", "historycommitwhen", "diff", "snapshot", "commit", "✗", "✓", "Live",
    ]  # fmt: skip


def test_a_run_in_a_notebook_folds_its_turns_and_opens_the_last(shown: list[str]) -> None:
    found = read(shown[2])
    assert found.tags.count("details") == 4
    assert shown[2].count("<details open") == 1
    assert "totals.nlargest(count)" in shown[2].partition("<details open")[2]


def test_markup_of_an_agent_is_text_in_a_notebook(shown: list[str]) -> None:
    found = read(shown[10])
    assert "<b>no</b> such <script>alert(1)</script>" in found.text
    assert "script" not in found.tags


def test_a_figure_is_in_a_frame_of_its_own(shown: list[str]) -> None:
    assert [len(read(html).frames) for html in shown] == [0] * 11 + [1, 0]


def test_a_run_is_printed_as_plain_text(exported: Path) -> None:
    notebook: Any = json.loads((exported / "notebook.ipynb").read_text(encoding="utf-8"))
    text = "".join(notebook["cells"][-1]["outputs"][0]["text"])
    assert text.startswith("✓ analyst.busiest · done · 2 turns · ")
    assert "<div" not in text


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here to take the picture with")
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_browser_draws_the_notebook_in_light_and_dark(exported: Path, theme: str) -> None:
    pil = pytest.importorskip("PIL.Image", reason="Pillow comes with the extra `test`")
    ARTIFACTS.mkdir(exist_ok=True)
    picture = ARTIFACTS / f"notebook-{theme}.png"
    picture.unlink(missing_ok=True)
    assert CHROMIUM is not None
    command = [
        CHROMIUM, "--headless",
        "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1100,4800",
        f"--user-data-dir={exported / 'profile'}", "--host-resolver-rules=MAP * ~NOTFOUND",
        "--virtual-time-budget=8000", f"--screenshot={picture}", (exported / f"{theme}.html").as_uri(),
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    drawn = pil.open(picture).convert("RGB")
    corner = drawn.getpixel((1, 1))
    assert (sum(corner) > 600) == (theme == "light")
    # The plotly figure is drawn by its script: its bars have the first colour of plotly's own.
    colours = {colour for _, colour in drawn.getcolors(maxcolors=1 << 24)}
    assert (99, 110, 250) in colours
