"""Dtypes of numpy as plain data.

A ``numpy.dtype`` has a ``__setstate__`` that trusts what it is given, so none is made by pickle's own
means. Nothing here imports numpy until a value of it comes by.
"""

from __future__ import annotations

import math
from typing import Any

from agex.values.adapters import library
from agex.values.base.decode_budget import spend
from agex.values.base.type_checks import is_exactly

__all__ = ["describe", "dtype_of", "has_objects", "make_dtype"]


def has_objects(dtype: Any) -> bool:
    """Return whether memory of a dtype refers to other memory, so that bytes alone do not make it."""
    return bool(dtype.hasobject) or dtype.kind == "T"


def describe(dtype: Any) -> Any:
    """Describe a dtype in plain data.

    Raises:
        ValueError: it is one of those that only its own library can make, or says more than can be kept.
    """
    if not dtype.metadata:
        return _form_of(dtype)
    metadata = dict(dtype.metadata)
    if not _is_plain(metadata):
        raise ValueError(f"the metadata of the dtype {dtype} is not plain data")
    return "metadata", _form_of(dtype), metadata


def _form_of(dtype: Any) -> Any:
    np = library("numpy")
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return "sub", describe(base), shape
    if dtype.names is not None and dtype.type in {np.void, np.record}:
        fields = [(name, *_field_of(*dtype.fields[name])) for name in dtype.names]
        record = (True,) if dtype.type is np.record else ()
        return "fields", fields, dtype.itemsize, dtype.isalignedstruct, *record
    if dtype.kind == "T":
        return "text", dtype.coerce, *_missing_of(dtype)
    is_known = dtype.isbuiltin in {0, 1} and dtype.kind in "?bBiufcmMOSUV"
    if not is_known or dtype.names is not None or (dtype.kind == "V" and dtype.type is not np.void):
        raise ValueError(f"the dtype {dtype} cannot be described")
    return dtype.str


def _field_of(part: Any, offset: int, title: Any = None) -> tuple[Any, ...]:
    if title is None:
        return describe(part), offset
    if type(title) is not str:
        raise ValueError(f"the title {title!r} of a field is no text")
    return describe(part), offset, title


def _missing_of(dtype: Any) -> tuple[Any, ...]:
    """Return the marker of a missing text; an empty tuple where the dtype has none."""
    if not hasattr(dtype, "na_object"):
        return ()
    if not _is_missing(dtype.na_object):
        raise ValueError(f"{dtype.na_object!r}, which stands for a missing text, cannot be kept")
    return (dtype.na_object,)


def _is_missing(value: Any) -> bool:
    is_nan = type(value) is float and math.isnan(value)
    is_pandas = is_exactly(type(value), "pandas._libs.missing", "NAType")
    return value is None or is_nan or is_pandas or type(value) is str


_WORDS = frozenset({type(None), bool, int, float, complex, str, bytes})


def _is_plain(value: Any) -> bool:
    if type(value) is dict:
        return all(_is_plain(each) for item in value.items() for each in item)
    if type(value) in {list, tuple}:
        return all(map(_is_plain, value))
    return type(value) in _WORDS or value is str or value is bytes  # h5py notes the type of its objects so


_DTYPE = 512
"""Bytes of a dtype."""


def dtype_of(description: Any) -> Any:
    """Make a dtype from its description.

    Raises:
        ValueError, TypeError: it is none.
    """
    np = library("numpy")
    spend(_DTYPE)  # for each part, as often as it is referred to
    if isinstance(description, str):
        spend(16 * len(description))
        return np.dtype(description)
    kind, *rest = description
    if kind == "sub":
        return np.dtype((dtype_of(rest[0]), tuple(rest[1])))
    if kind == "fields":
        return _of_fields(*rest)
    if kind == "text":
        coerce, *missing = rest
        return np.dtypes.StringDType(coerce=bool(coerce), **_missing_from(*missing))
    if kind == "metadata":
        form, metadata = rest
        return np.dtype(dtype_of(form), metadata=dict(metadata))
    raise ValueError(f"no dtype is {kind!r}")


def _of_fields(fields: Any, itemsize: int, aligned: bool, record: bool = False) -> Any:
    np = library("numpy")
    spend(_DTYPE * len(fields))
    form: dict[str, Any] = {"names": [], "formats": [], "offsets": [], "titles": [], "itemsize": itemsize}
    for name, part, offset, *title in fields:
        form["names"].append(str(name))
        form["formats"].append(dtype_of(part))
        form["offsets"].append(int(offset))
        form["titles"].append(str(title[0]) if title else None)
    made = np.dtype(form, align=bool(aligned))
    return np.dtype((np.record, made)) if record else made


def _missing_from(*missing: Any) -> dict[str, Any]:
    if not missing:
        return {}
    (value,) = missing
    if not _is_missing(value):
        raise ValueError(f"a missing text is no {type(value).__name__}")
    return {"na_object": value}


def make_dtype(description: Any) -> Any:
    """Make a dtype that is itself a value."""
    return dtype_of(description)
