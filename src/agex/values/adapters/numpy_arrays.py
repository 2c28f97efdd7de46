"""Values of numpy: arrays and their views, scalars and generators; see `numpy_dtypes` for dtypes.

Nothing here imports numpy until a value of it comes by. An array is its memory and a description of it
in plain data; `numpy.ndarray` has a ``__setstate__`` that trusts what it is given, so none is made by
pickle's own means.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

from agex._interpreter.type_slots import mro_of, name_of
from agex.values.adapters import library
from agex.values.adapters.numpy_dtypes import describe, dtype_of, has_objects, make_dtype
from agex.values.base.decode_budget import spend
from agex.values.base.shared_objects import array_root

__all__ = ["CONSTRUCTORS", "alone", "find_kind", "make_array", "take_alone", "take_array"]

OUT_OF_BAND = 4096  # bytes from which an array's memory is not copied into the stream

# -- memory --------------------------------------------------------------------------------------

Order = bool | tuple[int, ...]
"""Memory order of an array: C order, Fortran order (True), or its axes, the slowest first."""


def _order_of(array: Any) -> Order:
    if array.flags.c_contiguous or array.flags.f_contiguous:
        return not array.flags.c_contiguous
    return _axes(array)


def _axes(array: Any) -> tuple[int, ...]:
    """Return the axes in the order of their strides, the largest first; those of one item before all."""
    keys = [(n > 1, -stride * (n > 1)) for n, stride in zip(array.shape, array.strides, strict=True)]
    return tuple(sorted(range(array.ndim), key=keys.__getitem__))


def _flat(array: Any) -> Any:
    """View an array as its items in the order of memory; None for one with gaps or items that overlap."""
    if array.flags.c_contiguous or array.flags.f_contiguous:
        return array.reshape(-1, order="A")
    laid = array.transpose(_axes(array))
    return laid.reshape(-1) if laid.flags.c_contiguous else None


_OF_NOTHING = 64
"""Cost of an item of no bytes: most objects made from it have some."""
_MOST_AXES, _MOST_ITEMS = 64, 1 << 62  # the most that numpy counts; larger numbers take long to multiply


def _size(shape: tuple[int, ...]) -> int:
    """Return the number of items in an array of some shape.

    Raises:
        ValueError: no array has it.
    """
    if len(shape) > _MOST_AXES or any(type(n) is not int or not 0 <= n < _MOST_ITEMS for n in shape):
        raise ValueError("a shape that no array has")
    return math.prod(shape)


def _laid_out(shape: tuple[int, ...], dtype: Any, order: Order, **memory: Any) -> Any:
    """Make an array in a given memory order."""
    np = library("numpy")
    if type(order) is bool:
        return np.ndarray(tuple(shape), dtype, order="F" if order else "C", **memory)
    if sorted(order) != list(range(len(shape))):
        raise ValueError("an order that is not one of the axes")
    strides, step = [0] * len(shape), dtype.itemsize
    for axis in reversed(order):
        strides[axis], step = step, step * shape[axis]
    return np.ndarray(tuple(shape), dtype, strides=tuple(strides), **memory)


def _raw(flat: Any) -> Any:
    """View items that lie one after the other as their bytes."""
    np = library("numpy")
    return flat.view(np.uint8) if flat.itemsize else np.empty(0, np.uint8)


def _address(array: Any) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _writable(array: Any) -> bool:
    """Return whether an array may be written to; ``flags`` warns of some before they are."""
    return not array.__array_interface__["data"][1]


def _own(memory: Any) -> memoryview:
    """Return memory for an array: a buffer of the load, or a copy.

    numpy does not export its memory the way a view does: a bytearray that the stream refers to elsewhere
    could be made shorter under it.
    """
    return memory if type(memory) is memoryview and not memory.readonly else memoryview(bytearray(memory))


# -- arrays --------------------------------------------------------------------------------------


def take_array(encoder: Any, array: Any) -> Any:
    """Take an array apart: as a view where its root is encoded too, else on its own."""
    root = array_root(array)
    if root is not array and id(root) in encoder.shared_arrays and type(root) is type(array):
        form, layout = _form_in(root, array), (array.shape, array.strides, _address(array) - _address(root))
        if form is not None:
            return make_view, (root, form, layout, _writable(array))
    return take_alone(encoder, array)


def take_alone(_encoder: Any, array: Any) -> Any:
    """Take an array apart as one that shares its memory with no other."""
    np = library("numpy")
    plain = array.view(np.ndarray) if type(array) is not np.ndarray else array
    if _flat(plain) is None:
        plain = _copied(plain)
    description, order = describe(array.dtype), _order_of(plain)
    if has_objects(array.dtype):
        room = bytearray(-(-plain.nbytes // _ROOM))
        args, state = (description, array.shape, order, room), (_contents(plain), _writable(array))
        return make_object_array, args, state, None, None, fill_object_array
    memory: Any = _raw(_flat(plain))
    memory = pickle.PickleBuffer(memory) if plain.nbytes >= OUT_OF_BAND else memory.tobytes()
    return make_array, (memory, description, array.shape, order, _writable(array))


def _copied(array: Any) -> Any:
    np = library("numpy")
    return np.ascontiguousarray(array).reshape(array.shape)  # it makes one dimension of none


def make_array(memory: Any, description: Any, shape: tuple[int, ...], order: Order, writable: bool) -> Any:
    """Make an array of its memory, which is copied where it cannot be written to."""
    dtype = dtype_of(description)
    if has_objects(dtype):
        raise ValueError("objects cannot be made from memory")
    items = _size(shape)
    spend(items * (1 if dtype.itemsize else _OF_NOTHING))
    size, data = items * dtype.itemsize, _own(memory)
    if size != data.nbytes:
        raise ValueError(f"an array of {size} bytes was given {data.nbytes}")
    made = _laid_out(shape, dtype, order, buffer=data)
    made.flags.writeable = bool(writable)
    return made


# -- views ---------------------------------------------------------------------------------------


def _form_in(root: Any, array: Any) -> Any:
    """Describe the part of each item of the root that a view shows.

    It is a dtype; for memory with objects, which allow no other dtype, the names of the field. None where
    the view cannot be made from the encoded root.
    """
    offset = _address(array) - _address(root)
    if _flat(root) is None or not _is_inside(root, array.itemsize, array.shape, array.strides, offset):
        return None
    if not has_objects(root.dtype):
        return describe(array.dtype)
    if any(stride % root.itemsize for stride in array.strides) or _writable(array) > _writable(root):
        return None
    if array.dtype.kind == "T" and not _is_slice(array.shape, array.strides):
        return None
    return _path(root.dtype, offset % root.itemsize, describe(array.dtype))


def _is_inside(root: Any, size: int, shape: Any, strides: Any, offset: int) -> bool:
    """Return whether a view shows something, and all of it is memory of its root."""
    ends = [(n - 1) * stride for n, stride in zip(shape, strides, strict=True)]
    low, high = sum(each for each in ends if each < 0), sum(each for each in ends if each > 0)
    return 0 not in shape and offset + low >= 0 and offset + high + size <= root.nbytes


def _is_slice(shape: Any, strides: Any) -> bool:
    return len(shape) == 1 and (strides[0] != 0 or shape[0] == 1)


def _path(dtype: Any, offset: int, description: Any) -> tuple[str, ...] | None:
    """Find the field that begins at an offset and has a dtype: the names that lead to it."""
    if offset == 0 and describe(dtype) == description:
        return ()
    for name in dtype.names or ():
        part, start = dtype.fields[name][:2]
        if start <= offset < start + part.itemsize:
            rest = _path(part, offset - start, description)
            return None if rest is None else (name, *rest)
    return None


def make_view(root: Any, form: Any, layout: tuple[Any, Any, int], writable: bool) -> Any:
    """Make an array that shares the memory of another, by shape, strides and offset; it stays inside.

    A root that was made read-only after its view, which can be written to, is opened for a moment; only
    one that was made here, over memory of the load.
    """
    np = library("numpy")
    if type(root) is not np.ndarray or _flat(root) is None:
        raise ValueError("a view of something other than memory")
    is_over_memory = root.base is not None and not isinstance(root.base, np.ndarray)
    if not (writable and not root.flags.writeable and is_over_memory):
        made = _view(root, form, *layout)
        if not writable:
            made.flags.writeable = False
        return made
    root.flags.writeable = True
    try:
        return _view(root, form, *layout)
    finally:
        root.flags.writeable = False


def _view(root: Any, form: Any, shape: Any, strides: Any, offset: int) -> Any:
    np = library("numpy")
    if has_objects(root.dtype):
        return _view_of_objects(root, form, shape, strides, offset)
    dtype = dtype_of(form)
    if has_objects(dtype):
        raise ValueError("memory cannot be seen as objects")
    return np.ndarray(tuple(shape), dtype, buffer=_raw(_flat(root)), offset=offset, strides=tuple(strides))


def _view_of_objects(root: Any, names: Any, shape: Any, strides: Any, offset: int) -> Any:
    """Make a view of objects, or of one field of items with objects; it begins at items, and ends inside."""
    np = library("numpy")
    part, size = _flat(root), root.itemsize
    if type(names) is not tuple:
        raise ValueError("memory of objects can only be seen as objects")
    for name in names:
        offset -= part.dtype.fields[name][1]
        part = part[name]
    is_aligned = part.ndim == 1 and all(each % size == 0 for each in (offset, *strides))
    if not is_aligned or not _is_inside(root, size, shape, strides, offset):
        raise ValueError("a view of objects leaves its array")
    if part.dtype.kind != "T":
        return np.lib.stride_tricks.as_strided(part[offset // size :], tuple(shape), tuple(strides))
    if not _is_slice(shape, strides):
        raise ValueError("texts can only be seen in slices")
    return part[offset // size :: strides[0] // size or 1][: shape[0]]


# -- arrays of objects ---------------------------------------------------------------------------


def _contents(array: Any) -> list[Any]:
    """Return the objects in an array as a list, or one for each field; plain fields are arrays."""
    if array.dtype.names is None:
        items: list[Any] = array.ravel().tolist()
        return items
    columns = [array[name] for name in array.dtype.names]
    return [_contents(each) if has_objects(each.dtype) else _Alone(each) for each in columns]


_ROOM = 64
"""Bytes of an array of objects for each byte of the stream that pays for it: as much memory as the same
bytes take as empty dicts."""


def make_object_array(description: Any, shape: tuple[int, ...], order: Order, room: bytearray) -> Any:
    """Make an array whose objects come later: they may lead back to it.

    Its size must be paid for with bytes of the stream, and each pays once.
    """
    dtype = dtype_of(description)
    spend(_size(shape) * dtype.itemsize)
    if not has_objects(dtype):
        raise ValueError(f"no objects are in an array of {dtype}")
    if type(room) is not bytearray or _size(shape) * dtype.itemsize > len(room) * _ROOM:
        raise ValueError("an array of objects larger than its stream has room for")
    room.clear()
    return _laid_out(shape, dtype, order)


def fill_object_array(array: Any, state: tuple[list[Any], bool]) -> None:
    """Put objects into an array, each as one item, sequences too."""
    np = library("numpy")
    contents, writable = state
    if type(array) is not np.ndarray or not has_objects(array.dtype):
        raise ValueError("objects for an array that holds none")
    _fill(array, contents)
    if not writable:
        array.flags.writeable = False


def _fill(array: Any, contents: Any) -> None:
    """Put in the result of `_contents`. The list is used up: no stream puts in one item many times."""
    np = library("numpy")
    if type(contents) is not list:
        raise ValueError("an array of objects without its items")
    if array.dtype.names is not None:
        for name, each in zip(array.dtype.names, contents, strict=True):
            _fill_field(array[name], each)
        return
    if array.size != len(contents):
        raise ValueError("an array of objects with another number of items")
    is_flat = array.flags.c_contiguous
    flat = array.reshape(-1) if is_flat else np.empty(array.size, array.dtype)
    for i, item in enumerate(contents):
        flat[i] = item
    if not is_flat:
        array[...] = flat.reshape(array.shape)
    contents.clear()


def _fill_field(column: Any, contents: Any) -> None:
    if has_objects(column.dtype):
        _fill(column, contents)
    elif (contents.dtype, contents.shape) != (column.dtype, column.shape):
        raise ValueError("a field of another form")
    else:
        column[...] = contents


# -- subclasses, scalars, generators -------------------------------------------------------------


def take_records(encoder: Any, array: Any) -> Any:
    np = library("numpy")
    return make_records, (_Alone(array.view(np.ndarray)),)


def make_records(array: Any) -> Any:
    np = library("numpy")
    _require_arrays(array)
    return array.view(np.recarray)


def _require_arrays(*values: Any) -> None:
    """Require arrays: numpy makes one of much else, such as all the numbers of a range."""
    for value in values:
        if type(value) is not library("numpy").ndarray:
            raise TypeError(f"an array from a {type(value).__name__}")


def take_masked(_encoder: Any, array: Any) -> Any:
    np = library("numpy")
    mask = None if array.mask is np.ma.nomask else _Alone(np.asarray(array.mask))
    fill_value = np.asarray(array.fill_value)
    return make_masked, (_Alone(np.asarray(array.data)), mask, fill_value, bool(array.hardmask))


def make_masked(data: Any, mask: Any, fill_value: Any, hard: bool) -> Any:
    np = library("numpy")
    _require_arrays(data, fill_value, *([] if mask is None else [mask]))
    known = np.ma.nomask if mask is None else mask
    return np.ma.MaskedArray(data, known, fill_value=fill_value, hard_mask=bool(hard))


class _Alone:
    """An array that is taken apart on its own, even if it shares its memory."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array


