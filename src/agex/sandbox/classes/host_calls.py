"""Limits on the methods of guest classes that host code calls implicitly between runs.

``repr(obj)``, ``obj == other`` or ``x in found`` in the host run methods that guest code wrote, after its
time is over and where nobody expects its exceptions. So while no run is on, and while the host works within
one, these methods are replaced by guards. The next run puts them back. There are four kinds:

* methods that an expression or a library function calls on objects of any class: `HOOKS`;
* overridden methods of a builtin base: host code that knows ``str`` calls ``strip``, and the interpreter
  calls ``close`` of a file that is dropped;
* properties in place of attributes that the interpreter keeps: ``__cause__`` of an error, ``__doc__``;
* hooks of a metaclass that identify classes: a look-up of a class in a set calls them, and so does a read of
  its name. The methods of ``type`` take their place.
"""

from __future__ import annotations

import contextlib
import functools
import io
import operator
import types
import weakref
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType
from typing import Any, NamedTuple

from agex._interpreter.type_slots import module_of, mro_of, namespace_of
from agex.sandbox.classes import hook_guards
from agex.sandbox.classes.identity import is_one_of
from agex.sandbox.classes.unsafe_protocols import NOWHERE, First
from agex.sandbox.rules import names as ledger
from agex.sandbox.rules.code_flags import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR

__all__ = ["HOOKS", "Hooks", "written"]

_ASKED_FOR = {"__call__", "__enter__", "__exit__"}
"""Operators that the host uses on purpose, as it calls a method by its name."""

_SHOWN = frozenset(
    {
        "_ipython_display_", "_repr_html_", "_repr_javascript_", "_repr_jpeg_", "_repr_json_", "_repr_latex_",
        "_repr_markdown_", "_repr_mimebundle_", "_repr_pdf_", "_repr_png_", "_repr_pretty_", "_repr_svg_",
    }
)  # fmt: skip
"""Methods that a notebook calls on the value of a cell."""

HOOKS = (ledger.OPERATORS - _ASKED_FOR) | _SHOWN | {
    "__array__", "__delattr__", "__dir__", "__fspath__", "__getattr__", "__getattribute__", "__getstate__",
    "__rich__", "__setattr__", "__setstate__", "dst", "items", "keys", "tzname", "utcoffset",
}  # fmt: skip
"""The methods that an expression or a library function calls by itself."""

_HARMLESS = (
    type(None),  # "not hashable", "not iterable"
    str,
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.BuiltinFunctionType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    type(NamedTuple("_", [("field", int)]).field),  # type: ignore[attr-defined]
    type(NOWHERE),
    First,
)
"""Types of hooks that run no guest code."""

_BUILTIN = frozenset({"builtins", "datetime", "_io"})
"""Modules of classes whose methods the interpreter and its libraries call implicitly."""

_FILE: Any = io.IOBase.__base__

_OF_CLASSES = frozenset({"__hash__", "__eq__", "__ne__", "__getattribute__"})
"""Hooks of a metaclass that any use of its classes may call."""

_UNSETTABLE = frozenset(
    {"__abstractmethods__", "__annotations__", "__name__", "__qualname__", "__type_params__"}
)
"""Names that ``type.__setattr__`` takes for attributes of the class itself."""

Answer = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]


