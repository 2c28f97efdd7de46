"""Libraries that open files in compiled code: they meet the workspace, or are refused.

Stopped by: sandbox.policy.native, sandbox.libraries.argument_checks.
"""

from __future__ import annotations

import dbm
import sqlite3
import ssl
from pathlib import Path

import jiter
import matplotlib as mpl
import pandas.io.parquet
import polars as pl
import pyarrow as pa
import pyarrow.fs
import pytest
from native_attacks import ATTACKS, LIBRARIES, ON_OBJECTS, put_secrets
from polars import io as polars_io

from agex.errors import DefinitionError
from agex.files import connect_fs
from agex.sandbox import Policy, Sandbox


@pytest.fixture
def secrets(tmp_path):
    """A folder of the host: nothing in it is seen, and nothing of it changes."""
    files = put_secrets(tmp_path)
    yield tmp_path
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == files


def sandbox(*modules, fs=None, **settings) -> Sandbox:
    policy = Policy.default()
    for module in modules:
        policy.module(module, **settings)
    return Sandbox(policy, fs=connect_fs() if fs is None else fs)


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_no_library_leads_to_the_hosts_files(attack, secrets):
    names = {"FOLDER": f"{secrets}/", "OUT": f"{secrets}/new"}
    result = sandbox(*LIBRARIES).exec(attack, names)
    assert result.error is not None
    assert "secret" not in repr(result.namespace.get("x"))


@pytest.mark.parametrize("attack", ON_OBJECTS.values(), ids=ON_OBJECTS)
def test_nor_do_objects_of_libraries_that_are_not_registered(attack, secrets):
    table = pa.table({"a": ["x"]})
    objects = {"FRAME": pl.DataFrame({"a": ["x"]}), "TABLE": table, "ARROW": pa.BufferReader(b"x")}
    result = sandbox().exec(attack, {"FOLDER": str(secrets), "OUT": f"{secrets}/new", **objects})
    assert result.error is not None
    assert "secret" not in repr(result.namespace.get("x"))