def alone(array: Any) -> Any:
    """Wrap an array whose library relies on its memory being its own."""
    return _Alone(array)


def take_scalar(_encoder: Any, scalar: Any) -> Any:
    if scalar.dtype.hasobject:
        raise ValueError("a record of objects")
    if scalar.dtype.kind in "SU":
        return make_text, (str.__str__(scalar) if scalar.dtype.kind == "U" else bytes(scalar),)
    return make_scalar, (describe(scalar.dtype), scalar.tobytes())


def make_scalar(description: Any, data: bytes) -> Any:
    np = library("numpy")
    dtype = dtype_of(description)
    if has_objects(dtype) or dtype.itemsize != len(data):
        raise ValueError("a scalar of another size")
    return np.ndarray((), dtype, buffer=bytearray(data))[()] if data else np.zeros((), dtype)[()]


def make_text(text: str | bytes) -> Any:
    """Make a scalar of a text; as an item of an array it would lose zeros at its end."""
    np = library("numpy")
    if type(text) not in {str, bytes}:
        raise TypeError(f"a text of numpy's from a {type(text).__name__}")
    return np.str_(text) if type(text) is str else np.bytes_(text)


_GENERATOR = 4096
"""Bytes of one of the larger generators; a state of one of them has as many."""
_BIT_GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
_LARGEST_POOL = 64  # words; numpy's default is 4, and mixing takes the square of it
_MOST_NUMBERS, _MOST_BITS = 1024, 4096  # of a seed; numpy's own is one of 128 bits


