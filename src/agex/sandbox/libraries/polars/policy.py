"""Policy of polars.

polars opens files in compiled code, which the audit hook does not see. Its functions get bytes in memory, and
only the keywords that name no file. Additions of later versions are out until they are listed here.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from agex.errors import SandboxError
from agex.sandbox.libraries.argument_checks import Stream, guarded, plain_format, refused
from agex.sandbox.libraries.pandas import dataclass_rows
from agex.sandbox.libraries.polars.queries import SQLContext, checked, of_variables
from agex.sandbox.libraries.polars.settings import Config
from agex.sandbox.patches.replacement import replace, replace_everywhere
from agex.sandbox.patches.threading import carried
from agex.sandbox.policy.library import Guard, Library, Replacements, less, only
from agex.sandbox.runtime.context import asking

__all__ = ["CALLING", "LIBRARIES"]

_MODULES = {
    "": less(
        # read and write files, URLs, catalogs and databases in compiled code; some are handed out guarded
        "read_* scan_* write_* sink_* delete_* Catalog CredentialProvider* PartitionBy FileProviderArgs",
        "ScanCastOptions Parquet*Properties defer",
        # loads shared libraries; changes the classes and the settings of the process
        "plugins api StringCache *_string_cache *_extension_type BaseExtension Extension",
        "set_random_seed",
        # other machines, the machine
        "RemoteEngine GPUEngine build_info show_versions thread_pool_size",
        # go on beside guest code, or after it
        "collect_all_async",
        # objects of a library without a policy
        "from_torch from_dataframe",
    ),
    "datatypes": less(),
    "exceptions": less(),
    "selectors": less(),
    "testing": only("assert_*"),
}
"""Not listed: io, sql, plugins, api, catalog (see above), convert, interchange, ml; the compiled core."""

_DENIED = frozenset(
    """
    serialize deserialize from_lazyframe_resolver
    write_clipboard write_database write_delta write_excel write_iceberg write_ipc_stream
    sink_batches sink_delta sink_iceberg
    remote show_graph
    collect_async collect_batches fetch profile
    plot style to_jax to_torch
    """.split()
    # serialize, deserialize: plans hold paths that are read later, and pickled functions
    # write_..., sink_...: open files in compiled code
    # collect_...: go on beside guest code, or after it
    # remote: other machines; show_graph: another program
    # the last line: objects of libraries without a policy
)

_SCHEMA = "schema schema_overrides infer_schema_length n_rows row_index_name row_index_offset low_memory"
_CSV = f"""{_SCHEMA} columns has_header separator comment_prefix quote_char skip_rows skip_lines null_values
    empty_string_is_null missing_utf8_is_empty_string ignore_errors with_column_names infer_schema encoding
    skip_rows_after_header try_parse_dates eol_char new_columns truncate_ragged_lines raise_if_empty
    decimal_comma rechunk batch_size n_threads extra_columns missing_columns"""
_PARQUET = f"{_SCHEMA} columns parallel use_statistics rechunk missing_columns extra_columns cache"
_NDJSON = f"{_SCHEMA} batch_size ignore_errors rechunk"
_IPC = "columns n_rows row_index_name row_index_offset rechunk cache"

_READERS = {
    "read_avro": "columns n_rows",
    "read_csv": _CSV,
    "read_ipc": _IPC,
    "read_ipc_schema": "",
    "read_json": "schema schema_overrides infer_schema_length",
    "read_ndjson": _NDJSON,
    "read_parquet": _PARQUET,
    "read_parquet_schema": "",
    "scan_csv": _CSV,
    "scan_ipc": _IPC,
    "scan_ndjson": _NDJSON,
    "scan_parquet": _PARQUET,
}
"""The keywords of each reader, without those that name a file, or an engine that would open it."""

_COMPRESSION = "compression compression_level"
_WRITERS = {
    "write_avro": "compression name",
    "write_csv": f"""{_COMPRESSION} include_bom include_header separator line_terminator quote_char batch_size
        datetime_format date_format time_format float_scientific float_precision decimal_comma null_value
        quote_style""",
    "write_ipc": f"{_COMPRESSION} record_batch_size",
    "write_json": "",
    "write_ndjson": _COMPRESSION,
    "write_parquet": f"{_COMPRESSION} statistics row_group_size data_page_size",
}

CALLING = {
    "fold": (0, "operation"),
    "map": (0, "function"),
    "map_batches": (0, "function"),
    "map_columns": (1, "function"),
    "map_elements": (0, "function"),
    "map_fields": (0, "function"),
    "map_groups": (0, "function"),
    "map_rows": (0, "function"),
    "pipe_with_dtype": (0, "function"),
    "pipe_with_schema": (0, "function"),
    "rename": (0, "mapping"),
    "rolling_map": (0, "function"),
}
"""Methods that call a function, many of them in threads of polars, and the position of that function."""

_FUNCTIONS = {"cum_fold": 1, "cum_reduce": 0, "fold": 1, "map_batches": 1, "map_groups": 1, "reduce": 0}
"""Functions that do the same, by the position of ``function``."""

_NAMING = "with_column_names"
"""The keyword of readers that is a function; scans call it when they are collected."""


def _calls(position: int, keyword: str) -> Guard:
    """Return the guard of a method that calls a function: the call belongs to the run that passed it."""

    def guard(real: Any, *args: Any, **kwargs: Any) -> Any:
        if keyword in kwargs:
            return real(*args, **{**kwargs, keyword: carried(kwargs[keyword])})
        return real(
            *args[:position], *map(carried, args[position : position + 1]), *args[position + 1 :], **kwargs
        )

    return guard


def _collect(real: Any, *args: Any, background: Any = False, **kwargs: Any) -> Any:
    """Make a query end before the run that asked for it."""
    if background is not False:
        raise SandboxError("collect(background=True) is not available; call collect(), which waits")
    return real(*args, **kwargs)


_LAZILY = {f"sink_{end}": f"write_{end}" for end in ("csv", "ipc", "ndjson", "parquet")}


def _writer(name: str) -> Guard:
    return Stream(
        keyword="file",
        optional=name in ("write_csv", "write_json", "write_ndjson"),
        writes=True,
        in_memory=True,
        most=1,
        takes=frozenset(_WRITERS[name].split()),
    )


def _reader(name: str, real: Any, files: bool) -> Any:
    takes = frozenset(_READERS[name].split())
    stream = Stream(keyword="source", in_memory=True, most=1, takes=takes, files=files)

    def guard(real: Any, *args: Any, **kwargs: Any) -> Any:
        return stream(real, *args, **{k: carried(v) if k == _NAMING else v for k, v in kwargs.items()})

    return guarded(real, guard if _NAMING in takes else stream)


def _replace(files: bool) -> Replacements:
    pl: Any = import_module("polars")

    readers = {name: _reader(name, getattr(pl, name), files) for name in _READERS}
    callers = {
        name: guarded(getattr(pl, name), _calls(position, "function"))
        for name, position in _FUNCTIONS.items()
    }
    # a query may read files: select * from read_csv('/etc/passwd')
    return {"": {**readers, **callers, "Config": Config, "SQLContext": SQLContext, "sql": of_variables}}


_TAKEN = (
    ("polars._utils.construction", "arrow_to_pydf"),
    ("polars._utils.construction", "arrow_to_pyseries"),
    ("polars._utils.pycapsule", "pycapsule_to_frame"),
)


def _prepare() -> None:
    """Validate data from pyarrow: polars assumes that a text is UTF-8."""
    for home, name in _TAKEN:
        replace_everywhere(home, name, _validated)
    frames: Any = import_module("polars._utils.construction.dataframe")
    replace(frames, "_sequence_of_dataclasses_to_pydf", dataclass_rows.unpacked_first)
    getattr(frames, "_resolved_sequence_handlers", {}).clear()  # filled by host calls before


def _validated(real: Any) -> Any:
    def taken(*args: Any, **kwargs: Any) -> Any:
        if asking() is None:
            return real(*args, **kwargs)
        return real(*map(_valid, args), **{name: _valid(value) for name, value in kwargs.items()})

    return taken


def _valid(value: Any) -> Any:
    pa: Any = sys.modules.get("pyarrow")
    if pa is None:
        return value
    if isinstance(value, pa.RecordBatchReader):
        value = value.read_all()
    if isinstance(value, (pa.Array, pa.ChunkedArray, pa.RecordBatch, pa.Table)):
        value.validate(full=True)
    return value


LIBRARIES = {
    "polars": Library(
        name="polars",
        modules=_MODULES,
        # meta.write_json of an expression takes a path of its own
        denied=_DENIED | {"ExprMetaNameSpace.write_json", "ExprMetaNameSpace.show_graph"},
        guarded={
            "inspect": plain_format(0, "fmt"),
            **{name: _writer(name) for name in _WRITERS},
            **{name: _calls(*where) for name, where in CALLING.items()},
            "collect": _collect,
            "DataFrame.sql": checked,
            "LazyFrame.sql": checked,
            "Series.sql": checked,
            **{
                sink: refused(f"{sink}() is not available; use frame.collect().{write}(path)")
                for sink, write in _LAZILY.items()
            },
        },
        brings=("numpy", "pandas", "pyarrow"),
        has_settings=True,
        prepare=_prepare,
        replace=_replace,
    )
}
