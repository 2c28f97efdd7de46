"""The table of typing forms: an annotation becomes a check."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections import Counter
from collections.abc import Callable as AbcCallable
from collections.abc import ItemsView, Iterable, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from typing import Any, Literal, NamedTuple, Union

import typing_extensions
from pydantic import BaseModel, RootModel

from agex.contract import containers, fields, records, scalars
from agex.contract.annotations import Scope, Unresolved, describe, strip
from agex.contract.constraints import Base, constrained_check, pydantic_check
from agex.contract.frame_schemas import frame_class, is_frame_model, is_schema, schema_check
from agex.contract.mismatch import ContractError, Mismatch
from agex.contract.plain_values import bare
from agex.contract.unions import union_check
from agex.contract.walk import Check, Walk
from agex.errors import DefinitionError

__all__ = ["Checker"]

_ALIAS = typing_extensions.TypeAliasType
_ALIASES = (_ALIAS, getattr(typing, "TypeAliasType", _ALIAS))
_ANYTHING = (Any, object, typing_extensions.Any)
_STRINGS = (typing.LiteralString, typing_extensions.LiteralString)
_NEVER = (typing.NoReturn, typing.Never, typing_extensions.Never)
_GUARDS = (typing.TypeGuard, typing_extensions.TypeGuard, typing_extensions.TypeIs)
_UNPACK = (typing.Unpack, typing_extensions.Unpack)
_VARIABLES = (typing.TypeVar, typing_extensions.TypeVar)
_FREE = (typing.ParamSpec, typing.TypeVarTuple, typing_extensions.ParamSpec, typing_extensions.TypeVarTuple)
_FILES = (typing.IO, typing.TextIO, typing.BinaryIO)
_SIMPLE = (*scalars.NUMBERS, str, bytes, type(None))


class Checker:
    """Checks values against one annotation, at full depth. Safe to share between threads.

    A value that fits comes back as the same object. Only three things are built anew: a dict
    given for a model, a numpy number where a Python one is expected, and the containers around these.

    Args:
        annotation: any typing form, also as a string.
        scope: the names that strings and forward references in it may use.

    Raises:
        DefinitionError: the annotation cannot be resolved or checked.
    """

    def __init__(self, annotation: Any, *, scope: Scope | None = None) -> None:
        scope = scope or Scope()
        self.annotation = scope.resolve(annotation)
        self._check = _Forms(scope).check_for(self.annotation)

    def check(self, value: Any, *, path: str = "result") -> Any:
        """Return *value*, or what had to be built from it.

        Raises:
            ContractError: it does not fit; the message has a line for each of the first
                five places, with path, expected type and what was found.
        """
        try:
            return self._run(value, Walk(keep_numbers=False))
        except Mismatch as mismatch:
            raise ContractError(mismatch.text(path)) from None

    def accept(self, value: Any) -> Any:
        """Like :meth:`check` for an input: numpy numbers stay as they are.

        Raises:
            Mismatch: it does not fit.
        """
        return self._run(value, Walk(keep_numbers=True))

    def _run(self, value: Any, walk: Walk) -> Any:
        try:
            return self._check(value, walk)
        except RecursionError:
            raise Mismatch.of("expected less nesting: too deep to be checked") from None


class _Later:
    """Stands for a check that is still being made: a recursive type refers to it."""

    check: Check

    def __call__(self, value: Any, walk: Walk) -> Any:
        return self.check(value, walk)


class _Given(NamedTuple):
    """The check that a type variable stands for."""

    annotation: Any
    check: Check


class _Forms:
    """Makes the check of each annotation once, so that recursive types close on themselves."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._variables: dict[Any, _Given] = {}
        self._made: dict[tuple[Any, ...], tuple[Any, Check]] = {}

    def _within(self, *, scope: Scope | None = None, variables: Mapping[Any, _Given] | None = None) -> _Forms:
        """Return the same forms with other names or type variables in force."""
        other = _Forms(scope or self._scope)
        other._variables = self._variables if variables is None else dict(variables)
        other._made = self._made
        return other

    def check_for(self, annotation: Any) -> Check:
        """Return the check of *annotation*.

        Raises:
            DefinitionError: it cannot be resolved or checked.
        """
        annotation, _ = strip(self._scope.resolve(annotation))
        key = (id(annotation), *((id(name), id(given.check)) for name, given in self._variables.items()))
        if key not in self._made:
            later = _Later()
            # The annotation is kept, so that its id is not given to another one.
            self._made[key] = (annotation, later)
            later.check = self._make(annotation)
            self._made[key] = (annotation, later.check)
        return self._made[key][1]

    def _make(self, annotation: Any) -> Check:
        special = self._special(annotation)
        if special is not None:
            return special
        origin, args = typing_extensions.get_origin(annotation), typing_extensions.get_args(annotation)
        if origin is None:
            if isinstance(annotation, type):
                return self._class(annotation, ())
            raise DefinitionError(f"{describe(annotation)} is not a type that can be checked")
        return self._generic(annotation, origin, args)

    def _special(self, annotation: Any) -> Check | None:
        """Make the check of a form that is neither a class nor subscripted."""
        if any(annotation is each for each in _ANYTHING) or isinstance(annotation, _FREE):
            return scalars.anything
        if annotation is None:
            return scalars.instance_check(type(None), "expected None")
        if any(annotation is each for each in _STRINGS):
            return scalars.instance_check(str, "expected str")
        if any(annotation is each for each in _NEVER):
            return union_check(frozenset(), [], "expected no value at all")
        if isinstance(annotation, _VARIABLES):
            return self._variable(annotation)
        if isinstance(annotation, typing.NewType):
            return self.check_for(annotation.__supertype__)
        if isinstance(annotation, _ALIASES):
            return self._alias(annotation, ())
        if is_frame_model(annotation):
            name = describe(annotation)
            raise DefinitionError(f"{name} is the model of a frame; write DataFrame[{name}]")
        frame = frame_class(annotation)
        return None if frame is None else scalars.instance_check(frame, f"expected {describe(frame)}")

    def _given(self, variables: Iterable[Any], args: Iterable[Any]) -> dict[Any, _Given]:
        return {
            variable: _Given(self._substituted(arg), self.check_for(arg))
            for variable, arg in zip(variables, args, strict=False)
        }

    def _substituted(self, annotation: Any) -> Any:
        """Return the check of a type variable here; any other annotation unchanged."""
        if isinstance(annotation, _VARIABLES) and annotation in self._variables:
            return self._variables[annotation].annotation
        return annotation

    def _variable(self, variable: Any) -> Check:
        if variable in self._variables:
            return self._variables[variable].check
        if variable.__constraints__:
            return self._union(variable.__constraints__, describe(variable))
        return scalars.anything if variable.__bound__ is None else self.check_for(variable.__bound__)

    def _alias(self, alias: Any, args: tuple[Any, ...]) -> Check:
        variables = self._given(alias.__type_params__, args)
        try:
            value = alias.__value__
        except NameError as error:
            raise Unresolved(f"the type {alias.__name__} cannot be resolved: {error}") from error
        return self._within(variables=variables).check_for(value)

    def _generic(self, annotation: Any, origin: Any, args: tuple[Any, ...]) -> Check:
        expected = f"expected {describe(annotation)}"
        if isinstance(origin, _ALIASES):
            return self._alias(origin, args)
        if origin is typing.Annotated:
            # get_args of typing_extensions keeps the metadata as it was written.
            metadata = [each for each in args[1:] if not is_schema(each)]
            check = constrained_check(annotation, self._base(args[0]), metadata, expected)
            return _in_turn(check, [schema_check(each) for each in args[1:] if is_schema(each)])
        if origin is Literal or origin is typing_extensions.Literal:
            return scalars.literal_check(args, expected)
        if origin in (Union, types.UnionType):
            return self._union(args, describe(annotation))
        if origin in _GUARDS:
            return self.check_for(bool)
        if origin is type:
            return scalars.type_check(self._bounds(args), expected)
        if origin is AbcCallable:
            return scalars.callable_check(_arity(args), expected)
        if not isinstance(origin, type):
            raise DefinitionError(f"{describe(annotation)} is not a type that can be checked")
        return self._generic_class(origin, args, expected)

    def _base(self, annotation: Any) -> Base:
        """Read what ``Annotated`` adds to."""
        check = self.check_for(annotation)
        rest = self._plain(annotation)
        optional = False
        if typing_extensions.get_origin(rest) in (Union, types.UnionType):
            members = typing_extensions.get_args(rest)
            others = [member for member in members if member not in (None, type(None))]
            optional = len(others) < len(members)
            rest = self._plain(others[0]) if len(others) == 1 else rest
        return Base(rest, optional, check)

    def _plain(self, annotation: Any) -> Any:
        """Resolve an annotation to the type that stands behind its names."""
        annotation = self._substituted(strip(self._scope.resolve(annotation))[0])
        return self._plain(annotation.__supertype__) if isinstance(annotation, typing.NewType) else annotation

    def _union(self, members: tuple[Any, ...], name: str) -> Check:
        resolved = [strip(self._scope.resolve(member))[0] for member in members]
        exact: set[type] = set()
        for member in resolved:
            if any(member is each for each in _SIMPLE):
                exact.update(scalars.NUMBERS.get(member, (member,)))
        return union_check(frozenset(exact), list(map(self.check_for, resolved)), f"expected {name}")

    def _bounds(self, args: tuple[Any, ...]) -> list[type] | None:
        """Return the classes of ``type[...]``; None when any class will do."""
        found: list[type] = []
        for arg in args:
            bound = self._scope.resolve(self._substituted(arg))
            origin = typing_extensions.get_origin(bound)
            if isinstance(bound, _VARIABLES):
                inner = self._bounds(bound.__constraints__ or (bound.__bound__ or Any,))
            elif origin in (Union, types.UnionType):
                inner = self._bounds(typing_extensions.get_args(bound))
            else:
                cls: Any = bound if origin is None else origin
                inner = [cls] if isinstance(cls, type) and cls is not Any else None
            if inner is None:
                return None
            found += inner
        return found

    def _generic_class(self, origin: type, args: tuple[Any, ...], expected: str) -> Check:
        if origin is tuple:
            return self._tuple(args, expected)
        if not args:
            return self._class(origin, ())
        frame = frame_class(origin)
        if frame is not None:
            return self._frame(frame, args)
        if origin.__module__ == "numpy" and origin.__name__ == "ndarray":
            return scalars.array_check(origin, _dimensions(args), self._scalar(args), expected)
        if not _is_library_container(origin):
            return self._class(origin, args)
        if issubclass(origin, Counter):
            return containers.mapping_check(origin, self.check_for(args[0]), self.check_for(int), expected)
        if issubclass(origin, Mapping) and len(args) == 2:
            key, value = map(self.check_for, args)
            return containers.mapping_check(origin, key, value, expected)
        if issubclass(origin, ItemsView):
            return containers.elements_check(origin, self._tuple(args, "expected a pair"), expected)
        if len(args) == 1:
            return containers.elements_check(origin, self.check_for(args[0]), expected)
        return self._class(origin, ())

    def _frame(self, frame: type, args: tuple[Any, ...]) -> Check:
        """Make the check of pandera's ``DataFrame[Model]``."""
        model = self._scope.resolve(self._substituted(args[0]))
        if is_frame_model(model):
            return _in_turn(
                scalars.instance_check(frame, f"expected {describe(frame)}"), [schema_check(model)]
            )
        raise DefinitionError(
            f"{describe(frame)}[{describe(model)}] cannot be checked; write DataFrame[Model] with a "
            f"DataFrameModel, or Annotated[{describe(frame)}, schema] with a schema of pandera"
        )

    def _scalar(self, args: tuple[Any, ...]) -> type | None:
        """Read the scalar type of ``ndarray[shape, dtype[scalar]]``, None for any."""
        written = (typing_extensions.get_args(args[1]) if len(args) > 1 else ()) or (None,)
        scalar = self._substituted(written[0])
        scalar = typing_extensions.get_origin(scalar) or scalar
        return scalar if isinstance(scalar, type) and scalar is not Any else None

    def _tuple(self, args: tuple[Any, ...], expected: str) -> Check:
        if len(args) == 2 and args[1] is ...:
            return containers.tuple_check([], self.check_for(args[0]), [], expected)
        before: list[Check] = []
        middle: Check | None = None
        after: list[Check] = []
        for arg in args:
            packed = _unpacked(arg)
            if packed is None:
                (before if middle is None else after).append(self.check_for(arg))
            elif isinstance(packed, _FREE):
                middle = scalars.anything
            else:
                inner = typing_extensions.get_args(packed)
                if inner[-1:] != (...,):
                    (before if middle is None else after).extend(map(self.check_for, inner))
                else:
                    middle = self.check_for(inner[0])
        return containers.tuple_check(before, middle, after, expected)

    def _class(self, cls: type, args: tuple[Any, ...]) -> Check:
        expected = f"expected {describe(cls)}"
        if cls in scalars.NUMBERS:
            return scalars.number_check(cls)
        if cls in scalars.EXACT:
            return scalars.exact_check(cls, expected)
        if issubclass(cls, Enum):
            return scalars.enum_check(cls, expected)
        inside = self._within(scope=self._scope.of_class(cls), variables=self._arguments(cls, args))
        if issubclass(cls, BaseModel):
            return inside._model(cls)
        if typing_extensions.is_typeddict(cls):
            found = fields.of_typed_dict(cls, inside._scope, inside.check_for)
            return records.typed_dict_check(found, expected)
        if dataclasses.is_dataclass(cls):
            found = fields.of_dataclass(cls, inside._scope, inside.check_for)
            validates = hasattr(cls, "__pydantic_validator__")
            return records.record_check(
                cls, found, lambda given: cls(**given), extra=False, validates=validates
            )
        if issubclass(cls, tuple) and hasattr(cls, "_fields"):
            found = fields.of_named_tuple(cls, inside._scope, inside.check_for)
            return records.named_tuple_check(cls, found, expected)
        if cls in _FILES:
            return scalars.members_check(("__enter__", "__iter__", "close"), expected)
        if typing_extensions.is_protocol(cls):
            return scalars.protocol_check(cls, expected)
        if hasattr(cls, "__get_pydantic_core_schema__"):
            whole: Any = cls
            return pydantic_check(whole[args] if args else whole, expected)
        return inside._plain_class(cls, expected)

    def _model(self, cls: type[BaseModel]) -> Check:
        found = fields.of_model(cls, self._scope, self.check_for)
        if issubclass(cls, RootModel):
            return records.root_model_check(cls, found["root"])
        prechecked = not fields.reads_dicts_itself(cls)

        def build(given: dict[str, Any]) -> Any:
            return cls.model_validate(bare(given))

        return records.record_check(cls, found, build, extra=True, prechecked=prechecked, validates=True)

    def _plain_class(self, cls: type, expected: str) -> Check:
        """Make the check of any other class; one that derives from ``list[int]`` has its elements checked."""
        is_instance = scalars.instance_check(cls, expected)
        for base in _original_bases(cls):
            origin = typing_extensions.get_origin(base)
            if isinstance(origin, type) and _is_library_container(origin):
                return records.unchanged_check([is_instance, self.check_for(base)], expected)
        return is_instance

    def _arguments(self, cls: type, args: tuple[Any, ...]) -> dict[Any, _Given]:
        """Map the type variables of a generic class and of its bases to the checks in force."""
        found = self._given(getattr(cls, "__parameters__", ()), args)
        inside = self._within(variables={**self._variables, **found})
        for base in _original_bases(cls):
            origin = typing_extensions.get_origin(base)
            given = typing_extensions.get_args(base)
            if isinstance(origin, type) and set(given) - set(getattr(origin, "__parameters__", given)):
                found = {**inside._arguments(origin, given), **found}
        return found


