"""``typing`` for guest code: ``get_type_hints``, and the decorators that write to their argument.

The real ``get_type_hints`` evaluates text with the interpreter's builtins, among the names of a host module
named like the guest's module. Here the text of guest classes, functions and modules is compiled and guarded
like text passed to ``eval``, among the names of the module that defined them. The text of host classes and
functions is not evaluated.
"""

from __future__ import annotations

import functools
import inspect
import operator
import sys
import types
import typing
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from agex._interpreter.type_slots import module_of, mro_of, namespace_of
from agex.errors import SandboxError, SandboxTypeError
from agex.sandbox.classes import guest_type
from agex.sandbox.classes.errors import described
from agex.sandbox.language import compiler, exec_namespaces
from agex.sandbox.runtime import provenance
from agex.sandbox.runtime.context import asking
from agex.sandbox.runtime.scopes import Names, own_names
from agex.sandbox.stdlib.builtins import print_, source_text
from agex.sandbox.stdlib.decorators import writing

if TYPE_CHECKING:
    from agex.sandbox.runtime.membrane import Membrane

__all__ = ["get_type_hints", "typing_marks"]

_Namespace = Mapping[str, Any]

_MOST_WRAPPED = 1000
"""Steps along ``__wrapped__``, which guest code can make circular: as many as calls can be deep."""


def get_type_hints(obj: Any, globalns: Any = None, localns: Any = None, include_extras: bool = False) -> Any:
    """Do what ``typing.get_type_hints`` does; text is evaluated if guest code defined *obj*."""
    if getattr(obj, "__no_type_check__", None):
        return {}
    of_kind = _hints_of_class if issubclass(type(obj), type) else _hints_of_object
    hints = of_kind(obj, _given(globalns), _given(localns))
    found = hints if include_extras else {name: _stripped(hint) for name, hint in hints.items()}
    return {name: guest_type.as_shown(hint) for name, hint in found.items()}


def _given(namespace: Any) -> dict[str, Any] | None:
    """Return a copy of a namespace passed by guest code, without the names of helpers."""
    if namespace is not None and type(namespace) not in {dict, Names, types.MappingProxyType}:
        raise SandboxTypeError(f"a namespace must be a dict, got {type(namespace).__name__}")
    return None if namespace is None else own_names(namespace)


def _hints_of_class(class_: type, globalns: _Namespace | None, localns: _Namespace | None) -> dict[Any, Any]:
    hints: dict[Any, Any] = {}
    for owner in reversed(mro_of(class_)):
        said = inspect.get_annotations(owner)
        scope = None
        if any(map(_says_text, said.values())):
            scope = _scope_of_class(owner, globalns, localns)
        for name, hint in said.items():
            hints[name] = _evaluated(hint, scope, is_argument=False, is_class=True)
    return hints


def _hints_of_object(obj: Any, globalns: _Namespace | None, localns: _Namespace | None) -> dict[Any, Any]:
    hints = _annotations_of_object(obj)
    scope = None
    if any(map(_says_text, hints.values())):
        scope = _scope_of_object(obj, globalns, localns)
    is_argument = not issubclass(type(obj), types.ModuleType)
    return {
        name: _evaluated(hint, scope, is_argument=is_argument, is_class=False) for name, hint in hints.items()
    }


def _annotations_of_object(obj: Any) -> dict[Any, Any]:
    hints = getattr(obj, "__annotations__", None)
    if hints is None and sys.version_info >= (3, 14):
        if not (callable(obj) or isinstance(obj, types.ModuleType)):
            raise TypeError(f"{obj!r} does not have annotations")
    elif hints is None and not isinstance(obj, typing._allowed_types):  # type: ignore[attr-defined]
        raise TypeError(f"{obj!r} is not a module, class, method, or function.")
    return dict(hints or {})


def _says_text(hint: Any) -> bool:
    """Return whether an annotation holds a forward reference, at any depth."""
    if isinstance(hint, list):
        return any(map(_says_text, hint))
    if typing.get_origin(hint) is typing.Literal:
        return False
    args = typing.get_args(hint)
    if typing.get_origin(hint) is typing.Annotated:
        args = args[:1]  # the rest may be any objects
    return isinstance(hint, (str, typing.ForwardRef)) or any(map(_says_text, args))


# -- the names that a text may use


