"""What the code may read: files of the working directory, and nothing by any other way."""

from __future__ import annotations

import io
import os
import threading

import pytest

from agex.tinyagent import PythonExecutor

SECRET = "the-secret"


@pytest.fixture
def root(tmp_path):
    """Make a working directory, and a secret beside it."""
    (tmp_path / "secret.txt").write_text(SECRET, encoding="utf-8")
    root = tmp_path / "work"
    (root / "inner").mkdir(parents=True)
    (root / "data.csv").write_bytes(b"name,value\r\nA\xc3\xa4,1\r\nb,2\r\n")
    (root / "inner" / "note.txt").write_text("inside", encoding="utf-8")
    (root / "link.txt").symlink_to(tmp_path / "secret.txt")
    (root / "linked").symlink_to(tmp_path)
    (root / "loop").symlink_to("loop")
    return root


def run(root, code, **settings):
    return PythonExecutor(working_directory=root, **settings).run(code)


def test_a_file_is_read_as_the_builtin_reads_it(root):
    code = """
with open('data.csv') as f: text = f.read()
with open('data.csv', encoding='latin-1', newline='') as f: latin = f.readline()
with open('data.csv', 'rb') as f: data = f.read()
lines = [line.strip() for line in open('inner/note.txt')]
"""
    names = run(root, code).namespace
    assert names["text"] == (root / "data.csv").read_text(encoding="utf-8")
    with (root / "data.csv").open(encoding="latin-1", newline="") as file:
        assert names["latin"] == file.readline()
    assert names["data"] == (root / "data.csv").read_bytes()
    assert names["lines"] == ["inside"]


def test_a_whole_path_below_the_directory_is_fine(root):
    assert (
        run(root, f"final_answer(open({str(root / 'inner' / 'note.txt')!r}).read())").final_value == "inside"
    )


def test_a_relative_directory_is_the_one_where_the_process_is_when_it_reads(root, monkeypatch):
    executor = PythonExecutor()
    monkeypatch.chdir(root / "inner")
    assert executor.run("final_answer(open('note.txt').read())").final_value == "inside"


def test_a_missing_file_is_said_by_the_name_it_was_asked_for(root):
    result = run(
        root, "try:\n    open('nope.txt')\nexcept FileNotFoundError as error:\n    final_answer(str(error))"
    )
    assert result.final_value == "[Errno 2] No such file or directory: 'nope.txt'"


@pytest.mark.parametrize("mode", ["w", "a", "x", "r+", "rb+", "w+b", "wb"])
def test_it_denies_writing(root, mode):
    result = run(root, f"open('data.csv', {mode!r})")
    assert "files can be read here, not written" in result.error
    assert (root / "data.csv").read_bytes().startswith(b"name")


OUTSIDE = {
    "above": "open('../secret.txt')",
    "above, from inside": "open('inner/../../secret.txt')",
    "above, by dots": "open('./../secret.txt')",
    "absolute": "open('{secret}')",
    "absolute, through the directory": "open('{root}/../secret.txt')",
    "home": "open('~/secret.txt')",
    "link to a file": "open('link.txt')",
    "link to a directory": "open('linked/secret.txt')",
    "link to a directory, absolute": "open('{root}/linked/secret.txt')",
    "link to itself": "open('loop')",
    "process": "open('/proc/self/environ')",
    "process, its directory": "open('/proc/self/cwd/../secret.txt')",
    "descriptor": "open(0)",
    "descriptor, by name": "open('/dev/fd/0')",
    "device": "open('/dev/zero')",
    "directory": "open('inner')",
    "the directory itself": "open('.')",
    "nothing": "open('')",
    "bytes": "open(b'../secret.txt')",
    "null": "open('data.csv\\0../../secret.txt')",
    "name of the guest's own kind": "class P(str):\n    def __eq__(s, o): return True\n"
    "    __hash__ = str.__hash__\nopen(P('../secret.txt'))",
    "path of the guest's own kind": "class P:\n    def __fspath__(self): return '../secret.txt'\nopen(P())",
    "opener": "open('data.csv', opener=lambda *a: 0)",
    "not closing": "open('../secret.txt', closefd=False)",
    "url": "open('file:///etc/hostname')",
    "full-width dots": "open('\\uff0e\\uff0e/secret.txt')",
    "backslashes": "open('..\\\\secret.txt')",
    "pandas": "import pandas as pd\npd.read_csv('../secret.txt')",
    "pandas, absolute": "import pandas as pd\npd.read_csv('{secret}')",
    "pandas, by keyword": "import pandas as pd\npd.read_csv(filepath_or_buffer='{secret}')",
    "pandas, url": "import pandas as pd\npd.read_csv('file://{secret}')",
    "pandas, path object": "import pandas as pd\nclass P:\n    def __fspath__(self): return '{secret}'\n"
    "pd.read_csv(P())",
    "pandas, link": "import pandas as pd\npd.read_csv('link.txt')",
    "pandas, json": "import pandas as pd\npd.read_json('{secret}')",
    "pandas, another reader": "import pandas as pd\npd.read_pickle('data.csv')",
    "pandas, through a module": "import pandas as pd\npd.io.common.get_handle('{secret}', 'r')",
    "numpy": "import numpy as np\nnp.loadtxt('{secret}', dtype=str)",
    "numpy, genfromtxt": "import numpy as np\nnp.genfromtxt('{secret}', dtype=str)",
    "numpy, fromfile": "import numpy as np\nnp.fromfile('data.csv')",
    "numpy, lines of another": "import numpy as np\nnp.loadtxt(fname='link.txt', dtype=str)",
    "the function behind open": "open.__closure__",
    "the directory behind open": "open.__self__.root",
    "the function behind a reader": "import pandas as pd\npd.read_csv.__closure__",
}


