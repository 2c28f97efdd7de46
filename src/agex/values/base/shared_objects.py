"""Walk over the object graph that finds which variables share mutable objects, a level at a time.

Only what can be changed in place joins two variables. Constants, tuples of constants, types and
host functions are shared by everything and join nothing.

Traps: dicts of constants, arrays and bytearrays are not tracked by the garbage collector (its
``get_referents`` follows them all the same); an array's base is not among its referents; pandas
shares blocks between frames that copy on write, which must not become shared for good.
"""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import fractions
import gc
import types
import uuid
import zoneinfo
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Protocol

from agex._interpreter.type_slots import mro_of, name_of
from agex.values.base.function_wrappers import held_by
from agex.values.base.type_checks import is_a, is_class, is_exactly, is_function, is_made_of, package_of

__all__ = ["ATOMS", "Cluster", "Code", "NotApart", "array_root", "clusters"]

ATOMS: frozenset[type] = frozenset(
    {
        type(None), bool, int, float, complex, str, bytes, range, type(...), type(NotImplemented),
        dt.date, dt.datetime, dt.time, dt.timedelta, dt.timezone,
        decimal.Decimal, fractions.Fraction, uuid.UUID, zoneinfo.ZoneInfo,
        types.ModuleType, types.CodeType, types.GetSetDescriptorType,
        types.MemberDescriptorType, types.MethodDescriptorType, types.ClassMethodDescriptorType,
        types.WrapperDescriptorType,
        types.MappingProxyType, types.FrameType, types.GeneratorType, types.CoroutineType,
    }
)  # fmt: skip
"""Types whose values lead nowhere."""

_PLAIN = frozenset({dict, list, set})
_FROZEN = frozenset({tuple, frozenset})


class Code(Protocol):
    """Facts about guest code that the walk needs."""

    def is_own(self, value: Any) -> bool:
        """Return whether guest code made a function or class."""
        ...

    def leads_on(self, cls: type) -> bool:
        """Return whether instances of a class are taken apart; others are lost or kept by name."""
        ...

    def is_sealed(self, cls: type) -> bool:
        """Return whether instances of a class are kept as wholes, together with others that hold the same."""
        ...

    def successors(self, value: Any) -> Iterable[Any]:
        """Return the objects that a guest function or class refers to."""
        ...


@dataclass
class Cluster:
    """Variables that are encoded together, and the facts that the walk found about them."""

    names: list[str] = field(default_factory=list)
    shared_arrays: set[int] = field(default_factory=set)
    """The ids of arrays that several arrays are views of, or that are there themselves beside a view."""
    code: list[Any] = field(default_factory=list)
    """Guest functions and classes, each once."""
    kinds: set[type] = field(default_factory=set)
    """The types of all that the walk met, apart from what is inside the values of libraries."""


class NotApart(Exception):
    """Variables share an object with others that were to be apart from them."""


def clusters(
    variables: Mapping[str, Any], code: Code, apart: AbstractSet[int] = frozenset()
) -> list[Cluster]:
    """Divide variables into the smallest sets that share no mutable object, in order of their names.

    Raises:
        NotApart: one of the objects with the ids *apart* is among theirs.
    """
    names = sorted(variables)
    walk = _Walk(code)
    walk.visit([variables[name] for name in names])
    if not walk.owner.keys().isdisjoint(apart):
        raise NotApart
    found: dict[int, Cluster] = {}
    for i, name in enumerate(names):
        cluster = found.setdefault(walk.root(i), Cluster())
        cluster.names.append(name)
        cluster.kinds |= walk.kinds[i]
    for i, each in walk.code:
        found[walk.root(i)].code.append(each)
    for root, count in walk.arrays.items():
        if count > 1:
            found[walk.root(walk.owner[_memory_of(root)])].shared_arrays.add(root)
    return list(found.values())


