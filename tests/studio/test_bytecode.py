"""Archives of modules with bytecode beside each source; Python takes that and compiles nothing."""

from __future__ import annotations

import subprocess
import sys
import zipfile

import pytest

from agex.studio.bytecode import with_bytecode

SOURCE = "import inspect\ndef where():\n    return inspect.getsource(where), where.__code__.co_filename\n"
WATCH = """
import builtins, importlib._bootstrap_external as loading, sys, zipimport
def refuse(*args, **kwargs): raise SystemExit("compiled")
for module in (loading.SourceLoader, ): module.source_to_code = refuse
zipimport._compile_source = refuse
sys.path.insert(0, sys.argv[1])
import inspect, linecache
import package.module as it
print(it.where()[0].splitlines()[0], it.where()[1])
"""


@pytest.mark.parametrize("zipped", [True, False], ids=["zipped", "unpacked"])
def test_modules_are_imported_from_it_without_being_compiled(tmp_path, zipped):
    source, made = tmp_path / "source.zip", tmp_path / "made.zip"
    with zipfile.ZipFile(source, "w") as archive:
        archive.writestr("package/__init__.py", "")
        archive.writestr("package/module.py", SOURCE)
        archive.writestr("package/template.py", "{{ no Python }}")
        archive.writestr("package/data.bin", bytes(range(256)))
    place = tmp_path / "place"
    where = made if zipped else place
    with_bytecode(source, made, place=str(where), zipped=zipped)
    with zipfile.ZipFile(made) as archive:
        assert archive.read("package/data.bin") == bytes(range(256))
        assert archive.read("package/module.py").decode() == SOURCE
        assert len(archive.namelist()) == 6
        archive.extractall(place)
    command = [sys.executable, "-c", WATCH, str(where)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["def", "where():", str(where / "package" / "module.py")]
