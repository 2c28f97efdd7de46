"""Objects of packages with compiled code that nobody registered: what a registered package leads to.

Stopped by: sandbox.policy.native.
"""

from __future__ import annotations

import io
import sys
import tempfile
import types
from pathlib import Path

import blake3
import docx
import docx.document
import lxml.etree
import openpyxl
import pytest

from agex.errors import SandboxError
from agex.files import connect_fs
from agex.isolation import ProcessExecutor
from agex.sandbox import Limits, Policy, Sandbox

DOCX = "import docx\ne = docx.Document().element\n"
XLSX = "import openpyxl\nfrom openpyxl.styles import Font\ne = Font().to_tree('font')\n"
WAYS = {
    "a tree is written": "e.getroottree().write(OUT)",
    "a tree reads what it includes": "e.getroottree().xinclude()",
    "a tree is read anew": "e.getroottree().parse(SECRET)",
    "by getattr": "getattr(e, 'getroottree')().write(OUT)",
    "by operator": "import operator\noperator.methodcaller('getroottree')(e).write(OUT)",
    "by attrgetter": "import operator\noperator.attrgetter('getroottree')(e)().write(OUT)",
    "by its class": "type(e).getroottree(e).write(OUT)",
    "by __class__": "e.__class__.getroottree(e).write(OUT)",
    "by a base": "type(e).__mro__[-2].getroottree(e).write(OUT)",
    "by a class over it": "class A(type(e)):\n    def f(self): return super().getroottree()\nA().f().write(OUT)",
    "by a pattern": "match e:\n    case object(getroottree=g): g().write(OUT)",
    "by an iterator": "next(iter(e.iter())).getroottree().write(OUT)",
    "by a format": "'{0.getroottree}'.format(e)",
    "by a child": "e.append(e)\ne[0].getroottree().write(OUT)",
    "by object": "object.__getattribute__(e, 'getroottree')().write(OUT)",
    "by a partial": "import functools\nfunctools.partial(getattr, e)('getroottree')().write(OUT)",
}


def exec_with(source: str, folder: Path, *modules: object, fs=None, strict=False, **settings):
    policy = Policy.default(strict=strict)
    for module in modules:
        policy.module(module, **settings)
    names = {"OUT": str(folder / "out"), "SECRET": str(folder / "secret")}
    (folder / "secret").write_text("<secret/>")
    result = Sandbox(policy, fs=fs).exec(source, names)
    assert sorted(each.name for each in folder.iterdir()) == ["secret"]
    assert (folder / "secret").read_text() == "<secret/>"
    return result


@pytest.mark.parametrize("strict", [False, True], ids=["default", "strict"])
@pytest.mark.parametrize("head", [DOCX, XLSX], ids=["docx", "openpyxl"])
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_an_object_of_lxml_is_inert_by_whatever_way(way, head, strict, tmp_path):
    result = exec_with(
        head + way, tmp_path, docx, openpyxl, fs=None if strict else connect_fs(), strict=strict
    )
    assert isinstance(result.error, SandboxError)


def test_the_refusal_names_the_package_and_what_opens_it(tmp_path):
    for way in ("e.getroottree()", "e.tag", "e.attrib", "getattr(e, 'xpath')"):
        error = exec_with(XLSX + way, tmp_path, openpyxl).error
        assert "lxml" in str(error)
        assert "host_fs_access=True" in str(error)


@pytest.mark.parametrize(
    "way",
    [
        "from openpyxl.xml.functions import xmlfile",
        "import openpyxl.xml.functions as f\nf.xmlfile(OUT)",
        "import openpyxl.xml.functions as f\nf.XMLParser()",
        "import openpyxl.xml.functions as f\nf.tostring",
        "import openpyxl.xml.functions as f\nf.fromstring('<a/>')",
        "import openpyxl.cell._writer",
        "from openpyxl.worksheet import _writer",
        "import docx.oxml.parser as p\np.etree.parse(SECRET)",
        "import docx.oxml.parser as p\np.oxml_parser.feed('<a/>')",
        "import docx.oxml.xmlchemy as x\nx.etree",
    ],
)
def test_functions_and_classes_of_lxml_are_not_handed_out(way, tmp_path):
    assert exec_with(way, tmp_path, openpyxl, docx).error is not None


