"""The folder that a web server serves for the page in a tab, and the command that makes it."""

from __future__ import annotations

import json
import shutil
import zipfile

import pytest
from typer.testing import CliRunner

from agex.cli.app import app
from agex.errors import StateError
from agex.studio.gate import page_files
from agex.studio.site import _PYODIDE, assemble, prepare
from agex.studio.wheels import MARKER, _marker


def make_wheel(folder, name, version="1.0", *, files=()):
    """Make a wheel of a package that holds one module, and more files."""
    made = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr(f"{name}/__init__.py", "")
        archive.writestr(f"{name}-{version}.dist-info/METADATA", f"Name: {name}\nVersion: {version}\n")
        for path, data in dict(files).items():
            archive.writestr(path, data)
    return made


@pytest.fixture
def pyodide(tmp_path):
    folder = tmp_path / "pyodide"
    folder.mkdir()
    for name in _PYODIDE:
        (folder / name).write_text(name)
    with zipfile.ZipFile(folder / "python_stdlib.zip", "w") as archive:
        archive.writestr("sqlite3/__init__.py", "")
    return folder


@pytest.fixture
def wheels(tmp_path):
    folder = tmp_path / "wheels"
    folder.mkdir()
    make_wheel(folder, "other", files={"other/deep/er.py": ""})
    return folder


def call(out, pyodide, wheels, *more):
    arguments = ["studio-site", str(out), "--pyodide", str(pyodide), "--wheels", str(wheels), "--json", *more]
    return CliRunner().invoke(app, arguments)


def put(tmp_path, pyodide, wheels, modules=(), name="site"):
    made = tmp_path / name
    assemble(made, out=tmp_path / "out", pyodide=pyodide, wheels=wheels.glob("*.whl"), modules=modules)
    return made


def test_it_holds_the_page_python_and_the_wheels(tmp_path, pyodide, wheels):
    out = put(tmp_path, pyodide, wheels, ["other", "other.deep.er", "sqlite3"])
    assert (out / "studio.js").read_bytes() == page_files()["studio.js"]
    assert b'name="agex-source" content="tab"' in (out / "index.html").read_bytes()
    settings = json.loads((out / "tab.json").read_text())
    assert all((out / each).is_file() for each in [settings["pyodide"], *settings["wheels"]])
    own, other = settings["wheels"]
    assert own.startswith("wheels/agex_py-")
    assert other == "wheels/other-1.0-py3-none-any.whl"
    assert settings["modules"] == ["other", "other.deep.er", "sqlite3"]


def test_the_wheel_of_agex_is_made_of_the_running_package_and_is_taken_again(tmp_path, pyodide, wheels):
    (own,) = (put(tmp_path, pyodide, wheels) / "wheels").glob("agex_py-*.whl")
    with zipfile.ZipFile(own) as archive:
        names = archive.namelist()
        assert archive.read(MARKER) == _marker()
    assert {"agex/__init__.py", "agex/py.typed", "agex/studio/page/index.html"} <= set(names)
    assert not [name for name in names if "__pycache__" in name]
    shutil.copy(own, wheels)
    (again,) = (put(tmp_path, pyodide, wheels, name="again") / "wheels").glob("agex_py-*.whl")
    assert again.read_bytes() == own.read_bytes()


