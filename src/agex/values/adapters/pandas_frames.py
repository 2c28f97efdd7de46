"""Values of pandas: frames, series, indexes and extension arrays; see `pandas_scalars` for the rest.

A frame is its blocks (each an array and the columns it holds), its index and its columns; an extension
array is the plain arrays it stands on. Pandas' own pickling goes through two dozen internal functions
that trust what they are given; this goes through constructors, so it also outlives their renaming.
Nothing here imports pandas until a value of it comes by.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from agex._interpreter.type_slots import mro_of, name_of
from agex.values.adapters import library
from agex.values.adapters import pandas_scalars as scalars
from agex.values.adapters.numpy_arrays import alone
from agex.values.adapters.pandas_scalars import require_distinct
from agex.values.base.decode_budget import CALL, spend

__all__ = ["CONSTRUCTORS", "find_kind"]

Kind = Callable[[Any, Any], Any]

# -- frames and series ---------------------------------------------------------------------------


def take_frame(_encoder: Any, frame: Any) -> Any:
    blocks = [
        (_held(block.values), alone(_places(block))) for block in frame._mgr.blocks
    ]  # no public way to them
    return make_frame, (blocks, frame.index, frame.columns), _extras(frame), None, None, fill_frame


def _places(block: Any) -> Any:
    return block.mgr_locs.as_array


def make_frame(blocks: Sequence[tuple[Any, Any]], index: Any, columns: Any) -> Any:
    np = library("numpy")
    pd = library("pandas")
    spend(CALL * len(blocks))
    pairs = [
        (_block(_values(values), len(places), len(index)), _array(places).astype(np.intp, copy=False))
        for values, places in blocks
    ]
    places = np.concatenate([np.empty(0, np.intp), *(each for _, each in pairs)])
    if not (isinstance(index, pd.Index) and isinstance(columns, pd.Index)):
        raise TypeError("a frame without an index")
    if not np.array_equal(np.sort(places), np.arange(len(columns))):
        raise ValueError("the blocks of a frame do not fill its columns")
    return _joined(pairs, index, columns)


def _array(value: Any) -> Any:
    """Require a numpy array: pandas would convert other objects, such as a range to all its numbers."""
    if type(value) is not library("numpy").ndarray:
        raise TypeError(f"an array from a {type(value).__name__}")
    return value


def _values(value: Any) -> Any:
    """Require an array of numpy or of pandas."""
    return value if isinstance(value, library("pandas").api.extensions.ExtensionArray) else _array(value)


def _index(value: Any) -> Any:
    """Require an index: it is materialised as a whole, a range with all its numbers."""
    if not isinstance(value, library("pandas").Index):
        raise TypeError(f"an index from a {type(value).__name__}")
    spend(_COPIES * 8 * len(value))
    return value


_COPIES = 2


def _block(values: Any, width: int, height: int) -> Any:
    """Check that a block has the shape that its frame assumes."""
    shape = values.shape
    if shape != (width, height) and not (width == 1 and shape == (height,)):
        raise ValueError(f"a block of shape {shape} for {width} columns of {height} rows")
    return values


def _joined(pairs: list[tuple[Any, Any]], index: Any, columns: Any) -> Any:
    try:
        internals = library("pandas.api.internals")  # since pandas 3
    except ImportError:
        return _joined_before(pairs, index, columns)
    return internals.create_dataframe_from_blocks(pairs, index=index, columns=columns)


def _joined_before(pairs: list[tuple[Any, Any]], index: Any, columns: Any) -> Any:
    """Stand in for a function that only pandas 3 has."""
    pd = library("pandas")
    make_block = library("pandas.core.internals.api").make_block
    blocks = tuple([make_block(values, placement=places, ndim=2) for values, places in pairs])
    manager = library("pandas.core.internals.managers").BlockManager(blocks, [columns, index])
    return pd.DataFrame._from_mgr(manager, manager.axes)


def take_series(_encoder: Any, series: Any) -> Any:
    values = series._mgr.blocks[0].values  # `array` would wrap it anew
    return make_series, (_held(values), series.index, series.name), _extras(series), None, None, fill_frame


def make_series(values: Any, index: Any, name: Any) -> Any:
    pd = library("pandas")
    if not isinstance(index, pd.Index) or len(_values(values)) != len(index):
        raise ValueError("a series whose values are not those of its index")
    made = pd.Series(values, index=index, copy=False, dtype=values.dtype)
    made.name = name
    return made


def _extras(value: Any) -> Any:
    """Return the attributes of a frame beside its data; None where it has none."""
    attrs, unique = value.attrs, not value.flags.allows_duplicate_labels
    return (attrs, unique) if attrs or unique else None


def fill_frame(value: Any, extras: tuple[dict[Any, Any], bool]) -> None:
    attrs, unique = extras
    value.attrs = attrs
    if unique:
        value.flags.allows_duplicate_labels = False


# -- indexes -------------------------------------------------------------------------------------


def take_range(_encoder: Any, index: Any) -> Any:
    return make_range, (index.start, index.stop, index.step, index.name)


def make_range(start: int, stop: int, step: int, name: Any) -> Any:
    pd = library("pandas")
    return pd.RangeIndex(start, stop, step, name=name)


def take_levels(_encoder: Any, index: Any) -> Any:
    codes = [alone(each) for each in index.codes]
    return make_levels, (list(index.levels), codes, list(index.names))


def make_levels(levels: list[Any], codes: list[Any], names: list[Any]) -> Any:
    pd = library("pandas")
    spend(CALL * len(levels))
    for level, code in zip(levels, codes, strict=True):
        require_distinct(_index(level))
        _array(code)
    return pd.MultiIndex(levels=levels, codes=codes, names=names)


def take_index(_encoder: Any, index: Any) -> Any:
    freq = getattr(index, "freq", None) if type(index).__name__ in _SPACED else None
    return make_index, (type(index).__name__, _held(index._data), index.name, freq)  # `array` wraps it anew


def make_index(kind: str, values: Any, name: Any, freq: Any) -> Any:
    pd = library("pandas")
    if isinstance(_values(values), pd.arrays.SparseArray):
        spend(16 * len(values))  # which becomes a dense one
    made = pd.Index(values, name=name, dtype=values.dtype, copy=False)
    if type(made).__name__ != kind:
        raise ValueError(f"these values make a {type(made).__name__}, not a {kind}")
    if freq is not None and kind in _SPACED:
        spend(_MOMENT * len(values))  # which are all made again, to compare them
        made.freq = freq
    return made


_MOMENT = 64
_SPACED = ("DatetimeIndex", "TimedeltaIndex")


# -- extension arrays ----------------------------------------------------------------------------


def _held(values: Any) -> Any:
    """Keep a numpy array of a frame on its own: pandas copies shared memory on write."""
    return alone(values) if hasattr(values, "__array_interface__") else values


def take_categorical(_encoder: Any, values: Any) -> Any:
    return make_categorical, (alone(values._ndarray), values.dtype)  # `codes` is read-only


def make_categorical(codes: Any, dtype: Any) -> Any:
    pd = library("pandas")
    made = pd.Categorical.from_codes(_array(codes), dtype=dtype)  # checked, and copied
    return made if made._ndarray.dtype == codes.dtype else made.copy()


def take_times(_encoder: Any, values: Any) -> Any:
    return make_times, (type(values).__name__, alone(values._ndarray), values.dtype)


def make_times(kind: str, memory: Any, dtype: Any) -> Any:
    pd = library("pandas")
    if kind not in {"DatetimeArray", "TimedeltaArray"} or _array(memory).dtype.kind != (
        "M" if kind[0] == "D" else "m"
    ):
        raise ValueError(f"no times are a {kind} of {memory.dtype}")
    return getattr(pd.arrays, kind)._simple_new(memory, dtype=dtype)  # keeps the unit


def take_periods(_encoder: Any, values: Any) -> Any:
    return make_periods, (alone(values._ndarray), values.dtype)


def make_periods(ordinals: Any, dtype: Any) -> Any:
    pd = library("pandas")
    return pd.arrays.PeriodArray(_array(ordinals), dtype=dtype)


def take_masked(_encoder: Any, values: Any) -> Any:
    return make_masked, (type(values).__name__, alone(values._data), alone(values._mask))


def make_masked(kind: str, data: Any, mask: Any) -> Any:
    pd = library("pandas")
    if kind not in {"IntegerArray", "FloatingArray", "BooleanArray"}:
        raise ValueError(f"no masked array is a {kind}")
    return getattr(pd.arrays, kind)(_array(data), _array(mask))


def take_intervals(_encoder: Any, values: Any) -> Any:
    return make_intervals, (values.left, values.right, values.closed, values.dtype)


def make_intervals(left: Any, right: Any, closed: Any, dtype: Any) -> Any:
    pd = library("pandas")
    return pd.arrays.IntervalArray.from_arrays(_index(left), _index(right), closed=closed, dtype=dtype)


def take_sparse(_encoder: Any, values: Any) -> Any:
    places = values.sp_index.indices
    return make_sparse, (alone(values.sp_values), alone(places), values.sp_index.length, values.dtype)


def make_sparse(values: Any, places: Any, length: int, dtype: Any) -> Any:
    pd = library("pandas")
    if len(_values(values)) != len(_array(places)):
        raise ValueError(f"{len(values)} sparse values for {len(places)} places")
    index = library("pandas._libs.sparse").IntIndex(length, places, check_integrity=True)
    return pd.arrays.SparseArray._simple_new(values, index, dtype)  # no public way from these


def take_strings(_encoder: Any, values: Any) -> Any:
    return make_strings, (values.dtype, alone(values._ndarray))


def make_strings(dtype: Any, objects: Any) -> Any:
    pd = library("pandas")
    if type(dtype) is not pd.StringDtype or dtype.storage != "python":  # another copies the texts
        raise ValueError("texts that do not lie in an array of objects")
    return pd.array(_array(objects), dtype=dtype)


def take_arrow(_encoder: Any, values: Any) -> Any:
    pa = library("pyarrow")
    return make_arrow, (values.dtype, pa.chunked_array(values._pa_array))


def make_arrow(dtype: Any, values: Any) -> Any:
    pd = library("pandas")
    pa = library("pyarrow")
    if not hasattr(dtype, "pyarrow_dtype") and values.type not in {pa.string(), pa.large_string()}:
        raise ValueError(f"texts from an arrow array of {values.type}")  # which would be written out
    return getattr(
        pd.arrays, "ArrowExtensionArray" if hasattr(dtype, "pyarrow_dtype") else "ArrowStringArray"
    )(values, **({} if hasattr(dtype, "pyarrow_dtype") else {"dtype": dtype}))


def take_wrapped(_encoder: Any, values: Any) -> Any:
    return make_wrapped, (alone(values.to_numpy(copy=False)),)


def make_wrapped(values: Any) -> Any:
    pd = library("pandas")
    return pd.arrays.NumpyExtensionArray(_array(values))


# -- which kind ----------------------------------------------------------------------------------

_BY_NAME: dict[str, Kind] = {
    "DataFrame": take_frame,
    "Series": take_series,
    "RangeIndex": take_range,
    "MultiIndex": take_levels,
    **dict.fromkeys(
        "Index DatetimeIndex TimedeltaIndex PeriodIndex IntervalIndex CategoricalIndex".split(), take_index
    ),
    "Categorical": take_categorical,
    "DatetimeArray": take_times,
    "TimedeltaArray": take_times,
    "PeriodArray": take_periods,
    "IntegerArray": take_masked,
    "FloatingArray": take_masked,
    "BooleanArray": take_masked,
    "IntervalArray": take_intervals,
    "SparseArray": take_sparse,
    "StringArray": take_strings,
    "ArrowStringArray": take_arrow,
    "ArrowExtensionArray": take_arrow,
    "NumpyExtensionArray": take_wrapped,
    **scalars.BY_NAME,
}


def find_kind(cls: type) -> Kind | None:
    """Return the function that takes instances of a pandas class apart."""
    found = _BY_NAME.get(cls.__name__)
    if found is None and any(name_of(base) == "BaseOffset" for base in mro_of(cls)):
        return scalars.take_offset
    return found


CONSTRUCTORS: tuple[Callable[..., Any], ...] = (
    *scalars.CONSTRUCTORS,
    make_frame, make_series, fill_frame, make_range, make_levels, make_index, make_categorical, make_times,
    make_periods, make_masked, make_intervals, make_sparse, make_strings, make_arrow, make_wrapped,
)  # fmt: skip
