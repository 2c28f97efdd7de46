"""Guards for library functions whose arguments decide what they do: paths, formats, names of functions."""

from __future__ import annotations

import array
import errno
import functools
import io
import os
import pathlib
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

from agex.errors import SandboxError, SandboxTypeError
from agex.sandbox.classes.identity import is_one_of
from agex.sandbox.policy.library import Guard, PathGuard, guarded, homes
from agex.sandbox.runtime.context import CURRENT
from agex.sandbox.runtime.provenance import is_guest_class
from agex.sandbox.stdlib.string_format import is_plain_format
from agex.sandbox.stdlib.struct import ARRAY

if TYPE_CHECKING:
    from agex.sandbox.runtime.workspace_files import GuestFiles

__all__ = [
    "AGGREGATIONS", "Stream", "argument", "copies_for_functions", "guarded", "named_functions",
    "plain_format", "refused", "writable_buffer",
]  # fmt: skip

_ABSENT = object()

# Exact types: a guest subclass could define __fspath__ and be taken for a path.
_STREAMS = (io.StringIO, io.BytesIO)


def refused(reason: str) -> Callable[..., NoReturn]:
    """Return a function that raises *reason*, which says what to write instead."""

    def call(*args: Any, **kwargs: Any) -> NoReturn:
        raise SandboxError(reason)

    return call


