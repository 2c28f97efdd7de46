"""Policy of pyarrow.

Arrow opens files in compiled code, which the audit hook does not see. So the granted names are listed. The
functions among them get bytes in memory, and only the keywords that name no file and no file system.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from importlib import import_module
from typing import Any

from agex.errors import SandboxError, SandboxTypeError
from agex.sandbox.libraries.argument_checks import Stream, guarded, refused, writable_buffer
from agex.sandbox.libraries.pyarrow.ipc import (
    checked_batch,
    checked_batches,
    checked_first,
    checked_frame,
    checked_table,
)
from agex.sandbox.policy.library import Guard, Library, ModuleMembers, Replacements, less, only
from agex.sandbox.runtime.context import CURRENT

__all__ = ["LIBRARIES"]

_TOP = ModuleMembers(
    names=tuple(
        """
        *Array *Scalar *Type Arrow* Buffer BufferOutputStream BufferReader ChunkedArray Codec Field
        KeyValueMetadata MonthDayNano NA NULL RecordBatch RecordBatchReader Schema Table TableGroupBy Tensor
        arange array binary* bool* chunked_array compress concat_* date32 date64 decimal* decompress
        dense_union dictionary duration field fixed_shape_tensor float* from_numpy_dtype infer_type int* json_
        large_* list_ list_view map_ month_day_nano_interval null nulls opaque record_batch repeat
        run_end_encoded scalar schema serialize_pandas deserialize_pandas sparse_union string string_view
        struct table time32 time64 timestamp type_for_alias uint* unify_schemas union utf8 uuid py_buffer
        types compute csv json feather ipc orc parquet
        """.split()
    ),
    # extension types are registered for the process, and an old kind is unpickled; positions in sparse
    # tensors are followed without a check
    without=("*Extension*", "Sparse*"),
)
"""Not listed: names that open files (OSFile, memory_map, input_stream, Compressed*Stream, RecordBatchFile*),
take or return raw memory (foreign_buffer, FixedSizeBufferWriter, allocate_buffer), or set up the process
(memory pools, threads, time zones)."""

_MODULES = {
    "": _TOP,
    # functions by their name, options that switch checks off, functions for the whole process
    "compute": less(
        "*Options *Function *Kernel FunctionRegistry function_registry call_* get_function register_*"
    ),
    "csv": only("ConvertOptions ParseOptions ReadOptions WriteOptions ISO8601"),
    "feather": only("FeatherError"),
    "ipc": only("IpcReadOptions IpcWriteOptions serialize_pandas deserialize_pandas"),
    "json": only("ParseOptions ReadOptions"),
    "orc": only(),
    "parquet": only("filters_to_expression SortingColumn FileMetaData ParquetSchema"),
    "types": less(),
}
"""Not listed: fs, dataset, acero, flight, substrait, cuda, lib, util; interchange, cffi."""

_DENIED = frozenset(
    """
    download upload write_metadata_file set_file_path ParquetFile.reader ParquetReader.open
    from_substrait to_substrait
    address serialize_to Array.from_dlpack Tensor.from_dlpack Array.from_buffers StructArray.from_buffers
    UnionArray.from_dense UnionArray.from_sparse MapArray.from_arrays RunEndEncodedArray.from_arrays
    print_stats release_unused
    """.split()
    # the first line: open files, or name those that are opened later
    # substrait: plans, which name files too
    # the others: raw memory, positions that compiled code follows without a check, the process's pool
)


def _checked(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Check that positions lie within the values, which Arrow does on request only."""
    if "safe" in kwargs:
        raise SandboxTypeError("safe=... is not available; leave it out")
    result = real(*args, **kwargs)
    result.validate(full=True)
    return result


