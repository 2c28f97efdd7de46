"""Checks of values with named parts: models, dataclasses, TypedDict, NamedTuple."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel, RootModel, ValidationError

from agex.contract.mismatch import Mismatch, Tally, attribute, item
from agex.contract.plain_values import bare, copied_as
from agex.contract.preview import short_repr
from agex.contract.real_types import class_name, is_subclass, real_attribute, real_items
from agex.contract.walk import Check, Walk, once

__all__ = [
    "NESTED",
    "UNSET",
    "Field",
    "from_pydantic",
    "named_tuple_check",
    "record_check",
    "root_model_check",
    "typed_dict_check",
    "unchanged_check",
    "validated_again",
]


NESTED = "agex_contract"
"""The type of pydantic's error that carries a mismatch of ours, with its own paths."""
UNSET: Any = object()
"""Stands for no default."""


@dataclass(frozen=True, kw_only=True)
class Field:
    """One named part."""

    check: Check
    expected: str
    required: bool = True
    keys: tuple[str, ...] = ()
    """The keys it may have in a dict, aliases included; empty: it cannot be given."""
    default: Any = UNSET
    """Its default, which is never checked: ``x: int = None`` is the author's own business."""
    held: Check | None = None
    """The check of what an instance holds, where what a dict gives is left to validators first."""
    validate: Callable[[Any, Any], None] | None = None
    """Runs the validators that follow the type on an instance and what it holds there; raises `Mismatch`."""


def record_check(
    cls: type,
    fields: Mapping[str, Field],
    build: Callable[[dict[str, Any]], Any],
    *,
    extra: bool,
    prechecked: bool = True,
    validates: bool = False,
) -> Check:
    """Make the check of a dataclass or a model: its fields, at full depth; a dict is built.

    Args:
        cls: the class.
        fields: its fields.
        build: makes an instance of a dict of checked values.
        extra: whether a dict may have keys that are no fields (*build* then decides).
        prechecked: whether a dict's values are checked before *build* sees them.
        validates: whether the class runs the validators of its fields itself.
    """
    expected = f"expected {cls.__name__}"
    # Validators made these of what the dict gave, so nothing has checked them yet.
    made = {name: field for name, field in fields.items() if field.held is not None or not prechecked}
    unchecked = {name: replace(field, validate=None) for name, field in made.items()}

    def check(value: Any, walk: Walk) -> Any:
        if is_subclass(type(value), cls):
            return _checked_instance(value, cls, fields, walk.judging() if validates else walk)
        if not is_subclass(type(value), dict):
            raise Mismatch.of(expected, value)
        within = walk.building().judging() if validates else walk.building().applying()
        given = _checked_keys(value, fields, within, expected, extra=extra) if prechecked else value
        built = _built(lambda: build(given), expected)
        is_made = unchecked and is_subclass(type(built), cls)
        return _checked_instance(built, cls, unchecked, within) if is_made else built

    return once(check)


def _checked_instance(value: Any, cls: type, fields: Mapping[str, Field], walk: Walk) -> Any:
    tally = Tally()
    news: dict[str, Any] = {}
    # This is a host class; only a subclass can have hooks written by guest code.
    read = getattr if type(value) is cls else real_attribute
    for name, field in fields.items():
        try:
            old = read(value, name)
            new = old if old is field.default else _held(field, value, old, walk)
        except AttributeError:
            tally.note(f"expected {field.expected}, found no value", path=attribute(name))
        except Mismatch as mismatch:
            tally.add(mismatch, attribute(name))
        else:
            if new is not old:
                news[name] = new
    tally.settle()
    return _replaced(value, cls, news) if news else value


def _held(field: Field, instance: Any, value: Any, walk: Walk) -> Any:
    """Check a field of an instance. Its value may have been set past every validator."""
    checked = (field.held or field.check)(value, walk)
    if field.validate is not None:
        field.validate(instance, checked)
    return checked


def validated_again(cls: type[BaseModel], name: str) -> Callable[[Any, Any], None]:
    """Return a function that runs a model's own validators of a field on an instance's value.

    It works on a copy, because pydantic validates an assignment; the validators' result is dropped.
    """
    expected = f"expected {cls.__name__}"

    def validate(instance: Any, value: Any) -> None:
        copied = copied_as(cls, instance)
        _built(
            lambda: cls.__pydantic_validator__.validate_assignment(copied, name, bare(value)), expected, name
        )

    return validate


def _replaced(value: Any, cls: Any, news: dict[str, Any]) -> Any:
    expected = f"expected {cls.__name__} whose fields already fit"
    if type(value) is not cls:
        raise Mismatch.of(expected, value)
    if dataclasses.is_dataclass(cls):
        return _built(lambda: dataclasses.replace(value, **news), expected)
    return _built(lambda: value.model_copy(update=news), expected)


def _checked_keys(
    value: Any, fields: Mapping[str, Field], walk: Walk, expected: str, *, extra: bool
) -> dict[str, Any]:
    """Check the items of a dict against the fields; return them with what had to be built."""
    by_key = {key: (name, field) for name, field in fields.items() for key in field.keys}
    items = real_items(value)
    known = [by_key.get(key) if type(key) is str else None for key, _ in items]
    unknown = [pair for pair, field in zip(items, known, strict=True) if field is None]
    found = {field[0] for field in known if field is not None}
    missing = [field for name, field in fields.items() if field.required and field.keys and name not in found]
    tally = Tally()
    if missing or (unknown and not extra):
        tally.note(f"{expected}, {_wrong_keys(missing, unknown)}")
    given = dict(items)
    for (key, old), field in zip(items, known, strict=True):
        if field is not None:
            try:
                given[key] = field[1].check(old, walk)
            except Mismatch as mismatch:
                tally.add(mismatch, item(key))
    tally.settle()
    return given


