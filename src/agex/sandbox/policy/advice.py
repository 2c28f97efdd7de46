"""Advice in refusals: how guest code does without a module or a member that it asked for."""

from __future__ import annotations

import sys
import types
from collections.abc import Mapping
from typing import Any

from agex.errors import SandboxAttributeError
from agex.sandbox.policy import native

__all__ = ["explained", "instead_of_member", "instead_of_module", "refused_member"]

_INSTEAD = {
    **dict.fromkeys(
        ("asyncio.run", "asyncio.get_event_loop", "asyncio.new_event_loop", "asyncio.Runner"),
        "call await main() itself, where the code is run with await allowed",
    ),
    "asyncio.to_thread": "no thread can be started; call the function itself",
    "io.TextIOWrapper": "use io.StringIO(data.decode())",
    "json.load": "use json.loads(text)",
    "logging.captureWarnings": "what libraries warn of goes to the host",
    "json.dump": "use json.dumps(value)",
    "matplotlib.rcParams": "give figsize=, fontsize=, color= and the like to what draws",
    "matplotlib.pyplot.rc": "give figsize=, fontsize=, color= and the like to what draws",
    "matplotlib.pyplot.rcParams": "give figsize=, fontsize=, color= and the like to what draws",
    "matplotlib.pyplot.style": "give color=, linewidth= and the like to what draws",
    "numpy.set_printoptions": "format the one output instead, np.array2string(a, precision=3)",
    "operator.call": "call the function itself",
    "pandas.eval": "use df.eval() or df.query()",
    "pandas.options": "format the one output instead, e.g. df.to_string(max_rows=20)",
    "random.SystemRandom": "use the functions of secrets",
    "sqlite3.register_adapter": "give the value as text or a number: execute(sql, (str(value),))",
    "sqlite3.register_converter": "convert what fetchall() gives",
    "sys.argv": "use the variables you were given",
    "sys.exc_info": "use except Exception as error",
    "sys.exception": "use except Exception as error",
    "sys.exit": "return or raise to end the program earlier",
    "sys.setrecursionlimit": "write a loop instead of a deep recursion",
    "sys.stdin": "use the values you were given",
    "sys.modules": "import what you need by its name",
    "sys.path": "import what you need by its name",
    "weakref.WeakMethod": "keep ref(object), and call the method on what ref() gives",
    "weakref.finalize": "use a with statement, or try and finally",
    "weakref.proxy": "keep ref(object), and use what ref() gives",
    **dict.fromkeys(("bz2.open", "gzip.open", "lzma.open"), "use compress(data) and decompress(data)"),
    "tomllib.load": "read the text yourself, and use tomllib.loads(text)",
}
"""Advice in place of members that programs often ask for."""

_NO_FILES = "this sandbox has no file system; work with the values and text you were given"
_NO_PROCESSES = "no process can be started; do the work in this code"
_NO_THREADS = "no thread can be started; call the functions one after the other"
_NO_NETWORK = "there is no network; use the functions you were given"
_INSTEAD_OF_MODULES = {
    **dict.fromkeys(("glob", "os", "pathlib", "shutil", "tempfile"), _NO_FILES),
    **dict.fromkeys(("multiprocessing", "subprocess"), _NO_PROCESSES),
    **dict.fromkeys(("concurrent", "threading"), _NO_THREADS),
    **dict.fromkeys(("http", "socket", "urllib"), _NO_NETWORK),
    **dict.fromkeys(("marshal", "pickle", "shelve"), "use json, or keep the object in a variable"),
    **dict.fromkeys(("doctest", "unittest"), "use assert"),
    "argparse": "use the variables you were given",
    "contextvars": "pass the value as an argument",
    "importlib": "use the import statement",
    "inspect": "use callable(x), dir(x), x.__doc__ and x.__annotations__",
    "logging": "use print()",
    **dict.fromkeys(
        ("logging.config", "logging.handlers"), "use logging.StreamHandler(), or a class over logging.Handler"
    ),
    "timeit": "use time.perf_counter()",
    "typing_extensions": "use typing",
    "weakref": "use a dict, and delete from it what is over",
    "xml": "use xml.etree.ElementTree, whose indent(tree) lays it out",
}
"""Advice in place of modules that programs often ask for."""


def instead_of_module(name: str, known: Mapping[str, Any]) -> str:
    """Return advice in place of a module; one of the standard library is no typing error."""
    top = name.partition(".")[0]
    if name in _INSTEAD_OF_MODULES:
        return _INSTEAD_OF_MODULES[name]
    if top in _INSTEAD_OF_MODULES:
        return _INSTEAD_OF_MODULES[top]
    meant = "" if top in sys.stdlib_module_names else _hint(name, known)
    return meant or "work with the modules that are registered"


def explained(error: AttributeError) -> AttributeError:
    """Return a refusal in place of *error*, where a copy of a module lacks a member of the real module.

    The copy has no ``__getattr__`` for this: a module with one loses the interpreter's fast way of reading
    its members.
    """
    text = refused_member(error)
    if text is None:
        return error
    refusal = SandboxAttributeError(text)
    refusal.__context__, refusal.__suppress_context__ = error.__context__, error.__suppress_context__
    refusal.__cause__ = error.__cause__
    return refusal


def refused_member(error: AttributeError) -> str | None:
    """Return the refusal's text where a copy of a module lacks a member of the real one; None elsewhere."""
    if type(error) is not AttributeError:
        return None  # a guest class may answer with code of its own
    module, name = error.obj, error.name
    if type(module) is not types.ModuleType or type(name) is not str:
        return None
    home = vars(module).get("__name__")
    if type(home) is not str or not _has(sys.modules.get(home), name) or name in vars(module):
        return None
    instead = instead_of_member(home, name, vars(module)) or f"use its other members, dir({home}) lists them"
    return f"'{home}.{name}' exists, but is not available here; {instead}"


def _of_unknown(home: str, name: str) -> str | None:
    """Return why a member from an unregistered package with compiled code is not handed out; else None."""
    package = native.home_of(vars(sys.modules[home]).get(name)) if home in sys.modules else ""
    is_own = package in sys.stdlib_module_names or package == home.partition(".")[0]
    return native.inert_reason(package) if package and not is_own and native.opens_unseen(package) else None


def _has(module: types.ModuleType | None, name: str) -> bool:
    """Return whether a module has a member, without making one that is made at access."""
    return module is not None and (name in vars(module) or name in vars(module).get("__all__", ()))


def instead_of_member(home: str, name: str, known: Mapping[str, Any]) -> str:
    """Return advice in place of a module's member, or a similar name; empty where there is neither."""
    return _INSTEAD.get(f"{home}.{name}") or _of_unknown(home, name) or _hint(name, known)


def _hint(name: str, known: Mapping[str, Any]) -> str:
    """Return a question for the name that was probably meant; empty where none is like *name*."""
    import difflib

    close = difflib.get_close_matches(name, [k for k in known if not k.startswith("_")], n=1, cutoff=0.7)
    return f"did you mean '{close[0]}'?" if close else ""
