"""Encode variables to bytes.

The C pickler writes a value, and asks this room about every object that is not of a builtin type. A *kind*
takes it apart, so that a stream calls only constructors of this room and a few of the standard library, and
uses few opcodes. An object of no known kind is lost alone: a placeholder stands in its place.
"""

from __future__ import annotations

import datetime as dt
import io
import pickle
import types
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any

from agex.values import type_registry as kinds
from agex.values.adapters import instances
from agex.values.adapters import stdlib as plain
from agex.values.base.allowlist import Allow, class_name
from agex.values.base.decode_budget import BYTES_A_BYTE, unpaid
from agex.values.base.group import Group, Lost
from agex.values.base.guest_code import GuestCode, SealingCode
from agex.values.base.object_paths import Paths
from agex.values.base.placeholders import NotKept, make_not_kept
from agex.values.base.shared_objects import Cluster, clusters
from agex.values.base.trees import stream_of
from agex.values.base.type_checks import is_class
from agex.values.checks.opcode_audit import surplus
from agex.values.code.callables import CannotKeep, is_code
from agex.values.code.capture import Captures
from agex.values.code.reconstructor import Builder
from agex.values.code.stream_markers import (
    CodeReference,
    EarlyNamespaces,
    FirstClasses,
    NamespaceList,
)

__all__ = ["encode"]


def encode(
    variables: Mapping[str, Any],
    *,
    allow: Allow,
    guest: GuestCode | None = None,
    apart: AbstractSet[int] = frozenset(),
) -> list[Group]:
    """Turn variables into groups of bytes, those that share mutable objects into one.

    No guest code runs: a ``__getstate__`` of a guest class is not called, its instances are taken apart by
    field. The buffers of the groups are the memory of the live values.

    Args:
        variables: the values, by name.
        allow: classes that can be loaded again; instances of others are lost.
        guest: guest functions and classes; without it they are lost.
        apart: ids of objects that other variables consist of.

    Raises:
        NotApart: one of these is among the objects of the variables.
    """
    captures = Captures(allow, guest)
    return [_encode(cluster, variables, captures) for cluster in clusters(variables, captures, apart)]


def _encode(cluster: Cluster, variables: Mapping[str, Any], captures: Captures) -> Group:
    names = tuple(cluster.names)
    values = {name: variables[name] for name in names}
    if cluster.kinds <= _NATIVE:
        try:
            return _paid(Group(names=names, stream=stream_of(tuple(values.values()))))
        except RecursionError as error:
            return _last_resort(cluster, variables, captures, error)
    try:
        encoder, stream = _encoded(cluster, values, captures)
    except _UNENCODABLE as error:
        return _last_resort(cluster, variables, captures, error)
    return _paid(
        Group(
            names=names,
            stream=stream,
            buffers=tuple(encoder.buffers),
            lost=encoder.lost_by_name(),
            has_code=bool(cluster.code),
            is_of_session=encoder.is_of_session,
        )
    )


def _encoded(cluster: Cluster, values: Mapping[str, Any], captures: Captures) -> tuple[Encoder, bytes]:
    """Encode the values of a group; twice where objects are sealed, which are found on the way."""
    encoder = Encoder(cluster, values, captures)
    stream = encoder.whole(list(values.values()))
    if captures.seals is not None and encoder.sealing.objects:
        encoder = Encoder(cluster, values, captures, sealing=encoder.sealing.closed(captures.seals))
        stream = encoder.whole(list(values.values()))
    return encoder, stream


def _paid(group: Group) -> Group:
    """Add bytes to a group that is too small to pay for its values: see `decode_budget`."""
    owed = unpaid(group.size, BYTES_A_BYTE * len(group.stream) + surplus(group.stream))
    return replace(group, buffers=(*group.buffers, memoryview(bytes(owed)))) if owed else group


_NATIVE = frozenset(
    {
        type(None),
        bool,
        int,
        float,
        complex,
        str,
        bytes,
        bytearray,
        list,
        tuple,
        dict,
        set,
        frozenset,
        *plain.NATIVE,
    }
) - {dt.datetime, dt.time}
"""Types that pickle takes apart exactly as an encoder would, and faster. Not those that hold a time zone,
which the walk does not look at."""