class _Scope(NamedTuple):
    """The namespaces in which the names of a text are looked up.

    As in ``eval``, names of *inner* come first, and functions in the text look in *outer* alone.
    """

    guards: Membrane
    outer: _Namespace
    inner: _Namespace
    type_params: tuple[Any, ...]

    def evaluate(self, text: str, *, is_class: bool, module: Any) -> Any:
        """Evaluate text as guest code; *module* is the name of a module given with the text."""
        pair = self._with_type_params(self._outer_of(module), is_class=is_class)
        globals_, locals_ = self._eval_arguments(*pair)
        is_apart = exec_namespaces.renew(globals_)
        source = f"({text},)[0]" if text.startswith("*") else text  # *args: *Ts (PEP 646)
        try:
            code = compiler.compile_expression(source, self.guards.policy.text, apart=is_apart)
        except SandboxError:
            raise
        except SyntaxError:
            raise SyntaxError(f"Forward reference must be an expression -- got {text!r}") from None
        return eval(code, globals_, locals_)  # noqa: S307 - rewritten code

    def _outer_of(self, module: Any) -> _Namespace:
        found = None if module is None else _namespace_of_module(self.guards, module)
        return self.outer if found is None else found

    def _with_type_params(self, outer: _Namespace, *, is_class: bool) -> tuple[_Namespace, _Namespace]:
        """Return both namespaces with the type parameters between them, as CPython has it since 3.12.4."""
        if not self.type_params:
            return outer, self.inner
        outer, inner = own_names(outer), own_names(self.inner)
        for param in self.type_params:
            if not is_class or param.__name__ not in outer:
                outer[param.__name__] = param
                inner.pop(param.__name__, None)
        return outer, inner

    def _eval_arguments(
        self, outer: _Namespace, inner: _Namespace
    ) -> tuple[dict[str, Any], dict[str, Any] | None]:
        """Return the globals, if possible those of a module, and the locals."""
        if self._is_of_module(outer):
            return typing.cast(dict[str, Any], outer), None if inner is outer else own_names(inner)
        if self._is_of_module(inner):
            rest = {name: value for name, value in own_names(outer).items() if name not in inner}
            return typing.cast(dict[str, Any], inner), rest
        fresh = {**own_names(outer), "__builtins__": self.guards.builtins}
        if fresh.get("__name__") == "__main__":
            fresh["__name__"] = self.guards.classes.module_name  # by which new classes are known
        return fresh, own_names(inner)

    def _is_of_module(self, namespace: _Namespace) -> bool:
        return type(namespace) is dict and namespace.get("__builtins__") is self.guards.builtins


def _scope_of_class(owner: type, globalns: _Namespace | None, localns: _Namespace | None) -> _Scope:
    guards = asking()
    home = None if guards is None else _home_of_class(guards, owner)
    if guards is None or home is None:
        raise _refusal(owner)
    outer = home if globalns is None else globalns
    inner = _names_in_class(guards, owner) if localns is None else localns
    if globalns is None and localns is None:  # the names of the module come first, in all versions
        outer, inner = inner, outer
    return _Scope(guards, outer, inner, _type_params(namespace_of(owner).get("__type_params__")))


def _scope_of_object(obj: Any, globalns: _Namespace | None, localns: _Namespace | None) -> _Scope:
    guards = asking()
    home = None if guards is None else _home_of_object(guards, obj)
    if guards is None or home is None:
        raise _refusal(obj)
    outer = home if globalns is None else globalns
    inner = outer if localns is None else localns
    return _Scope(guards, outer, inner, _type_params(getattr(obj, "__type_params__", None)))


def _refusal(owner: Any) -> SandboxTypeError:
    return SandboxTypeError(
        f"get_type_hints() does not evaluate text of the host, and {described(owner)} has such annotations; "
        "ask for the hints of your own classes and functions"
    )


def _type_params(said: Any) -> tuple[Any, ...]:
    return tuple(each for each in said if type(each) in _TYPE_PARAMS) if type(said) is tuple else ()


_TYPE_PARAMS = (typing.TypeVar, typing.ParamSpec, typing.TypeVarTuple)


_GLOBALS_OF: Callable[[Any], dict[str, Any]] = vars(types.FunctionType)["__globals__"].__get__


def _home_of_class(guards: Membrane, class_: type) -> _Namespace | None:
    """Return the names of the module that defined a guest class; None for a host class."""
    if not guards.classes.is_guest(class_):
        return None
    statement = guards.classes.statement_of(class_)
    if statement is not None:
        return _home_of_function(guards, statement.body)
    return _namespace_of_module(guards, module_of(class_)) or {}


