"""``python -m unittest`` and ``python -m pytest``: programs that run the tests of the workspace.

Both runners are small and agex's own, see the guest sources in `agex.sandbox.stdlib`. The program imports the
files of tests as modules of the workspace, under the same guards as any other.
"""

from __future__ import annotations

import posixpath
from typing import Any

__all__ = ["RUNNERS", "program"]

RUNNERS = ("pytest", "unittest")
"""The modules that `program` knows."""


def program(name: str, args: list[str], files: Any) -> str:
    """Return the program that runs tests as ``python -m NAME ARGS`` does."""
    named = [each for each in args if not each.startswith("-")]
    if name == "unittest":
        named = [each for each in named if each != "discover"]
    keyword = ""
    if "-k" in args[:-1]:
        keyword = args[args.index("-k") + 1]
        named = [each for each in named if each != keyword]
    found = [(path, _module(path)) for path in _files(named, files)]
    is_verbose = bool({"-v", "--verbose", "-vv"} & set(args))
    if name == "pytest":
        call = f"run_modules({found!r}, verbose={is_verbose}, keyword={keyword!r}, first={'-x' in args})"
        return f"import sys\nfrom pytest import run_modules\nsys.exit({call})\n"
    return (
        "import sys, unittest\nfrom importlib import import_module\nsuite = unittest.TestSuite()\n"
        f"for name in {[module for _, module in found]!r}:\n"
        "    suite.addTest(unittest.defaultTestLoader.loadTestsFromModule(import_module(name)))\n"
        f"result = unittest.TextTestRunner(verbosity={2 if is_verbose else 1}).run(suite)\n"
        "sys.exit(0 if result.wasSuccessful() else 1)\n"
    )


def _files(named: list[str], files: Any) -> list[str]:
    """Return the paths of the files of tests, those with fixtures for others first."""
    if not named:
        return _below(".", files)
    found: list[str] = []
    for each in named:
        path = each.partition("::")[0]
        if files.isdir(path):
            found += _below(path, files)
        else:
            found.append(path if path.endswith(".py") else f"{path.replace('.', '/')}.py")
    return found


def _below(folder: str, files: Any) -> list[str]:
    names = sorted(files.list(folder))
    paths = [posixpath.normpath(posixpath.join(folder, name)) for name in names]
    own = [each for each in paths if posixpath.basename(each) == "conftest.py"]
    own += [each for each in paths if _is_of_tests(posixpath.basename(each))]
    return own + [below for each in paths if files.isdir(each) for below in _below(each, files)]


def _is_of_tests(name: str) -> bool:
    return name.endswith(".py") and (name.startswith("test") or name.endswith("_test.py"))


def _module(path: str) -> str:
    """Return the name under which a file of the workspace is imported."""
    return posixpath.normpath(path).strip("/").removesuffix(".py").replace("/", ".")
