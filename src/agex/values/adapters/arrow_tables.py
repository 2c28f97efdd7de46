"""Values of polars, pyarrow and plotly: tables as Arrow streams, figures as their plain form.

Nothing here imports these libraries before one of their values is met.
"""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Callable
from typing import Any

from agex._interpreter.type_slots import module_of, mro_of, name_of
from agex.values.adapters import library
from agex.values.adapters.arrow_ipc import require_plain
from agex.values.base.decode_budget import size_of, spend

__all__ = ["CONSTRUCTORS", "find_kind"]

Kind = Callable[[Any, Any], Any]

# -- pyarrow -------------------------------------------------------------------------------------


def _stream(table: Any) -> Any:
    pa = library("pyarrow")
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write(table)
    return _memory(sink.getvalue())


def _memory(data: Any) -> Any:
    view = memoryview(data)
    return pickle.PickleBuffer(view) if view.nbytes >= 4096 else bytes(view)


def _table(data: Any) -> Any:
    pa = library("pyarrow")
    require_plain(data)
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        table = reader.read_all()
    table.validate(full=True)  # an offset that leaves its buffer would be read past
    return table


def take_table(_encoder: Any, table: Any) -> Any:
    return make_table, (_stream(table),)


def make_table(data: Any) -> Any:
    return _table(data)


def take_batch(_encoder: Any, batch: Any) -> Any:
    return make_batch, (_stream(batch),)


def make_batch(data: Any) -> Any:
    pa = library("pyarrow")
    table = _table(data)
    batches = table.to_batches()
    return batches[0] if len(batches) == 1 else pa.RecordBatch.from_pylist([], schema=table.schema)


def _column(values: Any) -> Any:
    pa = library("pyarrow")
    return _stream(pa.table({"": values}))


def take_chunked(_encoder: Any, values: Any) -> Any:
    return make_chunked, (_column(values),)


def make_chunked(data: Any) -> Any:
    return _table(data).column(0)


def take_arrow_array(_encoder: Any, values: Any) -> Any:
    return make_arrow_array, (_column(values),)


def make_arrow_array(data: Any) -> Any:
    made = _table(data).column(0).combine_chunks()
    return made.chunk(0) if hasattr(made, "chunk") else made


def take_arrow_scalar(_encoder: Any, value: Any) -> Any:
    pa = library("pyarrow")
    return make_arrow_scalar, (_column(pa.array([value.as_py()], type=value.type)),)


def make_arrow_scalar(data: Any) -> Any:
    return _table(data).column(0)[0]


def take_schema(_encoder: Any, schema: Any) -> Any:
    return make_schema, (bytes(schema.serialize()),)


def make_schema(data: bytes) -> Any:
    pa = library("pyarrow")
    return pa.ipc.read_schema(pa.py_buffer(data))


def take_arrow_type(_encoder: Any, value: Any) -> Any:
    pa = library("pyarrow")
    return make_arrow_type, (bytes(pa.schema([("", value)]).serialize()),)


def make_arrow_type(data: bytes) -> Any:
    return make_schema(data).field(0).type


# -- polars --------------------------------------------------------------------------------------


def take_polars(_encoder: Any, frame: Any) -> Any:
    return make_polars, _written(frame)


def _written(frame: Any) -> tuple[Any, bytes]:
    sink = io.BytesIO()
    frame.write_ipc_stream(sink)
    data = sink.getbuffer()
    return _memory(data), _digest(data)


def _digest(data: Any) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


def make_polars(data: Any, digest: bytes) -> Any:
    """Read a polars table. Some bytes that polars did not write would end the process."""
    if _digest(data) != digest:
        raise ValueError("a table of polars whose bytes are damaged")
    require_plain(data)  # a hostile writer makes its own digest
    _checked(data)
    try:
        return library("polars").read_ipc_stream(io.BytesIO(data))
    except BaseException as error:
        if type(error).__name__ == "PanicException":  # not an Exception: polars gave up on the bytes
            raise ValueError("a table of polars that it cannot read") from None
        raise


def _checked(data: Any) -> None:
    """Let pyarrow read the bytes first, where it is installed: it checks them."""
    try:
        pa = library("pyarrow")
    except ModuleNotFoundError:
        return
    try:
        _table(data)
    except (pa.ArrowNotImplementedError, pa.ArrowKeyError):
        return  # a type that only polars has


def take_polars_series(_encoder: Any, series: Any) -> Any:
    return make_polars_series, _written(series.to_frame())


def make_polars_series(data: Any, digest: bytes) -> Any:
    return make_polars(data, digest).to_series(0)


# -- plotly --------------------------------------------------------------------------------------


def take_figure(_encoder: Any, figure: Any) -> Any:
    return make_figure, (figure.to_dict(),)


def make_figure(form: dict[str, Any]) -> Any:
    spend(_FIGURE + _size_of_form(form))
    go = library("plotly.graph_objects")
    return go.Figure(form)


_FIGURE = 64 * 1024
"""Cost of a figure: even an empty one takes milliseconds."""
_PART = 256
"""Cost of each of its dicts and lists."""


def _size_of_form(form: Any, depth: int = 0) -> int:
    """Return the cost of a figure's plain form, counted as a tree: a shared part counts each time.

    Raises:
        StateCorrupt: it is larger than the bytes pay for.
    """
    if depth > _DEEPEST_FORM:
        raise ValueError("a figure that is nested more deeply than any is")
    if type(form) not in {dict, list, tuple}:
        return size_of(form)
    spend(_PART)
    found = 32 * len(form)
    for each in form.values() if type(form) is dict else form:
        if type(each) not in _WORDS:
            found += _size_of_form(each, depth + 1)
    return found


_DEEPEST_FORM = 100
_WORDS = frozenset({type(None), bool, int, float, str})


# -- which kind ----------------------------------------------------------------------------------


def find_kind(cls: type) -> Kind | None:
    """Find how instances of a class of these libraries are taken apart."""
    package, names = str(module_of(cls)).partition(".")[0], {name_of(base) for base in mro_of(cls)}
    if package == "plotly":
        return take_figure if "BaseFigure" in names else None
    if package == "polars":
        return {"DataFrame": take_polars, "Series": take_polars_series}.get(name_of(cls))
    for name, kind in _ARROW.items():
        if name in names:
            return kind
    return None


_ARROW: dict[str, Kind] = {
    "Table": take_table,
    "RecordBatch": take_batch,
    "ChunkedArray": take_chunked,
    "Array": take_arrow_array,
    "Scalar": take_arrow_scalar,
    "Schema": take_schema,
    "DataType": take_arrow_type,
}

CONSTRUCTORS: tuple[Callable[..., Any], ...] = (
    make_table, make_batch, make_chunked, make_arrow_array, make_arrow_scalar, make_schema, make_arrow_type,
    make_polars, make_polars_series, make_figure,
)  # fmt: skip