@pytest.mark.parametrize(
    "grant",
    [
        lambda policy: policy.fn(docx.Document, name="made"),
        lambda policy: policy.cls(docx.document.Document) and policy.fn(docx.Document, name="made"),
        lambda policy: policy.module(docx.Document(), name="d"),
    ],
    ids=["function", "class", "object"],
)
def test_what_is_registered_of_an_installed_package_leads_no_further(grant, tmp_path):
    policy = Policy.default()
    grant(policy)
    source = "try: d = d\nexcept NameError: d = made()\nd.element.getroottree().write(OUT)"
    result = Sandbox(policy).exec(source, {"OUT": str(tmp_path / "out")})
    assert "lxml" in str(result.error)
    assert not list(tmp_path.iterdir())


def test_a_host_that_opens_its_files_hands_the_objects_out(tmp_path):
    out = tmp_path / "out"
    for grant in (
        lambda policy: policy.module(docx, host_fs_access=True),
        lambda policy: policy.module(docx) and policy.module(lxml.etree, host_fs_access=True),
    ):
        policy = Policy.default()
        grant(policy)
        result = Sandbox(policy).exec(DOCX + "e.getroottree().write(OUT)", {"OUT": str(out)})
        assert result.error is None
        assert out.exists()
        out.unlink()


@pytest.fixture
def plain():
    """A package of plain Python over one of plain Python over one that maps files in compiled code."""
    inner, outer = types.ModuleType("agexinner"), types.ModuleType("agexouter")
    inner.blake3 = blake3
    inner.hasher = lambda: blake3.blake3(b"")
    outer.hasher = inner.hasher
    outer._inner = inner
    sys.modules |= {"agexinner": inner, "agexouter": outer}
    yield outer
    del sys.modules["agexinner"], sys.modules["agexouter"]


def test_what_a_package_leads_to_by_way_of_another_is_looked_at(plain, tmp_path):
    plain.hasher.__module__ = "agexouter"
    result = exec_with(
        "import agexouter\nagexouter.hasher().update_mmap(SECRET).hexdigest()", tmp_path, plain
    )
    assert "blake3" in str(result.error)


def test_a_package_that_is_imported_later_is_looked_at_when_the_next_run_begins(plain, tmp_path):
    hidden = plain._inner
    del plain._inner
    plain.hasher = lambda: blake3.blake3(b"")
    plain.hasher.__module__ = "agexouter"
    policy = Policy.default()
    policy.module(plain)
    session = Sandbox(policy).session()
    plain._inner = hidden
    sys.modules["agexlater"] = types.ModuleType("agexlater")
    try:
        (tmp_path / "a").write_text("x")
        session.run("import agexouter\nh = agexouter.hasher()")
        assert "blake3" in str(session.run(f"h.update_mmap({str(tmp_path / 'a')!r})").error)
    finally:
        del sys.modules["agexlater"]


SHEETS = """
from openpyxl.styles import Font
from openpyxl.chart import BarChart, Reference
wb = openpyxl.Workbook()
ws = wb.active
ws.title = 'one'
for row in ROWS:
    ws.append(row)
ws['A1'].font = Font(bold=True)
ws.freeze_panes = 'A2'
chart = BarChart()
chart.add_data(Reference(ws, min_col=2, min_row=1, max_row=3), titles_from_data=True)
ws.add_chart(chart, 'E2')
wb.create_sheet('two')['B2'] = '=SUM(one!B2:B3)'
"""
ROWS = [["name", "value"], ["a", 1], ["b", 2.5]]