class Hooks:
    """The hooks of a session's classes.

    Args:
        answer: calls a guest method for the host, under limits.
    """

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._shut: list[_Replacement] = []
        self._known: dict[int, _Class] = {}
        self._is_open = True
        self._is_on = True
        self._is_begun = True
        """Whether a run has begun and not ended: one that waits for an event loop is not on."""
        self._pauses = 0

    def shut(self, classes: Iterable[type]) -> None:
        """Put the guards in place: a run is over."""
        self._is_begun = False
        self.wait(classes)

    def open(self) -> None:
        """Put the guest methods back: a run begins."""
        self._is_begun = self._is_on = True
        self._open()

    def wait(self, classes: Iterable[type]) -> None:
        """Put the guards in place: the run waits, and the event loop does other work."""
        self._is_on = False
        self._close(classes)

    def go_on(self) -> None:
        """Put the guest methods back, unless the run is over."""
        if self._is_begun:
            self._is_on = True
            if not self._pauses:
                self._open()

    @contextlib.contextmanager
    def waiting(self, classes: Callable[[], Iterable[type]]) -> Iterator[None]:
        """Keep the guards in place, except for the steps of the tasks of a run; see `go_on`."""
        was_on = self._is_on
        self.wait(classes())
        try:
            yield
        finally:
            if was_on:
                self.go_on()

    def _close(self, classes: Iterable[type]) -> None:
        self._open()  # an interrupted host function may have left some guards in place
        self._is_open = False
        before, self._known = self._known, {}
        for class_ in classes:
            known = before.get(id(class_))
            if known is None or not known.is_as_before(class_):
                known = self._look_at(class_)
            else:
                self._shut += known.places  # first: if interrupted below, the guards in place are known
                for place in known.places:
                    type.__setattr__(class_, place.name, place.guarded)
            self._known[id(class_)] = known

    def _look_at(self, class_: type) -> _Class:
        """Put the guards in place in a class that is new or has changed."""
        first, mro, bases = len(self._shut), mro_of(class_), _builtin_bases(class_)
        said = namespace_of(class_)
        names, values = tuple(said), tuple(said.values())  # a dict would call __eq__ of the names
        for name, value in zip(names, values, strict=True):
            self._shut_one(class_, name, value, bases)
        if is_one_of(_FILE, bases):
            self._shut_file(class_)
        return _Class(class_, mro, names, values, self._shut[first:])

    def stored(self, class_: type, name: Any, value: Any) -> None:
        """Guard a new value of a class, if it is a hook and the guards are in place."""
        if not self._is_open:
            self._shut_one(class_, name, value, _builtin_bases(class_))

    def _shut_one(self, class_: type, name: Any, value: Any, bases: tuple[type, ...]) -> None:
        # A name may be an instance of a guest class: its __hash__ and __eq__ must not run.
        if type(name) is not str or is_one_of(type(value), _HARMLESS):
            return
        if name in _OF_CLASSES and issubclass(class_, type):
            self._put(class_, name, value, _told_by_type(name, value))
        elif name == "__subclasshook__" and hook_guards.is_guarded(value):
            self._put(class_, name, value, _ShutOfClass(value, self._asks(value)))
        elif name in HOOKS:
            self._shut_method(class_, name, value)
        elif bases and (below := _below(bases, name)) is not None:
            self._shut_over(class_, name, value, below)
        elif ledger.is_dunder(name) and _runs_when_read(value):
            reads = _notes if name == "__notes__" and is_one_of(BaseException, bases) else self._reads(name)
            self._put(class_, name, value, _Shut(value, reads))

    @contextlib.contextmanager
    def paused(self, classes: Iterable[type]) -> Iterator[None]:
        """Keep the guards in place while the host works within a run."""
        self._pauses += 1
        try:
            if self._pauses == 1 and self._is_on:
                self._close(classes)
            yield
        finally:
            self._pauses -= 1
            if self._pauses == 0 and self._is_on:  # else the run has ended meanwhile
                self._open()

    @contextlib.contextmanager
    def _opened(self) -> Iterator[None]:
        """Put the guest methods back for a look-up as in a run."""
        if self._is_open:
            yield
            return
        classes = [known.class_ for known in self._known.values()]
        self._open()
        try:
            yield
        finally:
            if not self._is_on or self._pauses:
                self._close(classes)

    def _shut_over(self, class_: type, name: str, value: Any, below: Any) -> None:
        """Guard a member that overrides *below*, a member of a builtin class."""
        is_method = type(value) is FunctionType
        if is_one_of(type(below), _KEPT):
            if is_method or _runs_when_read(value):
                self._put(class_, name, value, _Shut(value, _reads(below), below.__set__))
        elif not ledger.is_dunder(name) and (is_method or type(value) is property or callable(value)):
            self._shut_method(class_, name, value)

    def _shut_method(self, class_: type, name: str, value: Any) -> None:
        guarded = self._guarded(value) if type(value) is FunctionType else self._bound(name, value)
        if guarded is not None:
            _guards.add(guarded)
            vars(guarded)[_WRITTEN] = value
            self._put(class_, name, value, guarded)

    def _shut_file(self, class_: type) -> None:
        """Guard ``close``, which the interpreter calls when a file is dropped, in instances too."""
        value = namespace_of(class_).get("close", _NOWHERE)
        self._put(class_, "close", written(value), _Shut(written(value), self._calls("close")))

    def _put(self, class_: type, name: str, value: Any, guarded: Any) -> None:
        if name in _UNSETTABLE:
            return
        self._shut.append(_Replacement(class_, name, value, guarded))
        type.__setattr__(class_, name, guarded)

    def _open(self) -> None:
        self._is_open = True
        for class_, name, value, guarded in self._shut:
            if namespace_of(class_).get(name) is not guarded:
                continue  # guest code has replaced it since
            if value is _NOWHERE:
                type.__delattr__(class_, name)
            else:
                type.__setattr__(class_, name, value)
        self._shut.clear()

    def _reads(self, name: str) -> Callable[[Any], Any]:
        """Return a function that reads an attribute as in a run, without the guards."""

        def looked_up(instance: Any) -> Any:
            with self._opened():
                return getattr(instance, name)

        return lambda instance: self._answer(looked_up, (instance,), {})

    def _asks(self, value: Any) -> Callable[..., Any]:
        """Return a function that calls ``__subclasshook__`` of a class, as ``isinstance`` does."""
        return lambda owner, *args: self._answer(lambda: value.__get__(None, owner)(*args), (), {})

    def asking(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a host function that calls a guest object, under limits."""
        return self._answer(function, args, {})

    def told(self, value: Any, instance: Any) -> Any:
        """Return the value that a guest descriptor has for an object, under limits."""
        return self._answer(_get, (value, instance), {})

    def _calls(self, name: str) -> Callable[[Any], Any]:
        """Return a function that reads a method, which is looked up as in a run."""

        def read(instance: Any) -> Any:
            def called(*args: Any, **kwargs: Any) -> Any:
                with self._opened():
                    method = getattr(instance, name)
                return method(*args, **kwargs)

            return lambda *args, **kwargs: self._answer(called, args, kwargs)

        return read

    def _bound(self, name: str, value: Any) -> Callable[..., Any]:
        """Guard a hook that is no plain function: the descriptor returns the method, which is called then."""
        answer = self._answer

        def hook(self: Any, *args: Any, **kwargs: Any) -> Any:
            return answer(lambda: _get(value, self)(*args, **kwargs), (), {})

        hook.__name__ = hook.__qualname__ = name
        return hook

    def _guarded(self, method: FunctionType) -> Callable[..., Any] | None:
        if method.__code__.co_flags & _ASYNC:
            return None
        answer = self._answer

        def hook(*args: Any, **kwargs: Any) -> Any:
            return answer(method, args, kwargs)

        def generator(*args: Any, **kwargs: Any) -> Any:
            made = method(*args, **kwargs)
            while True:
                try:
                    value = answer(made.__next__, (), {})
                except StopIteration:
                    return
                yield value

        shut = generator if method.__code__.co_flags & CO_GENERATOR else hook
        shut.__name__, shut.__qualname__, shut.__doc__ = method.__name__, method.__qualname__, method.__doc__
        return shut


class _Replacement(NamedTuple):
    """A guard and its place."""

    class_: type
    name: str
    value: Any
    """The guest value that it replaces; `_NOWHERE` if there was none."""
    guarded: Any


class _Class(NamedTuple):
    """A class as it was when it was last guarded; its guards are used again while it stays the same."""

    class_: type
    mro: tuple[type, ...]
    names: tuple[str, ...]
    values: tuple[Any, ...]
    places: list[_Replacement]

    def is_as_before(self, class_: type) -> bool:
        said = namespace_of(class_)
        return (
            self.class_ is class_
            and self.mro is mro_of(class_)
            and len(said) == len(self.names)
            and all(map(operator.is_, said, self.names))
            and all(map(operator.is_, said.values(), self.values))
        )


class _Shut:
    """Stands in a class for a member that must not run when it is read, nor be hidden by an instance.

    Args:
        value: the guest value in its place.
        reads: returns the value for an instance.
        writes: sets the value on an instance; without it, it is read-only as most properties are.
    """

    __slots__ = ("_reads", "_value", "_writes")

    def __init__(
        self, value: Any, reads: Callable[[Any], Any], writes: Callable[[Any, Any], None] | None = None
    ) -> None:
        self._value = value
        self._reads = reads
        self._writes = writes

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self._value if instance is None else self._reads(instance)

    def __set__(self, instance: Any, value: Any) -> None:
        if self._writes is None:
            raise AttributeError("it can be set by the code of its class only")
        self._writes(instance, value)


class _ShutOfClass(_Shut):
    """Stands in a class for a member that is read from the class itself and called."""

    __slots__ = ()

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return functools.partial(self._reads, owner)


def _told_by_type(name: str, value: Any) -> Callable[..., Any]:
    """Return a guard for a hook of a metaclass, which does what ``type`` does."""
    method = getattr(type, name)

    def told(*args: Any) -> Any:
        return method(*args)

    _guards.add(told)
    vars(told)[_WRITTEN] = value
    return told


def written(value: Any) -> Any:
    """Return the guest value behind a guard, and any other value as it is."""
    if issubclass(type(value), _Shut):
        return value._value  # pyright: ignore[reportPrivateUsage] - private, so that guest code cannot read it
    return vars(value)[_WRITTEN] if type(value) is FunctionType and value in _guards else value


_WRITTEN = "_written"
"""The attribute of a guard that holds the guest value: private, so that guest code cannot read it."""

_guards: weakref.WeakSet[Callable[..., Any]] = weakref.WeakSet()
"""A mapping to the guest values would keep them alive, with them the class, and so the guard."""


def _get(value: Any, instance: Any) -> Any:
    """Return the value of a class member for an instance, as the interpreter does."""
    get = getattr(type(value), "__get__", None)
    return value if get is None else get(value, instance, type(instance))


_ASYNC = CO_COROUTINE | CO_ASYNC_GENERATOR
"""Flags of functions whose call runs nothing yet; the result is awaited on purpose."""


def _builtin_bases(class_: type) -> tuple[type, ...]:
    mro = mro_of(class_)
    if len(mro) == 2:  # itself and object: most classes
        return ()
    return tuple(each for each in mro[:-1] if type(name := module_of(each)) is str and name in _BUILTIN)


def _below(bases: tuple[type, ...], name: str) -> Any:
    """Return the member of the first class that has *name*; None if none has it."""
    return next((namespace_of(each)[name] for each in bases if name in namespace_of(each)), None)


def _runs_when_read(value: Any) -> bool:
    """Return whether a read of a class member from an instance may run guest code."""
    return not is_one_of(type(value), _BINDING) and any(
        "__get__" in namespace_of(part) for part in mro_of(type(value))
    )


def _reads(kept: Any) -> Callable[[Any], Any]:
    """Return a function that reads an attribute that the interpreter keeps."""
    return lambda instance: kept.__get__(instance, type(instance))


def _notes(error: BaseException) -> Any:
    try:
        return _NAMESPACE(error)["__notes__"]
    except KeyError:
        raise AttributeError("__notes__") from None


_NAMESPACE: Callable[[BaseException], dict[str, Any]] = vars(BaseException)["__dict__"].__get__
_BINDING = (FunctionType, classmethod, staticmethod)
"""Descriptors that return a method when they are read, and run nothing yet."""
_KEPT = (types.GetSetDescriptorType, types.MemberDescriptorType)
"""Descriptors of attributes that builtin classes keep."""
_NOWHERE = object()
"""Stands for a member that a class does not have."""