OTHERS = {
    "the-index's": lambda folder: make_wheel(folder, "agex", "0.13.0"),
    "one-with-a-marker-of-its-own": lambda folder: make_wheel(folder, "agex", files={MARKER: "agex"}),
    "a-package-agex-by-another-name": lambda folder: make_wheel(
        folder, "lookalike", files={"agex/__init__.py": ""}
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_wheel_of_another_project_is_refused_with_what_to_do(tmp_path, pyodide, wheels, name):
    wheel = OTHERS[name](wheels)
    result = call(tmp_path / "out", pyodide, wheels)
    assert result.exit_code == 2
    assert str(wheel) in result.output
    assert "another project" in result.output
    assert "Remove the file" in result.output
    assert not (tmp_path / "out").exists()


def test_a_wheel_of_another_version_or_under_another_name_is_refused(tmp_path, pyodide, wheels):
    marked = {MARKER: _marker()}
    wheel = make_wheel(wheels, "agex", "99.0", files=marked)
    assert "agex 99.0" in call(tmp_path / "out", pyodide, wheels).output
    wheel.unlink()
    make_wheel(wheels, "renamed", files=marked)
    assert "renamed 1.0" in call(tmp_path / "out", pyodide, wheels).output


def test_what_is_no_wheel_is_refused(tmp_path, pyodide, wheels):
    (wheels / "agex-1-py3-none-any.whl").write_text("nothing")
    assert "is no wheel" in call(tmp_path / "out", pyodide, wheels).output
    with zipfile.ZipFile(wheels / "agex-1-py3-none-any.whl", "w") as archive:
        archive.writestr("agex/__init__.py", "")
    assert "has no METADATA" in call(tmp_path / "out", pyodide, wheels).output


def test_a_module_that_no_wheel_holds_is_refused(tmp_path, pyodide, wheels):
    for name in ("nowhere", "other.shallow", "other-1.0.dist-info", ""):
        result = call(tmp_path / "out", pyodide, wheels, "--module", name)
        assert (result.exit_code, f"--module {name}: no wheel" in result.output) == (2, True), name
    assert "Did you mean 'other'" in call(tmp_path / "out", pyodide, wheels, "--module", "othr").output
    assert not (tmp_path / "out").exists()


def test_figures_are_drawn_where_plotly_is_installed(tmp_path, pyodide, wheels, monkeypatch):
    pytest.importorskip("plotly", reason="figures are plotly's")
    there = put(tmp_path, pyodide, wheels)
    assert b'name="agex-figures" content="figure.html"' in (there / "index.html").read_bytes()
    document = (there / "figure.html").read_text(encoding="utf-8")
    assert "default-src 'none'; script-src 'sha256-" in document  # no server says it there
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    without = put(tmp_path, pyodide, wheels, name="without")
    assert (without / "index.html").read_bytes() == page_files()["index.html"]
    assert not (without / "figure.html").exists()


def test_what_is_missing_or_in_the_way_is_said_and_nothing_is_written(tmp_path, pyodide, wheels):
    out = tmp_path / "out"
    assert "Give --pyodide" in CliRunner().invoke(app, ["studio-site", str(out)]).output
    assert "no such folder" in call(out, pyodide, tmp_path / "nowhere").output
    (pyodide / "pyodide.mjs").unlink()
    assert "has no pyodide.mjs" in call(out, pyodide, wheels).output
    assert not out.exists()
    (pyodide / "pyodide.mjs").write_text("")
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    result = call(out, pyodide, wheels)
    assert (result.exit_code, "is not empty" in result.output) == (2, True)
    assert [each.name for each in out.iterdir()] == ["mine.txt"]
    (out / "tab.json").write_text("{}")
    assert f"agex studio-site {out} --serve" in " ".join(call(out, pyodide, wheels).output.split())


def test_a_pyodide_that_does_not_start_is_said_and_nothing_is_left(tmp_path, pyodide, wheels):
    if shutil.which("node") is None:
        pytest.skip("node is not installed: it runs Pyodide")
    (pyodide / "pyodide.mjs").write_text("throw new Error('broken here')")
    result = call(tmp_path / "out", pyodide, wheels)
    assert (result.exit_code, "broken here" in result.output) == (2, True)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["pyodide", "wheels"]


def test_without_node_it_is_said_where_node_comes_from(tmp_path, pyodide, wheels, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StateError, match=r"There is no node here.*nodejs\.org"):
        prepare(put(tmp_path, pyodide, wheels))
