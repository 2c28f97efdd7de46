"""Checks in ``typing``: text in annotations, and ``isinstance`` with a protocol.

``typing.get_type_hints`` passes text to ``eval``, unrewritten, among the names of a host module named like
the guest's module. pydantic does so for each class derived from one of its models. So while guest code runs,
a text is evaluated only if the host's own source contains it, or if it names builtin types alone, or guest
classes.

Until Python 3.12, ``isinstance`` with a protocol reads the members of the protocol from the object. A guest
object may have a property there, so that a mere class test of the host runs guest code. That call is made
within limits, as ``repr`` of a guest object is.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import sys
import types
import typing
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from agex._interpreter.type_slots import namespace_of
from agex.errors import SandboxTypeError
from agex.sandbox.patches.replacement import replace
from agex.sandbox.rules import names as ledger
from agex.sandbox.runtime import provenance
from agex.sandbox.runtime.context import asking

if TYPE_CHECKING:
    from agex.sandbox.runtime.membrane import Membrane

__all__ = ["check", "install", "is_evaluated_in"]

_HOMES = ("typing", "typing_extensions", "annotationlib", "inspect", "msgspec._utils")
_EVALUATORS = (
    "ForwardRef._evaluate", "ForwardRef.evaluate", "_eval_with_owner", "evaluate_forward_ref",
    "get_annotations", "get_class_annotations",
)  # fmt: skip

_SHAPES = (
    ast.Expression, ast.Name, ast.Attribute, ast.Subscript, ast.BinOp, ast.BitOr, ast.Tuple, ast.List,
    ast.Constant, ast.Load,
)  # fmt: skip

_TYPES = frozenset(
    "bool bytearray bytes complex dict float frozenset int list object set str tuple type".split()
)


def is_evaluated_in(frame: types.FrameType) -> bool:
    """Return whether the code that *frame* evaluates is the text of an annotation."""
    return frame.f_code.co_qualname.startswith(_EVALUATORS) and frame.f_globals.get("__name__") in _HOMES


def check(guards: Membrane, frame: types.FrameType) -> None:
    """Refuse the text of an annotation that *frame* is about to evaluate, unless it is harmless."""
    known = frame.f_locals
    _check(guards, _text(known), list(_spaces(known)), frame, _module(known))


def _check(guards: Membrane, text: Any, spaces: list[Any], frame: types.FrameType, module: Any) -> None:
    own = [space for space in spaces if space.get("__builtins__") is guards.builtins]
    if type(text) is not str or not spaces:
        is_harmless = False
    elif len(own) == len(spaces):
        is_harmless = _names_only(text, guards)
    else:
        is_harmless = (
            _is_plain(text, spaces)
            or _is_of_guest(text, guards, spaces, bool(own))
            # Otherwise its names would belong to the guest, or the text would.
            or (not own and not guards.classes.is_mark(module) and text in _said(guards, frame, spaces))
        )
    if not is_harmless:
        raise SandboxTypeError(
            f"the annotation {text!r} is text, which is not evaluated here; write the class itself, without "
            "quotes and without 'from __future__ import annotations'"
        )


def install() -> None:
    """Put the checks in place, once a process."""
    if sys.version_info >= (3, 14):  # which looks a name up without an event
        reference: Any = importlib.import_module("annotationlib").ForwardRef
        reference.evaluate = _of_names(reference.evaluate)
    if sys.version_info < (3, 12):
        replace(vars(typing)["_ProtocolMeta"], "__instancecheck__", _behind_limits)


def _of_names(real: Any) -> Any:
    @functools.wraps(real)
    def evaluate(self: Any, **said: Any) -> Any:
        guards, text = asking(), self.__forward_arg__
        if guards is not None and text.isidentifier():
            caller = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - its source may contain the text
            _check(guards, text, list(_asked_of(self, said)), caller, self.__forward_module__)
        return real(self, **said)

    return evaluate


def _asked_of(reference: Any, said: dict[str, Any]) -> Iterator[Any]:
    """Yield the namespaces in which a name is looked up."""
    yield from _spaces(said)
    owner = said.get("owner")
    if said.get("globals") is None and owner is not None:
        home = reference.__forward_module__ or getattr(owner, "__module__", None)
        found = sys.modules.get(home) if type(home) is str else None
        yield getattr(owner, "__globals__", None) or getattr(found, "__dict__", {})


def _text(known: dict[str, Any]) -> Any:
    reference = _reference(known)
    return known.get("value") if reference is None else reference.__forward_arg__


def _module(known: dict[str, Any]) -> Any:
    """Return the name of the module given with a text, in which it is to be looked up."""
    return getattr(_reference(known), "__forward_module__", None)


def _reference(known: dict[str, Any]) -> Any:
    named = (known.get(name) for name in ("self", "forward_ref"))
    return next((each for each in named if hasattr(type(each), "__forward_arg__")), None)


def _spaces(known: dict[str, Any]) -> Iterator[Any]:
    """Yield the namespaces in which names are looked up."""
    for name in ("globalns", "localns", "globals", "locals", "cls_globals", "cls_locals"):
        if known.get(name) is not None and hasattr(known[name], "get"):
            yield known[name]


def _parts(text: str) -> list[ast.AST]:
    """Return the syntax nodes of a text; none if it holds more than names and subscripts."""
    try:
        parts = list(ast.walk(ast.parse(text, mode="eval")))
    except SyntaxError:
        return []
    return parts if all(isinstance(part, _SHAPES) for part in parts) else []


def _is_plain(text: str, spaces: list[Any]) -> bool:
    """Return whether a text names builtin types only."""
    parts = _parts(text)
    said = [part.id for part in parts if isinstance(part, ast.Name)]
    is_flat = not any(isinstance(part, ast.Attribute) for part in parts)
    return bool(parts) and is_flat and all(n in _TYPES and not any(n in s for s in spaces) for n in said)


def _names_only(text: str, guards: Membrane) -> bool:
    """Return whether a text reads no attribute that a guard would check in code."""
    parts = _parts(text)
    rules = guards.policy.text
    for part in parts:
        name = part.id if isinstance(part, ast.Name) else ""
        if isinstance(part, ast.Attribute):
            name = part.attr
            if rules.strict or name in rules.contested:
                return False
        if name.startswith("_") or name in ledger.DENIED:
            return False
    return bool(parts)


def _is_of_guest(text: str, guards: Membrane, spaces: list[Any], at_home: bool) -> bool:
    """Return whether a text names guest classes, and otherwise only the guest's own names.

    The namespaces that do not belong to the guest come from pydantic: a class by its name, the names of its
    body.
    """
    foreign = [space for space in spaces if space.get("__builtins__") is not guards.builtins]
    for part in _parts(text):
        if not isinstance(part, ast.Name):
            continue
        found = [space[part.id] for space in foreign if part.id in space]
        if not all(issubclass(type(value), type) and guards.classes.is_guest(value) for value in found):
            return False
        if not found and not at_home and part.id not in _TYPES:
            return False
    return _names_only(text, guards)


def _said(guards: Membrane, frame: types.FrameType | None, spaces: list[Any]) -> Iterator[str]:
    """Yield the text annotations in the source of the host modules whose names are looked up."""
    names: set[Any] = {name for space in spaces if type(name := space.get("__name__")) is str}
    # Fields that a guest class inherits are evaluated again in its name.
    registered: set[Any] = {getattr(grant.target, "__module__", None) for grant in guards.policy.grants}
    for name in (names | registered) & sys.modules.keys():
        for value in list(vars(sys.modules[name]).values()):
            if not (issubclass(type(value), type) and guards.classes.is_guest(value)):
                yield from _annotated(value)
    while frame is not None and frame.f_builtins is not guards.builtins:
        if frame.f_globals.get("__name__") in names:  # the frame is making a class
            yield from _constants(frame.f_code)
        frame = frame.f_back


def _annotated(value: Any) -> Iterator[str]:
    """Yield the texts in the annotations of a class and its methods, or of a function."""
    if type(value) is types.FunctionType:
        yield from _texts(list(value.__annotations__.values()))
    elif issubclass(type(value), type) and not provenance.is_guest_class(value):
        space = namespace_of(value)
        yield from _texts(list(space.get("__annotations__", {}).values()))
        for member in space.values():
            if type(member) is types.FunctionType:
                yield from _annotated(member)


def _texts(hint: Any) -> Iterator[str]:
    """Yield the texts in an annotation, at any depth."""
    if isinstance(hint, str):
        yield hint
        if "'" in hint or '"' in hint:  # it holds another text, which is evaluated next
            yield from _inner_texts(hint)
    elif isinstance(hint, typing.ForwardRef):
        yield hint.__forward_arg__
    elif isinstance(hint, (list, tuple)):
        for each in hint:
            yield from _texts(each)
    elif not isinstance(hint, type):
        yield from _texts(typing.get_args(hint))


def _inner_texts(text: str) -> Iterator[str]:
    with contextlib.suppress(SyntaxError):
        for part in ast.walk(ast.parse(text, mode="eval")):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                yield part.value


def _constants(code: types.CodeType) -> Iterator[str]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _constants(constant)
        else:
            yield from _texts(constant)


# -- protocols


def _behind_limits(real: Callable[..., bool]) -> Callable[..., bool]:
    def __instancecheck__(cls: Any, instance: Any) -> bool:  # noqa: N807 - the name it has in its class
        guards = provenance.guards_of(type(instance))
        if guards is not None:
            return bool(guards.hooks.asking(real, cls, instance))
        if getattr(cls, "_is_runtime_protocol", True) or not _asks_for_itself():
            return real(cls, instance)
        return bool(_as_library(real, cls, instance))

    return __instancecheck__


def _asks_for_itself() -> bool:
    """Return whether a library of Python itself asks, which may do so for any protocol."""
    frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage] - known by its module
    return frame.f_globals.get("__name__") in {"abc", "functools"}


def _call(real: Callable[..., bool], cls: Any, instance: Any) -> bool:
    return real(cls, instance)


_as_library: Any = types.FunctionType(_call.__code__, {"__name__": "functools"})