def argument(position: int, keyword: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the argument passed for a parameter, or `_ABSENT`."""
    return args[position] if len(args) > position else kwargs.get(keyword, _ABSENT)


def plain_format(position: int, keyword: str) -> Guard:
    """Return the guard of a function that fills in a text by ``str.format``: fields name no attributes."""

    def guard(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        _check_format(keyword, argument(position, keyword, args, kwargs))
        return real(*args, **kwargs)

    return guard


def _check_format(name: str, value: Any) -> None:
    if issubclass(type(value), str) and not is_plain_format(value):
        raise SandboxError(f"{name} takes no attributes and no indices here: {{}}, {{:.2f}}, {{name}}")


def copies_for_functions(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Pass copies of arrays to callbacks: the real arrays lie over memory that is freed."""
    settled = {name: _given_copies(value) for name, value in kwargs.items()}
    return real(*map(_given_copies, args), **settled)


def _given_copies(value: Any) -> Any:
    is_class_of_hosts = issubclass(type(value), type) and not is_guest_class(value)
    if is_class_of_hosts or not callable(value):
        return value
    np: Any = import_module("numpy")

    def call(*args: Any) -> Any:
        return value(*(each.copy() if type(each) is np.ndarray else each for each in args))

    return functools.update_wrapper(call, value, assigned=("__name__",), updated=())


@dataclass(frozen=True, kw_only=True)
class Stream(PathGuard):
    """Guards a function that takes a path, a URL or a stream.

    A stream in memory passes, and where there is a workspace its open files and paths in it.
    """

    position: int = 0
    """Where the path or stream is passed."""
    keyword: str
    """Its name as a keyword."""
    optional: bool = False
    """Whether it may be left out, and the function then returns the text."""
    also: tuple[type, ...] = ()
    """Exact types that pass as well."""
    without: tuple[str, ...] = ()
    """Keywords that may not be passed."""
    choices: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Keywords that may only be one of some words."""
    formats: tuple[str, ...] = ()
    """Keywords whose text is filled in by ``str.format``."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Keywords that are passed unless the guest does."""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """Keywords that are always passed, and may have no other value."""
    most: int | None = None
    """How many arguments may be passed by position; None for any number."""
    writes: bool = False
    """Whether it writes; a file that is read must exist."""
    copied: bool = False
    """Whether it opens paths in compiled code: it reads or writes bytes in memory instead."""
    in_memory: bool = False
    """Whether it gets plain bytes in memory for any stream: compiled code could find the path of an open
    file, and open that. Implies `copied`."""
    takes: frozenset[str] | None = None
    """The only keywords that may be passed, beside its own; None for any."""
    files: bool = False
    """Whether the host opened its files to this one function."""

    def opened(self) -> Stream:
        """Return the guard of the same function with access to host files."""
        # A field, not the open permissions: those hold while the function calls guest code back.
        return replace(self, files=True)

    def __call__(self, real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        called = getattr(real, "__name__", None)
        name = called if type(called) is str else "this function"
        self._check_keywords(name, kwargs)
        if self.most is not None and len(args) > self.most:
            raise SandboxTypeError(f"{name}() takes {self.most} arguments by position here; name the others")
        value = argument(self.position, self.keyword, args, kwargs)
        kwargs = {**self.defaults, **kwargs, **self.fixed}
        if value is _ABSENT or value is None or self.files or is_one_of(type(value), self.also):
            return real(*args, **kwargs)
        files = _workspace()
        streams = _STREAMS if files is None else (*_STREAMS, io.TextIOWrapper, *files.kinds)
        if is_one_of(type(value), streams):
            if self.in_memory:
                return self._call_in_memory(value, real, args, kwargs)
            return real(*args, **kwargs)
        if files is None or not isinstance(value, _PATHS):
            text = f"call {name}() without a path to get the text, or " if self.optional else ""
            raise SandboxError(
                f"{name}() here does not open {type(value).__name__} {_shown(value)}; {text}"
                "pass an io.StringIO or io.BytesIO"
            )
        path = _workspace_path(name, value)
        if not self.writes and not files.isfile(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        if self.copied or self.in_memory:
            return self._call_with_copy(files, path, real, args, kwargs)
        return real(*self._with(path, args, kwargs), **kwargs)

    def _with(self, value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Return the arguments with *value* in place of the path."""
        if len(args) > self.position:
            return (*args[: self.position], value, *args[self.position + 1 :])
        kwargs[self.keyword] = value
        return args

    def _call_with_copy(
        self,
        files: GuestFiles,
        path: str,
        real: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        copy = _Kept() if self.writes else io.BytesIO(files.read(path))
        result = real(*self._with(copy, args, kwargs), **kwargs)
        if self.writes:
            files.write(path, copy.getvalue())
        return result

    def _call_in_memory(
        self, stream: Any, real: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Pass the bytes of a stream to the function, or write its result into the stream."""
        is_text = isinstance(stream, io.TextIOBase)
        if type(stream) is io.BytesIO:
            return real(*args, **kwargs)
        if self.writes:
            kept = _Kept()
            result = real(*self._with(kept, args, kwargs), **kwargs)
            stream.write(kept.getvalue().decode() if is_text else kept.getvalue())
            return result
        content = stream.read()
        copy = io.BytesIO(content.encode() if is_text else content)
        return real(*self._with(copy, args, kwargs), **kwargs)

    def _check_keywords(self, name: str, kwargs: dict[str, Any]) -> None:
        for each in kwargs if self.takes is not None else ():
            if each not in (self.keyword, *(self.takes or ())):
                raise SandboxTypeError(f"{name}({each}=...) is not available; leave {each} out")
        for each in self.formats:
            _check_format(each, kwargs.get(each))
        for each in self.without:
            if each in kwargs:
                raise SandboxTypeError(f"{name}({each}=...) is not available; leave {each} out")
        for each, only in self.fixed.items():
            if each in kwargs and kwargs[each] is not only:
                raise SandboxError(f"{name}({each}=...) is only available as {each}={only!r}")
        for each, words in self.choices.items():
            value = kwargs.get(each)
            if value is not None and (type(value) is not str or value.lower() not in words):
                raise SandboxError(f"{name}({each}={value!r}) is not available; use one of {sorted(words)}")


class _Kept(io.BytesIO):
    """Bytes that stay readable after ``close()``."""

    def close(self) -> None:
        """Do nothing: the content is read afterwards."""


# A subclass of str could be another text at each read, and so could one of a path.
_PATHS = (str, pathlib.PurePosixPath)


def _workspace() -> GuestFiles | None:
    guards = CURRENT.get()
    return None if guards is None else guards.files


def _workspace_path(name: str, value: Any) -> str:
    """Return the path as an exact str.

    Raises:
        SandboxError: it is an address, not the path of a file.
    """
    path = str.__str__(value) if isinstance(value, str) else pathlib.PurePosixPath.__str__(value)
    if "://" in path or "::" in path:
        raise SandboxError(f"{name}() opens files of the workspace here, not {path[:60]!r}")
    return path


def _shown(value: Any) -> str:
    return repr(value[:60]) if type(value) is str else "objects"


AGGREGATIONS = frozenset(
    """
    abs all any argmax argmin autocorr bfill corr count cov cumcount cummax cummin cumprod cumsum
    describe diff
    dropna duplicated ffill fillna first head idxmax idxmin interpolate isna isnull kurt kurtosis last
    max mean
    median min mode nearest ngroup notna notnull nth nunique ohlc pct_change prod product quantile rank round
    sem shift size skew std sum tail to_list tolist unique value_counts var
    ceil cos cosh exp exp2 expm1 floor isfinite isinf isnan log log10 log1p log2 negative ptp sign sin sinh
    sqrt square tan tanh trunc
    """.split()  # the second part: functions of numpy that pandas finds by the same name
)
"""Names of functions that pandas may be given: it looks them up on the object."""

_PARAMETERS = frozenset(
    """
    index columns rows expand reduce broadcast compat python cython ignore raise linear lower higher midpoint
    average min max first dense keep top bottom
    """.split()
)
"""Other words that a string argument may be."""

_FUNCTIONS = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.MethodDescriptorType,
    functools.partial,
)


def named_functions(position: int, keyword: str, *, anywhere: bool = False) -> Guard:
    """Return the guard of a method that takes functions by name, and lets the names of aggregations pass.

    *position* and *keyword* say where the function is passed; *anywhere*, whether other keywords may name
    functions as well: ``agg(new=("column", "sum"))``.
    """

    def guard(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        settled = list(args)
        if len(settled) > position:
            settled[position] = _settled(settled[position])
        elif keyword in kwargs:
            kwargs[keyword] = _settled(kwargs[keyword])
        function = argument(position, keyword, tuple(settled), kwargs)
        if anywhere and (function is None or function is _ABSENT):  # the other keywords name functions
            kwargs = {key: _column_and_function(value) for key, value in kwargs.items()}
        return real(*settled, **kwargs)

    return guard


def _column_and_function(value: Any) -> Any:
    """Return the argument of a keyword of ``agg``, made exact, when no function stands before it."""
    kind = type(value)
    if issubclass(kind, str):
        return _word(value)
    if issubclass(kind, (tuple, list)):
        return (value[0], *map(_settled, value[1:])) if value else value
    pandas: Any = sys.modules.get("pandas")
    if pandas is not None and kind is pandas.NamedAgg:  # a data class since pandas 3, a tuple before
        return kind(value.column, _settled(value.aggfunc), *value.args, **value.kwargs)
    return value if kind in _PLAIN else _settled(value)


def _settled(value: Any) -> Any:
    """Return a copy of the argument that cannot change when it is read again."""
    kind = type(value)  # not `isinstance`: an object may lie about its class
    if issubclass(kind, str):
        return _known(value)
    if issubclass(kind, dict):
        return {key: _settled(each) for key, each in dict.items(value)}
    if issubclass(kind, (list, tuple, set, frozenset)):
        found = list(_ITERATE[next(base for base in _ITERATE if issubclass(kind, base))](value))
        if issubclass(kind, tuple) and len(found) == 2 and issubclass(type(found[0]), str):
            return (str.__str__(found[0]), _settled(found[1]))  # ("name", function)
        return [_settled(each) for each in found]
    if value is None or kind in _FUNCTIONS or issubclass(kind, type) or _is_numpy_function(value):
        return value
    if not callable(value):
        raise SandboxTypeError(f"a function, its name, or a list or dict of them, not {kind.__name__}")

    def call(*args: Any, **kwargs: Any) -> Any:  # the object itself could pass itself off as a list
        return value(*args, **kwargs)

    return call


_PLAIN = (bool, int, float, type(None))
_ITERATE: dict[type, Callable[[Any], Any]] = {each: each.__iter__ for each in (list, tuple, set, frozenset)}


def _is_numpy_function(value: Any) -> bool:
    return {("numpy", "ufunc"), ("numpy", "_ArrayFunctionDispatcher")} & set(homes(type(value))) != set()


def _word(value: str) -> str:
    value = str.__str__(value)
    return value if value in _PARAMETERS else _known(value)


def _known(name: str) -> str:
    name = str.__str__(name)
    if name not in AGGREGATIONS:
        raise SandboxError(f"{name!r} is not the name of an aggregation; pass a function: lambda x: ...")
    return name


def writable_buffer(position: int, keyword: str) -> Guard:
    """Return the guard of a function that writes raw bytes, which accepts plain byte buffers only."""

    def guard(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        target = argument(position, keyword, args, kwargs)
        if target is not _ABSENT and type(target) not in (bytearray, memoryview, array.array, ARRAY["array"]):
            raise SandboxTypeError(
                f"raw bytes can be written into a bytearray here, not into {type(target).__name__}"
            )
        return real(*args, **kwargs)

    return guard
