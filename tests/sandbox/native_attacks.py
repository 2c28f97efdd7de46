"""Programs that have compiled libraries open files of the host, for every place where guests run.

The variables are ``FOLDER``, which has the files of `put_secrets`, and ``OUT``, a path beside them.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import matplotlib as mpl
import numpy as np
import PIL.Image
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.fs
import pyarrow.json
import pyarrow.orc
import pyarrow.parquet as pq
import scipy

__all__ = ["ATTACKS", "LIBRARIES", "ON_OBJECTS", "put_secrets"]

LIBRARIES = (np, pa, pl, scipy, PIL)


def put_secrets(folder: Path) -> dict[str, bytes]:
    """Write a table that no guest may see, in each format, and return the files."""
    table = pa.table({"a": ["secret"]})
    pq.write_table(table, folder / "a.parquet")
    pa.feather.write_feather(table, str(folder / "a.arrow"), compression="uncompressed")
    pa.orc.write_table(table, str(folder / "a.orc"))
    (folder / "a.csv").write_text("a\nsecret\n")
    (folder / "a.json").write_text('[{"a": "secret"}]')
    (folder / "a.ndjson").write_text('{"a": "secret"}\n')
    pl.DataFrame({"a": ["secret"]}).write_avro(folder / "a.avro")
    (folder / "a.mtx").write_text("%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 42.0\n")
    PIL.Image.new("1", (1, 1)).save(folder / "a.png")
    shutil.copy(Path(mpl.get_data_path(), "fonts/ttf/DejaVuSans.ttf"), folder / "a.ttf")
    return {each.name: each.read_bytes() for each in folder.iterdir()}


_FORGED = """import io, struct, pyarrow.feather
def made(kind):
    sink = io.BytesIO()
    with getattr(pa.ipc, 'new_' + kind)(sink, T.schema) as writer: writer.write_table(pa.table({'a': ['xx', 'yyy']}))
    return sink.getvalue().replace(struct.pack('<3i', 0, 2, 5), struct.pack('<3i', 0, 1 << 30, 5))