POLARS = {
    "csv": "F.write_csv('d/a')\nout = pl.read_csv('d/a')",
    "parquet": "F.write_parquet('a', compression='zstd')\nout = pl.read_parquet('a')",
    "ipc": "F.write_ipc('a')\nout = pl.read_ipc('a')",
    "ndjson": "F.write_ndjson('a')\nout = pl.read_ndjson('a')",
    "json": "F.write_json('a')\nout = pl.read_json('a')",
    "avro": "F.write_avro('a')\nout = pl.read_avro('a')",
    "scan csv": "F.write_csv('a')\nout = pl.scan_csv('a').filter(pl.col('n') > 0).collect()",
    "scan parquet": "F.write_parquet('a')\nout = pl.scan_parquet('a').select('n', 't').collect()",
    "scan ipc": "F.write_ipc('a')\nout = pl.scan_ipc('a').collect()",
    "scan ndjson": "F.write_ndjson('a')\nout = pl.scan_ndjson('a').collect()",
    "a path": "from pathlib import Path\nF.write_csv(Path('a'))\nout = pl.read_csv(source=Path('a'))",
    "an open text": "with open('a', 'w') as f: F.write_csv(f)\nout = pl.read_csv(open('a'))",
    "open bytes": "with open('a', 'wb') as f: F.write_csv(f)\nout = pl.read_csv(open('a', 'rb'))",
    "text in memory": "import io\ns = io.StringIO()\nF.write_csv(s)\nout = pl.read_csv(io.StringIO(s.getvalue()))",
    "bytes in memory": "import io\nb = io.BytesIO()\nF.write_csv(b)\nout = pl.read_csv(io.BytesIO(b.getvalue()))",
    "the text": "import io\nout = pl.read_csv(io.StringIO(F.write_csv()))",
    "unbound": "pl.DataFrame.write_csv(F, 'a')\nout = pl.read_csv('a')",
    "by way of pandas": "out = pl.from_pandas(F.to_pandas())",
    "selectors": "import polars.selectors as cs\nout = F.with_columns(cs.numeric() * 1)",
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("program", POLARS.values(), ids=POLARS)
def test_polars_works_in_the_workspace(program):
    start = "import polars as pl\nF = pl.DataFrame({'n': [1, 2], 't': ['x', 'é']})\n"
    result = sandbox(*LIBRARIES).exec(start + program)
    assert result.traceback == ""
    assert result.namespace["out"].equals(pl.DataFrame({"n": [1, 2], "t": ["x", "é"]}))


ARROW = {
    "sorting": "import pyarrow.compute as c\nout = T.take(c.sort_indices(T, options=c.SortOptions(sort_keys=[('n', 'ascending')])))",
    "parquet": "import pyarrow.parquet as q\nq.write_table(T, 'a', compression='zstd')\nout = q.read_table('a', columns=['n', 't'])",
    "parquet file": "import pyarrow.parquet as q\nq.write_table(T, 'a')\nout = q.ParquetFile('a').read()",
    "open parquet": "import pyarrow.parquet as q\nq.write_table(T, 'a')\nwith open('a', 'rb') as f: out = q.read_table(f)",
    "parquet in memory": "import pyarrow.parquet as q\ns = pa.BufferOutputStream()\nq.write_table(T, s)\nout = q.read_table(pa.BufferReader(s.getvalue()))",
    "csv": "import pyarrow.csv as c\nc.write_csv(T, 'd/a')\nout = c.read_csv('d/a', read_options=c.ReadOptions(use_threads=False))",
    "json": "import pyarrow.json as j\nopen('a', 'w').write('{\"n\": 1, \"t\": \"x\"}\\n{\"n\": 2, \"t\": \"é\"}')\nout = j.read_json('a')",
    "feather": "import pyarrow.feather as f\nf.write_feather(T, 'a')\nout = f.read_table('a')",
    "orc": "import pyarrow.orc as o\no.write_table(T, 'a')\nout = o.read_table('a')",
    "records": "import pyarrow.ipc as i\nwith open('a', 'wb') as f, i.new_file(f, T.schema) as w: w.write_table(T)\nwith open('a', 'rb') as f: out = i.open_file(f).read_all()",
    "records in memory": "s = pa.BufferOutputStream()\nwith pa.ipc.new_stream(s, T.schema) as w: w.write_table(T)\nout = pa.ipc.open_stream(s.getvalue()).read_all()",
    "compute": "import pyarrow.compute as pc\nout = T.filter(pc.field('n') > 0).take(pc.array_take(pa.array([0, 1]), pa.array([0, 1])))",
    "by way of pandas": "out = pa.Table.from_pandas(T.to_pandas()).replace_schema_metadata()",
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("program", ARROW.values(), ids=ARROW)
def test_pyarrow_works_in_the_workspace(program):
    result = sandbox(*LIBRARIES).exec(
        f"import pyarrow as pa\nT = pa.table({{'n': [1, 2], 't': ['x', 'é']}})\n{program}"
    )
    assert result.traceback == ""
    assert result.namespace["out"].cast(pa.schema({"n": pa.int64(), "t": pa.string()})).to_pydict() == {
        "n": [1, 2],
        "t": ["x", "é"],
    }


SCIPY = {
    "statistics": "import scipy.stats\nout = scipy.stats.norm.cdf(0.0) == 0.5",
    "optimization": "from scipy import optimize\nout = optimize.brentq(lambda x: x - 1, 0, 3) == 1",
    "algebra": "import scipy.linalg as la\nout = la.det([[2.0]]) == 2",
    "sparse": "import scipy.sparse as s\ns.save_npz('d/a.npz', s.eye(2).tocsr())\nout = s.load_npz('d/a.npz').sum() == 2",
    "hull": "from scipy.spatial import ConvexHull\nout = ConvexHull([(0, 0), (0, 1), (1, 0)]).volume == 0.5",
    "signal": "from scipy import signal, fft\nout = len(signal.windows.hann(3)) == len(fft.fft([1, 2, 3]))",
    "special": "from scipy.special import gamma\nout = gamma(5) == 24",
}  # fmt: skip


@pytest.mark.parametrize("program", SCIPY.values(), ids=SCIPY)
def test_scipy_works_in_the_workspace(program):
    result = sandbox(*LIBRARIES).exec(program)
    assert result.traceback == ""
    assert result.namespace["out"]


PILLOW = {
    "file": "Image.new('RGB', (3, 2), 'red').save('d/a.png')\nout = Image.open('d/a.png')",
    "jpeg": "Image.new('RGB', (3, 2)).save('a.jpg', quality=90)\nout = Image.open('a.jpg')",
    "tiff": "Image.new('RGB', (3, 2)).save('a.tif', compression='tiff_lzw')\nout = Image.open('a.tif')",
    "bmp": "Image.new('RGB', (3, 2)).save('a.bmp')\nout = Image.open('a.bmp').convert('L')",
    "open file": "Image.new('RGB', (3, 2)).save('a.png')\nwith open('a.png', 'rb') as f: out = Image.open(f)",
    "memory": "import io\nb = io.BytesIO()\nImage.new('L', (3, 2)).save(b, 'PNG')\nout = Image.open(io.BytesIO(b.getvalue()))",
    "drawing": "from PIL import ImageDraw, ImageFont\nout = Image.new('L', (3, 2))\nImageDraw.Draw(out).text((0, 0), 'a', font=ImageFont.load_default(9))",
    "operations": "from PIL import ImageOps, ImageFilter, ImageEnhance\nout = ImageEnhance.Color(ImageOps.mirror(Image.new('RGB', (3, 2))).filter(ImageFilter.GaussianBlur(1))).enhance(2)",
    "a font of the workspace": "from PIL import ImageFont\nopen('a.ttf', 'wb').write(TTF)\nassert ImageFont.truetype('a.ttf', 9).getlength('a') > 0\nout = Image.new('L', (3, 2))",
    "an array": "import numpy as np\nout = Image.fromarray(np.zeros((2, 3), 'uint8'))",
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("program", PILLOW.values(), ids=PILLOW)
def test_pillow_works_in_the_workspace(program):
    font = Path(mpl.get_data_path(), "fonts/ttf/DejaVuSans.ttf").read_bytes()
    result = sandbox(*LIBRARIES).exec(f"from PIL import Image\n{program}\nout = out.size", {"TTF": font})
    assert result.traceback == ""
    assert result.namespace["out"] == (3, 2)


def test_what_does_not_fit_is_not_written():
    files = connect_fs(max_size_mb=0.001)
    program = "import polars as pl\npl.DataFrame({'n': ['x' * 3000]}).write_csv('a.csv')"
    result = sandbox(pl, fs=files).exec(program)
    assert isinstance(result.error, OSError)
    assert files.list("/") == []


def test_a_registration_with_the_hosts_files_reads_them(secrets):
    program = "import pyarrow.parquet as pq\nimport polars as pl\nx = pq.read_table(PATH).to_pydict(), pl.read_parquet(PATH).to_dicts()"
    done = sandbox(pa, pl, host_fs_access=True).exec(program, {"PATH": f"{secrets}/a.parquet"})
    assert done.namespace["x"] == ({"a": ["secret"]}, [{"a": "secret"}])


@pytest.mark.parametrize(
    "module", [dbm, ssl, pyarrow.fs, polars_io, pandas.io.parquet], ids=lambda m: m.__name__
)
def test_compiled_code_without_a_policy_is_refused_at_registration(module):
    with pytest.raises(DefinitionError, match=r"can open files of this machine unseen.*host_fs_access=True"):
        Policy.default().module(module)


def test_with_the_hosts_files_it_is_registered():
    policy = Policy.default()
    assert policy.module(pyarrow.fs, host_fs_access=True) is pyarrow.fs
    assert Sandbox(policy).exec("import pyarrow.fs\npyarrow.fs.LocalFileSystem().type_name").value == "local"


def test_compiled_code_that_takes_no_paths_is_registered_like_any_other():
    policy = Policy.default()
    policy.module(jiter)
    policy.module(sqlite3)
    assert Sandbox(policy).exec("import jiter\njiter.from_json(b'[1]')").value == [1]


def test_a_package_is_looked_through_for_compiled_code(tmp_path, monkeypatch):
    for name, inner in (("plain_package", "b.py"), ("compiled_package", "deep/b.so")):
        file = tmp_path / name / inner
        file.parent.mkdir(parents=True)
        file.touch()
        Path(tmp_path, name, "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    plain, compiled = __import__("plain_package"), __import__("compiled_package")
    assert Policy.default().module(plain) is plain
    with pytest.raises(DefinitionError, match="compiled_package cannot be registered"):
        Policy.default().module(compiled)
