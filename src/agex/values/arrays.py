"""numpy's values: arrays and their views, scalars and generators (see `dtypes` for the rest).

Nothing here imports numpy until a value of it comes by. An array is its memory and a description of it
in plain data; `numpy.ndarray` has a ``__setstate__`` that trusts what it is given, so none is made by
pickle's own means.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

from agex.typeslots import mro_of, name_of
from agex.values.dtypes import describe, dtype_of, has_objects, make_dtype
from agex.values.library import library
from agex.values.sharing import array_root

__all__ = ["CONSTRUCTORS", "alone", "find_kind", "make_array", "take_alone", "take_array"]

OUT_OF_BAND = 4096  # bytes from which an array's memory is not copied into the stream

# -- arrays --------------------------------------------------------------------------------------


def take_array(encoder: Any, array: Any) -> Any:
    """Take an array apart: as a view where what it is a view of is there too, else on its own."""
    root = array_root(array)
    if root is not array and id(root) in encoder.shared_arrays and type(root) is type(array):
        offset = _address(array) - _address(root)
        layout = (array.shape, array.strides, offset)
        return make_view, (root, describe(array.dtype), layout, _writable(array))
    return take_alone(encoder, array)


def take_alone(_encoder: Any, array: Any) -> Any:
    """Take an array apart as one that shares its memory with no other."""
    np = library("numpy")
    plain = array.view(np.ndarray) if type(array) is not np.ndarray else array
    description = describe(array.dtype)
    if array.dtype.hasobject or array.dtype.kind == "T":
        items = plain.ravel().tolist()
        return make_object_array, (description, array.shape), items, None, None, fill_object_array
    fortran = plain.flags.f_contiguous and not plain.flags.c_contiguous
    if not fortran:
        plain = np.ascontiguousarray(plain).reshape(array.shape)  # it makes one dimension of none
    memory: Any = _raw(plain)
    memory = pickle.PickleBuffer(memory) if plain.nbytes >= OUT_OF_BAND else memory.tobytes()
    return make_array, (memory, description, array.shape, fortran, _writable(array))


def make_array(memory: Any, description: Any, shape: tuple[int, ...], fortran: bool, writable: bool) -> Any:
    """Make an array of its memory, which is copied where it cannot be written to."""
    np = library("numpy")
    dtype = dtype_of(description)
    if dtype.hasobject or dtype.kind == "T":
        raise ValueError("objects cannot be made from memory")
    if any(n < 0 for n in shape):
        raise ValueError("an array of negative length")
    data = _own(memory)
    made: Any = np.ndarray(tuple(shape), dtype, buffer=data, order="F" if fortran else "C")
    if made.nbytes != data.nbytes:
        raise ValueError(f"an array of {made.nbytes} bytes was given {data.nbytes}")
    made.flags.writeable = bool(writable)
    return made


def make_view(root: Any, description: Any, layout: tuple[Any, Any, int], writable: bool) -> Any:
    """Make an array that shares the memory of another, by shape, strides and offset; it stays inside."""
    np = library("numpy")
    dtype = dtype_of(description)
    shape, strides, offset = layout
    if dtype.hasobject or root.dtype.hasobject or "T" in {dtype.kind, root.dtype.kind}:
        if not dtype == root.dtype == np.dtype("O"):
            raise ValueError("memory of objects can only be seen as objects")
        made = np.lib.stride_tricks.as_strided(*_checked(root, shape, strides, offset))
    else:
        made = np.ndarray(tuple(shape), dtype, buffer=_raw(root), offset=offset, strides=tuple(strides))
    if not writable:
        made.flags.writeable = False
    return made


def _checked(root: Any, shape: Any, strides: Any, offset: int) -> tuple[Any, Any, Any]:
    """Give the arguments of a view of objects, after looking that it begins at objects and ends inside."""
    size = root.itemsize
    flat = root.reshape(-1, order="A")
    ends = [(n - 1) * s for n, s in zip(shape, strides, strict=True) if n]
    low, high = sum(e for e in ends if e < 0), sum(e for e in ends if e > 0)
    aligned = offset % size == 0 and all(s % size == 0 for s in strides)
    if not aligned or offset + low < 0 or offset + high + size > root.nbytes or 0 in shape:
        raise ValueError("a view of objects leaves its array")
    return flat[offset // size :], tuple(shape), tuple(strides)


def make_object_array(description: Any, shape: tuple[int, ...]) -> Any:
    np = library("numpy")
    if np.prod([int(n) for n in shape], dtype=object) > _MOST_OBJECTS:
        raise ValueError("an array of objects larger than any stream")
    return np.empty(tuple(shape), dtype_of(description))


_MOST_OBJECTS = 1 << 28  # their places alone are 2 GB; each needs a byte of the stream


def fill_object_array(array: Any, items: list[Any]) -> None:
    """Put the items into an array, each as one object, whatever it is."""
    np = library("numpy")
    if type(array) is not np.ndarray or type(items) is not list or array.size != len(items):
        raise ValueError("an array of objects with another number of items")
    flat = array.reshape(-1)
    for i, item in enumerate(items):
        flat[i] = item


def _raw(array: Any) -> Any:
    """View a contiguous array as its bytes, in the order they are in."""
    np = library("numpy")
    flat = array.reshape(-1, order="A")
    if array.itemsize == 0:
        return np.empty(0, np.uint8)
    return flat.view(np.uint8)


def _address(array: Any) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _writable(array: Any) -> bool:
    return bool(array.flags.writeable)


def _own(memory: Any) -> memoryview:
    """Give memory that an array may stand on: a buffer of the load, or a copy.

    Numpy does not hold on to what it is given the way a view does: a bytearray that something else in
    the stream refers to could be made shorter under it.
    """
    return memory if type(memory) is memoryview and not memory.readonly else memoryview(bytearray(memory))


# -- subclasses, scalars, generators -------------------------------------------------------------


def take_records(encoder: Any, array: Any) -> Any:
    np = library("numpy")
    return make_records, (_Alone(array.view(np.ndarray)),)


def make_records(array: Any) -> Any:
    np = library("numpy")
    return array.view(np.recarray)


def take_masked(_encoder: Any, array: Any) -> Any:
    np = library("numpy")
    mask = None if array.mask is np.ma.nomask else _Alone(np.asarray(array.mask))
    fill_value = np.asarray(array.fill_value)
    return make_masked, (_Alone(np.asarray(array.data)), mask, fill_value, bool(array.hardmask))


def make_masked(data: Any, mask: Any, fill_value: Any, hard: bool) -> Any:
    np = library("numpy")
    known = np.ma.nomask if mask is None else mask
    return np.ma.MaskedArray(data, known, fill_value=fill_value, hard_mask=bool(hard))


class _Alone:
    """An array that is to be taken apart on its own, whatever it shares its memory with."""

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


_BIT_GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
_LARGEST_POOL = 64  # words; numpy's own is 4, and the work of mixing one grows with its square
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
                raise ValueError("a seed of something else than short numbers")


def take_random_state(_encoder: Any, generator: Any) -> Any:
    state = generator.get_state(legacy=False)
    if state["bit_generator"] != "MT19937":
        raise ValueError(f"a RandomState over {state['bit_generator']}")
    return make_random_state, (state,)


def make_random_state(state: Any) -> Any:
    np = library("numpy")
    _require_inside(state)
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
    """Check the place of the next number among those made ahead: numpy reads there, wherever it is.

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
    """Find how instances of a class of numpy's are taken apart."""
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