_MOST_KEYS = 20
"""Keys named in one message, missing or unexpected."""


def _wrong_keys(missing: Sequence[Field], unknown: Sequence[tuple[Any, Any]]) -> str:
    """Return which keys are missing and which are unexpected, with their types: a typo is seen at once."""
    lacks = [f"{field.keys[0]!r} ({field.expected})" for field in missing[:_MOST_KEYS]]
    has = [f"{short_repr(key, 40)} ({class_name(type(each))})" for key, each in unknown[:_MOST_KEYS]]
    parts = [(f"missing: {', '.join(lacks)}", lacks), (f"unexpected: {', '.join(has)}", has)]
    return "; ".join(text for text, keys in parts if keys)


def _built(build: Callable[[], Any], expected: str, within: str = "") -> Any:
    """Call the host class's constructor; its validation errors, of the field *within*, are mismatches."""
    try:
        return build()
    except ValidationError as error:
        raise from_pydantic(error, within) from error
    except Exception as error:  # the constructor refuses these values
        raise Mismatch.of(f"{expected}, but building it raised {type(error).__name__}: {error}") from error


def from_pydantic(error: ValidationError, within: str = "") -> Mismatch:
    """Turn pydantic's errors into ours, their paths from the field *within* on."""
    tally = Tally()
    for each in error.errors(include_url=False):
        steps = each["loc"][1:] if within and each["loc"][:1] == (within,) else each["loc"]
        path = "".join(map(item, steps))
        context = each.get("ctx", {})
        if each["type"] == NESTED:
            tally.add(context["mismatch"], path)
        elif each["type"] in _LENGTHS and is_subclass(type(each["input"]), str):
            tally.note(_length_told(each["input"], context), path=path)
        else:
            tally.note(_lowered(each["msg"]), each["input"], path)
    return Mismatch(tally.problems, tally.count)


_LENGTHS = ("string_too_short", "string_too_long")


def _length_told(text: str, context: Mapping[str, Any]) -> str:
    """Say which length is due. Text may have been counted without the space around it."""
    least, most = context.get("min_length"), context.get("max_length")
    due = f"expected length {f'<= {most}' if least is None else f'>= {least}'}"
    length = str.__len__(text)
    if (least is None or length >= least) and (most is None or length <= most):
        return f"{due} without the space around it"
    return f"{due}, got length {length}"


def _lowered(message: str) -> str:
    return message[:1].lower() + message[1:] if message[1:2].islower() else message


def typed_dict_check(fields: Mapping[str, Field], expected: str) -> Check:
    """Make the check of a TypedDict: a dict with its keys and no others."""

    def check(value: Any, walk: Walk) -> Any:
        if not is_subclass(type(value), dict):
            raise Mismatch.of(expected, value)
        given = _checked_keys(value, fields, walk, expected, extra=False)
        return value if all(old is given[key] for key, old in real_items(value)) else given

    return once(check)


def named_tuple_check(cls: type, fields: Mapping[str, Field], expected: str) -> Check:
    """Make the check of a NamedTuple: an instance of it; a dict is built, a plain tuple is not."""

    def check(value: Any, walk: Walk) -> Any:
        if is_subclass(type(value), dict):
            given = _checked_keys(value, fields, walk.building(), expected, extra=False)
            return _built(lambda: cls(**given), expected)
        if not is_subclass(type(value), cls):
            raise Mismatch.of(expected, value)
        old = dict(zip(fields, tuple.__iter__(value), strict=False))
        if len(old) != len(fields) or tuple.__len__(value) != len(fields):
            raise Mismatch.of(f"{expected} of {len(fields)} fields", value)
        new = _named(old, fields, walk)
        return value if all(old[n] is new[n] for n in fields) else _built(lambda: cls(**new), expected)

    return once(check)


def _named(old: Mapping[str, Any], fields: Mapping[str, Field], walk: Walk) -> dict[str, Any]:
    tally = Tally()
    new: dict[str, Any] = {}
    for name, value in old.items():
        try:
            new[name] = fields[name].check(value, walk)
        except Mismatch as mismatch:
            tally.add(mismatch, attribute(name))
    tally.settle()
    return new


def root_model_check(cls: type[RootModel[Any]], root: Field) -> Check:
    """Make the check of a RootModel: an instance, or a value that fits its root, which is built."""
    of_instance = record_check(cls, {"root": root}, cls.model_validate, extra=True, validates=True)

    def check(value: Any, walk: Walk) -> Any:
        if is_subclass(type(value), cls):
            return of_instance(value, walk)
        fitting = root.check(value, walk.judging())
        return _built(lambda: cls(fitting), f"expected {cls.__name__}")

    return once(check)


def unchanged_check(checks: Sequence[Check], expected: str) -> Check:
    """Make a check that all of *checks* let the value through as it is: it cannot be built anew."""

    def check(value: Any, walk: Walk) -> Any:
        if any(each(value, walk) is not value for each in checks):
            raise Mismatch.of(f"{expected} whose elements already fit", value)
        return value

    return check