def take_generator(_encoder: Any, generator: Any) -> Any:
    bits = generator.bit_generator
    seed = bits.seed_seq
    sequence = (seed.entropy, tuple(seed.spawn_key), seed.pool_size, seed.n_children_spawned)
    _require_small(*sequence)
    return make_generator, (type(bits).__name__, bits.state, sequence)


def make_generator(kind: str, state: Any, sequence: tuple[Any, ...]) -> Any:
    np = library("numpy")
    entropy, spawn_key, pool_size, spawned = sequence
    spend(_GENERATOR)
    _require_small(*sequence)
    seed = np.random.SeedSequence(
        entropy, spawn_key=spawn_key, pool_size=pool_size, n_children_spawned=spawned
    )
    return np.random.Generator(_bits(kind, seed, state))


def _require_small(entropy: Any, spawn_key: tuple[Any, ...], pool_size: int, _spawned: int) -> None:
    """Check that a seed sequence is mixed in no time.

    Raises:
        ValueError: it is not.
    """
    np = library("numpy")
    if type(pool_size) is not int or pool_size > _LARGEST_POOL:
        raise ValueError(f"a seed sequence with a pool larger than {_LARGEST_POOL} words")
    for numbers in ((entropy,) if type(entropy) is int else entropy, spawn_key):
        if type(numbers) not in {tuple, list, np.ndarray} or len(numbers) > _MOST_NUMBERS:
            raise ValueError("a seed of too many numbers")
        for number in numbers:
            is_number = type(number) is int or isinstance(number, np.integer)
            if not is_number or int(number).bit_length() > _MOST_BITS:
                raise ValueError("a seed of other values than short numbers")


