"""The fields of models, dataclasses, TypedDicts and NamedTuples, read from their classes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias, TypeVar

import typing_extensions
from pydantic import AliasChoices, BaseModel
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError

from agex.contract.annotations import Scope, Unresolved, describe, strip
from agex.contract.constraints import mode_of, split_validators
from agex.contract.records import UNSET, Field, validated_again
from agex.contract.scalars import anything
from agex.contract.unions import union_check
from agex.contract.walk import Check
from agex.errors import DefinitionError

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

__all__ = [
    "dict_keys",
    "field_hints",
    "of_dataclass",
    "of_model",
    "of_named_tuple",
    "of_typed_dict",
    "reads_dicts_itself",
]

CheckFor: TypeAlias = Callable[[Any], Check]
"""Makes the check of an annotation, in the scope of the class that is read."""


def of_dataclass(cls: Any, scope: Scope, check_for: CheckFor) -> dict[str, Field]:
    """Read a dataclass, pydantic's own kind included."""
    hints = field_hints(cls, scope)
    return {
        each.name: Field(
            check=check_for(hints[each.name]),
            expected=describe(hints[each.name]),
            required=each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING,
            keys=(each.name,) if each.init else (),
            default=UNSET if each.default is dataclasses.MISSING else each.default,
        )
        for each in dataclasses.fields(cls)
    }


def of_named_tuple(cls: Any, scope: Scope, check_for: CheckFor) -> dict[str, Field]:
    """Read a NamedTuple; one without annotations takes anything in its fields."""
    hints = field_hints(cls, scope)
    return {
        name: Field(
            check=check_for(hints.get(name, Any)),
            expected=describe(hints.get(name, Any)),
            required=name not in cls._field_defaults,
            keys=(name,),
        )
        for name in cls._fields
    }


def of_typed_dict(cls: Any, scope: Scope, check_for: CheckFor) -> dict[str, Field]:
    """Read a TypedDict."""
    found = {}
    for name, hint in field_hints(cls, scope).items():
        annotation, qualifiers = strip(hint)
        required = name in cls.__required_keys__
        # With PEP 563 the class itself does not know the qualifiers, they were still strings.
        if typing_extensions.Required in qualifiers or typing_extensions.NotRequired in qualifiers:
            required = typing_extensions.Required in qualifiers
        found[name] = Field(
            check=check_for(annotation), expected=describe(annotation), required=required, keys=(name,)
        )
    return found


class _Validator(NamedTuple):
    """One validator of a model's field."""

    function: Any
    mode: str
    """``before`` the type's own check, ``after`` it, around (``wrap``) or instead of it (``plain``)."""
    is_decorated: bool
    """Whether it is a ``field_validator``, not part of the annotation."""

    @property
    def keeps_type(self) -> bool:
        """Whether the field has its annotation's type after it, if the validator says no other."""
        return self.mode == "before" or (self.mode == "after" and self.is_decorated)


def of_model(cls: type[BaseModel], scope: Scope, check_for: CheckFor) -> dict[str, Field]:
    """Read a pydantic model. A dict's value for a ``field_validator`` is left to the validator."""
    _complete(cls, scope)
    decorated = _decorated(cls)
    found = {}
    for name, info in cls.model_fields.items():
        annotated, metadata = split_validators(info.metadata)
        parts: Any = (info.annotation, *metadata)
        annotation = Annotated[parts] if metadata else info.annotation
        own = [_Validator(each.func, mode_of(each) or "", False) for each in annotated]
        own += [*decorated.get(name, ()), *decorated.get("*", ())]
        found[name] = Field(
            check=_given_check(info, name in decorated or "*" in decorated, check_for),
            expected=describe(info.annotation),
            required=info.is_required(),
            keys=dict_keys(name, info, cls),
            default=info.default,
            held=_held_check(info.annotation, annotation, own, check_for) if own else None,
            validate=validated_again(cls, name) if _validates_again(cls, info.annotation, own) else None,
        )
    return found


def _given_check(info: FieldInfo, is_decorated: bool, check_for: CheckFor) -> Check:
    """Make the check of a dict's value for a field, the validators in its annotation included."""
    if is_decorated:
        return anything
    parts: Any = (info.annotation, *info.metadata)
    try:
        return check_for(Annotated[parts] if info.metadata else info.annotation)
    except Unresolved:
        raise
    except DefinitionError:
        if not any(map(mode_of, info.metadata)):
            raise
        return anything  # what cannot be checked here is for its validators alone