@pytest.mark.parametrize("way", OUTSIDE)
def test_it_denies_files_outside(root, way, monkeypatch):
    pytest.importorskip("pandas", reason="the extra `test` has pandas")
    monkeypatch.chdir(root)
    code = OUTSIDE[way].replace("{secret}", str(root.parent / "secret.txt")).replace("{root}", str(root))
    result = run(root, f"leak = 0\n{code}", extra_imports=["pandas", "numpy"])
    assert not result.success
    assert SECRET not in f"{result.output}{result.traceback}{result.namespace}"


WRITES = {
    "to_csv": "df.to_csv('made.txt')",
    "to_json": "df.to_json('made.txt')",
    "to_pickle": "df.to_pickle('made.txt')",
    "savetxt": "np.savetxt('made.txt', [1])",
    "save": "np.save('made.npy', [1])",
    "tofile": "np.array([1]).tofile('made.txt')",
}


@pytest.mark.parametrize("way", WRITES)
def test_it_denies_what_writes_files(root, way, monkeypatch):
    pytest.importorskip("pandas", reason="the extra `test` has pandas")
    monkeypatch.chdir(root)
    before = sorted(root.iterdir())
    code = f"import numpy as np, pandas as pd\ndf = pd.DataFrame({{'a': [1]}})\n{WRITES[way]}"
    assert not run(root, code, extra_imports=["pandas", "numpy"]).success
    assert sorted(root.iterdir()) == before


def test_readers_of_libraries_find_the_files_and_still_take_streams(root):
    pytest.importorskip("pandas", reason="the extra `test` has pandas")
    code = """
import io, numpy as np, pandas as pd
one = pd.read_csv('data.csv')['value'].sum()
two = pd.read_csv(filepath_or_buffer='data.csv', usecols=['value'])['value'].sum()
three = pd.read_csv(io.StringIO('value\\n3\\n'))['value'].sum()
four = np.loadtxt('data.csv', delimiter=',', skiprows=1, usecols=1).sum()
five = pd.read_table(open('data.csv'), sep=',')['value'].sum()
final_answer([int(each) for each in (one, two, three, four, five)])
"""
    assert run(root, code, extra_imports=["pandas", "numpy"]).final_value == [3, 3, 3, 3, 3]


def test_a_pipe_does_not_hold_up_the_host(root):
    os.mkfifo(root / "pipe")
    assert "is not a plain file" in run(root, "open('pipe')").error


def test_a_link_put_in_place_of_a_directory_meanwhile_leads_nowhere(root):
    done = threading.Event()
    inner, aside = root / "inner", root / "aside"
    (root.parent / "note.txt").write_text(SECRET, encoding="utf-8")

    def swap():
        while not done.is_set():
            inner.rename(aside)
            inner.symlink_to(root.parent)
            inner.unlink()
            aside.rename(inner)

    code = """
seen = set()
for i in range(3000):
    try:
        seen.add(open('inner/note.txt').read())
    except OSError:
        pass
final_answer(seen)
"""
    thread = threading.Thread(target=swap)
    thread.start()
    try:
        seen = run(root, code).final_value
    finally:
        done.set()
        thread.join()
    assert seen <= {"inside"}


def test_the_hosts_own_open_is_untouched_while_code_runs(root):
    before = (open, io.open, os.open)
    run(root, "open('data.csv').read()")
    assert (open, io.open, os.open) == before