def take_random_state(_encoder: Any, generator: Any) -> Any:
    state = generator.get_state(legacy=False)
    if state["bit_generator"] != "MT19937":
        raise ValueError(f"a RandomState over {state['bit_generator']}")
    return make_random_state, (state,)


def make_random_state(state: Any) -> Any:
    np = library("numpy")
    _require_inside(state)
    spend(_GENERATOR)
    made = np.random.RandomState(0)
    made.set_state(state)
    return made


def _bits(kind: str, seed: Any, state: Any) -> Any:
    np = library("numpy")
    if kind not in _BIT_GENERATORS:
        raise ValueError(f"no bit generator is called {kind!r}")
    _require_inside(state)
    made = getattr(np.random, kind)(seed)
    made.state = state
    return made


def _require_inside(state: dict[str, Any]) -> None:
    """Check the index of the next number in the buffer of a generator: numpy reads there unchecked.

    Raises:
        ValueError: it is not among them.
    """
    ahead = {"MT19937": 624, "Philox": 4}.get(state["bit_generator"])
    if ahead is None:
        return
    place = state["buffer_pos"] if ahead == 4 else state["state"]["pos"]
    if type(place) is not int or not 0 <= place <= ahead:
        raise ValueError("a generator whose next number is not among those that it made")


# -- which kind ----------------------------------------------------------------------------------

