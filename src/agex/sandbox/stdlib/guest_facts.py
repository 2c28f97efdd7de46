"""Facts about guest code for guest sources of the standard library: signatures, sources, variables.

A fact about a function is handed out only where the function is guest code of the session: defaults of a host
function may be objects that were never granted.
"""

from __future__ import annotations

import ast
import inspect
import types
from contextvars import ContextVar
from typing import Any

from agex.errors import SandboxTypeError
from agex.sandbox.runtime.context import asking, frames_of
from agex.sandbox.runtime.scopes import Names

__all__ = ["AT_EXIT", "CONTEXTS", "INSPECTION", "TESTING", "at_exit"]


def _guards() -> Any:
    guards = asking()
    if guards is None:
        raise SandboxTypeError("this is about guest code, and none asks")
    return guards


def _function(value: Any) -> types.FunctionType:
    """Return the guest function in a value.

    Raises:
        TypeError: it is none of this session's.
    """
    found: Any = value
    if type(found) is types.MethodType:
        found = found.__func__
    if type(found) in (staticmethod, classmethod):
        found = found.__func__
    if type(found) is types.FunctionType and _guards().is_guest_function(found):
        return found
    raise SandboxTypeError(
        f"{getattr(type(value), '__name__', 'it')} is not a function of your own; help(name) describes those "
        "you were given"
    )


def parameters_of(
    value: Any,
) -> tuple[list[tuple[str, int, tuple[Any, ...], tuple[Any, ...]]], tuple[Any, ...]]:
    """Return the parameters of a guest function or class, and what it returns.

    A default or annotation is a tuple of one, or an empty one.
    """
    function, skip = value, 1 if type(value) is types.MethodType else 0
    if isinstance(value, type) and _guards().classes.is_guest(value):
        function, skip = vars(value).get("__init__") or value.__init__, 1  # type: ignore[misc]
    elif not isinstance(value, (types.FunctionType, types.MethodType)) and _guards().classes.is_guest(
        type(value)
    ):
        function, skip = type(value).__call__, 1
    known = inspect.signature(_function(function))
    empty = inspect.Parameter.empty
    found = [
        (
            each.name,
            int(each.kind),
            () if each.default is empty else (each.default,),
            () if each.annotation is empty else (each.annotation,),
        )
        for each in known.parameters.values()
    ][skip:]
    returned = (
        ()
        if known.return_annotation is empty or (skip and isinstance(value, type))
        else (known.return_annotation,)
    )
    return found, returned


def bases_of(class_: Any) -> tuple[type, ...]:
    """Return a class and its bases, in the order in which members are looked up."""
    return tuple(type.mro(class_)) if isinstance(class_, type) else ()


def lines_of(value: Any) -> tuple[list[str], int]:
    """Return the source lines of a guest function or class, and the number of the first.

    Raises:
        OSError: the source is not known any more.
    """
    sources = _guards().sources
    if isinstance(value, type):
        return _lines_of_class(sources, value)
    code = _function(value).__code__
    lines = sources.get(code.co_filename)
    if lines is None or len(lines) < code.co_firstlineno:
        raise OSError("could not get source code")
    return _block(lines, code.co_firstlineno), code.co_firstlineno


def _lines_of_class(sources: dict[str, list[str]], class_: type) -> tuple[list[str], int]:
    for lines in reversed(list(sources.values())):
        try:
            tree = ast.parse("\n".join(lines))
        except SyntaxError:
            continue
        for node in reversed(list(ast.walk(tree))):
            if isinstance(node, ast.ClassDef) and node.name == class_.__name__:
                first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                return _block(lines, first), first
    raise OSError("could not find class definition")


def _block(lines: list[str], first: int) -> list[str]:
    return inspect.getblock([f"{line}\n" for line in lines[first - 1 :]])


def main_names() -> Names:
    """Return a live view of the variables of the guest program that asks, as ``globals()`` there does."""
    frames = list(frames_of(_guards()))
    return Names(frames[-1].f_globals)


def at_exit() -> list[Any]:
    """Return the calls that guest code has registered for the end of its program."""
    calls: list[Any] = _guards().notes.setdefault(AT_EXIT, [])
    return calls


AT_EXIT = "at exit"
"""The note of a session that holds them: functions, arguments, keywords."""

_PREDICATES = """
    isasyncgen isasyncgenfunction isawaitable isbuiltin iscoroutine iscoroutinefunction isfunction isgenerator
    isgeneratorfunction ismethod ismethoddescriptor ismodule
""".split()

INSPECTION: dict[str, Any] = {
    **{name: getattr(inspect, name) for name in _PREDICATES},
    "bases_of": bases_of,
    "parameters_of": parameters_of,
    "lines_of": lines_of,
}
"""For the guest source of ``inspect``."""
TESTING: dict[str, Any] = {"main_names": main_names}
"""For the guest sources of ``unittest``."""


class ContextMark:
    """Stands for a context of guest code; its values are the session's, which finds them by the mark.

    A mark is no number: the context of the host keeps the mark of a session that has ended, and another
    session must not take it for one of its own.
    """

    __slots__ = ("__weakref__",)
    __module__ = "contextvars"


_CONTEXT: ContextVar[ContextMark | None] = ContextVar("agex_guest_context", default=None)
"""The mark of the context in which guest code runs: tasks of asyncio inherit it."""


def state() -> ContextMark | None:
    """Return the mark of the present context; None where no guest code has changed a variable."""
    return _CONTEXT.get()


def enter(mark: ContextMark | None) -> None:
    """Make another context the present one."""
    if mark is not None and type(mark) is not ContextMark:
        raise SandboxTypeError(f"a context is entered by its mark, got {type(mark).__name__}")
    _CONTEXT.set(mark)


CONTEXTS: dict[str, Any] = {"state": state, "enter": enter, "new_mark": ContextMark}
"""For the guest source of ``contextvars``."""
