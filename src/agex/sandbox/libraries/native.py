"""Libraries that open files in native code, where no event is raised that the second wall could refuse.

They have no policy otherwise: what is left of them is granted as of any other library. A registration
with ``host_fs_access=True`` has all of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from agex.sandbox.libraries.library import Library
from agex.sandbox.modules import Pattern, matches

__all__ = ["LIBRARIES", "shut"]

_OPENS: Mapping[str, tuple[str, ...]] = {
    "h5py": ("File", "Group", "h5f", "_hl", "ExternalLink", "VirtualSource", "is_hdf5"),
    "polars": ("SQLContext", "io", "read_*", "scan_*", "sql"),
    "pyarrow": (
        "*Dataset", "*DatasetFactory", "*FileSystem*", "MemoryMappedFile", "OSFile", "ORCFile", "ORCWriter",
        "Parquet*Writer", "ParquetFile", "ParquetReader", "RecordBatchFile*", "create_memory_map", "dataset",
        "fs", "input_stream", "memory_map", "open_*", "output_stream", "parquet_dataset", "read_*", "write_*",
    ),
}  # fmt: skip
"""Functions, classes and modules that take a path, by glob."""

_DENIED: Mapping[str, frozenset[str]] = {
    "polars": frozenset(
        """
        deserialize serialize sink_batches sink_csv sink_delta sink_iceberg sink_ipc sink_ndjson sink_parquet
        write_avro write_clipboard write_csv write_database write_delta write_excel write_iceberg write_ipc
        write_ipc_stream write_json write_ndjson write_parquet
        """.split()
    )
}
"""Methods of their objects that do."""

LIBRARIES = {name: Library(name=name, denied=_DENIED.get(name, frozenset())) for name in _OPENS}


def shut(module: str, exclude: Pattern, opened: tuple[str, ...]) -> Pattern:
    """Give what a registration excludes, with what opens files below the wall unless it has that door."""
    patterns = () if "files" in opened else _OPENS.get(module.partition(".")[0], ())
    if not patterns:
        return exclude
    return lambda name: matches(exclude, name) or matches(patterns, name)