class _Walk:
    def __init__(self, code: Code) -> None:
        self.owner: dict[int, int] = {}  # the first variable that reached an object, by the object's id
        self.code: list[tuple[int, Any]] = []
        self.arrays: Counter[int] = Counter()
        self._guest = code
        self._wholes: list[tuple[int, Any]] = []
        self._shared_by_all: dict[type, bool] = {}
        self._in_wholes: dict[int, int] = {}  # the first variable with a whole that holds an object
        self.kinds: list[set[type]] = []
        self._joined: list[int] = []
        self._atoms = set(ATOMS)
        self._alive: list[Any] = []  # views that were made on the way: their ids must not be given away

    def visit(self, values: Sequence[Any]) -> None:
        self._joined = list(range(len(values)))
        self.kinds = [{type(value)} for value in values]
        for i, value in enumerate(values):
            if type(value) not in ATOMS:
                self._visit(i, value)
        if len({i for i, _ in self._wholes}) > 1:
            for i, whole in self._wholes:
                self._look_into(whole, i)

    def root(self, i: int) -> int:
        while self._joined[i] != i:
            self._joined[i] = self._joined[self._joined[i]]
            i = self._joined[i]
        return i

    def _visit(self, i: int, value: Any) -> None:
        found = [value]
        seen: set[int] = set()
        while found:
            kinds = self._kinds_of(found, i)
            frontier = [each for each in found if type(each) in kinds] if kinds else []
            if kinds <= _PLAIN:
                found = gc.get_referents(*self._new_of(frontier, i))
            else:
                found = self._mixed(frontier, i, seen)

    def _mixed(self, frontier: list[Any], i: int, seen: set[int]) -> list[Any]:
        """Return the objects that objects of any type refer to."""
        plain: list[Any] = []
        found: list[Any] = []
        for each in frontier:
            kind = type(each)
            if kind in _FROZEN:
                if id(each) not in seen:
                    seen.add(id(each))
                    plain.append(each)
            elif kind in _PLAIN:
                if self._is_new(each, i):
                    plain.append(each)
            elif not self._is_hosts(each) and self._is_new(each, i):
                found += self._children(each, i)
        return found + gc.get_referents(*plain)

    def _new_of(self, plain: list[Any], i: int) -> list[Any]:
        """Note at once that variable *i* reaches many objects; return those that are new."""
        ids = dict(zip(map(id, plain), plain, strict=True))
        if self.owner.keys().isdisjoint(ids):
            self.owner.update(dict.fromkeys(ids, i))
            return plain if len(ids) == len(plain) else list(ids.values())
        return [each for each in ids.values() if self._is_new(each, i)]

    def _is_new(self, each: Any, i: int) -> bool:
        return self._is_new_id(id(each), i)

    def _is_new_id(self, each: int, i: int) -> bool:
        """Note that variable *i* reaches an object, by its id; where another did already, they are one."""
        first = self.owner.get(each)
        if first is None:
            self.owner[each] = i
            return True
        self._join(first, i)
        return False

    def _join(self, first: int, i: int) -> None:
        one, other = self.root(first), self.root(i)
        self._joined[max(one, other)] = min(one, other)

    def _is_hosts(self, each: Any) -> bool:
        """Return whether an object is host code or a host constant, which everything may share."""
        if is_class(each) or is_function(each):
            return not (self._guest.is_own(each) or (is_function(each) and held_by(each)))
        if is_a(each, types.BuiltinFunctionType):  # a method of an object leads to that
            owner = each.__self__
            return (
                owner is None
                or type(owner) is types.ModuleType
                or (is_class(owner) and self._is_hosts(owner))
            )
        return is_a(each, enum.Enum) and not self._guest.is_own(type(each))

    def _kinds_of(self, found: list[Any], i: int) -> set[type]:
        """Return the types whose instances lead on; most often there is none, and the walk ends."""
        kinds = set(map(type, found))
        self.kinds[i] |= kinds
        kinds -= self._atoms
        atomic = {kind for kind in kinds if _is_atomic(kind) or not self._guest.leads_on(kind)}
        self._atoms |= atomic
        return kinds - atomic

    def _children(self, each: Any, i: int) -> Iterable[Any]:
        kind = type(each)
        held = held_by(each) if kind is types.FunctionType else []
        if held:
            return held
        if is_class(each) or is_function(each):
            self.code.append((i, each))
            return self._guest.successors(each)
        if self._guest.is_sealed(kind):
            self._wholes.append((i, each))
            return ()
        if self._guest.is_own(kind):
            return gc.get_referents(each)  # over an array or not: its attributes are guest code
        if is_made_of(kind, "numpy", "ndarray"):
            return self._array(each, i)
        if is_made_of(kind, "pandas.core.internals.blocks", "Block"):
            values = each.values
            return values.ravel().tolist() if getattr(values.dtype, "hasobject", False) else ()
        return () if package_of(kind) in {"plotly", "polars"} else gc.get_referents(each)

    def _look_into(self, whole: Any, i: int) -> None:
        """Join the variables with wholes that hold the same object, as a figure and its axes do."""
        found = [whole]
        while found:
            ids = dict(zip(map(id, found), found, strict=True))
            known = ids.keys() & self._in_wholes.keys()
            for first in {self._in_wholes[each] for each in known}:
                self._join(first, i)
            new = [each for key, each in ids.items() if key not in known]
            self._in_wholes.update(dict.fromkeys(map(id, new), i))
            found = gc.get_referents(*new)
            skipped = {kind for kind in set(map(type, found)) if self._is_everybodys(kind)}
            found = [each for each in found if type(each) not in skipped]

    def _is_everybodys(self, kind: type) -> bool:
        """Return whether objects of a type are constants or code, which wholes of any variable may hold."""
        if kind not in self._shared_by_all:
            code = (type, types.FunctionType, types.BuiltinFunctionType, enum.Enum)
            is_shared = kind in ATOMS or any(base in code for base in mro_of(kind)) or _is_atomic(kind)
            is_shared = is_shared or package_of(kind) == "agex"  # a stream leads to the session, and to all
            self._shared_by_all[kind] = is_shared
        return self._shared_by_all[kind]

    def _array(self, array: Any, i: int) -> Iterable[Any]:
        """Join the variables whose arrays share memory, in any order; return the objects in the array.

        Once a second array shares the memory, all of it is kept, and not only the items of the two.
        """
        root = array_root(array)
        self.arrays[id(root)] += 1
        count = self.arrays[id(root)]
        self._is_new_id(_memory_of(id(root)), i)
        self._alive.append(root)
        return () if count > 2 else _objects_in(array if count == 1 else root)