def _with_boundaries(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    if "boundscheck" in kwargs or "options" in kwargs or len(args) > 2:
        raise SandboxTypeError("take() takes the values and the indices here, nothing else")
    return real(*args, **kwargs)


def _bytes_only(real: Callable[..., Any], obj: Any) -> Any:
    """Check that the memory holds no references."""
    if type(obj) not in (bytes, bytearray):
        raise SandboxTypeError(f"py_buffer() takes bytes here, not {type(obj).__name__}")
    return real(obj)


_COLUMNS = "columns use_threads"
_PARQUET_READ = f"""{_COLUMNS} schema use_pandas_metadata read_dictionary binary_type list_type filters
    pre_buffer coerce_int96_timestamp_unit page_checksum_verification arrow_extensions_enabled
    thrift_string_size_limit thrift_container_size_limit"""
_PARQUET_WRITTEN = """row_group_size version use_dictionary compression write_statistics
    use_deprecated_int96_timestamps coerce_timestamps allow_truncated_timestamps data_page_size flavor
    compression_level use_byte_stream_split column_encoding data_page_version use_compliant_nested_type
    write_batch_size dictionary_pagesize_limit store_schema write_page_index write_page_checksum
    sorting_columns store_decimal_as_integer"""
_CSV_OPTIONS = "read_options parse_options convert_options"

_FUNCTIONS: dict[str, dict[str, dict[str, Any]]] = {
    "csv": {
        "read_csv": {"keyword": "input_file", "takes": _CSV_OPTIONS, "most": 4},
        "write_csv": {
            "position": 1,
            "keyword": "output_file",
            "takes": "data write_options",
            "most": 3,
            "writes": True,
        },
    },
    "json": {"read_json": {"keyword": "input_file", "takes": "read_options parse_options", "most": 3}},
    "feather": {
        "read_table": {"keyword": "source", "takes": _COLUMNS, "most": 2},
        "read_feather": {"keyword": "source", "takes": _COLUMNS, "most": 3},
        "write_feather": {
            "position": 1,
            "keyword": "dest",
            "takes": "df compression compression_level chunksize version",
            "most": 6,
            "writes": True,
        },
    },
    "orc": {
        "read_table": {"keyword": "source", "takes": "columns", "most": 2},
        "write_table": {
            "position": 1,
            "keyword": "where",
            "takes": "table compression stripe_size",
            "most": 2,
            "writes": True,
        },
    },
    "parquet": {
        "read_table": {"keyword": "source", "takes": _PARQUET_READ, "most": 1},
        "read_pandas": {"keyword": "source", "takes": _PARQUET_READ, "most": 2},
        "read_schema": {"keyword": "where", "takes": "", "most": 1},
        "read_metadata": {"keyword": "where", "takes": "", "most": 1},
        "ParquetFile": {"keyword": "source", "takes": "read_dictionary pre_buffer", "most": 1},
        "write_table": {
            "position": 1,
            "keyword": "where",
            "takes": f"table {_PARQUET_WRITTEN}",
            "most": 3,
            "writes": True,
        },
    },
}
"""Functions that take a path or a stream: its position, and the other arguments allowed."""


def _streams(module: str, files: bool) -> dict[str, Any]:
    home: Any = import_module(f"pyarrow.{module}")
    checked = _feather(home) if module == "feather" else {}
    return {
        name: guarded(checked.get(name, getattr(home, name)), _stream(settings, files))
        for name, settings in _FUNCTIONS[module].items()
        if hasattr(home, name)
    }


def _stream(settings: dict[str, Any], files: bool) -> Stream:
    pa: Any = import_module("pyarrow")

    settings = settings | {"takes": frozenset(settings["takes"].split())}
    in_memory = (pa.BufferOutputStream,) if settings.get("writes") else (pa.Buffer, pa.BufferReader)
    return Stream(in_memory=True, also=in_memory, files=files, **settings)


def _open_stream(sinks: tuple[type, ...], files: bool) -> Guard:
    """Return the guard of a function that keeps its stream: it takes an open file, not a path."""

    def guard(real: Callable[..., Any], stream: Any, *args: Any, **kwargs: Any) -> Any:
        guards = CURRENT.get()
        kinds = guards.files.kinds if guards is not None and guards.files is not None else ()
        if not files and type(stream) not in (io.BytesIO, *sinks, *kinds):
            raise SandboxError(
                f"{real.__name__}() takes an open file here: with open(path, 'rb' or 'wb') as file: ..., "
                f"not {type(stream).__name__}"
            )
        return real(stream, *args, **kwargs)

    return guard


def _feather(home: Any) -> dict[str, Any]:
    return {
        "read_table": checked_table(home.read_table),
        "read_feather": checked_first(home.read_feather, home.read_table),
    }


def _deserialize(pa: Any) -> Any:
    return checked_first(
        pa.deserialize_pandas, lambda buf: pa.ipc.open_stream(pa.BufferReader(buf)).read_all()
    )


def _ipc(files: bool) -> dict[str, Any]:
    pa: Any = import_module("pyarrow")

    sources = _open_stream((bytes, pa.BufferReader, pa.Buffer), files)
    sinks = _open_stream((pa.BufferOutputStream,), files)
    return {
        "open_file": guarded(pa.ipc.open_file, sources),
        "open_stream": guarded(checked_batches(pa.ipc.open_stream), sources),
        "deserialize_pandas": _deserialize(pa),
        "new_file": guarded(pa.ipc.new_file, sinks),
        "new_stream": guarded(pa.ipc.new_stream, sinks),
    }


def _replace(files: bool) -> Replacements:
    pa: Any = import_module("pyarrow")
    pc: Any = import_module("pyarrow.compute")

    writer = "parquet.ParquetWriter opens files below Python; put the batches together and use write_table"
    return {
        "": {"py_buffer": guarded(pa.py_buffer, _bytes_only), "deserialize_pandas": _deserialize(pa)},
        "compute": {
            **{name: guarded(getattr(pc, name), _with_boundaries) for name in ("take", "array_take")},
            "SortOptions": pc.SortOptions,
        },
        "csv": _streams("csv", files),
        "feather": _streams("feather", files),
        "ipc": _ipc(files),
        "json": _streams("json", files),
        "orc": _streams("orc", files),
        "parquet": _streams("parquet", files) | {"ParquetWriter": refused(writer)},
    }


LIBRARIES = {
    "pyarrow": Library(
        name="pyarrow",
        modules=_MODULES,
        denied=_DENIED,
        guarded={
            "ListArray.from_arrays": _checked,
            "LargeListArray.from_arrays": _checked,
            "ListViewArray.from_arrays": _checked,
            "LargeListViewArray.from_arrays": _checked,
            "FixedSizeListArray.from_arrays": _checked,
            "DictionaryArray.from_arrays": _checked,
            "Array.view": _checked,
            "Array.take": _with_boundaries,
            "readinto": writable_buffer(0, "b"),
            "_RecordBatchFileReader.get_batch": checked_batch,
            "_RecordBatchFileReader.get_batch_with_custom_metadata": checked_batch,
            "_RecordBatchFileReader.read_all": checked_batch,
            "RecordBatchFileReader.read_pandas": checked_frame,
        },
        # Their constructors open paths in compiled code.
        sealed=(
            "pyarrow.ipc.RecordBatchFileReader",
            "pyarrow.ipc.RecordBatchFileWriter",
            "pyarrow.ipc.RecordBatchStreamReader",
            "pyarrow.ipc.RecordBatchStreamWriter",
            "pyarrow.parquet.core.ParquetFile",
        ),
        brings=("numpy", "pandas"),
        replace=_replace,
    )
}
