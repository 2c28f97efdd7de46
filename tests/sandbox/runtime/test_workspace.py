"""While a guest runs, whatever opens files meets its workspace; nothing else ever does.

Stopped by: sandbox.runtime.workspace_files, sandbox.runtime.audit_hook.
"""

from __future__ import annotations

import builtins
import gc
import io
import os
import sqlite3
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import plotly
import pytest
from file_attacks import ATTACKS, HOST, SECRET

import agex
from agex.errors import SandboxError
from agex.files import connect_fs
from agex.sandbox import Limits, Policy, Sandbox
from agex.sandbox.runtime import workspace_files as files
from agex.sandbox.runtime.limits import Stop


@pytest.fixture(params=["virtual", "isolated"])
def fs(request, tmp_path):
    (tmp_path / "root").mkdir()
    return connect_fs() if request.param == "virtual" else connect_fs(type="isolated", root=tmp_path / "root")


@pytest.fixture
def sandbox(fs):
    policy = Policy.default()
    for module in (np, pd, plotly, sqlite3):
        policy.module(module)
    return Sandbox(policy, fs=fs, limits=Limits(seconds=20.0))


@pytest.fixture(autouse=True)
def host_directory(tmp_path, monkeypatch):
    """Where the host is, with a file that no guest may see or change."""
    host = tmp_path / "host"
    host.mkdir()
    (host / "data.csv").write_text("secret\n1\n")
    monkeypatch.chdir(host)
    yield host
    assert {each.name: each.read_text() for each in host.iterdir()} == {"data.csv": "secret\n1\n"}


