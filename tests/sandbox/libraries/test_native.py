"""Libraries that open files in native code: what takes a path is not handed out."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.fs
import pyarrow.ipc
import pyarrow.json
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

from agex.files import connect_fs
from agex.sandbox import Policy, Sandbox

READERS = {
    "parquet": "import pyarrow.parquet as pq\npq.read_table(PATH)",
    "parquet file": "import pyarrow.parquet as pq\npq.ParquetFile(PATH)",
    "parquet writer": "import pyarrow.parquet as pq\npq.write_table(pa.table({'a': [1]}), PATH)",
    "csv": "import pyarrow.csv\npyarrow.csv.read_csv(PATH)",
    "open csv": "import pyarrow.csv\npyarrow.csv.open_csv(PATH)",
    "json": "import pyarrow.json\npyarrow.json.read_json(PATH)",
    "feather": "import pyarrow.feather\npyarrow.feather.read_table(PATH)",
    "orc": "import pyarrow.orc\npyarrow.orc.ORCFile(PATH)",
    "dataset": "import pyarrow.dataset\npyarrow.dataset.dataset(PATH)",
    "file system": "import pyarrow.fs\npyarrow.fs.LocalFileSystem()",
    "file": "pa.OSFile(PATH)",
    "memory map": "pa.memory_map(PATH)",
    "stream": "pa.input_stream(PATH)",
    "output": "pa.output_stream(PATH + '2')",
    "file of records": "import pyarrow.ipc\npyarrow.ipc.open_file(PATH)",
    "through a submodule": "pa.parquet.read_table(PATH)",
}


@pytest.fixture
def path(tmp_path):
    pq.write_table(pa.table({"a": ["secret"]}), tmp_path / "a.parquet")
    return str(tmp_path / "a.parquet")


def sandbox(**settings) -> Sandbox:
    policy = Policy.default()
    policy.module(pa, **settings)
    return Sandbox(policy, fs=connect_fs())


@pytest.mark.parametrize("program", READERS.values(), ids=READERS)
def test_what_opens_files_below_python_is_left_out(program, path, tmp_path):
    result = sandbox().exec(f"import pyarrow as pa\n{program}", {"PATH": path})
    assert isinstance(result.error, AttributeError | ImportError)
    assert [each.name for each in tmp_path.iterdir()] == ["a.parquet"]


def test_the_rest_of_the_library_works():
    program = (
        "import pyarrow as pa\nimport pyarrow.compute as pc\npc.sum(pa.table({'a': [1, 2]})['a']).as_py()"
    )
    assert sandbox().exec(program).value == 3


def test_a_registration_with_the_hosts_files_has_all_of_it(path):
    program = "import pyarrow.parquet as pq\npq.read_table(PATH).to_pydict()"
    assert sandbox(host_fs_access=True).exec(program, {"PATH": path}).value == {"a": ["secret"]}
