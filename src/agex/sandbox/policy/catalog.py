"""The table of libraries that have a policy; each is loaded when it is needed."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agex.sandbox.policy.library import Library
    from agex.sandbox.policy.module_grant import ModuleGrant

__all__ = [
    "BESIDE",
    "EVALUATING",
    "OPEN_UNSEEN",
    "STANDARD",
    "STORES",
    "WITH_CLASS_RULES",
    "clocks",
    "find",
    "has_policy",
    "standard_set",
    "templates",
    "trusted",
]

_POLICIES = {
    "PIL": "pillow",
    "cycler": "matplotlib.policy",
    "dateutil": "dateutil",
    "io": "struct",
    "jinja2": "jinja2",
    "matplotlib": "matplotlib.policy",
    "mpl_toolkits": "matplotlib.policy",
    "numpy": "numpy.policy",
    "openpyxl": "openpyxl",
    "pandas": "pandas.policy",
    "pathlib": "pathlib",
    "plotly": "plotly",
    "polars": "polars.policy",
    "pyarrow": "pyarrow.policy",
    "pydantic": "pydantic",
    "pypdf": "pypdf",
    "scipy": "scipy.policy",
    "sklearn": "sklearn.policy",
    "sqlite3": "sqlite.policy",
    "struct": "struct",
    "sympy": "sympy",
    "xarray": "xarray",
}
"""Import name to the module of `agex.sandbox.libraries` that has its policy."""

BESIDE = {
    "seaborn": ("matplotlib", "numpy", "pandas"),
    "statsmodels": ("numpy", "pandas", "scipy"),
}
"""Libraries without a policy: those with one that their users take for granted beside them, and that they
need themselves."""

STANDARD = ("sqlite3",)
"""Libraries with a policy that belong to the standard set."""

OPEN_UNSEEN = ("polars", "pyarrow", "pydantic")
"""Libraries with methods that open paths, or read attributes, in compiled code: in force in every policy."""


def has_policy(name: str) -> bool:
    """Return whether there is a policy for an import name."""
    return name in _POLICIES


WITH_CLASS_RULES = ("pydantic",)
"""Libraries with rules for classes over theirs: in force once they are loaded."""


def standard_set() -> Mapping[str, ModuleGrant]:
    """Return the grants of the standard set, loaded with all that stands in for its members."""
    grants: Mapping[str, ModuleGrant] = importlib.import_module("agex.sandbox.stdlib.standard_set").grants()
    return grants


def clocks(draw: Callable[..., Any]) -> tuple[Mapping[str, ModuleGrant], Library]:
    """Return the grants of the modules that look at clocks, and the rules of dates, over *draw*."""
    home = importlib.import_module("agex.sandbox.stdlib.standard_set")
    return home.clocked(draw), home.clock_library(draw)


def templates() -> Any:
    """Return `agex.sandbox.libraries.templates`. A worker loads it before its walls stand."""
    return importlib.import_module("agex.sandbox.libraries.templates")


STORES = {"row_factory": "sqlite3", "text_factory": "sqlite3"}
"""Attributes whose assignment is decided by a library, once it is loaded: its objects call their values."""

EVALUATING = ("jinja2", "sympy")
"""Libraries with objects that evaluate text, which may be inputs: prepared for every policy."""


@functools.cache
def find(name: str) -> Library | None:
    """Return the policy for an import name; None for a library that has none."""
    home = _POLICIES.get(name)
    if home is None:
        return None
    libraries: dict[str, Library] = importlib.import_module(f"agex.sandbox.libraries.{home}").LIBRARIES
    return libraries[name]


def trusted(class_: type) -> Iterator[str]:
    """Return the names of a library class under which compiled code finds objects that it follows."""
    from agex.sandbox.policy.library import homes

    for home, qualname in homes(class_):
        library = find(home)
        for key in () if library is None else library.trusted:
            owner, _, name = key.rpartition(".")
            if owner == qualname:
                yield name