PROGRAMS = {
    "open": "open('a', 'w').write('x')\nout = open('a').read()",
    "os": "import os\nos.makedirs('d/e')\nopen('d/e/f', 'w').close()\nout = [os.listdir('.'), list(os.walk('.'))]",
    "os.path": "import os\nopen('a', 'w').write('xy')\nout = os.path.getsize('a'), os.path.exists('b'), os.path.abspath('a')",
    "os.stat": "import os\nopen('a', 'w').write('xy')\ns = os.stat('a')\nout = s.st_size, oct(s.st_mode)",
    "rename": "import os\nopen('a', 'w').close()\nos.rename('a', 'b')\nout = os.listdir()",
    "scandir": "import os\nopen('a', 'w').close()\nos.mkdir('d')\nwith os.scandir() as found: out = sorted((e.name, e.is_dir()) for e in found)",
    "descriptors": "import os\nfd = os.open('a', os.O_CREAT | os.O_WRONLY)\nos.write(fd, b'xyz')\nos.close(fd)\nout = open('a').read()",
    "environ": "import os\nout = dict(os.environ)",
    "pathlib": "from pathlib import Path\nPath('d').mkdir()\n(Path('d') / 'a.txt').write_text('é')\nout = sorted(map(str, Path('.').rglob('*'))), Path('d/a.txt').read_text()",
    "pathlib encoding": "from pathlib import Path\nPath('a').write_text('é', encoding='latin-1')\nout = Path('a').read_bytes()",
    "pathlib stat": "from pathlib import Path\np = Path('a')\np.touch()\nout = p.exists(), p.is_file(), p.stat().st_size, p.resolve(), Path.cwd(), Path.home()",
    "glob": "import glob, os\nos.mkdir('d')\nopen('d/a.py', 'w').close()\nout = glob.glob('**/*.py', recursive=True)",
    "shutil": "import shutil, os\nos.mkdir('d')\nopen('d/a', 'w').write('x')\nshutil.copytree('d', 'e')\nshutil.rmtree('d')\nout = list(os.walk('.'))",
    "shutil move": "import shutil, os\nopen('a', 'w').close()\nos.mkdir('d')\nshutil.move('a', 'd')\nout = os.listdir('d')",
    "tempfile": "import tempfile, os\nwith tempfile.TemporaryDirectory() as d:\n    open(d + '/a', 'w').close()\n    out = os.listdir(d)\nout = out, os.path.exists(d)",
    "named temporary": "import tempfile, os\nwith tempfile.NamedTemporaryFile('w+') as f:\n    f.write('x')\n    f.seek(0)\n    out = f.read(), os.path.exists(f.name)\nout = out, os.path.exists(f.name)",
    "zipfile": "import zipfile\nwith zipfile.ZipFile('a.zip', 'w') as z: z.writestr('b.txt', 'x')\nwith zipfile.ZipFile('a.zip') as z:\n    z.extractall('out')\n    out = z.namelist(), open('out/b.txt').read()",
    "tarfile": "import tarfile\nopen('a', 'w').write('x')\nwith tarfile.open('a.tar.gz', 'w:gz') as t: t.add('a')\nwith tarfile.open('a.tar.gz') as t: out = t.getnames()",
    "text in an archive": "import csv, io, zipfile\nwith zipfile.ZipFile('a.zip', 'w') as z: z.writestr('b.csv', 'a,b\\n1,é\\n')\nwith zipfile.ZipFile('a.zip') as z, z.open('b.csv') as f:\n    out = list(csv.DictReader(io.TextIOWrapper(f, encoding='utf-8')))\nassert out == [{'a': '1', 'b': 'é'}] and isinstance(open('c', 'w'), io.TextIOWrapper)",
    "gzip": "import gzip\nwith gzip.open('a.gz', 'wt') as f: f.write('x')\nout = gzip.open('a.gz', 'rt').read()",
    "csv": "import csv\nwith open('a.csv', 'w', newline='') as f: csv.writer(f).writerow([1, 'é'])\nout = list(csv.reader(open('a.csv')))",
    "json": "import json\nwith open('a.json', 'w') as f: json.dump({'a': 1}, f)\nout = json.load(open('a.json'))",
    "chdir": "import os\nos.mkdir('d')\nos.chdir('d')\nopen('a', 'w').close()\nout = os.getcwd(), os.listdir('/')",
    "sqlite": "import sqlite3\nwith sqlite3.connect('a.db') as c: c.execute('create table t (x)'); c.execute('insert into t values (1)')\nc.close()\nout = sqlite3.connect('a.db').execute('select * from t').fetchall()",
    "sqlite in memory": "import sqlite3\nout = sqlite3.connect(':memory:').execute('select 1').fetchall()",
    "read_csv": "import pandas as pd\nopen('data.csv', 'w').write('a,b\\n1,2\\n')\nout = pd.read_csv('data.csv').to_dict('list')",
    "to_csv": "import pandas as pd\npd.DataFrame({'a': [1]}).to_csv('a.csv', index=False)\nout = open('a.csv').read()",
    "compressed csv": "import pandas as pd\nfor end in ('gz', 'bz2', 'xz', 'zip'):\n    pd.DataFrame({'a': [1]}).to_csv('a.csv.' + end, index=False)\n    out = pd.read_csv('a.csv.' + end).to_dict('list')",
    "a path to pandas": "import pandas as pd\nfrom pathlib import Path\nPath('a.csv').write_text('a\\n1\\n')\nout = pd.read_csv(Path('a.csv')).to_dict('list')",
    "an open file to pandas": "import pandas as pd\nopen('a.csv', 'w').write('a\\n1\\n')\nout = pd.read_csv(open('a.csv')).to_dict('list'), pd.read_csv(open('a.csv', 'rb')).to_dict('list')",
    "json of pandas": "import pandas as pd\npd.DataFrame({'a': [1]}).to_json('a.json')\nout = pd.read_json('a.json').to_dict('list')",
    "numpy": "import numpy as np\nnp.save('a.npy', np.arange(3))\nnp.savez('a.npz', x=np.arange(2))\nout = np.load('a.npy').tolist(), np.load('a.npz')['x'].tolist()",
    "numpy text": "import numpy as np\nnp.savetxt('a.txt', np.arange(3))\nout = np.loadtxt('a.txt').tolist()",
    "plotly": "import plotly.graph_objects as go\nfig = go.Figure()\nfig.write_html('a.html')\nfig.write_json('a.json')\nout = 'plotly' in open('a.html').read().lower()",
    "own module": "open('mine.py', 'w').write('def f(): return 1')\nimport mine\nout = mine.f()",
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_it_works_in_the_workspace(program, sandbox):
    result = sandbox.exec(program)
    assert result.traceback == ""
    assert result.namespace["out"] is not None


@pytest.mark.skipif(pytest.importorskip("pyarrow") is None, reason="pyarrow is not installed")
def test_what_reads_below_python_gets_a_copy(sandbox):
    program = (
        "import pandas as pd\ndf = pd.DataFrame({'a': [1]})\ndf.to_parquet('a.parquet')\ndf.to_feather('a.f')\n"
        "out = pd.read_parquet('a.parquet').equals(df), pd.read_feather('a.f').equals(df)"
    )
    result = sandbox.exec(program)
    assert result.traceback == ""
    assert result.namespace["out"] == (True, True)


def test_a_database_that_is_not_committed_is_not_written(sandbox):
    program = (
        "import sqlite3\nc = sqlite3.connect('a.db')\nc.execute('create table t (x)')\nc.commit()\n"
        "c.execute('insert into t values (1)')\nc.close()\n"
        "out = sqlite3.connect('a.db').execute('select count(*) from t').fetchone()"
    )
    assert sandbox.exec(program).namespace["out"] == (0,)


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_nothing_leads_to_the_host(attack, sandbox, host_directory):
    given = Path(host_directory / SECRET)
    names = {"HOST": HOST, "SECRET": SECRET, "FULL": str(given), "given": given}
    result = sandbox.exec(attack, names)
    assert result.error is not None
    assert "secret" not in repr(result.value)


LEFT_OVER = {
    "open": "def left(): return open(FULL).read()",
    "path": "from pathlib import Path\ndef left(): return Path(FULL).read_text()",
    "bound method": "from pathlib import Path\nleft = Path(FULL).read_text",
    "path generator": "from pathlib import Path\nfound = Path(FULL).parent.iterdir()\ndef left(): return [p.name for p in found]",
    "os": "import os\ndef left(): return os.listdir(os.path.dirname(FULL))",
    "walk": "import os\nfound = os.walk(os.path.dirname(FULL))\ndef left(): return list(found)",
    "shutil": "import shutil\ndef left(): return shutil.copy(FULL, 'copy')",
    "zipfile": "import zipfile\ndef left(): return zipfile.ZipFile(FULL + '.zip', 'w').close()",
    "pandas": "import pandas as pd\ndef left(): return pd.read_csv(FULL)",
    "sqlite": "import sqlite3\ndef left(): return sqlite3.connect(FULL + '.db')",
    "numpy": "import numpy as np\ndef left(): return np.save(FULL + '.npy', np.arange(1))",
    "plotly": "import plotly.graph_objects as go\nfig = go.Figure()\ndef left(): return fig.write_json(FULL + '.json')",
}  # fmt: skip


@pytest.mark.parametrize("program", LEFT_OVER.values(), ids=LEFT_OVER)
def test_what_is_called_when_the_run_is_over_has_nothing_of_the_host(program, sandbox, host_directory):
    result = sandbox.exec(program, {"FULL": str(host_directory / SECRET)})
    try:
        got = result.namespace["left"]()
    except Exception as error:  # noqa: BLE001 - whatever it raises is an answer
        got = error
    assert "secret" not in repr(got)
    assert SECRET not in repr(got) or isinstance(got, Exception)


ORIGINALS = {
    "builtins.open": (builtins, "open"),
    "io.open": (io, "open"),
    **{
        f"os.{name}": (os, name)
        for name in "listdir stat lstat open remove rename scandir mkdir getcwd chdir".split()
    },
    **{f"os.path.{name}": (os.path, name) for name in "exists isfile isdir getsize realpath abspath".split()},
    "Path.touch": (Path, "touch"),
}


def test_outside_a_run_the_functions_of_the_host_are_the_originals(sandbox):
    before = {name: getattr(*where) for name, where in ORIGINALS.items()}
    sandbox.exec("import pandas as pd\npd.DataFrame({'a': [1]}).to_csv('a.csv')\nraise ValueError")
    assert {name: getattr(*where) for name, where in ORIGINALS.items()} == before


def test_other_threads_see_the_hosts_files_while_guests_run(fs, host_directory):
    """Guests of two sandboxes write and read in two threads, while a third works on files of the host."""
    before = {name: getattr(*where) for name, where in ORIGINALS.items()}
    other = Sandbox(Policy.default(), fs=connect_fs())
    started, stop = threading.Barrier(3), threading.Event()
    seen: list[object] = []

    def turn(pause) -> None:
        started.wait()
        stop.wait(0.2)

    def guest(sandbox: Sandbox, text: str) -> None:
        sandbox.policy.fn(turn, name="turn")
        program = (
            f"import os\nturn(1)\nfor n in range(300):\n    open('data.csv', 'w').write({text!r})\n"
            f"    assert open('data.csv').read() == {text!r}\n    assert os.listdir('/') == ['data.csv']"
        )
        seen.append(sandbox.exec(program).traceback)

    threads = [
        threading.Thread(target=guest, args=(Sandbox(Policy.default(), fs=fs), "one")),
        threading.Thread(target=guest, args=(other, "two")),
    ]
    for thread in threads:
        thread.start()
    started.wait()
    for _ in range(500):
        with open("data.csv") as file:  # noqa: PTH123 - the builtin is what is tested
            seen += [file.read(), *os.listdir("."), Path("data.csv").exists(), str(Path.cwd())]  # noqa: PTH208
    for thread in threads:
        thread.join()
    host = {"secret\n1\n", "data.csv", True, str(host_directory), ""}
    assert [each for each in seen if each not in host] == []
    assert {name: getattr(*where) for name, where in ORIGINALS.items()} == before


def test_a_host_function_sees_the_hosts_files_only_where_it_was_promised_them(sandbox):
    sandbox.policy.fn(lambda: Path("data.csv").read_text(), name="promised", host_fs_access=True)
    sandbox.policy.fn(lambda: Path("data.csv").read_text(), name="plain")
    program = (
        "open('data.csv', 'w').write('of the guest')\nout = promised(), plain(), open('data.csv').read()"
    )
    assert sandbox.exec(program).namespace["out"] == ("secret\n1\n", "of the guest", "of the guest")


CALLED_BACK = {
    "open": "open(secret).read()",
    "a path": "pathlib.Path(secret).read_text()",
    "a look at a path": "print(pathlib.Path(secret).exists())",
    "a directory": "print(list(pathlib.Path(secret).parent.iterdir()))",
    "a listing": "print(os.listdir(pathlib.Path(secret).parent))",
    "a pattern": "print(glob.glob(secret + '*'))",
    "a table": "pandas.read_csv(secret)",
    "a new path": "pathlib.Path(new).write_text('x')",
    "a new file": "zipfile.ZipFile(new, 'w').close()",
    "a new directory": "print(tempfile.mkdtemp(dir=pathlib.Path(secret).parent))",
}


@pytest.mark.parametrize("line", CALLED_BACK.values(), ids=CALLED_BACK)
def test_a_function_to_which_files_are_open_calls_a_guest_back_in_its_workspace(line, sandbox, tmp_path):
    sandbox.policy.module(pd)
    sandbox.policy.fn(lambda guest: guest(), name="calls", host_fs_access=True)
    kept = tmp_path / "of the host"
    kept.mkdir()
    (kept / "secret.csv").write_text(SECRET)
    names = {"secret": str(kept / "secret.csv"), "new": str(kept / "new")}
    modules = "import glob, os, pandas, pathlib, tempfile, zipfile"

    result = sandbox.exec(f"{modules}\ndef f():\n    return {line}\nleak = calls(f)", names)

    assert "secret" not in result.stdout
    assert "True" not in result.stdout
    assert SECRET not in repr(result.namespace.get("leak"))
    assert [each.name for each in kept.iterdir()] == ["secret.csv"]


def test_while_the_guest_is_paused_the_host_has_its_own_files(fs):
    sandbox = Sandbox(fs=fs)
    session = sandbox.session()

    def host_work() -> str:
        with session.paused():
            return Path("data.csv").read_text()

    session.bind("host_work", host_work)
    assert session.run("host_work()").value == "secret\n1\n"


@pytest.mark.parametrize("has_workspace", [True, False])
def test_a_collection_in_a_run_calls_the_host_as_the_host(has_workspace, fs, host_directory):
    seen: list[tuple[str, str]] = []

    class Watch:
        def collected(self, phase, info):
            seen.append((phase, Path(host_directory / "data.csv").read_text()))

    watch = Watch()
    gc.callbacks.append(watch.collected)
    policy = Policy()
    policy.fn(lambda: gc.callbacks.remove(watch.collected), name="leave")
    sandbox = Sandbox(policy, fs=fs if has_workspace else None)
    sandbox.exec("kept = []\nfor _ in range(100_000):\n    kept.append([])\nleave()")
    assert len(seen) > 10
    assert {phase for phase, _ in seen} == {"start", "stop"}
    assert {text for _, text in seen} == {"secret\n1\n"}
    assert watch.collected not in gc.callbacks


def test_a_run_within_a_run_has_the_workspace_of_its_own(fs):
    outer, inner = Sandbox(fs=fs), Sandbox(fs=connect_fs())
    plain = Sandbox()
    outer.policy.fn(lambda: inner.exec("open('a', 'w').write('inner')").traceback, name="nested")
    outer.policy.fn(lambda: str(plain.exec("open('a')").error), name="without")
    result = outer.exec("open('a', 'w').write('outer')\nout = nested(), open('a').read(), without()")
    assert result.namespace["out"][:2] == ("", "outer")
    assert "no file system" in result.namespace["out"][2]


def test_time_zones_are_those_of_the_host(fs):
    source = "import zoneinfo\nzone = 'Europe/Berlin'\nzoneinfo.ZoneInfo.no_cache(zone).key in zoneinfo.available_timezones()"
    assert Sandbox(fs=fs).exec(source).value is True


# The limit may strike between the opening of a file and the block that closes it: the interpreter does it then.
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
def test_a_limit_holds_in_a_loop_over_files(fs):
    sandbox = Sandbox(fs=fs, limits=Limits(seconds=0.3))
    result = sandbox.exec("while True:\n    open('a', 'w').write('x')")
    assert "longer than 0.3 s" in str(result.error)
    assert Sandbox(fs=fs).exec("open('a', 'w').write('y'); open('a').read()").value == "y"


def test_an_empty_policy_has_open_and_no_modules_for_files():
    sandbox = Sandbox(Policy(), fs=connect_fs())
    assert sandbox.exec("open('a', 'w').write('x'); open('a').read()").value == "x"
    assert isinstance(sandbox.exec("import os").error, ImportError)


def test_without_a_workspace_there_are_no_modules_for_files():
    assert isinstance(Sandbox().exec("import os").error, ImportError)
    assert isinstance(Sandbox().exec("import shutil").error, ImportError)


def test_the_documented_size_limit_raises_and_loses_nothing():
    sandbox = Sandbox(fs=connect_fs(type="virtual", max_size_mb=100))
    sandbox.exec("open('kept.txt', 'w').write('kept')\nopen('old.bin', 'wb').write(b'old')")
    result = sandbox.exec('with open("huge.bin", "wb") as f:\n    f.write(b"x" * (200 * 1024 * 1024))')
    assert type(result.error) is OSError
    assert "VFS size limit exceeded" in str(result.error)
    overwrite = sandbox.exec('with open("old.bin", "wb") as f:\n    f.write(b"x" * (200 * 1024 * 1024))')
    assert "VFS size limit exceeded" in str(overwrite.error)
    assert sandbox.exec("open('kept.txt').read(), open('old.bin').read()").value == ("kept", "old")
    assert sandbox.exec("open('more.txt', 'w').write('fits'); open('more.txt').read()").value == "fits"


@pytest.mark.usefixtures("originals_back")
def test_a_host_that_uses_monkeyfs_itself_has_it_before_during_and_after_runs(sandbox):
    import monkeyfs

    def host_uses_it() -> str:
        mine = monkeyfs.VirtualFS({})
        with monkeyfs.patch(mine):
            Path("/mine").write_text("of the host")
            return str(os.path.exists("/mine")) + Path("/mine").read_text()  # noqa: PTH110 - os is what is tested

    program = "open('a', 'w').write('x')\nopen('a').read()"
    assert sandbox.exec(program).value == "x"
    session = sandbox.session()

    def paused() -> str:
        with session.paused():
            return host_uses_it()

    session.bind("paused", paused)
    assert session.run("paused()").value == "Trueof the host"
    assert host_uses_it() == "Trueof the host"
    assert sandbox.exec(program).value == "x"
    assert host_uses_it() == "Trueof the host"


def test_a_name_that_only_a_library_contests_is_checked_on_its_objects_and_not_on_builtins(
    sandbox, host_directory
):
    program = (
        "from pathlib import Path\nclass S(str): pass\nopen('a', 'w').close()\n"
        "out = 'aa'.replace('a', 'b'), S('aa').replace('a', 'b'), str(Path('a').replace('c'))"
    )
    assert sandbox.exec(program).namespace["out"] == ("bb", "bb", "c")


def test_a_member_of_a_builtin_class_that_a_registration_excludes_stays_excluded():
    policy = Policy.default()
    policy.cls(str, exclude="replace")
    sandbox = Sandbox(policy, fs=connect_fs())
    assert isinstance(sandbox.exec("'a'.replace('a', 'b')").error, AttributeError)


def test_a_class_that_says_it_is_a_builtin_one_is_checked_like_any_other(sandbox):
    program = (
        "class M(type):\n    def __hash__(cls): return hash(str)\n    def __eq__(cls, other): return True\n"
        "from pathlib import PosixPath\nclass P(PosixPath, metaclass=M): pass\nP('a').symlink_to('/etc/passwd')"
    )
    assert sandbox.exec(program).error is not None
    assert not sandbox.fs.files.lexists("a")


@pytest.mark.parametrize("when", [0, 1, 2])
def test_a_run_may_begin_while_the_workspace_of_another_is_put_in_place(when, fs, monkeypatch):
    """In a handler of a signal, say: at the beginning of a run, or at its end."""
    put, inner, before = files._put, [], builtins.open
    times = iter(range(100))

    def putting(places):
        half = len(places) // 2
        put(places[:half])
        if next(times) == when and not inner:
            inner.append(None)
            inner.append(Sandbox(fs=fs).exec("open('b', 'w').write('x')\nopen('b').read()").value)
        put(places[half:])

    def run():
        done.append(Sandbox(fs=fs).exec("open('a', 'w').write('y')\nopen('a').read()").value)

    monkeypatch.setattr(files, "_put", putting)
    done = []
    for _ in range(2):
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(20)

    assert (done, inner) == (["y", "y"], [None, "x"])
    assert builtins.open is before
    assert io.open is before


def test_no_collection_comes_while_the_workspace_is_put_in_place(fs, monkeypatch):
    put, seen = files._put, []

    def putting(places):
        seen.append(gc.isenabled())
        put(places)

    monkeypatch.setattr(files, "_put", putting)
    Sandbox(fs=fs).exec("open('a', 'w').close()")

    assert seen
    assert not any(seen)
    assert gc.isenabled()


def test_the_originals_are_back_where_a_limit_struck_while_the_workspace_was_put_in_place(fs, monkeypatch):
    Sandbox(fs=fs).exec("1")
    put, before, strikes = files._put, builtins.open, [Stop()]

    def putting(places):
        put(places)
        if strikes:
            raise strikes.pop()

    monkeypatch.setattr(files, "_put", putting)
    with pytest.raises(Stop):
        Sandbox(fs=fs).exec("1")

    assert builtins.open is before
    assert Sandbox(fs=fs).exec("open('a', 'w').write('y')\nopen('a').read()").value == "y"
    assert builtins.open is before


ADDRESS = "{'shape': (8,), 'typestr': '|u1', 'data': (id('a'), True), 'version': 3}"
ANSWERING = {
    "defined": f"def __getattr__(name): return {ADDRESS}",
    "assigned": f"__getattr__ = lambda name: {ADDRESS}",
    "assigned in a function": f"def f():\n  global __getattr__\n  __getattr__ = lambda name: {ADDRESS}\nf()",
    "assigned in a class": f"class A:\n  global __getattr__\n  __getattr__ = lambda name: {ADDRESS}",
    "a target": f"for __getattr__ in [lambda name: {ADDRESS}]: pass",
    "a walrus in a comprehension": f"[(__getattr__ := each) for each in [lambda name: {ADDRESS}]]",
    "a capture": f"match [lambda name: {ADDRESS}]:\n  case [__getattr__]: pass",
    "globals": f"globals()['__getattr__'] = lambda name: {ADDRESS}",
    "update": f"globals().update(__getattr__=lambda name: {ADDRESS})",
    "exec": f"exec('''__getattr__ = lambda name: {ADDRESS}''')",
}


@pytest.mark.parametrize("module", ANSWERING.values(), ids=ANSWERING)
def test_a_module_of_the_guest_tells_no_address_of_memory(sandbox, module):
    write = f"with open('answering.py', 'w') as f: f.write({module!r})\n"

    result = sandbox.exec(write + "import answering, numpy as np\nfound = np.array(answering)")

    assert isinstance(result.error, SandboxError), result.namespace.get("found")


def test_frames_of_this_package_are_between_guest_code_and_its_files() -> None:
    assert any(agex.__file__.startswith(folder) for folder in files._BETWEEN)