_BY_NAME: dict[str, Callable[[Any, Any], Any]] = {
    "numpy.ndarray": take_array,
    "numpy.memmap": take_array,  # what is mapped is copied: the file may be gone
    "numpy.recarray": take_records,
    "numpy.rec.recarray": take_records,
    "numpy.ma.MaskedArray": take_masked,
    "numpy.ma.core.MaskedArray": take_masked,
    "numpy.random._generator.Generator": take_generator,
    "numpy.random.mtrand.RandomState": take_random_state,
}


def find_kind(cls: type) -> Callable[[Any, Any], Any] | None:
    """Return the function that takes instances of a numpy class apart."""
    if cls is _Alone:
        return lambda encoder, value: take_alone(encoder, value.array)
    found = _BY_NAME.get(f"{cls.__module__}.{cls.__qualname__}")
    if found is not None:
        return found
    bases = {name_of(base) for base in mro_of(cls)}
    if "generic" in bases:
        return take_scalar
    if "dtype" in bases:
        return lambda _encoder, value: (make_dtype, (describe(value),))
    return None


CONSTRUCTORS: tuple[Callable[..., Any], ...] = (
    make_dtype, make_array, make_view, make_object_array, fill_object_array, make_records, make_masked,
    make_scalar, make_text, make_generator, make_random_state,
)  # fmt: skip