def _objects_in(array: Any) -> list[Any]:
    """Return the objects in an array, those in its fields included."""
    if not array.dtype.hasobject:
        return []
    if array.dtype.names is None:
        items: list[Any] = array.ravel().tolist()
        return items
    return [each for name in array.dtype.names for each in _objects_in(array[name])]


def _memory_of(root: int) -> int:
    """Return the key of an array's memory among the ids of objects, from the id of the array."""
    return ~root


def array_root(array: Any) -> Any:
    """Return the array that owns the memory of a numpy array."""
    base = _base_of(array)
    while is_a(base, type(array)):
        array, base = base, _base_of(base)
    return array


def _base_of(array: Any) -> Any:
    """Return the base of a numpy array, past the object that ``as_strided`` puts between them."""
    base = array.base
    is_between = is_exactly(type(base), "numpy.lib._stride_tricks_impl", "DummyArray")
    return base.base if is_between else base


_ATOMIC = {
    "numpy": ("generic", "dtype"),
    "pandas": ("Index", "ExtensionDtype", "BaseOffset", "_NaT", "NAType", "Timestamp", "Timedelta"),
    "pyarrow": ("_Weakrefable",),
    "agex": ("NotKept",),
}
"""Base classes, by the package they are of, whose instances nobody changes in place."""


def _is_atomic(kind: type) -> bool:
    wanted = _ATOMIC.get(package_of(kind))
    return wanted is not None and any(name_of(base) in wanted for base in mro_of(kind))
