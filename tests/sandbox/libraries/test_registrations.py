"""How a host's registration and a library's policy meet, and what opens a door.

Stopped by: sandbox.policy.library_grant, sandbox.policy.library_members.
"""

import copy
import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agex.errors import SandboxError
from agex.sandbox import Policy, Sandbox
from agex.sandbox.policy import catalog

pd = pytest.importorskip("pandas", reason="pandas is not installed: its policy cannot be tried")
np = pytest.importorskip("numpy", reason="numpy is not installed: its policy cannot be tried")


def run(policy: Policy, source: str, **names: Any) -> Any:
    return Sandbox(policy).exec(source, names)


def granted(*modules: Any, **options: Any) -> Policy:
    policy = Policy.default()
    for module in modules:
        policy.module(module, **options)
    return policy


def test_the_policies_import_no_library():
    code = (
        "import sys; from agex.sandbox import Policy; Policy.default(); "
        "print({'numpy', 'pandas', 'plotly', 'matplotlib', 'sklearn', 'sqlite3'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "set()\n"


def test_a_library_without_a_policy_has_none():
    assert catalog.find("requests") is None


@pytest.mark.parametrize("exclude", ["_*", ("_*", "*._*"), ()])
def test_a_library_is_under_its_policy_whatever_the_host_excludes(exclude):
    result = run(granted(np, exclude=exclude), "import numpy as np; np.memmap")

    assert isinstance(result.error, AttributeError)


def test_include_with_globs_does_not_widen():
    result = run(granted(np, include=("*", "mem*", "from*")), "import numpy as np; np.memmap")

    assert isinstance(result.error, AttributeError)


def test_a_function_named_in_include_is_lifted():
    result = run(granted(np, include=("*", "seterr")), "import numpy as np; np.seterr is not None")

    assert result.value is True


def test_a_member_named_in_include_is_lifted_for_its_class_only():
    policy = granted(pd, include=("*", "DataFrame.to_pickle", "DataFrame.query"))

    assert run(policy, "df.query('a.abs() > 1').a.tolist()", df=pd.DataFrame({"a": [1, 2]})).value == [2]
    assert isinstance(run(policy, "df.eval('a.abs()')", df=pd.DataFrame({"a": [1]})).error, SandboxError)
    assert run(policy, "df.to_pickle is not None", df=pd.DataFrame({"a": [1]})).value is True
    assert isinstance(run(policy, "s.to_pickle", s=pd.Series([1])).error, SandboxError)


def test_include_narrows_to_what_it_names():
    policy = granted(pd, include=("DataFrame",))

    assert run(policy, "import pandas as pd; pd.DataFrame({'a': [1]}).a.sum()").value == 1
    assert isinstance(run(policy, "import pandas as pd; pd.Series").error, AttributeError)


def test_exclude_narrows_functions_and_members():
    policy = granted(pd, exclude=("_*", "concat", "DataFrame.merge"))

    assert isinstance(run(policy, "import pandas as pd; pd.concat").error, AttributeError)
    assert isinstance(run(policy, "df.merge(df)", df=pd.DataFrame({"a": [1]})).error, SandboxError)
    assert run(policy, "df.a.sum()", df=pd.DataFrame({"a": [1]})).value == 1


def test_exclude_of_a_sealed_class_speaks_of_its_instances():
    policy = granted(np, exclude=("_*", "ndarray.mean"))

    assert isinstance(run(policy, "a.mean()", a=np.ones(2)).error, SandboxError)


def test_a_module_of_a_library_is_under_the_same_policy():
    policy = granted(np.random)

    assert run(policy, "import numpy.random as r; r.seed(1); round(r.rand(), 3)").value == 0.417
    assert isinstance(run(policy, "from numpy.random import mtrand").error, SandboxError)
    assert isinstance(run(policy, "a.tofile('x')", a=np.ones(2)).error, SandboxError)


def test_a_module_off_the_list_is_granted_when_the_host_names_it():
    import numpy.lib.array_utils

    policy = granted(numpy.lib.array_utils)

    assert run(policy, "import numpy.lib.array_utils as u; u.normalize_axis_index(-1, 2)").value == 1


def test_without_recursion_no_module_below_is_granted():
    policy = granted(np, recursive=False)

    assert isinstance(run(policy, "import numpy as np; np.linalg").error, AttributeError)
    assert isinstance(run(policy, "import numpy.linalg").error, SandboxError)


def test_a_sealed_class_of_the_host_stays_sealed_off_the_class():
    class Vault:
        def secret(self) -> str:
            return "s"

    policy = Policy.default()
    policy.cls(Vault, exclude=("_*", "secret"))
    guest = "class V(Vault):\n    def go(self): return super().secret()\nV().go()"

    assert isinstance(run(policy, guest).error, SandboxError)
    assert isinstance(run(policy, "Vault.secret(v)", v=Vault()).error, SandboxError)


# -- doors


def read(path: str) -> str:
    return Path(path).read_text()


@pytest.fixture
def note(tmp_path) -> str:
    (tmp_path / "note.txt").write_text("a,b\n1,2\n")
    return str(tmp_path / "note.txt")


def test_a_function_opens_its_own_door_and_no_other(note):
    policy = Policy.default()
    policy.fn(read, host_fs_access=True)
    policy.fn(read, name="shut")

    assert run(policy, "read(p)", p=note).value == "a,b\n1,2\n"
    assert isinstance(run(policy, "read(p); shut(p)", p=note).error, SandboxError)


def test_the_network_door_is_not_the_files_door(note):
    policy = Policy.default()
    policy.fn(read, network_access=True)

    assert isinstance(run(policy, "read(p)", p=note).error, SandboxError)


def test_a_library_with_files_reads_and_writes_paths(note, tmp_path):
    policy = granted(pd, host_fs_access=True)
    target = tmp_path / "out.csv"
    result = run(policy, "import pandas as pd; pd.read_csv(p).to_csv(t, index=False)", p=note, t=str(target))

    assert result.traceback == ""
    assert target.read_text() == "a,b\n1,2\n"


def test_a_library_with_files_still_denies_what_is_not_about_files(note):
    policy = granted(pd, host_fs_access=True)

    assert isinstance(run(policy, "df.to_hdf", df=pd.DataFrame({"a": [1]})).error, SandboxError)
    assert isinstance(run(policy, "import pandas as pd; pd.read_pickle(p)", p=note).error, AttributeError)


def test_a_reader_named_in_include_opens_the_door_as_well(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(3))
    policy = granted(np, include=("*", "load"), host_fs_access=True)

    assert run(policy, "import numpy as np; int(np.load(p).sum())", p=str(tmp_path / "a.npy")).value == 3


def test_a_database_of_the_host_is_opened_with_files(tmp_path):
    import sqlite3

    policy = granted(sqlite3, host_fs_access=True)
    path = str(tmp_path / "d.db")
    result = run(
        policy, "import sqlite3; c = sqlite3.connect(p); c.execute('create table t (a)'); c.commit()", p=path
    )

    assert result.traceback == ""
    assert Path(path).exists()
    attach = "import sqlite3; sqlite3.connect(p).execute('attach ? as x', (p + '2',))"
    assert str(run(policy, attach, p=path).error) == "not authorized"


class Reader:
    """Reads in a method, and in its constructor where it is told to."""

    def __init__(self, path: str, *, now: bool = False) -> None:
        self.path = path
        self.text = read(path) if now else ""

    def read(self) -> str:
        return read(self.path)

    @classmethod
    def of(cls, path: str) -> str:
        return read(path)


def test_methods_of_a_class_open_its_door_and_its_constructor_does_not(note):
    policy = Policy.default()
    policy.cls(Reader, host_fs_access=True)

    assert run(policy, "Reader(p).read()", p=note).value == "a,b\n1,2\n"
    assert run(policy, "Reader.of(p)", p=note).value == "a,b\n1,2\n"
    assert run(policy, "Reader.read(Reader(p))", p=note).value == "a,b\n1,2\n"
    assert isinstance(run(policy, "Reader(p, now=True)", p=note).error, SandboxError)


def test_a_door_is_shut_again_when_the_guest_calls_back(note):
    policy = Policy.default()
    policy.cls(Reader, host_fs_access=True)
    policy.fn(read, name="shut")

    assert isinstance(run(policy, "Reader(p).read(); shut(p)", p=note).error, SandboxError)


def test_a_guest_called_back_from_an_open_library_finds_other_libraries_shut(note):
    policy = granted(np)
    policy.module(pd, host_fs_access=True)
    guest = "import numpy as np; df.apply(lambda column: np.loadtxt(p, dtype=str))"

    assert "does not open" in str(run(policy, guest, df=pd.DataFrame({"a": [1]}), p=note).error)


def test_methods_of_a_live_object_open_its_door(note):
    policy = Policy.default()
    policy.module(Reader(note), name="reader", host_fs_access=True)

    assert run(policy, "reader.read()").value == "a,b\n1,2\n"


def test_functions_of_a_module_open_its_door(tmp_path, monkeypatch):
    (tmp_path / "hosttools.py").write_text("def read(p):\n    with open(p) as f: return f.read()\n")
    monkeypatch.syspath_prepend(tmp_path)
    import hosttools

    path = str(tmp_path / "hosttools.py")

    assert (
        "def read"
        in run(granted(hosttools, host_fs_access=True), "import hosttools; hosttools.read(p)", p=path).value
    )
    assert isinstance(
        run(granted(hosttools), "import hosttools; hosttools.read(p)", p=path).error, SandboxError
    )


HANDED_OVER = """
import matplotlib.figure
from agex.sandbox import Policy, Sandbox
policy = Policy.default()
policy.{registered}
axis = matplotlib.figure.Figure().subplots().xaxis
program = "axis.set_major_formatter('{{x.__reduce_ex__}}')\\naxis.get_major_formatter()(1.0)"
result = Sandbox(policy).exec(program, {{"axis": axis}})
print(result.value, type(result.error).__name__)
"""


@pytest.mark.parametrize("registered", ["module(matplotlib)", "cls(matplotlib.axis.XAxis)"])
def test_a_library_is_as_its_policy_needs_it_where_only_an_object_is_handed_over(registered):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: its policy cannot be tried")
    code = [sys.executable, "-c", HANDED_OVER.format(registered=registered)]
    done = subprocess.run(code, capture_output=True, text=True, check=True)

    assert done.stdout == "None SandboxAttributeError\n"


LOADED_LATER = """
import pyarrow, sys
from agex.sandbox import Policy, Sandbox
policy = Policy.default()
policy.module(pyarrow)
assert "pandas" not in sys.modules
program = "import pyarrow as pa\\nindex = pa.table({'a': [1]}).to_pandas().set_index(['a', 'a']).index\\ntype(index)([[1]], [[0]])"
print(Sandbox(policy).exec(program).error)
"""


def test_classes_of_a_library_that_is_loaded_later_are_sealed_as_well():
    code = [sys.executable, "-c", LOADED_LATER]
    done = subprocess.run(code, capture_output=True, text=True, check=True)

    assert done.stdout == "MultiIndex cannot be constructed here; use the instances you were given\n"


NAMED = """
class Key(str):
    def __hash__(self): return 5
    def __eq__(self, other): return str.__eq__(self, other)
"""


@pytest.mark.parametrize(
    "call",
    [
        "polars.read_csv(**{Key('source'): path})",
        "polars.DataFrame({'a': [1]}).write_csv(**{Key('file'): path})",
        "pandas.DataFrame({'a': [1]}).to_csv(**{Key('path_or_buf'): path})",
        "functools.partial(polars.read_csv, **{Key('source'): path})()",
        "sqlite3.connect(':memory:', **{Key('uri'): True})",
        "asyncio.create_task(1, **{Key('context'): path})",
    ],
)
def test_a_keyword_that_hides_from_a_look_for_it_is_refused(call, tmp_path):
    import sqlite3

    polars = pytest.importorskip("polars", reason="polars is not installed: its policy cannot be tried")
    policy = Policy.default()
    for module in (pd, polars, sqlite3):
        policy.module(module)
    path = tmp_path / "a.csv"
    path.write_text("a")

    source = f"import asyncio, functools, pandas, polars, sqlite3{NAMED}{call}"

    error = Sandbox(policy).exec(source, {"path": str(path)}).error
    assert "a keyword is a Key here" in str(error)
    assert path.read_text() == "a"


SHARED = {
    "colors of dendrograms": ("scipy", "from scipy.cluster import hierarchy as h; h.set_link_color_palette(['k'])",
                              "scipy.cluster.hierarchy", lambda m: m._link_line_colors),
    "endings of images": ("PIL", "from PIL import Image; Image.registered_extensions().clear()",
                          "PIL.Image", lambda m: m.registered_extensions()),
}  # fmt: skip


@pytest.mark.parametrize("name", SHARED)
def test_tables_of_a_library_stay_the_hosts(name):
    library, source, home, look = SHARED[name]
    policy = Policy.default()
    policy.module(
        pytest.importorskip(library, reason=f"{library} is not installed: its policy cannot be tried")
    )
    before = copy.copy(look(importlib.import_module(home)))

    Sandbox(policy).exec(source)

    assert look(importlib.import_module(home)) == before


def test_what_a_library_leaves_out_of_a_submodule_is_named_by_its_path() -> None:
    policy = Policy.default()
    policy.module(np, exclude=["_*", "*._*", "linalg.inv", "numpy.sort"])

    for program in ("np.linalg.inv([[1]])", "np.sort([1])", "from numpy.linalg import inv"):
        assert Sandbox(policy).exec(f"import numpy as np\n{program}").error is not None
    assert Sandbox(policy).exec("import numpy as np\nfloat(np.linalg.det([[1]]))").value == 1.0
