"""Compiled libraries write and read real files in the directory of a worker, and the host finds them in the workspace."""

from __future__ import annotations

import io
import shutil
import subprocess
import sysconfig
import zipfile

import pytest
from directory_worker import Worker

from agex import Agent
from agex.files import connect_fs
from agex.isolation import KernelExecutor
from agex.isolation.kernel import missing
from agex.state import Versioned
from agex.testing import ScriptedModel, python_action

pytestmark = pytest.mark.skipif(bool(missing()), reason=f"the kernel level does not hold here: {missing()}")


@pytest.fixture(scope="module")
def kernel():
    made = KernelExecutor()
    yield made
    made.close()


@pytest.fixture
def files():
    return connect_fs(type="virtual")


@pytest.fixture
def worker(kernel, files):
    with Worker(kernel, files, seconds=60.0) as made:
        yield made


def test_openpyxl_writes_a_workbook_and_pandas_reads_it(worker, files):
    worker.run("""
        import pandas as pd
        pd.DataFrame({"a": [1, 2]}).to_excel("book.xlsx", index=False)
    """)
    assert zipfile.ZipFile(io.BytesIO(files.read("book.xlsx"))).testzip() is None
    assert worker.run("print(pd.read_excel('book.xlsx')['a'].sum())") == "3\n"


def test_sqlite_works_in_a_file_with_a_write_ahead_log(worker, files):
    worker.run("""
        import sqlite3
        db = sqlite3.connect("data.db")
        print(db.execute("pragma journal_mode=wal").fetchone()[0])
        db.executescript("create table t (x); insert into t values (1), (2)").close()
    """)
    assert {"data.db", "data.db-wal"} <= set(files.list())
    assert worker.run("print(db.execute('select sum(x) from t').fetchone()[0]); db.close()") == "3\n"
    assert "data.db-wal" not in files.list()


def test_sqlalchemys_orm_works_over_a_file(worker, files):
    shown = worker.run("""
        from sqlalchemy import create_engine, select
        from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
        class Base(DeclarativeBase): pass
        class User(Base):
            __tablename__ = "user"
            id: Mapped[int] = mapped_column(primary_key=True)
            name: Mapped[str]
        engine = create_engine("sqlite:///orm.db")
        Base.metadata.create_all(engine)
        with Session(engine) as session:
            session.add(User(name="Ada")); session.commit()
            print(session.scalars(select(User.name)).all())
        engine.dispose()
    """)
    assert shown == "['Ada']\n"
    assert files.read("orm.db")[:6] == b"SQLite"


def test_h5py_writes_and_reads(worker, files):
    worker.run("""
        import h5py, numpy as np
        with h5py.File("data.h5", "w") as file: file["x"] = np.arange(1000)
    """)
    assert files.read("data.h5")[1:4] == b"HDF"
    assert worker.run("with h5py.File('data.h5') as file: print(int(file['x'][:].sum()))") == "499500\n"


def test_duckdb_reads_a_variable_and_a_file_and_writes_one(worker, files):
    files.write("rows.csv", "a,b\n1,2\n3,4\n")
    shown = worker.run("""
        import duckdb, pandas as pd
        known = pd.DataFrame({"a": [1, 3], "c": [10, 20]})
        with duckdb.connect("own.duckdb") as db:
            print(db.execute("select sum(c) from known").fetchone()[0])
            print(db.execute("select sum(b * c) from 'rows.csv' join known using (a)").fetchone()[0])
            _ = db.execute("copy (select 1 as x) to 'out.parquet'")
    """)
    assert shown == "30\n100\n"
    assert files.read("out.parquet")[:4] == b"PAR1"
    assert files.getsize("own.duckdb") > 0


def test_pickle_zipfile_and_memory_maps_work(worker, files):
    worker.run("""
        import pickle, zipfile, numpy as np
        with open("value.pkl", "wb") as file: pickle.dump({"a": [1]}, file)
        with zipfile.ZipFile("all.zip", "w") as archive: archive.write("value.pkl")
        mapped = np.memmap("numbers", dtype="int64", mode="w+", shape=10); mapped[:] = 7; mapped.flush()
        assert pickle.load(open("value.pkl", "rb")) == {"a": [1]}
    """)
    assert zipfile.ZipFile(io.BytesIO(files.read("all.zip"))).namelist() == ["value.pkl"]
    assert files.read("numbers") == (7).to_bytes(8, "little") * 10
    worker.run("mapped[0] = 8")
    assert files.read("numbers")[0] == 8


def test_lxml_and_pillow_read_and_write_paths(worker, files):
    worker.run("""
        from lxml import etree
        from PIL import Image
        _ = etree.ElementTree(etree.fromstring("<a><b/></a>")).write("tree.xml")
        Image.new("RGB", (4, 4), "red").save("red.png")
        print(etree.parse("tree.xml").getroot().tag, Image.open("red.png").size)
    """)
    assert files.read("tree.xml") == b"<a><b/></a>"
    assert files.read("red.png")[1:4] == b"PNG"


@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no compiler")
def test_a_users_own_compiled_module_is_imported_from_the_workspace(worker, files, tmp_path):
    source = tmp_path / "fast.c"
    source.write_text("""
        #include <Python.h>
        static PyObject *twice(PyObject *self, PyObject *arg) { return PyNumber_Add(arg, arg); }
        static PyMethodDef methods[] = {{"twice", twice, METH_O, NULL}, {NULL, NULL, 0, NULL}};
        static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "fast", NULL, -1, methods};
        PyMODINIT_FUNC PyInit_fast(void) { return PyModule_Create(&module); }
    """)
    built = tmp_path / "fast.so"
    include = sysconfig.get_path("include")
    subprocess.run(["gcc", "-shared", "-fPIC", f"-I{include}", source, "-o", built], check=True)
    files.write("fast.so", built.read_bytes())
    assert worker.run("import sys; sys.path.insert(0, '.'); import fast; print(fast.twice(21))") == "42\n"


PLOT = """
import matplotlib
matplotlib.use("agg")
import pandas as pd
pd.DataFrame({"a": [1, 2, 3]}).plot().figure.savefig("plot.png")
task_success(3)
"""


def test_a_plot_that_was_saved_is_in_the_state_at_the_commit_of_its_action():
    state = Versioned()
    agent = Agent(
        ScriptedModel([[python_action(PLOT)]]),
        state=state,
        isolation="kernel",
        python="full",
        timeout_seconds=120,
    )

    @agent.task
    def draw() -> int:
        """Draw it."""

    run = draw.run()
    assert run.value == 3
    assert state.files["plot.png"][1:4] == b"PNG"
    changed = [event for event in run.events if type(event).__name__ == "FileEvent"]
    assert [event.added for event in changed] == [("plot.png",)]
    assert "plot.png" in state.checkout(run.commit).files


def test_the_next_task_finds_the_files_of_the_one_before():
    state = Versioned()
    first = "open('notes.txt', 'w').write('one'); task_success(1)"
    second = "task_success(len(open('notes.txt').read()))"
    replies = [[python_action(first)], [python_action(second)]]
    agent = Agent(ScriptedModel(replies), state=state, isolation="kernel", python="full")

    @agent.task
    def work() -> int:
        """Work."""

    assert (work(), work()) == (1, 3)