_UNENCODABLE = (RecursionError, pickle.PicklingError, ValueError, TypeError, AttributeError)
"""Errors of the pickler about a value that it cannot write as a whole; kinds lose single parts."""


def _last_resort(
    cluster: Cluster, variables: Mapping[str, Any], captures: Captures, error: Exception
) -> Group:
    """Lose the variables of a group that cannot be encoded as wholes."""
    deep = isinstance(error, RecursionError)
    reason = "it is nested too deeply" if deep else f"{type(error).__name__}: {error}"
    values: dict[str, Any] = {}
    lost: dict[str, tuple[Lost, ...]] = {}
    for name in cluster.names:
        value = variables[name]
        try:
            Encoder(cluster, {name: value}, captures).whole([value])
        except _UNENCODABLE:
            kind = type(value).__name__
            values[name] = NotKept(name, kind, reason)
            lost[name] = (Lost(path=name, type=kind, reason=reason),)
        else:
            values[name] = value
    encoder, stream = _encoded(cluster, values, captures)
    return Group(
        names=tuple(cluster.names),
        stream=stream,
        buffers=tuple(encoder.buffers),
        lost={**encoder.lost_by_name(), **lost},
        has_code=bool(cluster.code),
        is_of_session=encoder.is_of_session,
    )


class Sealing:
    """The objects of one group that are sealed together, so that they still share what they hold.

    Args:
        objects: in their places.
        sealed: their bytes; None while they are collected.
        failed: why single objects cannot be sealed, by their places.
    """

    def __init__(
        self,
        objects: list[Any] | None = None,
        sealed: bytes | None = None,
        failed: Mapping[int, str] | None = None,
    ) -> None:
        self.objects = [] if objects is None else objects
        self.sealed = sealed
        self._failed = {} if failed is None else failed
        self._places = {id(each): place for place, each in enumerate(self.objects)}

    def closed(self, code: SealingCode) -> Sealing:
        """Return the same objects, sealed."""
        return Sealing(self.objects, *code.sealed(self.objects))

    def place(self, value: Any) -> int | str:
        """Return the place of an object, or why it has none."""
        place = self._places.get(id(value))
        if place is None and self.sealed is not None:
            return "it was not there at first"
        if place is None:
            place = self._places[id(value)] = len(self.objects)
            self.objects.append(value)
        return self._failed.get(place, place)