def open(kind): return getattr(pa.ipc, 'open_' + kind)(io.BytesIO(made(kind)))
"""

_ARROW = {
    "parquet": "import pyarrow.parquet as pq\nx = pq.read_table(FOLDER + 'a.parquet')",
    "parquet of a folder": "import pyarrow.parquet as pq\nx = pq.read_table(FOLDER)",
    "parquet by a file system": "import pyarrow.parquet as pq\nx = pq.read_table('a.parquet', filesystem='file://' + FOLDER)",
    "parquet by URL": "import pyarrow.parquet as pq\nx = pq.read_table('file://' + FOLDER + 'a.parquet')",
    "parquet file": "import pyarrow.parquet as pq\nx = pq.ParquetFile(FOLDER + 'a.parquet').read()",
    "parquet's reader": "import io\nimport pyarrow.parquet as pq\nb = io.BytesIO()\npq.write_table(T, b)\nr = type(pq.ParquetFile(b).reader)()\nr.open(FOLDER + 'a.parquet')\nx = r.read_all()",
    "parquet data set": "import pyarrow.parquet as pq\nx = pq.ParquetDataset(FOLDER).read()",
    "parquet schema": "import pyarrow.parquet as pq\nx = pq.read_schema(FOLDER + 'a.parquet')",
    "parquet metadata": "import pyarrow.parquet as pq\nx = pq.read_metadata(FOLDER + 'a.parquet')",
    "parquet writes": "import pyarrow.parquet as pq\npq.write_table(T, OUT, filesystem='file:///')",
    "parquet writer": "import pyarrow.parquet as pq\npq.ParquetWriter(OUT, T.schema).write_table(T)",
    "parquet partitions": "import pyarrow.parquet as pq\npq.write_to_dataset(T, OUT)",
    "parquet writes metadata": "import pyarrow.parquet as pq\npq.write_table(T, 'a')\npq.read_metadata('a').write_metadata_file(OUT)",
    "parquet's own module": "import pyarrow.parquet.core as c\nx = c.read_table(FOLDER + 'a.parquet')",
    "csv": "import pyarrow.csv as c\nx = c.read_csv(FOLDER + 'a.csv')",
    "csv by a path of its own": "import pyarrow.csv as c\nclass P:\n    def __fspath__(self): return FOLDER + 'a.csv'\nx = c.read_csv(P())",
    "csv by a text of its own": "import pyarrow.csv as c\nclass S(str):\n    def __str__(self): return 'x'\nx = c.read_csv(S(FOLDER + 'a.csv'))",
    "csv by bytes": "import pyarrow.csv as c\nx = c.read_csv((FOLDER + 'a.csv').encode()).column_names[5]",
    "csv by a Path": "import pyarrow.csv as c\nfrom pathlib import Path\nx = c.read_csv(Path(FOLDER + 'a.csv'))",
    "csv opened": "import pyarrow.csv as c\nx = c.open_csv(FOLDER + 'a.csv').read_all()",
    "csv writer": "import pyarrow.csv as c\nc.CSVWriter(OUT, T.schema).write(T)",
    "json": "import pyarrow.json as j\nx = j.read_json(FOLDER + 'a.ndjson')",
    "json opened": "import pyarrow.json as j\nx = j.open_json(FOLDER + 'a.ndjson').read_all()",
    "feather": "import pyarrow.feather as f\nx = f.read_table(FOLDER + 'a.arrow')",
    "feather to pandas": "import pyarrow.feather as f\nx = f.read_feather(FOLDER + 'a.arrow')",
    "feather mapped": "import pyarrow.feather as f\nx = f.read_table(FOLDER + 'a.arrow', memory_map=True)",
    "feather data set": "import pyarrow.feather as f\nx = f.FeatherDataset([FOLDER + 'a.arrow']).read_table()",
    "orc": "import pyarrow.orc as o\nx = o.read_table(FOLDER + 'a.orc')",
    "orc file": "import pyarrow.orc as o\nx = o.ORCFile(FOLDER + 'a.orc').read()",
    "orc writer": "import pyarrow.orc as o\no.ORCWriter(OUT).write(T)",
    "data set": "import pyarrow.dataset as d\nx = d.dataset(FOLDER + 'a.parquet').to_table()",
    "data set written": "import pyarrow.dataset as d\nd.write_dataset(T, OUT, format='csv')",
    "file system": "import pyarrow.fs as f\nx = f.LocalFileSystem().open_input_file(FOLDER + 'a.csv').read()",
    "file system by attribute": "x = pa.fs.LocalFileSystem()",
    "substrait": "import pyarrow.substrait as s\nx = s.run_query(b'')",
    "acero": "import pyarrow.acero as a\nx = a.Declaration",
    "flight": "import pyarrow.flight as f\nx = f.connect('grpc://localhost:1')",
    "file": "x = pa.OSFile(FOLDER + 'a.csv').read()",
    "file by the core": "x = pa.lib.OSFile(FOLDER + 'a.csv').read()",
    "file by the core imported": "import pyarrow.lib as lib\nx = lib.OSFile(FOLDER + 'a.csv').read()",
    "memory map": "x = pa.memory_map(FOLDER + 'a.csv').read()",
    "memory map class": "x = pa.MemoryMappedFile",
    "memory map made": "pa.create_memory_map(OUT, 10)",
    "input stream": "x = pa.input_stream(FOLDER + 'a.csv').read()",
    "output stream": "pa.output_stream(OUT).write(b'x')",
    "compressed in": "x = pa.CompressedInputStream(FOLDER + 'a.csv', 'gzip').read()",
    "compressed out": "pa.CompressedOutputStream(OUT, 'gzip').write(b'x')",
    "transcoded": "x = pa.transcoding_input_stream(FOLDER + 'a.csv', 'utf8', 'utf8')",
    "download": "pa.BufferReader(b'x').download(OUT)",
    "upload": "pa.BufferOutputStream().upload(open('a', 'w'))",
    "records file": "import pyarrow.ipc as i\nx = i.open_file(FOLDER + 'a.arrow').read_all()",
    "records of the top": "x = pa.ipc.open_file(FOLDER + 'a.arrow').read_all()",
    "records reader": "x = pa.RecordBatchFileReader(FOLDER + 'a.arrow').read_all()",
    "records reader of ipc": "import pyarrow.ipc as i\nx = i.RecordBatchFileReader(FOLDER + 'a.arrow').read_all()",
    "records stream": "import pyarrow.ipc as i\nx = i.open_stream(FOLDER + 'a.arrow').read_all()",
    "records written": "import pyarrow.ipc as i\ni.new_file(OUT, T.schema).close()",
    "records reader by its class": "import io\nb = io.BytesIO()\npa.ipc.new_file(b, T.schema).close()\nx = type(pa.ipc.open_file(b))(FOLDER + 'a.arrow').read_all()",
    "records written by their class": "import io\ntype(pa.ipc.new_stream(io.BytesIO(), T.schema))(OUT, T.schema).close()\nx.y",
    "parquet file by its class": "import io\nimport pyarrow.parquet as pq\nb = io.BytesIO()\npq.write_table(T, b)\nx = type(pq.ParquetFile(b))(FOLDER + 'a.parquet').read()",
    **{
        f"forged offsets, {how}": f"{_FORGED}x = {text}"
        for how, text in {
            "all of a stream": "open('stream').read_all()['a'].to_pylist()",
            "a batch of a stream": "open('stream').read_next_batch()['a'].to_pylist()",
            "batches of a stream": "[b['a'].to_pylist() for b in open('stream')]",
            "a stream to a table": "pa.table(open('stream'))['a'].to_pylist()",
            "a stream to pandas": "open('stream').read_pandas().to_dict()",
            "all of a file": "open('file').read_all()['a'].to_pylist()",
            "a batch of a file": "open('file').get_batch(0)['a'].to_pylist()",
            "a file to pandas": "open('file').read_pandas().to_dict()",
            "feather": "pyarrow.feather.read_table(io.BytesIO(made('file')))['a'].to_pylist()",
            "feather to pandas": "pyarrow.feather.read_feather(io.BytesIO(made('file'))).to_dict()",
            "a frame": "pa.ipc.deserialize_pandas(made('stream')).to_dict()",
        }.items()
    },
    "records stream written": "import pyarrow.ipc as i\ni.new_stream(OUT, T.schema).close()",
    "message": "import pyarrow.ipc as i\nx = i.read_message(FOLDER + 'a.arrow')",
    "message reader": "import pyarrow.ipc as i\nx = i.MessageReader.open_stream(FOLDER + 'a.arrow')",
    "zones of the process": "pa.set_timezone_db_path(FOLDER)",
    "memory at an address": "x = pa.foreign_buffer(1, 1)",
    "an address": "x = pa.array([1]).buffers()[1].address",
    "memory as an array": "x = pa.Array.from_buffers(pa.int64(), 10, [None, pa.BufferReader(b'x').read_buffer()])",
    "bytes read into references": "import numpy as np\npa.BufferReader(bytes(8)).readinto(np.array([None]))",
    "bytes into references": "import numpy as np\npa.py_buffer(np.array([None]))",
    "beyond an array": "x = pa.array([1]).take(pa.array([9999]), boundscheck=False)",
    "beyond an array by compute": "import pyarrow.compute as pc\nx = pc.take(pa.array([1]), pa.array([9999]), boundscheck=False)",
    "beyond an array by its options": "import pyarrow.compute as pc\nx = pc.TakeOptions(boundscheck=False)",
    "beyond an array by name": "import pyarrow.compute as pc\nx = pc.call_function('take', [pa.array([1]), pa.array([0])])",
    "positions beyond a sparse tensor": "import numpy as np\npa.SparseCSRMatrix.from_numpy(np.array([1.0]), np.array([0, 10**9]), np.array([0]), shape=(1, 1)).to_tensor()",
    "a plan": "import pyarrow.compute as pc\nx = pc.Expression.from_substrait(b'')",
    "a function of the process": "import pyarrow.compute as pc\npc.register_scalar_function",
    "offsets beyond the values": "x = pa.ListArray.from_arrays(pa.array([0, 9999], pa.int32()), pa.array([1]))",
    "a dictionary beyond its end": "x = pa.DictionaryArray.from_arrays(pa.array([9]), pa.array(['a']), safe=False)",
}  # fmt: skip

_POLARS = {
    **{
        f"{how} {kind}": f"x = pl.{how}_{kind}(FOLDER + 'a.{end}')"
        for how in ("read", "scan")
        for kind, end in (("csv", "csv"), ("parquet", "parquet"), ("ipc", "arrow"), ("ndjson", "ndjson"))
    },
    "read json": "x = pl.read_json(FOLDER + 'a.json')",
    "read avro": "x = pl.read_avro(FOLDER + 'a.avro')",
    "read lines": "x = pl.read_lines(FOLDER + 'a.csv')",
    "scan lines": "x = pl.scan_lines(FOLDER + 'a.csv')",
    "read schema": "x = pl.read_parquet_schema(FOLDER + 'a.parquet')",
    "read metadata": "x = pl.read_parquet_metadata(FOLDER + 'a.parquet')",
    "read ipc schema": "x = pl.read_ipc_schema(FOLDER + 'a.arrow')",
    "read ipc stream": "x = pl.read_ipc_stream(FOLDER + 'a.arrow')",
    "read excel": "x = pl.read_excel(FOLDER + 'a.xlsx')",
    "read database": "x = pl.read_database_uri('select 1', 'sqlite://' + FOLDER + 'a.db')",
    "read the clipboard": "x = pl.read_clipboard()",
    "a pattern": "x = pl.read_csv(FOLDER + '*.csv')",
    "a list": "x = pl.read_csv([FOLDER + 'a.csv'])",
    "a URL": "x = pl.read_csv('file://' + FOLDER + 'a.csv')",
    "a Path": "from pathlib import Path\nx = pl.read_csv(Path(FOLDER + 'a.csv'))",
    "a path of its own": "class P:\n    def __fspath__(self): return FOLDER + 'a.csv'\nx = pl.read_csv(P())",
    "a text of its own": "class S(str):\n    def __str__(self): return 'x'\nx = pl.read_csv(S(FOLDER + 'a.csv'))",
    "a path by name": "x = pl.read_csv(source=FOLDER + 'a.csv')",
    "deleted rows": "import io\nb = io.BytesIO()\nF.write_parquet(b)\nx = pl.scan_parquet(b, _deletion_files=('iceberg-position-delete', {0: [FOLDER + 'a.parquet']})).collect()",
    "options of arrow": "F.write_parquet('a')\nx = pl.read_parquet('a', use_pyarrow=True, pyarrow_options={'filesystem': 'file://' + FOLDER})",
    "sql of the module": "x = pl.sql(f\"select * from read_csv('{FOLDER}a.csv')\").collect()",
    "sql of a frame": "x = F.sql(f\"select * from read_csv('{FOLDER}a.csv')\")",
    "sql of a lazy frame": "x = F.lazy().sql(f\"select * from read_csv('{FOLDER}a.csv')\").collect()",
    "sql of a column": "x = F['a'].sql(f\"select * from read_csv('{FOLDER}a.csv')\")",
    "sql of a context": "x = pl.SQLContext().execute(f\"select * from read_csv('{FOLDER}a.csv')\").collect()",
    "a plan": "import io\nx = pl.LazyFrame.deserialize(io.BytesIO(b'{}'), format='json')",
    "bytes that are no text": "import pyarrow as pa\npl.from_arrow(pa.array([b'\\xf0']).cast(pa.string(), safe=False)).str.to_uppercase()",
    "bytes that are no text, in a series": "import pyarrow as pa\npl.Series('a', pa.array([b'\\xf0']).cast(pa.string(), safe=False)).str.to_uppercase()",
    "bytes that are no text, in a batch": "import pyarrow as pa\npl.DataFrame(pa.record_batch([pa.array([b'\\xf0']).cast(pa.string(), safe=False)], names=['a'])).select(pl.col('a').str.to_uppercase())",
    "bytes that are no text, in a table": "import pyarrow as pa\npl.DataFrame(pa.table({'a': pa.array([b'\\xf0']).cast(pa.string(), safe=False)})).select(pl.col('a').str.to_uppercase())",
    "an expression": "import io\nx = pl.Expr.deserialize(io.BytesIO(b'{}'), format='json')",
    "a plan of a frame": "x = F.lazy().deserialize(FOLDER + 'a.json')",
    "a frame by its class": "x = type(F).deserialize(FOLDER + 'a.json')",
    "a plan written": "F.lazy().serialize(OUT)",
    "an expression written": "pl.col('a').meta.serialize(OUT)",
    "an expression as json": "pl.col('a').meta.write_json(OUT)",
    "write with directories": "F.write_parquet(OUT + '/a', mkdir=True)",
    "write partitions": "F.write_parquet('a', partition_by='a', use_pyarrow=True)",
    "write options of arrow": "F.write_parquet('a', use_pyarrow=True, pyarrow_options={'filesystem': 'file:///'})",
    "write delta": "F.write_delta(OUT)",
    "write excel": "F.write_excel(OUT)",
    "write database": "F.write_database('t', 'sqlite://' + OUT)",
    "write the clipboard": "F.write_clipboard()",
    **{f"sink {kind}": f"F.lazy().sink_{kind}(OUT)" for kind in ("csv", "parquet", "ipc", "ndjson")},
    "write unbound": "[write(F, OUT) for write in [pl.DataFrame.write_delta]]",
    "sink unbound": "pl.LazyFrame.sink_csv(F.lazy(), OUT)",
    "a graph": "F.lazy().show_graph(output_path=OUT, show=False)",
    "a plugin": "pl.plugins.register_plugin_function(plugin_path=OUT, function_name='f', args=[])",
    "a plugin by import": "from polars.plugins import register_plugin_function",
    "io by import": "import polars.io",
    "the core": "import polars._plr",
    "options of compiled code": "pl.Config.set_streaming_chunk_size(1)",
    "options by their text": "pl.Config.load('{}')",
    "credentials": "pl.Config.set_default_credential_provider(None)",
    "an option by its constructor": "pl.Config(verbose=True)",
    "sql that reads": "F.sql(f\"select * from read_csv('{FOLDER}a.csv')\")",
    "sql that reads a name in quotes": "F.sql(f'select * from \"read_csv\"(\\'{FOLDER}a.csv\\')')",
    "sql that reads in capitals": "F.lazy().sql(f\"select * from READ_PARQUET('{FOLDER}a.parquet')\")",
    "sql with a comment": "pl.sql(f\"select * from read_csv/**/('{FOLDER}a.csv')\")",
    "sql of a context that reads": "pl.SQLContext(f=F).execute(f\"select * from read_ipc('{FOLDER}a.ipc')\")",
    "sql that writes": "pl.SQLContext(f=F).execute(f\"copy f to '{OUT}'\")",
    "catalogs": "pl.SQLContext(f=F).register_catalog('c', 'x')",
    "options from a file": "pl.Config.load_from_file(FOLDER + 'a.json')",
    "classes of the host": "pl.api.register_dataframe_namespace('mine')(object)",
    "the seed of the process": "pl.set_random_seed(1)",
    "a remote query": "F.lazy().remote()",
    "a plot": "F.plot",
    "a text that walks": "F.lazy().inspect('{0.__class__.__init__.__globals__[os].environ}').collect()",
    "a text that walks a column": "F.select(pl.col('a').inspect('{0.__class__.__init__.__globals__[os].environ}'))",
}  # fmt: skip

_SCIPY = {
    "how the host solves equations": "import scipy.integrate\nscipy.integrate.RK45.A",
    "matrix market": "import scipy.io\nx = scipy.io.mmread(FOLDER + 'a.mtx')",
    "matrix market by its module": "import scipy.io._mmio as m\nx = m.mmread(FOLDER + 'a.mtx')",
    "matrix of a workspace's name": "import scipy.sparse\nx = scipy.sparse.load_npz(FOLDER + 'a.npz')",
    "hull": "H(P, qhull_options=\"TO '\" + OUT + \"'\")",
    "hull by position": "H(P, False, \"TO '\" + OUT + \"'\")",
    "triangles": "import scipy.spatial\nscipy.spatial.Delaunay(P, qhull_options=\"TO '\" + OUT + \"'\")",
    "hull by its class": "type(H(P))(P, qhull_options=\"TO '\" + OUT + \"'\").close()\nx.y",
    "positions beyond a matrix": "import scipy.sparse\nscipy.sparse.csr_matrix(([1.0], [10**9], [0, 1]), shape=(1, 1)).toarray()",
    "positions beyond blocks": "import scipy.sparse\nimport numpy as np\nscipy.sparse.bsr_matrix((np.ones((1, 1, 1)), [10**9], [0, 1]), shape=(1, 1)).toarray()",
    "positions beyond a matrix, later": "import scipy.sparse\nimport numpy as np\ni = np.array([0], 'i4')\nm = scipy.sparse.csr_array(([1.0], i, [0, 1]), shape=(1, 1))\ni[0] = 10**9\nassert m.toarray().tolist() != [[1.0]]",
    "positions beyond pairs, later": "import scipy.sparse\nimport numpy as np\ni = np.array([0], 'i4')\nm = scipy.sparse.coo_matrix(([1.0], (i, [0])), shape=(1, 1))\ni[0] = 10**9\nassert m.toarray().tolist() != [[1.0]]",
    "regression": "import scipy.odr as o\no.ODR(o.Data([1, 2], [1, 2]), o.Model(lambda b, x: b[0] * x), beta0=[1.0], rptfile=OUT).run()",
    "data sets": "import scipy.datasets\nscipy.datasets.face()",
    "callables": "from scipy import LowLevelCallable",
}  # fmt: skip

_PILLOW = {
    "image": "from PIL import Image\nx = Image.open(FOLDER + 'a.png')",
    "image by a Path": "from PIL import Image\nfrom pathlib import Path\nx = Image.open(Path(FOLDER + 'a.png'))",
    "font": "from PIL import ImageFont\nx = ImageFont.truetype(FOLDER + 'a.ttf')",
    "font by name": "from PIL import ImageFont\nx = ImageFont.truetype('DejaVuSans.ttf')",
    "font by bytes": "from PIL import ImageFont\nx = ImageFont.truetype((FOLDER + 'a.ttf').encode())",
    "font by its class": "from PIL import ImageFont\nx = ImageFont.FreeTypeFont(FOLDER + 'a.ttf')",
    "font by another": "from PIL import ImageFont\nx = ImageFont.load_default().font_variant(font=FOLDER + 'a.ttf')",
    "font by the class of one": "from PIL import ImageFont\nx = type(ImageFont.load_default())(FOLDER + 'a.ttf')",
    "the core of a font": "from PIL import ImageFont\nx = ImageFont.load_default().font",
    "the core": "from PIL import Image\nx = Image.core",
    "a file of the process by its number, written": "from PIL import Image\nwith open('a', 'wb') as f: Image.new('RGB', (1, 1)).tobytes('libtiff', 'RGB', 'raw', 2, [], {})",
    "a file of the process by its number, read": "from PIL import Image\nImage.frombytes('RGB', (1, 1), b'', 'libtiff', 'RGB', 2, 0)\nx.y",
    "a file of the process by its number, read into": "from PIL import Image\nImage.new('RGB', (1, 1)).frombytes(b'', 'libtiff', 'RGB', 2, 0)\nx.y",
    "how an image is decoded": "from PIL import Image\nimport io\nb = io.BytesIO()\nImage.new('1', (1, 1)).save(b, 'PNG')\nx = Image.open(b).tile",
    "the core of an image": "from PIL import Image\nx = Image.new('1', (1, 1)).im",
    "a profile": "import PIL.ImageCms\nx = PIL.ImageCms.getOpenProfile(FOLDER + 'a.png')",
    "the screen": "import PIL.ImageGrab\nx = PIL.ImageGrab.grab()",
    "a window": "from PIL import Image\nImage.new('1', (1, 1)).show()",
    "a format of the process": "from PIL import Image\nImage.register_open('X', print)",
}  # fmt: skip

ATTACKS = {
    **{f"pyarrow: {name}": f"import pyarrow as pa\nT = pa.table({{'a': ['x']}})\n{text}" for name, text in _ARROW.items()},
    **{f"polars: {name}": f"import polars as pl\nF = pl.DataFrame({{'a': ['x']}})\n{text}" for name, text in _POLARS.items()},
    **{f"scipy: {name}": f"from scipy.spatial import ConvexHull as H\nP = [(0, 0), (0, 1), (1, 0)]\n{text}" for name, text in _SCIPY.items()},
    **{f"pillow: {name}": text for name, text in _PILLOW.items()},
}  # fmt: skip

ON_OBJECTS = {
    "polars writes": "FRAME.write_csv(OUT, compression_level=None, storage_options=None)",
    "polars writes parquet": "FRAME.write_parquet(OUT, mkdir=True)",
    "polars sinks": "FRAME.lazy().sink_csv(OUT)",
    "polars queries": "x = FRAME.sql(f\"select * from read_csv('{FOLDER}/a.csv')\")",
    "polars queries by name": "x = getattr(FRAME, 's' + 'ql')(f\"select * from read_csv('{FOLDER}/a.csv')\")",
    "polars reads by its class": "x = type(FRAME).deserialize(FOLDER + '/a.json')",
    "arrow to polars": "FRAME.to_arrow().schema.field('a')\nFRAME.lazy().sink_ipc(OUT)",
    "arrow downloads": "ARROW.download(OUT)",
    "arrow gives addresses": "x = TABLE.column('a').chunk(0).buffers()[1].address",
}
"""Programs of code that has objects of the libraries, which are not registered."""
