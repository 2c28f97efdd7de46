"""Policy of pandas."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from agex.errors import SandboxError
from agex.sandbox.libraries.argument_checks import Stream, argument, guarded, named_functions, plain_format
from agex.sandbox.libraries.numpy import policy as numpy_policy
from agex.sandbox.libraries.numpy.random import draw_from_own
from agex.sandbox.libraries.pandas import dataclass_rows, workbooks
from agex.sandbox.libraries.pandas.options import hold_options, hold_plotting, prepared
from agex.sandbox.libraries.pandas.query import evaluate
from agex.sandbox.libraries.pandas.workbooks import TO_EXCEL
from agex.sandbox.libraries.pyarrow.ipc import checked_first
from agex.sandbox.patches.library_caches import hold_zones
from agex.sandbox.patches.replacement import replace_everywhere
from agex.sandbox.patches.stdlib_caches import exact
from agex.sandbox.policy.library import Guard, Library, Replacements, less, only

__all__ = ["LIBRARIES"]

_MODULES = {
    "": less(
        # readers of files, URLs, databases and pickles; some open them in C or in other libraries
        "read_* HDFStore to_pickle",
        # evaluates text with the names of the calling frames
        "eval",
        "show_versions test",
    ),
    "api": less(),
    "api.types": only("is_* infer_dtype pandas_dtype union_categoricals *Dtype"),
    "arrays": less(),
    "errors": less(),
    "plotting": less("register_matplotlib_converters deregister_matplotlib_converters plot_params"),
    "testing": less(),
    "tseries": less(),
    "tseries.frequencies": only("to_offset infer_freq"),
    "tseries.offsets": less(),
}
"""Not listed: io, core, compat, util (they hold os, pickle, subprocess), api.extensions
(changes the classes of the process), api.indexers (window bounds are not checked against memory),
api.interchange, api.typing, api.internals, api.executors."""

_DENIED = frozenset(
    """
    from_custom_template Styler.env Styler.loader template_html template_html_table template_html_style
    template_latex template_string template_typst DictWrapper.d DictWrapper.prefix
    to_pickle to_hdf to_orc to_stata to_clipboard to_iceberg to_xarray to_gbq
    ExcelWriter.handles ExcelFile.handles
    to_coo from_coo from_spmatrix sp_index set_codes Categorical.view CategoricalIndex.view
    """.split()
    # templates are programs; the tables of options, which are set by checked functions only
    # to_...: write files, or give objects of libraries without a policy
    # the last line: C code that trusts its positions
)

_INSTEAD = {
    **dict.fromkeys(("to_pickle", "to_hdf"), "use to_parquet() or to_csv()"),
}

_BY_NAME = named_functions(0, "func", anywhere=True)


def _database(position: int) -> Guard:
    """Return the guard of a function that uses a database: an sqlite3 connection passes, a URL does not."""

    def guard(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        import sqlite3

        connection = argument(position, "con", args, kwargs)
        if not isinstance(connection, sqlite3.Connection):
            raise SandboxError(f"con must be an sqlite3 connection here, not {type(connection).__name__}")
        from agex.sandbox.libraries.sqlite import connections  # imports sqlite3

        with connections.alone(connection):
            return real(*args, **kwargs)

    return guard


def _from_codes(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Check the codes, and pass a copy: compiled code follows them."""
    np: Any = import_module("numpy")
    pd: Any = import_module("pandas")

    if kwargs.get("validate", True) is not True or len(args) > 4:
        raise SandboxError("from_codes(validate=False) is not available; leave validate out")
    codes = argument(0, "codes", args, kwargs)
    is_pandas = isinstance(codes, pd.api.extensions.ExtensionArray)  # never a guest class, see `whole`
    copied = codes.copy() if is_pandas else np.asarray(codes).copy()
    return real(copied, *args[1:], **{key: value for key, value in kwargs.items() if key != "codes"})


