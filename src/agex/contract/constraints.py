"""Checks of what ``Annotated`` adds: bounds, patterns, lengths, pydantic's own validators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import UnionType
from typing import Annotated, Any, Union, get_origin

import annotated_types
from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    FailFast,
    PlainValidator,
    PydanticSchemaGenerationError,
    PydanticUserError,
    Strict,
    TypeAdapter,
    ValidationError,
    WrapValidator,
)
from pydantic.fields import FieldInfo

from agex.contract.barevalue import bare, bare_scalar, is_guest_made
from agex.contract.containers import size_check
from agex.contract.mismatch import Mismatch
from agex.contract.realtype import numpy_number
from agex.contract.records import from_pydantic
from agex.contract.walk import Check, Walk
from agex.errors import DefinitionError
from agex.sandbox import origins
from agex.typeslots import mro_of, namespace_of

__all__ = ["constrained_check", "mode_of", "pydantic_check", "split_validators"]

_SCALARS = (bool, int, float, complex, str, bytes)
_MODES = (Strict, FailFast)
"""How pydantic checks, not what: ours is always strict."""
_VALIDATORS: dict[type, str] = {
    BeforeValidator: "before",
    AfterValidator: "after",
    WrapValidator: "wrap",
    PlainValidator: "plain",
}


def mode_of(metadata: Any) -> str | None:
    """Tell when a validator runs: ``before``, ``after``, ``wrap`` or ``plain``; None for other metadata."""
    return next((mode for kind, mode in _VALIDATORS.items() if isinstance(metadata, kind)), None)


def split_validators(metadata: Iterable[Any]) -> tuple[list[Any], list[Any]]:
    """Return the validators that metadata brings, and the rest of it."""
    flat = list(_flat(metadata))
    return [each for each in flat if mode_of(each)], [each for each in flat if not mode_of(each)]


def constrained_check(
    annotation: Any, base: Any, metadata: Iterable[Any], check: Check, expected: str
) -> Check:
    """Make the check of ``Annotated[base, ...]``: *check* first, then the constraints.

    Metadata that pydantic does not know constrains nothing. With a validator that runs before
    or instead of the type, pydantic decides alone.

    Raises:
        DefinitionError: a constraint cannot be applied to this type.
    """
    known = [each for each in _flat(metadata) if _constrains(each) and not isinstance(each, _MODES)]
    if any(_replaces(each) for each in known):
        validate = pydantic_check(annotation, expected)
        return lambda value, walk: validate(bare(value), walk)
    lengths = [each for each in known if isinstance(each, annotated_types.MinLen | annotated_types.MaxLen)]
    checks = [check, *map(_length_check, lengths)]
    others = [each for each in known if each not in lengths]
    if others:
        checks.append(_pydantic_constraints(base, others, expected))
    return checks[0] if len(checks) == 1 else _all_of(checks)


def _flat(metadata: Iterable[Any]) -> Iterator[Any]:
    for each in metadata:
        if isinstance(each, FieldInfo):
            yield from _flat(each.metadata)
        elif isinstance(each, annotated_types.GroupedMetadata):
            yield from _flat(each)
        else:
            yield each


def _constrains(metadata: Any) -> bool:
    known = isinstance(metadata, annotated_types.BaseMetadata)
    own = type(metadata).__module__.startswith("pydantic.")
    return known or own or hasattr(metadata, "__get_pydantic_core_schema__")


def _replaces(metadata: Any) -> bool:
    if isinstance(metadata, AfterValidator | annotated_types.BaseMetadata):
        return False
    return mode_of(metadata) is not None or hasattr(metadata, "__get_pydantic_core_schema__")


def _length_check(bound: annotated_types.MinLen | annotated_types.MaxLen) -> Check:
    if isinstance(bound, annotated_types.MinLen):
        return size_check(bound.min_length, None, f"expected length >= {bound.min_length}")
    return size_check(0, bound.max_length, f"expected length <= {bound.max_length}")


def _pydantic_constraints(base: Any, constraints: list[Any], expected: str) -> Check:
    # Over Any, pydantic hands the same object on; a scalar it must know to apply patterns and bounds,
    # a union to leave None alone.
    known = base in _SCALARS or get_origin(base) in (Union, UnionType)
    parts: Any = (base if known else Any, *constraints)
    validate = pydantic_check(Annotated[parts], expected)
    builds = any(type(each).__module__ != annotated_types.__name__ for each in constraints)
    compares = any(isinstance(each, _BOUNDS) for each in constraints)

    def check(value: Any, walk: Walk) -> Any:
        if compares and _compares_itself(bare_scalar(value)):
            raise Mismatch.of(f"{expected} of a class without comparisons of its own", value)
        number = None if builds else numpy_number(value)
        result = validate(bare(value) if number is None else number, walk)
        return result if builds else value

    return check


_BOUNDS = (
    annotated_types.Gt,
    annotated_types.Ge,
    annotated_types.Lt,
    annotated_types.Le,
    annotated_types.MultipleOf,
)
_COMPARISONS = {"__gt__", "__ge__", "__lt__", "__le__", "__mod__"}


def _compares_itself(value: Any) -> bool:
    """Tell whether a guest wrote how a value compares: it would be asked whether it is within its bounds."""
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
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(annotation, config=ConfigDict(arbitrary_types_allowed=True))
    except (PydanticSchemaGenerationError, PydanticUserError, TypeError, RuntimeError) as error:
        told = str(error).partition("\n")[0]
        raise DefinitionError(f"{expected.removeprefix('expected ')} cannot be checked: {told}") from error

    def check(value: Any, walk: Walk) -> Any:
        try:
            result = adapter.validate_python(value, strict=True)
        except ValidationError as error:
            raise from_pydantic(error) from error
        except TypeError as error:  # A bound meets a value it cannot be compared with.
            raise Mismatch.of(f"{expected} ({error})", value) from error
        same = type(result) is type(value) and type(value) in _SCALARS and result == value
        return value if same else result

    return check


def _all_of(checks: list[Check]) -> Check:
    def check(value: Any, walk: Walk) -> Any:
        for each in checks:
            value = each(value, walk)
        return value

    return check
