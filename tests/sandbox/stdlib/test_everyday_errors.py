"""Errors and answers of everyday calls are those of CPython, on every interpreter."""

from __future__ import annotations

import errno

import pytest

from agex.files import connect_fs
from agex.sandbox import Policy, Sandbox


def session(policy=None, **settings):
    return Sandbox(policy or Policy.default(), **settings).session()


@pytest.mark.parametrize(
    ("code", "name", "number"),
    [
        ("Path('/missing').iterdir()", "FileNotFoundError", errno.ENOENT),
        ("list(Path('missing').iterdir())", "FileNotFoundError", errno.ENOENT),
        ("Path('there.txt').iterdir()", "NotADirectoryError", errno.ENOTDIR),
    ],
)
def test_listing_what_is_no_directory_raises_what_cpython_raises(code, name, number):
    program = f"""
from pathlib import Path
Path('there.txt').write_text('x')
try:
    {code}
except OSError as error:
    found = [type(error).__name__, error.errno]
"""
    result = Sandbox(Policy.default(), fs=connect_fs()).exec(program)
    assert result.error is None, result.traceback
    assert result.namespace["found"] == [name, number]


def test_listing_a_directory_gives_its_entries():
    code = "from pathlib import Path\nPath('a').mkdir()\nPath('a/b').write_text('')\n[str(p) for p in Path('a').iterdir()]"
    assert Sandbox(Policy.default(), fs=connect_fs()).exec(code).value == ["a/b"]


@pytest.mark.parametrize("code", ["open('nope.csv')", "open('data/nope.csv')", "open('./nope.csv')"])
def test_a_missing_file_is_named_as_it_was_given(code):
    result = Sandbox(Policy.default(), fs=connect_fs()).exec(code)
    assert result.traceback.endswith(f"No such file or directory: {code[5:-1]}")


async def test_a_coroutine_that_is_gathered_twice_runs_once():
    code = "import asyncio\nran = []\nasync def f():\n    ran.append(1)\n    return 7\nc = f()\nfound = await asyncio.gather(c, c)"
    result = await session().arun(code)
    assert result.error is None, result.traceback
    assert (result.namespace["found"], result.namespace["ran"]) == ([7, 7], [1])


def test_filters_of_warnings_last_from_run_to_run():
    one = session()
    one.run("import warnings\nwarnings.simplefilter('ignore')")
    assert one.run("import warnings\nwarnings.warn('said')").error is None


class Vault:
    def burn(self):
        """Burn it."""

    def keep(self):
        """Keep it."""


def test_a_member_that_is_left_out_is_not_there_for_hasattr():
    policy = Policy.default()
    policy.cls(Vault, exclude=("_*", "burn"))
    result = session(policy).run(
        "v = Vault()\n[hasattr(v, 'burn'), hasattr(v, 'keep'), hasattr(Vault, 'burn')]"
    )
    assert result.value == [False, True, False]


@pytest.mark.parametrize("name", ["__globals__", "__dict__", "_secret", "__subclasses__"])
def test_a_private_name_is_refused_by_hasattr_as_ever(name):
    result = session().run(f"hasattr(len, {name!r})")
    assert result.value is not True