def _of_a_day(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Check that there is a date: compiled code reads its month."""
    if any(each is None for each in (*args, *kwargs.values())):
        raise TypeError("a Timestamp is needed, not None")
    return real(*args, **kwargs)


def _set_levels(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Check that there is a level for each code."""
    if kwargs.get("verify_integrity", True) is not True or len(args) > 2:
        raise SandboxError("set_levels(verify_integrity=False) is not available; leave verify_integrity out")
    return real(*args, **kwargs)


def _styled(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Check the formats of cells, which are filled in by ``str.format``; pass copies of tables of them."""
    checked = plain_format(0, "formatter")

    def settled(given: Any) -> Any:
        if isinstance(given, dict):
            return {key: settled(each) for key, each in dict.items(given)}
        if isinstance(given, (list, tuple)):
            return [settled(each) for each in given]
        return checked(lambda each: each, exact(given))

    if args:
        args = (settled(args[0]), *args[1:])
    elif "formatter" in kwargs:
        kwargs["formatter"] = settled(kwargs["formatter"])
    return real(*args, **kwargs)


def _with_matplotlib(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    prepared("matplotlib")
    return real(*args, **kwargs)


def _unsupported(value: Any) -> Any:
    raise TypeError(f"{type(value).__name__} cannot be written as JSON; convert the column first")


_ARROW = {"engine": frozenset({"auto", "pyarrow"})}

_OF_ARRAYS = frozenset(f"Expression.{name}" for name in numpy_policy.DENIED if "." not in name)
"""``pd.col("a").values`` looks names up later, unguarded: they are refused on the expression already."""

_FORMATS = ("float_format",)

_GUARDED: dict[str, Guard] = {
    # the text without a path, or into a stream
    "to_csv": Stream(keyword="path_or_buf", optional=True, writes=True, formats=_FORMATS),
    "to_html": Stream(keyword="buf", optional=True, writes=True, formats=_FORMATS),
    "to_markdown": Stream(keyword="buf", optional=True, writes=True),
    "to_string": Stream(keyword="buf", optional=True, writes=True, formats=_FORMATS),
    # older versions write an unknown object with all its attributes, a generator's frame for example
    "to_json": Stream(
        keyword="path_or_buf", optional=True, writes=True, defaults={"default_handler": _unsupported}
    ),
    # written by pyarrow, below Python; another engine or file system could be any
    "to_parquet": Stream(
        keyword="path",
        optional=True,
        writes=True,
        copied=True,
        choices=_ARROW,
        without=("filesystem", "partition_cols"),
    ),
    "to_excel": TO_EXCEL,
    "to_latex": Stream(keyword="buf", optional=True, writes=True, formats=_FORMATS),
    "to_typst": Stream(keyword="buf", optional=True, writes=True),
    # lxml resolves entities, which may name files, and a stylesheet is a program
    "to_xml": Stream(
        keyword="path_or_buffer",
        optional=True,
        writes=True,
        fixed={"parser": "etree"},
        without=("stylesheet", "storage_options"),
    ),
    "Styler.format": _styled,
    "Styler.format_index": _styled,
    "Styler.format_index_names": _styled,
    "Styler.background_gradient": _with_matplotlib,
    "Styler.text_gradient": _with_matplotlib,
    "Styler.bar": _with_matplotlib,
    "to_feather": Stream(keyword="path", writes=True, copied=True),
    "to_sql": _database(1),
    # positions that compiled code follows without a check
    "Categorical.from_codes": _from_codes,
    "MultiIndex.set_levels": _set_levels,
    **{
        f"BaseOffset.is_{period}_{end}": _of_a_day
        for period in ("month", "quarter", "year")
        for end in ("start", "end")
    },
    # a text is evaluated
    "DataFrame.eval": evaluate,
    "DataFrame.query": evaluate,
    # a string is the name of any method
    "apply": _BY_NAME,
    "agg": _BY_NAME,
    "aggregate": _BY_NAME,
    "transform": _BY_NAME,
    "SeriesGroupBy.filter": _BY_NAME,
    "DataFrame.pivot_table": named_functions(3, "aggfunc"),
}


def _read_feather(real: Callable[..., Any]) -> Callable[..., Any]:
    """Check the table of which the frame is made."""

    def table(source: Any) -> Any:
        return import_module("pyarrow.feather").read_table(source)

    return checked_first(real, table)


def _replace(files: bool) -> Replacements:
    pd: Any = import_module("pandas")

    text = Stream(keyword="filepath_or_buffer", files=files)
    return {
        "": {
            "read_csv": guarded(pd.read_csv, text),
            "read_table": guarded(pd.read_table, text),
            "read_fwf": guarded(pd.read_fwf, text),
            "read_parquet": guarded(
                pd.read_parquet,
                Stream(keyword="path", copied=True, choices=_ARROW, without=("filesystem",), files=files),
            ),
            "read_feather": guarded(
                _read_feather(pd.read_feather), Stream(keyword="path", in_memory=True, files=files)
            ),
            "read_json": guarded(pd.read_json, Stream(keyword="path_or_buf", files=files)),
            "read_sql": guarded(pd.read_sql, _database(1)),
            "read_sql_query": guarded(pd.read_sql_query, _database(1)),
            "pivot_table": guarded(pd.pivot_table, named_functions(4, "aggfunc")),
            "crosstab": guarded(pd.crosstab, named_functions(5, "aggfunc")),
            "read_html": guarded(
                pd.read_html, Stream(keyword="io", copied=True, without=("storage_options",), files=files)
            ),
            "read_xml": guarded(
                pd.read_xml,
                Stream(
                    keyword="path_or_buffer",
                    copied=True,
                    fixed={"parser": "etree"},
                    without=("iterparse", "storage_options", "stylesheet"),
                    files=files,
                ),
            ),
            **workbooks.members(files),
        }
    }


def _prepare() -> None:
    draw_from_own("pandas.core.common", "random_state")
    hold_zones()
    hold_options()
    hold_plotting()
    replace_everywhere("pandas.core.internals.construction", "dataclasses_to_dicts", dataclass_rows.unpacked)


LIBRARIES = {
    "pandas": Library(
        name="pandas",
        modules=_MODULES,
        denied=_DENIED | _OF_ARRAYS,
        guarded=_GUARDED,
        instead=_INSTEAD,
        copied=frozenset({"Categorical.codes", "CategoricalIndex.codes", "MultiIndex.codes"}),
        whole=frozenset({"Index", "ExtensionArray", "ExtensionDtype"}),
        writable=frozenset({"NDFrame", "Index", "DictWrapper"}),
        # MultiIndex(verify_integrity=False) reads where its codes say; from_tuples and its kin check them
        # A reader in parts takes a path or a URL.
        sealed=(
            "pandas.MultiIndex",
            "pandas.core.indexes.multi.MultiIndex",
            "pandas.io.parsers.readers.TextFileReader",
            "pandas.io.json._json.JsonReader",
        ),
        brings=("dateutil", "matplotlib", "numpy", "openpyxl", "scipy"),
        offers=("dateutil", "numpy"),
        has_settings=True,
        preload=(
            "pandas.io.formats.format",
            "pandas.io.formats.html",
            "pandas.io.formats.csvs",
            "pandas.io.formats.style",
            "pandas.plotting._core",
            "pandas.plotting._misc",
            "pandas.io.sql",
        ),
        prepare=_prepare,
        replace=_replace,
    )
}