def _home_of_function(guards: Membrane, function: Any) -> _Namespace | None:
    """Return the names of the module that defined a guest function; None for a host function.

    The source of some granted modules runs as guest code. Their names do not belong to the guest.
    """
    if not guards.is_guest_function(function):
        return None
    names = _GLOBALS_OF(function)
    is_granted = any(vars(module) is names for module in list(guards.importer.handed_out.values()))
    return None if is_granted else _with_names_of_program(guards, names)


def _with_names_of_program(guards: Membrane, names: dict[str, Any]) -> _Namespace:
    """Return the names of stored code and of the program: a name that only text uses is not stored."""
    program = _namespace_of_module(guards, guards.classes.module_name)
    is_of_program = names.get("__name__") == guards.classes.module_name and "pull!" not in names
    if program is None or names is program or not is_of_program:
        return names
    return own_names(program) | own_names(names)


def _namespace_of_module(guards: Membrane, name: Any) -> _Namespace | None:
    """Return the names of the program or of a loaded workspace module; never those of a host module."""
    if type(name) is not str:
        return None
    if name == guards.classes.module_name:
        session = provenance.session_in(guards.builtins)
        return None if session is None else session.globals
    own = guards.imports
    module = None if own is None else own.known(name) or own.known(name.removeprefix("workspace."))
    return None if module is None else vars(module)


def _names_in_class(guards: Membrane, class_: type) -> _Namespace:
    if guards.classes.is_pure(class_):
        return dict(guards.vars(class_))
    # Beside the guest's names stand others, which the metaclass of a host class has put there.
    return {name: each for name, each in namespace_of(class_).items() if _is_guest_class(guards, each)}


def _is_guest_class(guards: Membrane, value: Any) -> bool:
    return issubclass(type(value), type) and guards.classes.is_guest(value)


def _home_of_object(guards: Membrane, obj: Any) -> _Namespace | None:
    """Return the names of the module that defined a function, or of a module; None for host objects."""
    if type(obj) is types.ModuleType:
        return vars(obj) if guards.imports is not None and guards.imports.owns(obj) else None
    innermost = obj
    for _ in range(_MOST_WRAPPED):
        if not hasattr(innermost, "__wrapped__"):
            break
        innermost = innermost.__wrapped__
    function = innermost.__func__ if type(innermost) is types.MethodType else innermost
    if guards.is_guest_function(function):
        return _home_of_function(guards, function)
    if (class_ := _class_initialized_by(guards, function)) is not None:
        return _home_of_class(guards, class_)
    return {} if guards.is_own(obj) else None


def _class_initialized_by(guards: Membrane, function: Any) -> type | None:
    """Return the guest class whose ``__init__`` is the given function, which ``@dataclass`` generated."""
    of_doors = list(guards.closures.values())
    real = next((real for real, door in of_doors if door is function), function)
    if type(real) is not types.FunctionType:
        return None
    made = guards.classes.made()
    return next((class_ for class_ in made if namespace_of(class_).get("__init__") is real), None)


# -- hints


def _evaluated(hint: Any, scope: _Scope | None, *, is_argument: bool, is_class: bool) -> Any:
    if hint is None:
        return type(None)
    if scope is not None and issubclass(type(hint), str):
        return _of_text(hint, scope, frozenset(), is_argument=is_argument, is_class=is_class)
    return _resolved(hint, scope, frozenset())


def _resolved(hint: Any, scope: _Scope | None, within: frozenset[str]) -> Any:
    """Return an annotation with its forward references evaluated, except the texts in *within*."""
    kind = type(hint)
    if scope is not None and kind is typing.ForwardRef:
        if source_text(hint.__forward_arg__, "get_type_hints") in within:
            return hint
        return _of_text(
            hint.__forward_arg__,
            scope,
            within,
            is_argument=hint.__forward_is_argument__,
            is_class=hint.__forward_is_class__,
            module=hint.__forward_module__,
        )
    if not issubclass(kind, _ALIASES):
        return hint
    args: tuple[Any, ...] = hint.__args__
    if scope is not None and issubclass(kind, types.GenericAlias):  # typing's hold ForwardRef
        args = tuple(_of_text(arg, scope, within) if issubclass(type(arg), str) else arg for arg in args)
    return _with_args(hint, tuple(_resolved(arg, scope, within) for arg in args))


