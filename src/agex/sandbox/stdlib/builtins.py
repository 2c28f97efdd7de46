"""Builtins of the sandbox that look like CPython's: they name no agex module and do not bind in a class."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NoReturn

from agex.errors import SandboxError, SandboxTypeError
from agex.sandbox.runtime.output import CAPTURE

if TYPE_CHECKING:
    from agex.sandbox.runtime.workspace_files import GuestFiles

__all__ = ["REFUSING", "as_builtin", "plain_open", "print_", "refuse_call", "source_text"]


def _absent(name: str) -> property:
    def read(self: object) -> NoReturn:
        raise AttributeError(f"'builtin_function_or_method' object has no attribute '{name}'")

    return property(read)


class _Builtin(functools.partial[Any]):
    """A callable that shows itself as a builtin function. It derives from ``partial`` for speed.

    Each session has its own copies of those that have an effect: damage done to one through ``partial`` stays
    in its session.
    """

    __name__: str

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("cannot create 'builtin_function_or_method' instances")

    def __init_subclass__(cls, **kwargs: Any) -> NoReturn:
        raise TypeError("type 'builtin_function_or_method' is not an acceptable base type")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        if name in vars(self):
            raise AttributeError(
                f"attribute '{name}' of 'builtin_function_or_method' objects is not writable"
            )
        raise AttributeError(f"'builtin_function_or_method' object has no attribute '{name}'")

    def __delattr__(self, name: str) -> NoReturn:
        self.__setattr__(name, None)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self

    def __repr__(self) -> str:
        return f"<built-in function {self.__name__}>"

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: object) -> Any:
        return self


_Builtin.__name__ = _Builtin.__qualname__ = "builtin_function_or_method"
_Builtin.__module__ = "builtins"
for _part in ("func", "args", "keywords"):
    setattr(_Builtin, _part, _absent(_part))


def as_builtin(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return *function* as a builtin called *name*."""
    made: _Builtin = functools.partial.__new__(_Builtin, function)
    vars(made).update(__name__=name, __qualname__=name, __module__="builtins", __doc__=function.__doc__)
    return made


def refuse_call(name: str, count: int, named: Iterable[str] = ()) -> NoReturn:
    """Raise the error of the builtin *name* for *count* arguments, which are too few or too many."""
    if named:
        raise TypeError(f"{name}() takes no keyword arguments")
    getattr(builtins, name)(*[None] * count)  # it counts its arguments before it looks at them
    raise AssertionError(f"{name}() takes {count} arguments")


def print_(
    *values: Any,
    sep: str | None = " ",
    end: str | None = "\n",
    file: Any = None,
    flush: bool = False,
    **others: Any,
) -> None:
    """Print like ``print``, to the output of the run."""
    if others:
        builtins.print(**others, file=CAPTURE.get())  # raises the real error about the first of them
    if file is None:
        builtins.print(*values, sep=sep, end=end, file=CAPTURE.get())
    else:
        builtins.print(*values, sep=sep, end=end, file=file, flush=flush)


def _refusing(name: str, why: str) -> Callable[..., NoReturn]:
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise SandboxError(f"{name}() is not available: {why}")

    refuse.__name__ = refuse.__qualname__ = name
    return refuse


def _exit(code: Any = None) -> NoReturn:
    raise SystemExit(*(() if code is None else (code,)))


REFUSING: dict[str, Any] = {
    name: as_builtin(name, _refusing(name, why))
    for name, why in {
        "open": "this sandbox has no file system; work with the values and text you were given",
        "input": "nobody is there to answer; use the values you were given",
        "compile": "code objects are not; give the text to eval() or exec()",
        "breakpoint": "nobody is there to debug; print what you want to see",
        "help": "nobody reads along; print dir(x) and x.__doc__",
    }.items()
}
REFUSING |= {name: as_builtin(name, _exit) for name in ("exit", "quit")}
"""Builtins that only refuse, or end the program. All sessions share them: damage to one can do no more."""


def source_text(source: Any, function: str) -> str:
    """Return the text that ``eval`` or ``exec`` was called with, as an exact ``str``."""
    if isinstance(source, str):
        return str.__str__(source)
    raise SandboxTypeError(f"{function}() takes source text, got {type(source).__name__}")


def plain_open(files: GuestFiles) -> Callable[..., Any]:
    """Return ``open`` as a plain function, which has no ``__self__``."""

    def open(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:  # noqa: A001 - its name in tracebacks
        return files.open(file, mode, *args, **kwargs)

    return open