def _in_turn(first: Check, others: Sequence[Check]) -> Check:
    """Make one check of several, each of what the one before it returned; None meets the first alone."""

    def check(value: Any, walk: Walk) -> Any:
        value = first(value, walk)
        for each in others if value is not None else ():
            value = each(value, walk)
        return value

    return check if others else first


def _is_library_container(origin: type) -> bool:
    modules = ("builtins", "collections", "collections.abc")
    return origin.__module__ in modules and issubclass(origin, Iterable)


def _original_bases(cls: type) -> tuple[Any, ...]:
    with suppress(TypeError):
        return typing_extensions.get_original_bases(cls)
    return ()


def _arity(args: tuple[Any, ...]) -> int | None:
    """Return how many positional arguments a ``Callable[...]`` is called with; None: not told."""
    if not args or not isinstance(args[0], list):
        return None
    return None if any(_unpacked(arg) is not None for arg in args[0]) else len(args[0])


def _unpacked(annotation: Any) -> Any:
    """Return what a ``*tuple[...]`` or ``*Ts`` unpacks; None for anything else."""
    if typing_extensions.get_origin(annotation) in _UNPACK:
        return typing_extensions.get_args(annotation)[0]
    return annotation.__origin__[annotation.__args__] if getattr(annotation, "__unpacked__", False) else None


def _dimensions(args: tuple[Any, ...]) -> int | None:
    """Read the shape of ``ndarray[shape, dtype]``: how many dimensions, None for any."""
    sizes = typing_extensions.get_args(args[0])
    return None if not sizes or ... in sizes else len(sizes)