def test_openpyxl_saves_and_loads_workbooks_of_the_workspace(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    source = f"""import openpyxl
ROWS = {ROWS}{SHEETS}
wb.save('d.xlsx')
again = openpyxl.load_workbook('d.xlsx')
print([[cell.value for cell in row] for row in again['one'].rows], again['one']['A1'].font.b, again.sheetnames)
again['one']['A2'] = 'changed'
again.save('d.xlsx')
lines = openpyxl.load_workbook('d.xlsx', read_only=True)['one'].iter_rows(values_only=True)
print(list(lines)[1])
fast = openpyxl.Workbook(write_only=True)
sheet = fast.create_sheet('fast')
for n in range(3):
    sheet.append([n])
fast.save('fast.xlsx')
print([row[0].value for row in openpyxl.load_workbook('fast.xlsx').active.rows])
"""
    files = connect_fs()
    policy = Policy.default()
    policy.module(openpyxl)
    result = Sandbox(policy, fs=files).exec(source)
    assert result.error is None
    assert result.stdout.splitlines() == [f"{ROWS} True ['one', 'two']", "('changed', 1)", "[0, 1, 2]"]
    book = openpyxl.load_workbook(io.BytesIO(files.read("d.xlsx")))
    assert book["two"]["B2"].value == "=SUM(one!B2:B3)"
    assert not list(tmp_path.iterdir())


def test_openpyxl_works_in_memory_where_there_is_no_workspace(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    policy = Policy.default()
    policy.module(openpyxl)
    source = f"import io, openpyxl\nROWS = {ROWS}{SHEETS}b = io.BytesIO()\nwb.save(b)\nb.getvalue()"
    book = openpyxl.load_workbook(io.BytesIO(Sandbox(policy).exec(source).value))
    assert [[cell.value for cell in row] for row in book["one"].rows] == ROWS
    for call in ("wb.save(OUT)", "openpyxl.load_workbook(OUT)"):
        result = Sandbox(policy).exec(
            f"import openpyxl\nwb = openpyxl.Workbook()\n{call}", {"OUT": str(tmp_path / "x.xlsx")}
        )
        assert "is not allowed" in str(result.error)
    assert not list(tmp_path.iterdir())


def test_the_hosts_own_openpyxl_writes_as_ever(tmp_path):
    policy = Policy.default()
    policy.module(openpyxl)
    Sandbox(policy).exec("import openpyxl")
    book = openpyxl.Workbook()
    book.active["A1"] = 5
    book.save(tmp_path / "a.xlsx")
    assert openpyxl.load_workbook(tmp_path / "a.xlsx").active["A1"].value == 5


def test_docx_works_in_a_workspace():
    policy = Policy.default()
    policy.module(docx)
    source = """import docx
d = docx.Document()
d.add_heading('Title', 0)
d.add_paragraph('text').add_run('bold').bold = True
d.add_table(2, 2).cell(0, 0).text = 'cell'
d.save('a.docx')
again = docx.Document('a.docx')
[p.text for p in again.paragraphs], again.tables[0].cell(0, 0).text
"""
    assert Sandbox(policy, fs=connect_fs()).exec(source).value == (["Title", "textbold"], "cell")


def test_a_worker_hands_out_no_more_and_writes_workbooks_into_the_workspace(tmp_path):
    policy = Policy.default()
    policy.module(docx)
    policy.module(openpyxl)
    files = connect_fs()
    executor = ProcessExecutor()
    session = executor.session(policy, Limits(seconds=30.0), {"OUT": str(tmp_path / "out")}, files=files)
    try:
        assert "lxml" in str(session.run(DOCX + "e.getroottree().write(OUT)").error)
        assert session.run("import openpyxl\nopenpyxl.Workbook().save('a.xlsx')").error is None
    finally:
        session.close()
        executor.close()
    assert not list(tmp_path.iterdir())
    assert openpyxl.load_workbook(io.BytesIO(files.read("a.xlsx"))).sheetnames == ["Sheet"]


def test_a_class_that_says_no_module_is_registered_like_others():
    policy = Policy.default()
    policy.cls(type("Odd", (), {"__module__": None, "size": 3}))
    assert Sandbox(policy).exec("Odd().size").value == 3


def test_a_document_of_pypdf_is_written_into_the_workspace():
    pypdf = pytest.importorskip("pypdf", reason="pypdf is not installed")
    policy = Policy.default()
    policy.module(pypdf)
    source = """
from pypdf import PdfReader, PdfWriter
writer = PdfWriter()
writer.add_blank_page(100, 100)
writer.write("a.pdf")
print(len(PdfReader("a.pdf").pages))
"""

    assert Sandbox(policy, fs=connect_fs(type="virtual")).exec(source).stdout == "1\n"
    assert Sandbox(policy).exec(source).error is not None


def test_xarray_is_usable_where_dask_is_installed():
    xarray = pytest.importorskip("xarray", reason="xarray is not installed")
    policy = Policy.default()
    policy.module(xarray, host_fs_access=True)
    source = """
import xarray as xr
import numpy as np
a = xr.DataArray(np.arange(6), dims="x")
print(a.mean().item(), a.chunk({"x": 3}).chunks)
"""

    assert Sandbox(policy, fs=connect_fs(type="virtual")).exec(source).stdout == "2.5 ((3, 3),)\n"
