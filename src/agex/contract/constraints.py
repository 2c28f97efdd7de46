"""Checks of the metadata of ``Annotated``: bounds, patterns, lengths, pydantic's own validators.

pydantic applies all of it, in its own order. It sees the type of a scalar, because its order depends on
the type: text is stripped before it is counted. Any other type is opaque to pydantic and known to our own
check only, so that the parts of a value are checked once and by the same rules everywhere.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from decimal import Decimal
from typing import Annotated, Any, NamedTuple

import annotated_types
from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    FailFast,
    PlainSerializer,
    PlainValidator,
    PydanticSchemaGenerationError,
    PydanticUserError,
    Strict,
    Tag,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
    WrapSerializer,
    WrapValidator,
)
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError, SchemaError, core_schema

from agex._interpreter.type_slots import mro_of, namespace_of
from agex.contract.containers import size_check
from agex.contract.mismatch import Mismatch
from agex.contract.plain_values import SCALARS, bare, bare_scalar, is_guest_made
from agex.contract.real_types import is_subclass, numpy_number
from agex.contract.records import NESTED, from_pydantic
from agex.contract.scalars import instance_check, is_nat
from agex.contract.walk import Check, Walk
from agex.errors import DefinitionError
from agex.sandbox.runtime import provenance as origins

__all__ = ["Base", "constrained_check", "mode_of", "pydantic_check", "split_validators"]

_SCALARS = (bool, int, float, complex, str, bytes, Decimal, dt.datetime, dt.date, dt.time, dt.timedelta)
_NEUTRAL = (Strict, FailFast, Tag, PlainSerializer, WrapSerializer, WithJsonSchema)
"""Metadata about how pydantic checks (ours is always strict) or how a value is serialized later."""
_HOW = frozenset({"union_mode", "fail_fast", "strict"})
"""The same, where ``Field`` says it."""
_VALIDATORS: dict[type, str] = {
    BeforeValidator: "before",
    AfterValidator: "after",
    WrapValidator: "wrap",
    PlainValidator: "plain",
}


class Base(NamedTuple):
    """The type inside ``Annotated``, without its metadata."""

    annotation: Any
    """The type, without the None of a union with None."""
    optional: bool
    """Whether it may be None."""
    check: Check
    """The check of all of it."""


def mode_of(metadata: Any) -> str | None:
    """Return when a validator runs: ``before``, ``after``, ``wrap`` or ``plain``; None for other metadata."""
    return next((mode for kind, mode in _VALIDATORS.items() if isinstance(metadata, kind)), None)


def split_validators(metadata: Iterable[Any]) -> tuple[list[Any], list[Any]]:
    """Return the validators that metadata brings, and the rest of it."""
    flat = list(_flat(metadata))
    return [each for each in flat if mode_of(each)], [each for each in flat if not mode_of(each)]


def constrained_check(annotation: Any, base: Base, metadata: Iterable[Any], expected: str) -> Check:
    """Make the check of ``Annotated[base, ...]``.

    Metadata that pydantic does not know constrains nothing. With metadata that makes a schema of its own,
    pydantic decides alone.

    Raises:
        DefinitionError: a constraint cannot be applied to this type.
    """
    known = [each for each in _flat(metadata) if _constrains(each) and not _is_neutral(each)]
    if not known:
        return base.check
    if any(mode_of(each) is None and hasattr(each, "__get_pydantic_core_schema__") for each in known):
        validate = pydantic_check(annotation, expected)
        return lambda value, walk: validate(bare(value), walk)
    return _Constrained(base, known, expected)


def _flat(metadata: Iterable[Any]) -> Iterator[Any]:
    for each in metadata:
        if isinstance(each, FieldInfo):
            yield from _flat(each.metadata)
        elif isinstance(each, annotated_types.GroupedMetadata):
            yield from _flat(each)
        else:
            yield each


def _constrains(metadata: Any) -> bool:
    home = type(metadata).__module__
    known = isinstance(metadata, annotated_types.BaseMetadata) or home == annotated_types.__name__
    return known or home.startswith("pydantic.") or hasattr(metadata, "__get_pydantic_core_schema__")


def _is_neutral(metadata: Any) -> bool:
    said = set(vars(metadata)) if type(metadata).__name__ == _OF_FIELD else set()
    return isinstance(metadata, _NEUTRAL) or (bool(said) and said <= _HOW)


_OF_FIELD = "_PydanticGeneralMetadata"
"""The class of what ``Field`` says and has no class of its own."""


class _Opaque:
    """A type for pydantic, of which only our own check knows what fits; None for one checked already."""

    def __init__(self, check: Check | None) -> None:
        self._check = check

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        if self._check is None:
            return core_schema.any_schema()
        return core_schema.no_info_plain_validator_function(_told_to_pydantic(_barely(self._check)))


class _Nullable:
    """A type for pydantic that may also be None. A union would want a hash, which not all metadata has."""

    def __init__(self, annotation: Any) -> None:
        self._annotation = annotation

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        return core_schema.nullable_schema(handler.generate_schema(self._annotation))


def _told_to_pydantic(check: Check) -> Callable[[Any], Any]:
    """Make a pydantic validator from a check."""

    def validate(value: Any) -> Any:
        try:
            return check(value, _walk.get() or Walk(keep_numbers=False))
        except Mismatch as mismatch:
            text = mismatch.text("value")
            raise PydanticCustomError(NESTED, "{text}", {"text": text, "mismatch": mismatch}) from None

    return validate


def _barely(check: Check) -> Check:
    return lambda value, walk: bare(check(value, walk))


_walk: ContextVar[Walk | None] = ContextVar("agex_contract_walk", default=None)


class _Constrained:
    """The check of a type with constraints and validators."""

    def __init__(self, base: Base, known: list[Any], expected: str) -> None:
        modes = {mode_of(each) for each in known}
        self._check = base.check if base.annotation is not Decimal else _decimal_check(base)
        self._expected = expected
        self._scalar = any(base.annotation is each for each in _SCALARS)
        self._validates = modes != {None}
        self._first = modes <= {None, "after"}
        """Whether what is given must have the type already."""
        self._compares = any(isinstance(each, _BOUNDS) for each in known)
        self._adapter = _adapter(self._parts(base, known), expected)

    def _parts(self, base: Base, known: list[Any]) -> Any:
        place = next((index for index, each in enumerate(known) if mode_of(each)), len(known))
        first, rest = known[:place], known[place:]
        if self._scalar:
            exact = () if self._first else (AfterValidator(_told_to_pydantic(_barely(self._check))),)
            # Behind the constraints that pydantic builds into the type, and in front of every validator.
            inner, rest = Annotated[(base.annotation, *first, "")], [*exact, *rest]
        else:
            opaque = _Opaque(None if self._first else base.check)
            inner, rest = Annotated[(Any, opaque, *map(_counted, first))], [*map(_counted, rest)]
        # None meets no constraint before the first validator: so says pydantic.
        return Annotated[(Any, _Nullable(inner), *rest) if base.optional else (inner, *rest, "")]

    def __call__(self, value: Any, walk: Walk) -> Any:
        checked = self._check(value, walk) if self._first else value
        number = numpy_number(checked) if self._scalar and self._first else None
        plain = bare(checked) if number is None else number
        if self._compares and type(value) not in SCALARS and _compares_itself(bare_scalar(value)):
            raise Mismatch.of(f"{self._expected} of a class without comparisons of its own", value)
        token = _walk.set(walk)
        try:
            result = _validated(self._adapter, plain, self._expected)
        finally:
            _walk.reset(token)
        return checked if self._is_same(result, plain) or not walk.applies else result

    def _is_same(self, result: Any, plain: Any) -> bool:
        """Return whether the value came through as it was: pydantic makes some scalars anew."""
        if result is plain:
            return True
        if not self._scalar or result is None or plain is None:
            return False
        kind = type(result)
        is_kind = type(plain) is kind if self._validates else is_subclass(type(plain), kind)
        if is_kind or (not self._validates and kind in (float, complex)):  # for which an int may stand
            return bool(result == plain)
        return False


def _decimal_check(base: Base) -> Check:
    """Make the check of a Decimal's class alone: whether it may be infinite is said by a constraint."""
    check = instance_check(Decimal, "expected Decimal")
    return lambda value, walk: value if value is None and base.optional else check(value, walk)