def _held_check(base: Any, annotation: Any, own: list[_Validator], check_for: CheckFor) -> Check:
    """Make the check of a field of an instance, as its validators may have left it.

    A ``field_validator`` that follows the type keeps to it, unless it says that it returns another one.
    Of the other kinds, one that does not say what it returns may return anything.
    """
    annotations = [annotation]
    for each in own:
        returned = UNSET if each.mode == "before" else _returned(each.function)
        if returned is not UNSET and returned != base:
            annotations.append(returned)
        elif returned is UNSET and not each.keeps_type:
            return anything
    try:
        checks = [*map(check_for, annotations)]
    except DefinitionError:  # what cannot be checked here is for its validators alone
        return anything
    return checks[0] if len(checks) == 1 else union_check(frozenset(), checks, f"expected {describe(base)}")


def _returned(function: Any) -> Any:
    """Return the type that a function says it returns; ``UNSET`` where it says nothing."""
    if isinstance(function, type):
        return function
    try:
        hints = typing_extensions.get_type_hints(getattr(function, "__func__", function), include_extras=True)
    except (NameError, TypeError, SyntaxError, AttributeError):  # names of another place, or no function
        return UNSET
    returned = hints.get("return", UNSET)
    return UNSET if returned in (Any, object) or isinstance(returned, TypeVar) else returned


def _validates_again(cls: type[BaseModel], base: Any, own: list[_Validator]) -> bool:
    """Return whether the validators of a field can look once more at what they let through.

    Those that follow the type and keep to it can. Others read what is to become a value of the field,
    which is no longer there; and to a frozen model nothing can be assigned.
    """
    if not own or reads_dicts_itself(cls) or cls.model_config.get("frozen"):
        return False
    return all(
        each.mode == "after" and each.is_decorated and _returned(each.function) in (UNSET, base)
        for each in own
    )


def reads_dicts_itself(cls: type[BaseModel]) -> bool:
    """Return whether a model has validators that see a dict before its fields do."""
    return any(each.info.mode != "after" for each in cls.__pydantic_decorators__.model_validators.values())


def _decorated(cls: type[BaseModel]) -> dict[str, list[_Validator]]:
    """Return the validators in the body of a model by the fields they are for; ``*`` for every field."""
    decorators = cls.__pydantic_decorators__
    both: tuple[Any, ...] = (*decorators.field_validators.values(), *decorators.validators.values())
    found: dict[str, list[_Validator]] = {}
    for each in both:
        for name in each.info.fields:
            found.setdefault(name, []).append(_Validator(each.func, each.info.mode, True))
    return found


def dict_keys(name: str, info: FieldInfo, cls: type[BaseModel]) -> tuple[str, ...]:
    """Return the keys a field may have in a dict; a path into the dict is pydantic's to follow."""
    alias = info.validation_alias
    if alias is None:
        return (name,)
    choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
    by_name = cls.model_config.get("populate_by_name") or cls.model_config.get("validate_by_name")
    return (*(each for each in choices if isinstance(each, str)), *((name,) if by_name else ()))


def _complete(cls: type[BaseModel], scope: Scope) -> None:
    """Let pydantic resolve what it could not when the class was made."""
    if cls.__pydantic_complete__:
        return
    try:
        cls.model_rebuild(_types_namespace={**scope.globals, **scope.locals})
    except PydanticUndefinedAnnotation as error:
        raise Unresolved(f"a field of {cls.__name__} cannot be resolved: {error.message}") from error
    except PydanticUserError as error:
        raise DefinitionError(f"the model {cls.__name__} is not usable: {error.message}") from error


def field_hints(cls: type, scope: Scope) -> dict[str, Any]:
    """Resolve the annotations of a class, inherited ones included."""
    parameters = {p.__name__: p for p in getattr(cls, "__type_params__", ())}
    local = scope.locals if "<locals>" in cls.__qualname__ else {}
    names = {**parameters, **local, cls.__name__: cls}
    try:
        return typing_extensions.get_type_hints(cls, localns=names, include_extras=True)
    except NameError as error:
        raise Unresolved(f"a field of {cls.__name__} cannot be resolved: {error}") from error
    except (TypeError, SyntaxError, AttributeError) as error:
        raise DefinitionError(f"the fields of {cls.__name__} are not valid: {error}") from error
