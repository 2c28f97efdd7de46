"""The names of well-known libraries that code uses first, and their usual aliases.

A library has hundreds of members. The first of them by alphabet are of no use to a reader, so the prompt
lists those that the library's own documentation uses most, and of those that are often tried it says which
are not there. Both are compared with what is granted when the prompt is written.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Collection, Mapping

from agex.errors import DefinitionError

__all__ = ["ALIASES", "first_names", "granted_names", "missing_modules", "missing_names"]

ALIASES: Mapping[str, str] = {
    "geopandas": "gpd",
    "matplotlib": "mpl",
    "matplotlib.pyplot": "plt",
    "networkx": "nx",
    "numpy": "np",
    "pandas": "pd",
    "plotly.express": "px",
    "plotly.graph_objects": "go",
    "polars": "pl",
    "seaborn": "sns",
    "statsmodels.api": "sm",
}
"""By import name: the name under which nearly all code has the library."""

_FIRST: Mapping[str, str] = {
    "matplotlib": "pyplot dates ticker patches colors cm figure gridspec",
    "matplotlib.pyplot": "subplots figure plot bar barh hist scatter pie boxplot title xlabel ylabel legend "
    "tight_layout savefig close",
    "networkx": "Graph DiGraph from_pandas_edgelist shortest_path connected_components pagerank "
    "betweenness_centrality topological_sort spring_layout draw",
    "numpy": "array arange linspace zeros ones where unique concatenate stack mean std percentile argsort "
    "random linalg polyfit isnan",
    "openpyxl": "Workbook load_workbook styles chart utils",
    "pandas": "DataFrame Series read_csv read_excel concat merge to_datetime to_numeric date_range cut qcut "
    "pivot_table crosstab get_dummies isna Timestamp Timedelta NamedAgg",
    "plotly.express": "line bar scatter histogram box pie imshow",
    "plotly.graph_objects": "Figure Bar Scatter Table Heatmap Pie Histogram",
    "polars": "DataFrame Series LazyFrame col lit when read_csv concat from_pandas",
    "scipy": "stats optimize interpolate signal linalg spatial sparse integrate cluster",
    "seaborn": "set_theme lineplot barplot scatterplot histplot boxplot heatmap pairplot",
    "sklearn": "model_selection linear_model ensemble tree cluster preprocessing pipeline compose metrics "
    "decomposition datasets",
    "sympy": "symbols Symbol solve Eq diff integrate simplify expand factor limit series Matrix Rational "
    "lambdify latex",
}
_TRIED: Mapping[str, str] = {
    "matplotlib": "rcParams rc_context style animation",
    "matplotlib.pyplot": "rcParams rc_context style imread imsave ginput ion show",
    "numpy": "set_printoptions memmap fromfile seterr",
    "pandas": "ExcelWriter read_excel read_html read_pickle read_sql read_parquet eval options set_option "
    "option_context plotting HDFStore",
    "polars": "Config read_excel read_database read_parquet SQLContext",
    "scipy": "io datasets",
    "sklearn": "set_config config_context",
    "sympy": "plot plot_implicit preview init_printing",
}


_STANDARD = (
    "threading multiprocessing concurrent.futures subprocess socket urllib.request http argparse unittest "
    "pickle sqlite3 inspect importlib ctypes signal"
)
"""Modules of the standard library that code tries; those that are not granted are named in the rules."""


@functools.cache
def missing_modules(*, has_files: bool) -> str:
    """Return the modules of the standard library that code often tries and cannot import.

    Args:
        has_files: whether the code has a workspace.
    """
    from agex.files.stdlib_modules import FileModules
    from agex.sandbox.policy.catalog import STANDARD, standard_set

    granted = {*standard_set(), *STANDARD, *(FileModules.names if has_files else ())}
    return ", ".join(name for name in _STANDARD.split() if name not in granted)


@functools.cache
def granted_names(module_name: str) -> frozenset[str]:
    """Return the members of a known library that guest code gets; empty for other modules."""
    if module_name not in _FIRST:
        return frozenset()
    from agex.sandbox import Policy  # with the sandbox: not when agex is imported

    policy = Policy()
    try:
        policy.module(importlib.import_module(module_name))
        grant = policy.modules[module_name]
        below = [each for each in _FIRST[module_name].split() if grant.has_submodule(each)]
        return frozenset([*vars(grant.copy()), *below])
    except (ImportError, DefinitionError):
        return frozenset()


def first_names(module_name: str, visible: Collection[str]) -> list[str]:
    """Return the names of a known library that code uses first, of those that are granted and visible."""
    return _ordered(_FIRST, module_name, visible)


def missing_names(module_name: str) -> list[str]:
    """Return the names of a known library that code often tries and that are not granted."""
    granted = granted_names(module_name)
    return [each for each in _TRIED.get(module_name, "").split() if granted and each not in granted]


def _ordered(table: Mapping[str, str], module_name: str, visible: Collection[str]) -> list[str]:
    granted = granted_names(module_name)
    return [each for each in table.get(module_name, "").split() if each in granted and each in visible]