class Encoder(pickle.Pickler):
    """The pickler of one group, or of the values that its code captured (see `nested`)."""

    def __init__(
        self,
        cluster: Cluster,
        values: Mapping[str, Any],
        captures: Captures,
        outer: Encoder | None = None,
        sealing: Sealing | None = None,
    ) -> None:
        self._file = io.BytesIO()
        self.pickle_buffers: list[pickle.PickleBuffer] = []
        super().__init__(self._file, 5, buffer_callback=self.pickle_buffers.append)
        self.captures = captures
        self.shared_arrays = cluster.shared_arrays if outer is None else set[int]()
        self._cluster = cluster
        self._values = values
        self._outer = outer
        self._kinds = captures.kinds
        self._held: dict[int, CodeReference] = {}
        self._refs: list[CodeReference] = []
        self._lost: list[Lost] = [] if outer is None else outer._lost
        self._lost_ids: dict[int, Lost] = {} if outer is None else outer._lost_ids
        self.sealing: Sealing = (sealing or Sealing()) if outer is None else outer.sealing
        self._paths: Paths | None = None
        self.is_of_session = False
        """See `Group.is_of_session`."""

    # -- the whole ---------------------------------------------------------------------------

    def whole(self, values: list[Any]) -> bytes:
        """Return the stream: the values, and the contents of the namespaces of their code."""
        self.captures.begin(self._cluster.code)
        code = self._cluster.code
        has_code = bool(code)
        early: list[Any] = [FirstClasses()] if self.captures.has_classes else []
        if any(is_class(each) and instances.hashes_itself(each) for each in code):
            early.append(EarlyNamespaces())
        self.dump((*early, tuple([self.top(value) for value in values]), NamespaceList() if has_code else ()))
        if self.captures.is_behind and not has_code:
            raise ValueError("guest code stands where the walk did not find it")
        return self._file.getvalue()

    def nested(self, values: dict[str, Any]) -> tuple[bytes, tuple[CodeReference, ...], tuple[Any, ...]]:
        """Encode values on their own, so that they become copies: captured values are frozen.

        Functions and classes are not copied: the stream refers to those of the outer one by number.
        """
        inner = Encoder(self._cluster, self._values, self.captures, outer=self)
        inner.dump(values)
        return inner._file.getvalue(), tuple(inner._refs), tuple(inner.pickle_buffers)

    @property
    def buffers(self) -> list[memoryview]:
        return [buffer.raw() for buffer in self.pickle_buffers]

    # -- what pickle asks --------------------------------------------------------------------

    def reducer_override(self, value: Any) -> Any:
        kind = self._kinds.get(type(value))
        if kind is None:
            kind = self._kinds[type(value)] = kinds.find(type(value), self.captures)
        if kind is kinds.native:
            return NotImplemented
        try:
            return kind(self, value)
        except (RecursionError, MemoryError):
            raise
        except CannotKeep as error:
            return self.lose(value, str(error))
        except Exception as error:  # noqa: BLE001 - any error of a library about one of its objects
            return self.lose(value, f"{type(error).__name__}: {error}")

    # -- what kinds ask ----------------------------------------------------------------------

    def top(self, value: Any) -> Any:
        """Wrap a value for a place where handles are unwrapped."""
        return self.held(value) if is_code(value) else value

    def held(self, value: Any) -> CodeReference:
        """Return the handle of a function, class, module or registered object: one for each."""
        found = self._held.get(id(value))
        if found is None:
            found = self._held[id(value)] = (
                CodeReference(value) if self._outer is None else self._outer.held(value)
            )
        return found

    def note_session(self) -> None:
        """Note that another session may resolve the kept names differently."""
        self.is_of_session = True
        if self._outer is not None:
            self._outer.note_session()

    def reference(self, held: CodeReference) -> int | None:
        """Return the number by which a nested stream refers to code; None where this is the outer one."""
        if self._outer is None:
            return None
        for i, known in enumerate(self._refs):
            if known is held:
                return i
        self._refs.append(held)
        return len(self._refs) - 1

    def lose(self, value: Any, reason: str) -> Any:
        """Seal an object if that is possible; else note that it is not kept. Return what stands for it."""
        is_object = not isinstance(value, CodeReference)
        value = value if is_object else value.target
        if type(value) is types.FunctionType and value.__closure__ is None:
            is_object = True  # of a library, or of text that was evaluated; with a closure it would be a copy
        if self._paths is None:
            self._paths = Paths(self._values)
        path = self._paths.of(value)
        kind = class_name(type(value)).removeprefix("builtins.")
        if is_object and self.captures.seals is not None:
            place = self.sealing.place(value)
            if type(place) is int:
                return Builder.sealed, (path, kind, self.sealing.sealed or b"", place)
            reason = str(place)
        self._lost.append(Lost(path=path, type=kind, reason=reason))
        self._lost_ids[id(value)] = self._lost[-1]
        return make_not_kept, (path, kind, reason)

    def lost_by_name(self) -> dict[str, tuple[Lost, ...]]:
        """Return the lost parts, by the variable that they belong to."""
        found: dict[str, tuple[Lost, ...]] = {}
        for lost in (*self._lost, *self._lost_again()):
            name = Paths.variable(lost.path) or self._cluster.names[0]
            found[name] = (*found.get(name, ()), lost)
        return found

    def _lost_again(self) -> Iterator[Lost]:
        """Return the variables that are a lost object which was first met elsewhere."""
        for name, value in self._values.items():
            lost = self._lost_ids.get(id(value))
            if lost is not None and lost.path != name:
                yield replace(lost, path=name)
