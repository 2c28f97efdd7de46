"""``open`` over a workspace behaves as the builtin does over a directory."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from agex.errors import DefinitionError
from agex.files import connect_fs
from agex.sandbox import Sandbox

PROGRAMS = {
    "write and read text": "with open('a.txt', 'w') as f:\n    f.write('é\\n1')\nout = open('a.txt').read()",
    "lines": "open('a', 'w').write('1\\n2\\n3')\nout = [line for line in open('a')]",
    "append": "for n in range(3):\n    with open('a', 'a') as f: f.write(str(n))\nout = open('a').read()",
    "binary": "open('a', 'wb').write(b'\\x00\\xff')\nout = open('a', 'rb').read(1)",
    "update": "open('a', 'w').write('ab')\nwith open('a', 'r+') as f: f.write('X')\nout = open('a').read()",
    "encoding": "open('a', 'w', encoding='latin-1').write('é')\nout = open('a', 'rb').read()",
    "newline": "open('a', 'w', newline='\\r\\n').write('1\\n')\nout = open('a', 'rb').read()",
    "seek": "open('a', 'wb').write(b'abcd')\nf = open('a', 'rb')\nf.seek(2)\nout = f.read()",
    "print to a file": "with open('a', 'w') as f: print('x', file=f)\nout = open('a').read()",
    "missing": "open('missing')",
    "exclusive": "open('a', 'x').close()\nopen('a', 'x')",
    "not readable": "open('a', 'w').read()",
    "not writable": "open('a', 'w').close()\nopen('a').write('x')",
    "bad mode": "open('a', 'rw')",
    "binary with encoding": "open('a', 'wb', encoding='utf-8')",
    "unflushed is not there yet": "f = open('a', 'w')\nf.write('x')\nout = open('a').read()\nf.close()",
    "where what is appended goes": (
        "out = []\n"
        "for mode in ('a', 'ab', 'a+'):\n"
        "    with open('a', mode) as f:\n"
        "        out.append(f.tell())\n"
        "        f.write('x' if mode != 'ab' else b'x')"
    ),
    "one mark of the order of bytes": (
        "for text in 'ab':\n"
        "    with open('a', 'a', encoding='utf-16') as f: f.write(text)\n"
        "out = open('a', 'rb').read()"
    ),
    "what a file says of itself": (
        "out = []\n"
        "for mode in ('w', 'w+', 'a', 'r', 'r+', 'wt', 'wb', 'ab', 'rb', 'r+b', 'w+b', 'a+b'):\n"
        "    with open('a', mode) as f: out.append((f.mode, f.name))"
    ),
    "truncate": "open('a', 'w').write('abc')\nopen('a', 'w').close()\nout = open('a').read()",
}


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_it_does_what_the_builtin_does(program, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    error = None
    try:
        exec(program, names)
    except (OSError, ValueError) as raised:
        error = type(raised)
    result = Sandbox(fs=connect_fs()).exec(program)
    assert type(result.error) is (error or type(None))
    assert result.namespace.get("out") == names.get("out")


def test_files_live_as_long_as_the_workspace():
    sandbox = Sandbox(fs=connect_fs())
    sandbox.exec("open('kept', 'w').write('1')")
    assert sandbox.exec("open('kept').read()").value == "1"


@pytest.mark.parametrize("path", ["/etc/passwd", "../../etc/passwd", "/proc/self/environ", "~/.ssh/id_rsa"])
def test_a_path_of_the_host_leads_into_the_workspace(path):
    sandbox = Sandbox(fs=connect_fs())
    assert isinstance(sandbox.exec(f"open({path!r})").error, FileNotFoundError)
    assert (
        sandbox.exec(f"f = open({path!r}, 'w')\nf.write('x')\nf.close()\nopen({path!r}).read()").value == "x"
    )
    assert not Path("/etc/passwd").read_text().startswith("x")


@pytest.mark.parametrize(
    "attack",
    [
        "open('a', 'w')._fs",
        "open('a', 'wb')._path",
        "f = open('a', 'w')\nf.buffer._fs",
        "getattr(open('a', 'wb'), '_fs')",
        "open.__self__",
        "open.__func__.__globals__",
        "type(open('a', 'wb')).__init__.__globals__",
        "open(0)",
        "open(b'a')",
    ],
)
def test_a_file_does_not_lead_out(attack):
    assert Sandbox(fs=connect_fs()).exec(attack).error is not None


def test_a_size_limit_refuses_and_keeps_what_was_written():
    sandbox = Sandbox(fs=connect_fs(max_size_mb=1))
    sandbox.exec("open('a', 'w').write('kept')")
    assert isinstance(
        sandbox.exec("open('b', 'wb').write(bytes(2 << 20))\nopen('b', 'rb')").error, OSError | None
    )
    result = sandbox.exec("f = open('b', 'wb')\nf.write(bytes(2 << 20))\nf.close()")
    assert isinstance(result.error, OSError)
    assert sandbox.exec("open('a').read()").value == "kept"


def test_without_a_workspace_nothing_is_opened():
    assert "no file system" in str(Sandbox().exec("open('a')").error)


def test_an_unknown_type_is_refused():
    with pytest.raises(DefinitionError, match="there are 'virtual' and 'isolated'"):
        connect_fs(type="cloud")


def test_text_files_are_text_wrappers():
    assert isinstance(connect_fs().open("a", "w"), io.TextIOWrapper)
