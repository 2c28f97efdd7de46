"""Bounded text for any value, without running the hooks of its class.

``short_repr`` is for error messages, ``preview`` for showing inputs in a prompt. Where a preview is given a
limit of time for it, objects of the host are asked for their own repr, see `agex.contract.host_repr`.
"""

from __future__ import annotations

import dataclasses
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import Field, dataclass, replace
from enum import Enum
from functools import partial
from itertools import islice
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from agex._interpreter.type_slots import module_of
from agex.contract.host_repr import HostTexts, own_repr
from agex.contract.real_types import (
    class_attribute,
    class_name,
    is_known,
    is_subclass,
    own_attributes,
    real_attribute,
    real_iter,
    real_len,
)
from agex.contract.table_preview import column_line, picked_rows, table_lines
from agex.escaping import line

__all__ = ["preview", "short_repr"]

_DEPTH = 4
"""Levels of nesting shown: deeper structure is rarely read in a prompt."""
_ROWS = 5
"""Rows of a table shown, as pandas' own ``head``."""
_BITS = 1024
"""Longest integer written out: past 4300 digits ``str`` itself refuses."""


def short_repr(value: object, limit: int = 80) -> str:
    """Write *value* on one line of at most *limit* characters."""
    return _cut(line(" ".join(_safely(_Writer(limit=limit).text, value).split("\n"))), limit)


def preview(value: object, limit: int = 1000, texts: HostTexts | None = None) -> str:
    """Write what a reader needs to know of *value*, in at most *limit* characters.

    Tables and arrays show shape, types and their first rows; long collections their first and
    last items and their length; other objects their class and public attributes.

    Args:
        value: any object.
        limit: characters.
        texts: asks objects of the host for the repr of their class; without it, none is asked.
    """
    return _cut(_safely(partial(_preview, limit=limit, texts=texts), value), limit)


def _preview(value: object, limit: int, texts: HostTexts | None) -> str:
    for show in (_table, _array):
        text = show(value, limit)
        if text:
            return text
    return line(_Writer(limit=limit, texts=texts).text(value))


def _safely(write: Callable[[Any], str], value: object) -> str:
    """Return the text of a value, or of its class alone where that fails: no preview ends a call."""
    try:
        return write(value)
    except Exception as error:  # noqa: BLE001 - a library's repr may raise anything
        return f"<{class_name(type(value))}, which cannot be shown: {class_name(type(error))}>"


def _cut(text: str, limit: int) -> str:
    mark = " ... "
    if len(text) <= limit:
        return text
    if limit < 3 * len(mark):
        return text[: max(limit, 0)]
    head = (limit - len(mark)) * 2 // 3
    return text[:head] + mark + text[head + len(mark) - limit :]