def _counted(constraint: Any) -> Any:
    """Return a bound of length that counts past ``__len__``; any other constraint unchanged."""
    if not isinstance(constraint, annotated_types.MinLen | annotated_types.MaxLen):
        return constraint
    return AfterValidator(_told_to_pydantic(size_check(constraint)))


_BOUNDS = (
    annotated_types.Gt,
    annotated_types.Ge,
    annotated_types.Lt,
    annotated_types.Le,
    annotated_types.MultipleOf,
)
_COMPARISONS = {"__gt__", "__ge__", "__lt__", "__le__", "__mod__"}


def _compares_itself(value: Any) -> bool:
    """Return whether guest code defines how a value compares; it could lie about its bounds."""
    if not is_guest_made(type(value)):
        return False
    return any(
        origins.is_guest_class(each) and not _COMPARISONS.isdisjoint(namespace_of(each))
        for each in mro_of(type(value))
    )


def pydantic_check(annotation: Any, expected: str) -> Check:
    """Make a check of a type that only pydantic knows, in strict mode.

    Raises:
        DefinitionError: pydantic does not know it either.
    """
    adapter = _adapter(annotation, expected)

    def check(value: Any, walk: Walk) -> Any:
        result = _validated(adapter, value, expected)
        if is_nat(result):
            raise Mismatch.of(expected, result)
        same = type(result) is type(value) and type(value) in SCALARS and result == value
        return value if same else result

    return check


def _adapter(annotation: Any, expected: str) -> TypeAdapter[Any]:
    try:
        return _adapter_of(annotation)
    except (
        PydanticSchemaGenerationError,
        PydanticUserError,
        SchemaError,
        TypeError,
        ValueError,
        RuntimeError,
    ) as error:
        told = str(error).partition("\n")[0]
        raise DefinitionError(f"{expected.removeprefix('expected ')} cannot be checked: {told}") from error


def _adapter_of(annotation: Any) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(annotation, config=ConfigDict(arbitrary_types_allowed=True))
    except PydanticUserError as error:
        if error.code != "type-adapter-config-unused":
            raise
    return TypeAdapter(annotation)  # a model has a configuration of its own


def _validated(adapter: TypeAdapter[Any], value: Any, expected: str) -> Any:
    try:
        return adapter.validate_python(value, strict=True)
    except ValidationError as error:
        raise from_pydantic(error) from error
    except TypeError as error:  # A bound meets a value it cannot be compared with.
        raise Mismatch.of(f"{expected} ({error})", value) from error
