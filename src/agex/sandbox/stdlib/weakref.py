"""Weak references for guest code, which have no callbacks.

The callbacks of an object's references are called when it is dropped, also after the run, where no limit
holds: they would be a ``__del__``. So guest references take none. The real collections of ``weakref`` hang
callbacks on their items that call the collection, which may be of a guest class. The guest's collections look
for dropped items when they are used, see `agex.sandbox.stdlib.source_modules`.
"""

from __future__ import annotations

import weakref
from typing import Any

from agex.errors import SandboxTypeError
from agex.sandbox.classes import generic_classes, stand_ins

__all__ = ["REFERENCES"]


class _Meta(type):
    """The metaclass of the class by which guest code makes references."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> _Meta:
        if bases:
            raise SandboxTypeError("weakref.ref cannot be subclassed here; keep one in an attribute")
        return super().__new__(cls, name, bases, namespace)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return _made(*args, **kwargs)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, weakref.ref)

    def __subclasscheck__(cls, subclass: type) -> bool:
        is_it: bool = subclass is cls  # pyright: ignore[reportUnnecessaryComparison]
        return is_it or issubclass(subclass, weakref.ref)


def _made(referent: Any, callback: None = None, /) -> Any:
    if callback is not None:
        raise SandboxTypeError(
            "weakref.ref() takes no callback here; ask the reference, it gives None once its object is gone"
        )
    return weakref.ref(referent)


class ReferenceType(metaclass=_Meta):
    """A weak reference to an object."""

    __slots__ = ()
    __module__ = "weakref"
    __class_getitem__ = generic_classes.MAKER


stand_ins.stands_for(weakref.ref, ReferenceType)
# Host objects lead to these classes, which hang callbacks on any object that they are given.
for _class in (
    weakref.KeyedRef,
    weakref.WeakKeyDictionary,
    weakref.WeakMethod,
    weakref.WeakSet,
    weakref.WeakValueDictionary,
    weakref.finalize,
):
    stand_ins.closed(_class)

REFERENCES = {"ReferenceType": ReferenceType, "ref": ReferenceType}
"""The members of ``weakref`` that its source for guest code uses."""