def _of_text(
    text: str,
    scope: _Scope,
    within: frozenset[str],
    *,
    is_argument: bool = True,
    is_class: bool = False,
    module: Any = None,
) -> Any:
    text = source_text(text, "get_type_hints")
    if text in within:
        return typing.ForwardRef(text)
    value = typing._type_check(  # type: ignore[attr-defined]  # the real get_type_hints calls it
        scope.evaluate(text, is_class=is_class, module=module),
        "Forward references must evaluate to types.",
        is_argument=is_argument,
        allow_special_forms=is_class,
    )
    return _resolved(value, scope, within | {text})


_ALIASES: Any = (
    typing._GenericAlias,  # type: ignore[attr-defined]
    types.GenericAlias,
    types.UnionType,
)


def _with_args(hint: Any, args: tuple[Any, ...]) -> Any:
    """Return an alias like *hint* with other arguments; ``*tuple[int]`` becomes ``Unpack[tuple[int]]``."""
    is_plain = issubclass(type(hint), types.GenericAlias)
    is_unpacked = is_plain and hint.__unpacked__
    if not is_unpacked and all(map(operator.is_, args, hint.__args__)):
        return hint
    if is_plain:
        is_callable = typing._should_unflatten_callable_args(hint, args)  # type: ignore[attr-defined]
        # Not made by the real class: the call of a guest class's alias is guarded.
        made = hint.__origin__[(args[:-1], args[-1]) if is_callable else args]
        return typing.Unpack[made] if is_unpacked else made
    return functools.reduce(operator.or_, args) if type(hint) is types.UnionType else hint.copy_with(args)


def _stripped(hint: Any) -> Any:
    """Return an annotation without ``Annotated`` and the qualifiers of keys."""
    if not issubclass(type(hint), _ALIASES):
        return hint
    if typing.get_origin(hint) is typing.Annotated:
        return _stripped(hint.__origin__)
    if typing.get_origin(hint) in _QUALIFIERS:
        return _stripped(hint.__args__[0])
    return _with_args(hint, tuple(map(_stripped, hint.__args__)))


_QUALIFIERS = [
    getattr(typing, name) for name in ("Required", "NotRequired", "ReadOnly") if hasattr(typing, name)
]


# -- decorators


def typing_marks() -> dict[str, Any]:
    """Return the decorators of ``typing`` that write to their argument."""
    marks = ("final", "override", "runtime_checkable")
    found = {name: writing(getattr(typing, name)) for name in marks if hasattr(typing, name)}
    found |= {"no_type_check": writing(no_type_check), "overload": overload, "get_overloads": get_overloads}
    found["reveal_type"] = reveal_type

    def dataclass_transform(**options: Any) -> Any:
        return writing(typing.dataclass_transform(**options))

    return {**found, "dataclass_transform": dataclass_transform}


def no_type_check(arg: Any) -> Any:
    """Do what ``typing.no_type_check`` does; the real one finds functions of a class by forgeable names."""
    guards = asking()
    if isinstance(arg, type):
        for value in vars(arg).values():
            function = getattr(value, "__func__", value)
            if guards is not None and guards.is_guest_function(function):
                function.__no_type_check__ = True
    arg.__no_type_check__ = True
    return arg


def reveal_type(obj: Any, /) -> Any:
    """Do what ``typing.reveal_type`` does, to the output of the run."""
    print_(f"Runtime type is {type(obj).__name__!r}")
    return obj


def overload(func: Any) -> Any:
    """Do what ``typing.overload`` does, recorded with the session: the host shares the real registry."""
    guards = asking()
    function = getattr(func, "__func__", func)
    if guards is not None and guards.is_guest_function(function):
        known = guards.notes.setdefault("overloads", {})
        of_name = known.setdefault((str(function.__module__), str(function.__qualname__)), {})
        of_name[function.__code__.co_firstlineno] = func
    return typing._overload_dummy  # type: ignore[attr-defined]  # what the real overload returns


def get_overloads(func: Any) -> list[Any]:
    """Do what ``typing.get_overloads`` does, for guest functions."""
    guards = asking()
    function = getattr(func, "__func__", func)
    known = {} if guards is None else guards.notes.get("overloads", {})
    return list(known.get((str(function.__module__), str(function.__qualname__)), {}).values())