@dataclass(frozen=True, kw_only=True)
class _Writer:
    """Writes one part of a value: within a limit of text, to a depth, inside the values above it."""

    limit: int
    depth: int = _DEPTH
    above: frozenset[int] = frozenset()
    texts: HostTexts | None = None

    def text(self, value: Any) -> str:
        """Write *value*, in about ``limit`` characters."""
        kind = type(value)
        for cls, write in _WRITERS.items():
            if kind is cls:
                return write(value, self)
        if is_subclass(kind, Enum):
            return f"{class_name(kind)}.{real_attribute(value, '_name_')}"
        if id(value) in self.above:
            return "..."
        if self.depth == 0:
            return f"<{class_name(kind)}>"
        return _structure(value, replace(self, depth=self.depth - 1, above=self.above | {id(value)}))

    def part(self, value: Any, share: int) -> str:
        """Write a part of a value in one *share*-th of the space."""
        limit = max(self.limit // share, 24)
        return _cut(replace(self, limit=limit).text(value), limit)


def _integer(value: int, writer: _Writer) -> str:
    return repr(value) if value.bit_length() <= _BITS else f"<int of {value.bit_length()} bits>"


def _string(value: str | bytes | bytearray, writer: _Writer) -> str:
    if len(value) + 2 <= max(writer.limit, 16):
        return repr(value)
    told = f" (length {len(value)})"
    keep = max(writer.limit - len(told) - 8, 8)
    return f"{value[: keep * 2 // 3]!r}...{value[-(keep // 3) :]!r}{told}"


def _plain(value: object, writer: _Writer) -> str:
    return repr(value)


def _function(value: Any, writer: _Writer) -> str:
    return f"<function {value.__name__}>"


_WRITERS: Mapping[type, Callable[[Any, _Writer], str]] = {
    int: _integer,
    str: _string,
    bytes: _string,
    bytearray: _string,
    **dict.fromkeys((float, complex, bool, type(None), type(...), type(NotImplemented), range), _plain),
    **dict.fromkeys((FunctionType, BuiltinFunctionType, MethodType), _function),
    ModuleType: lambda value, writer: f"<module {value.__name__}>",
}
_BRACKETS: Mapping[type, str] = {list: "[]", deque: "[]", tuple: "()", dict: "{}", set: "{}", frozenset: "{}"}
_PLAIN_OF: Mapping[type, Callable[[Any], Any]] = {
    str: str.__str__,
    int: int.__int__,
    float: float.__float__,
    bytes: bytes.__bytes__,
}
"""How a value of a derived class becomes the builtin, past overrides."""
_PRINTED = ("datetime", "decimal", "fractions", "pathlib", "uuid", "re", "pandas", "numpy")
"""Modules whose scalar values are known by their own, short repr."""


def _structure(value: Any, writer: _Writer) -> str:
    kind = type(value)
    shaped = _library_value(value)
    if shaped:
        return shaped
    own = own_repr(value, writer.texts) if writer.texts is not None else None
    if own is not None:
        return _cut(own, writer.limit)
    names = _field_names(kind)
    if names:
        return f"{class_name(kind)}({', '.join(_attributes(value, names, writer))})"
    for base, brackets in _BRACKETS.items():
        if is_subclass(kind, base):
            text = _collection(value, brackets, writer)
            return text if kind is base and base is not frozenset else f"{class_name(kind)}({text})"
    if is_subclass(kind, type):
        return f"<class {class_name(value, dotted=True)}>"
    for base, plain in _PLAIN_OF.items():
        if is_subclass(kind, base):
            return f"{class_name(kind)}({writer.text(plain(value))})"
    return _object(value, writer)


def _field_names(kind: type) -> list[str]:
    made = class_attribute(kind, "__dataclass_fields__")  # not asked for: a metaclass may answer
    if type(made) is dict:
        return [each.name for each in made.values() if type(each) is Field and each.repr and _is_held(each)]
    named = class_attribute(kind, "_fields" if is_subclass(kind, tuple) else "__pydantic_fields__")
    return [name for name in named if type(name) is str] if type(named) in (tuple, dict) else []


def _is_held(field: Any) -> bool:
    """Return whether an object has a field of its own, as opposed to a variable of its class."""
    return field._field_type is vars(dataclasses)["_FIELD"]


def _attributes(value: Any, names: Iterable[str], writer: _Writer) -> Iterator[str]:
    left = writer.limit
    for name in names:
        try:
            text = f"{name}={writer.part(real_attribute(value, name), 3)}"
        except (AttributeError, IndexError):  # a named tuple can have fewer items than names
            continue
        left -= len(text) + 2
        if left < 0:
            yield "..."
            return
        yield text


def _collection(value: Any, brackets: str, writer: _Writer) -> str:
    size = real_len(value)
    if not size:
        return "set()" if type(value) is set else brackets
    texts = _pairs(value, writer) if brackets == "{}" and is_subclass(type(value), dict) else None
    taken, complete = _fill(texts or (writer.part(each, 3) for each in real_iter(value)), size, writer.limit)
    if not complete:
        return (
            f"{brackets[0]}{', '.join([*taken, '...', *_last(value, writer)])}{brackets[1]} (length {size})"
        )
    comma = "," if brackets == "()" and size == 1 else ""
    return f"{brackets[0]}{', '.join(taken)}{comma}{brackets[1]}"


def _pairs(value: dict[Any, Any], writer: _Writer) -> Iterator[str]:
    return (f"{writer.part(key, 6)}: {writer.part(each, 3)}" for key, each in dict.items(value))


def _last(value: Any, writer: _Writer) -> Iterator[str]:
    for base in (list, tuple):
        if is_subclass(type(value), base):
            yield writer.part(base.__getitem__(value, -1), 4)
    if is_subclass(type(value), dict):
        for key in islice(dict.__reversed__(value), 1):
            yield f"{writer.part(key, 6)}: {writer.part(dict.__getitem__(value, key), 4)}"


def _fill(texts: Iterator[str], size: int, limit: int) -> tuple[list[str], bool]:
    """Take texts while they fit, keeping space for the last item and the length."""
    taken: list[str] = []
    used = 2
    for text in texts:
        used += len(text) + 2
        whole = len(taken) + 1 == size and used <= limit + 2
        if taken and not whole and used > limit * 3 // 4 - 20:
            return taken, False
        taken.append(text)
    return taken, True


def _object(value: Any, writer: _Writer) -> str:
    kind = type(value)
    if _is_printed(kind) and _holds_no_others(value):
        return repr(value)
    public = [name for name in own_attributes(value) if type(name) is str and not name.startswith("_")]
    told = ", ".join(_attributes(value, public, writer))
    return f"<{class_name(kind, dotted=True)} object{': ' + told if told else ''}>"


def _holds_no_others(value: Any) -> bool:
    """Return whether the repr of a library's value asks no other object for its own.

    A moment has the repr of its time zone in it, a record of numpy those of its objects, an offset those of
    what it was made with: any of these may take hours.
    """
    zone = getattr(value, "tzinfo", None)
    if not (zone is None or _is_printed(type(zone)) or module_of(type(zone)) in _ZONES):
        return False
    ends = [getattr(value, name, None) for name in ("left", "right")]
    if getattr(getattr(value, "dtype", None), "hasobject", False) or getattr(value, "kwds", None):
        return False
    return all(end is None or _is_end(end) for end in ends)


def _is_end(value: Any) -> bool:
    return type(value) in {int, float} or (_is_printed(type(value)) and _holds_no_others(value))


_ZONES = ("zoneinfo", "datetime", "pytz", "dateutil.tz.tz")


def _is_printed(kind: type) -> bool:
    """Return whether *kind* really is what its module calls by its name, and prints shortly."""
    module = module_of(kind)
    if type(kind) is not type or type(module) is not str or module.partition(".")[0] not in _PRINTED:
        return False
    return getattr(sys.modules.get(module), kind.__name__, None) is kind


def _loaded(name: str) -> Any:
    """Return a library that was imported; None for one that another thread imports just now."""
    module: Any = sys.modules.get(name)
    return None if getattr(getattr(module, "__spec__", None), "_initializing", False) else module


def _library_value(value: Any) -> str | None:
    """Write the shape of an array or a table that stands inside another value."""
    numpy, pandas = _loaded("numpy"), _loaded("pandas")
    kind = type(value)
    if numpy is not None and is_subclass(kind, numpy.generic):
        is_short = _is_printed(kind) and value.nbytes <= 64 and _holds_no_others(value)
        return repr(value) if is_short else None
    if numpy is not None and is_known(kind, numpy.ndarray):
        return f"<{class_name(kind)} shape={value.shape} dtype={value.dtype}>"
    tables = (pandas.DataFrame, pandas.Series, pandas.Index) if pandas is not None else ()
    if is_known(kind, *tables):
        return f"<{class_name(kind)} shape={value.shape}>"
    return _picture(value) or _graph(value) or _polars(value)


def _picture(value: Any) -> str | None:
    """Write the size and mode of an image of Pillow."""
    pillow = _loaded("PIL.Image")
    if pillow is None or not is_known(type(value), pillow.Image):
        return None
    width, height = value.size
    return f"<{class_name(type(value))} {width}x{height} {value.mode}>"


def _graph(value: Any) -> str | None:
    """Write the counts of a graph of networkx, without a hash or a comparison of its nodes."""
    networkx = _loaded("networkx")
    if networkx is None or not is_known(type(value), networkx.Graph):
        return None
    many = is_subclass(type(value), networkx.MultiGraph)
    found = own_attributes(value)
    near = [each for held in dict.values(found["_adj"]) for each in dict.values(held)]
    edges = sum(len(each) for each in near) if many else len(near)
    if not is_subclass(type(value), networkx.DiGraph):
        edges = (edges + 1) // 2  # each but a loop stands at both of its nodes
    return f"<{class_name(type(value))} {len(found['_node'])} nodes, {edges} edges>"


def _polars(value: Any) -> str | None:
    """Write the shape of a frame or series of polars and the types of its columns."""
    polars = _loaded("polars")
    if polars is None or not is_known(type(value), polars.DataFrame, polars.Series):
        return None
    if is_known(type(value), polars.Series):
        return f"<polars Series {short_repr(value.name, 40)} length={len(value)} dtype={value.dtype}>"
    columns = ", ".join(f"{short_repr(name, 40)}: {kind}" for name, kind in value.schema.items())
    return f"<polars DataFrame shape={value.shape} columns {columns}>"


def _table(value: Any, limit: int) -> str | None:
    pandas = _loaded("pandas")
    if pandas is None:
        return None
    if is_known(type(value), pandas.DataFrame):
        rows, columns = value.shape
        plain = pandas.DataFrame(value)  # without its `attrs`, of which copies would be made
        lines = table_lines(plain, partial(short_repr, limit=40), limit // 2)
        told = _cut("\n".join([f"DataFrame, {rows} rows x {columns} columns", *lines]), limit * 2 // 3)
        part = plain.iloc[picked_rows(rows), :20]
        part.index, part.columns = _labels(part.index), _labels(part.columns)
        part = part.map(_cell)
        return _with_lines(told, part.to_string(header=True) if value.size else "", limit)
    if is_known(type(value), pandas.Series):
        picked = picked_rows(len(value))
        part = pandas.Series(value.array[picked], index=_labels(value.index[picked])).map(_cell)
        facts = column_line(pandas.Series(value), partial(short_repr, limit=40))
        told = f"Series {short_repr(value.name, 40)}, length {len(value)}, dtype {line(facts)}"
        return _with_lines(told, part.to_string() if value.size else "", limit)
    if is_known(type(value), pandas.Index):
        items = ", ".join(str(_cell(each)) for each in value[:_ROWS])
        return f"{class_name(type(value))}, length {len(value)}, dtype {value.dtype}: {items}"
    return None


def _with_lines(text: str, rows: str, limit: int) -> str:
    """Add as many whole rows as fit."""
    for row in map(line, rows.split("\n")):
        if len(text) + 1 + len(row) > limit:
            break
        text += f"\n{row}"
    return text


def _labels(index: Any) -> Any:
    """Return labels whose text and hash pandas may ask for: guest objects as texts."""
    told = [*index.names, *index]
    parts = [part for each in told for part in (each if type(each) is tuple else (each,))]
    is_plain = all(
        type(part) in (str, int, float, bool, type(None)) or _is_printed(type(part)) for part in parts
    )
    return index if is_plain else [short_repr(each, 40) for each in index]


def _cell(value: object) -> object:
    """Return a cell as a table shows it: numbers as they are, so that pandas aligns them."""
    if type(value) is str:
        return _cut(value, 40)
    if type(value) in (int, float, bool):
        return value
    is_printed = _is_printed(type(value)) and _holds_no_others(value)
    return str(value) if is_printed else short_repr(value, 40)


def _array(value: Any, limit: int) -> str | None:
    numpy = _loaded("numpy")
    if numpy is None or not is_known(type(value), numpy.ndarray):
        return None
    told = f"{class_name(type(value))} shape={value.shape} dtype={value.dtype}"
    if value.size == 0:
        return told
    flat = [short_repr(each, 24) for each in value.flat[: 2 * _ROWS].tolist()]
    if value.size > len(flat):
        flat += ["...", short_repr(value.flat[value.size - 1].item(), 24)]
    order = "first values" if value.ndim > 1 else "values"
    return f"{told} {order} [{', '.join(flat)}]"
