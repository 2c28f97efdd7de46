"""The folder that a web server serves for the page in a tab."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from agex.cli.app import app
from agex.studio.gate import page_files
from agex.studio.site import _PYODIDE


@pytest.fixture
def parts(tmp_path):
    pyodide, wheels = tmp_path / "pyodide", tmp_path / "wheels"
    for folder, names in ((pyodide, _PYODIDE), (wheels, ["agex-1-py3-none-any.whl", "other-1-any.whl"])):
        folder.mkdir()
        for name in names:
            (folder / name).write_text(name)
    return pyodide, wheels


def call(out, pyodide, wheels, *more):
    arguments = ["studio-site", str(out), "--pyodide", str(pyodide), "--wheels", str(wheels), "--json", *more]
    return CliRunner().invoke(app, arguments)


def test_it_holds_the_page_python_and_the_wheels(tmp_path, parts):
    out = tmp_path / "site"
    assert call(out, *parts, "--module", "plotly", "--module", "other").exit_code == 0
    assert (out / "studio.js").read_bytes() == page_files()["studio.js"]
    assert b'name="agex-source" content="tab"' in (out / "index.html").read_bytes()
    settings = json.loads((out / "tab.json").read_text())
    assert all((out / each).is_file() for each in [settings["pyodide"], *settings["wheels"]])
    assert settings["wheels"] == ["wheels/agex-1-py3-none-any.whl", "wheels/other-1-any.whl"]
    assert settings["modules"] == ["plotly", "other"]


def test_figures_are_drawn_where_plotly_is_installed(tmp_path, parts, monkeypatch):
    pytest.importorskip("plotly", reason="figures are plotly's")
    assert call(tmp_path / "with", *parts).exit_code == 0
    assert b'name="agex-figures" content="figure.html"' in (tmp_path / "with" / "index.html").read_bytes()
    document = (tmp_path / "with" / "figure.html").read_text(encoding="utf-8")
    assert "default-src 'none'; script-src 'sha256-" in document  # no server says it there
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert call(tmp_path / "without", *parts).exit_code == 0
    assert (tmp_path / "without" / "index.html").read_bytes() == page_files()["index.html"]
    assert not (tmp_path / "without" / "figure.html").exists()


def test_what_is_missing_or_in_the_way_is_said_and_nothing_is_written(tmp_path, parts):
    pyodide, wheels = parts
    out = tmp_path / "site"
    (wheels / "agex-1-py3-none-any.whl").unlink()
    assert "no wheel of agex" in call(out, *parts).output
    (wheels / "agex-1-py3-none-any.whl").write_text("")
    (pyodide / "pyodide.mjs").unlink()
    assert "has no pyodide.mjs" in call(out, *parts).output
    assert not out.exists()
    (pyodide / "pyodide.mjs").write_text("")
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    result = call(out, *parts)
    assert (result.exit_code, "is not empty" in result.output) == (2, True)
    assert [each.name for each in out.iterdir()] == ["mine.txt"]
