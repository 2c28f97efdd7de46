"""The fields of models, dataclasses, TypedDicts and NamedTuples, read from their classes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typing_extensions
from pydantic import AliasChoices, BaseModel
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError

from agex.contract.annotations import Scope, Unresolved, describe, strip
from agex.contract.constraints import has_validators
from agex.contract.records import UNSET, Field
from agex.contract.scalars import anything
from agex.contract.walk import Check
from agex.errors import DefinitionError

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

__all__ = ["of_dataclass", "of_model", "of_named_tuple", "of_typed_dict", "reads_dicts_itself"]

CheckFor: TypeAlias = Callable[[Any], Check]
"""Makes the check of an annotation, in the scope of the class that is read."""


def of_dataclass(cls: Any, scope: Scope, check_for: CheckFor) -> dict[str, Field]:
    """Read a dataclass, pydantic's own kind included."""
    hints = _hints(cls, scope)
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
    hints = _hints(cls, scope)
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
    for name, hint in _hints(cls, scope).items():
        annotation, qualifiers = strip(hint)
        required = name in cls.__required_keys__
        # With PEP 563 the class itself does not know the qualifiers, they were still strings.
        if typing_extensions.Required in qualifiers or typing_extensions.NotRequired in qualifiers:
            required = typing_extensions.Required in qualifiers
        found[name] = Field(
            check=check_for(annotation), expected=describe(annotation), required=required, keys=(name,)
        )
    return found


def of_model(cls: type[BaseModel], scope: Scope, check_for: CheckFor) -> dict[str, Field]:
    """Read a pydantic model. A field with validators of its own is left to them."""
    _complete(cls, scope)
    validated = _validated_names(cls)
    found = {}
    for name, info in cls.model_fields.items():
        own = name in validated or "*" in validated or has_validators(info.metadata)
        found[name] = Field(
            check=anything if own else check_for(_annotation(info)),
            expected=describe(info.annotation),
            required=info.is_required(),
            keys=_keys(name, info, cls),
            default=info.default,
        )
    return found


def reads_dicts_itself(cls: type[BaseModel]) -> bool:
    """Tell whether a model has validators that see a dict before its fields do."""
    return any(each.info.mode != "after" for each in cls.__pydantic_decorators__.model_validators.values())


def _annotation(info: FieldInfo) -> Any:
    parts: Any = (info.annotation, *info.metadata)
    return Annotated[parts] if info.metadata else info.annotation


def _validated_names(cls: type[BaseModel]) -> set[str]:
    decorators = cls.__pydantic_decorators__
    both: tuple[Any, ...] = (*decorators.field_validators.values(), *decorators.validators.values())
    return {name for each in both for name in each.info.fields}


def _keys(name: str, info: FieldInfo, cls: type[BaseModel]) -> tuple[str, ...]:
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


def _hints(cls: type, scope: Scope) -> dict[str, Any]:
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
