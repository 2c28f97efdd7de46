"""The stand-ins of classes that guest code may know and not instantiate."""

from __future__ import annotations

import functools
from typing import Any, NoReturn

from agex.errors import SandboxTypeError

__all__ = ["SealedMeta", "sealed", "unsealed_exceptions"]


_INSTEAD = {
    "numpy.matrix": "write np.array(rows), and a @ b to multiply",
    "numpy.ma.MaskedArray": "write np.ma.array(values, mask=mask)",
    "numpy.ndarray": "write np.array(values) or np.zeros(shape)",
    "numpy.rec.recarray": "write np.rec.array(rows, dtype=dtype)",
}
"""Advice for constructors that are often called."""


class SealedMeta(type):
    """The metaclass of the stand-in of a class that may not be instantiated."""

    _real: type

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> SealedMeta:
        """Make a stand-in without bases: rules for members of the real class hold for that class only."""
        if bases:
            raise SandboxTypeError(f"{bases[0].__name__} cannot be subclassed here; keep one in an attribute")
        return super().__new__(cls, name, bases, namespace)

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        said = _INSTEAD.get(f"{cls.__module__}.{cls.__name__}", "use the instances you were given")
        raise SandboxTypeError(f"{cls.__name__} cannot be constructed here; {said}")

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls._real)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls._real) or id(subclass) == id(cls)

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(cls._real, name)


@functools.cache
def sealed(class_: type) -> type:
    """Return the stand-in of a class that may not be instantiated."""
    return SealedMeta(
        class_.__name__, (), {"_real": class_, "__doc__": class_.__doc__, "__module__": class_.__module__}
    )


def unsealed_exceptions(caught: Any) -> Any:
    """Return the classes that a handler catches, with the real exceptions in place of stand-ins."""
    return tuple(map(_unsealed, caught)) if type(caught) is tuple else _unsealed(caught)


def _unsealed(caught: Any) -> Any:
    real = vars(caught)["_real"] if type(caught) is SealedMeta else None
    return real if isinstance(real, type) and issubclass(real, BaseException) else caught
