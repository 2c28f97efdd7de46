"""Policy of pydantic, whose compiled code reads attributes of any object by name."""

from __future__ import annotations

import functools
import importlib
import types
from collections.abc import Callable, Iterable
from typing import Any

from agex._interpreter.type_slots import module_of, mro_of, name_of, namespace_of
from agex.errors import SandboxError, SandboxTypeError, StateCorrupt
from agex.sandbox.classes.errors import check_keywords
from agex.sandbox.patches.replacement import replace, replace_everywhere
from agex.sandbox.policy.library import ClassRules, Guard, Library, homes, less, only
from agex.sandbox.rules import names as ledger
from agex.sandbox.rules.code_flags import CO_OPTIMIZED
from agex.sandbox.runtime import provenance
from agex.sandbox.runtime.context import asking, frames_of
from agex.sandbox.runtime.scopes import own_names

__all__ = ["LIBRARIES", "check_config", "is_model", "makers"]

_READS = "from_attributes"

_MAKERS = (
    "construct", "copy", "from_orm", "model_construct", "model_copy", "model_validate", "model_validate_json",
    "model_validate_strings", "parse_obj", "parse_raw", "validate",
)  # fmt: skip
"""The members of all models that make other models."""


def is_model(class_: type) -> bool:
    """Return whether objects of *class_* are pydantic models."""
    return ("pydantic", "BaseModel") in homes(class_)


def makers(class_: type) -> tuple[str, ...]:
    """Return the members by which a model makes others, except those that it overrides."""
    parts = [namespace_of(part) for part in mro_of(class_) if module_of(part) == "pydantic.main"]
    found = {name: part[name] for part in parts for name in _MAKERS if name in part}
    spaces = [namespace_of(part) for part in mro_of(class_)]
    return tuple(n for n in found if next(space[n] for space in spaces if n in space) is found[n])


def check_config(
    namespace: dict[str, Any], class_name: Any, bases: Iterable[Any], said: dict[str, Any]
) -> None:
    """Refuse a guest model made of attributes: its fields name the attributes to read, of any object."""
    models = [base for base in bases if isinstance(base, type) and is_model(base)]
    if not models:
        return
    own: Any = dict.get(namespace, "model_config", {})
    check_keywords(said)
    is_plain = type(own) is dict and all(type(name) is str for name in own)
    if not is_plain or dict.__contains__(namespace, "Config"):
        raise SandboxTypeError(f"class {class_name} needs a model_config that is a plain dict")
    inherited: list[Any] = [getattr(base, "model_config", {}) for base in reversed(models)]
    found: dict[str, Any] = {}
    for config in (*inherited, own, said):
        found |= config
    if found.get(_READS):
        raise SandboxTypeError(
            f"class {class_name} cannot be made of attributes; "
            "say model_config = {'from_attributes': False} and pass values by name"
        )


def _is_config(class_: type, name: str) -> bool:
    return name == "model_config" and is_model(class_)  # pydantic may build the model later


def _check_stored_config(class_: type, config: Any) -> None:
    is_plain = type(config) is dict and all(type(name) is str for name in config)
    if not is_plain or (config.get(_READS) is not None and config.get(_READS) is not False):
        raise StateCorrupt(f"the stored settings of {name_of(class_)} are none that its code may say")


def _subject(real: Any) -> Any:
    """Return the object to which a method is bound."""
    return real.args[0] if isinstance(real, functools.partial) else getattr(real, "__self__", None)


def _class_of(subject: Any) -> type:
    return subject if isinstance(subject, type) else type(subject)


def _validate(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    if kwargs.get(_READS):
        class_ = _class_of(_subject(real))
        # A generic model may have a guest class as its parameter.
        generic: Any = getattr(class_, "__pydantic_generic_metadata__", {})
        if provenance.is_guest_class(class_) or generic.get("args"):
            raise SandboxError(f"{real.__name__}() reads no attributes here; pass values by name")
    return real(*args, **kwargs)


def _rebuild(real: Callable[..., Any], *args: Any, force: bool = False, raise_errors: bool = True) -> Any:
    if args:
        raise TypeError("model_rebuild() takes keywords only")
    # A text in a host model must not find a guest class by its name.
    names: dict[str, Any] | None = None if provenance.is_guest_class(_class_of(_subject(real))) else {}
    return real(force=force, raise_errors=raise_errors, _types_namespace=names)


def _begin(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    if not provenance.is_guest_class(type(_subject(real))):
        raise SandboxError(f"{real.__name__}() is called when a model is made, and not again")
    return real(*args, **kwargs)


def _copy(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    update = kwargs.get("update")
    class_ = type(_subject(real))
    if update and not provenance.is_guest_class(class_):
        if type(update) is not dict:
            raise SandboxTypeError("update must be a plain dict")
        for name in update:
            if type(name) is not str or name.startswith("_") or _is_hidden(class_, name):
                raise SandboxError(f"update cannot say {name!r}, which is no field of {class_.__name__}")
    return real(*args, **kwargs)


def _is_hidden(class_: type, name: str) -> bool:
    """Return whether a value under *name* would hide a member of the class."""
    return any(name in namespace_of(part) for part in mro_of(class_))


def _dump(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    _check_shown(_subject(real), set())
    return real(*args, **kwargs)


def _described(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    check_keywords(kwargs)
    if len(args) > 2 or "schema_generator" in kwargs:  # it could rewrite the instructions of compiled code
        raise SandboxError(f"{real.__name__}() takes no schema_generator here; change the dict that it gives")
    return real(*args, **kwargs)


_FIELDS = "__dataclass_fields__"
_FLAT = (str, int, float, bool, bytes, type(None))


def _check_shown(value: Any, seen: set[int]) -> None:
    """Refuse to dump an object with private fields: the private fields of a dataclass are dumped as well."""
    class_ = type(value)
    if class_ in _FLAT or id(value) in seen:
        return
    seen.add(id(value))
    inner: list[Any] = []
    if issubclass(class_, (list, tuple, set, frozenset)):
        inner += value
    elif issubclass(class_, dict):
        inner += dict.values(value)
    elif is_model(class_):
        inner += [*vars(value).values(), *(getattr(value, "__pydantic_extra__", None) or {}).values()]
    elif any(_FIELDS in namespace_of(part) for part in mro_of(class_)):
        hosts = [namespace_of(part) for part in mro_of(class_) if not provenance.is_guest_class(part)]
        for name in value.__dataclass_fields__:
            if ledger.is_private(name) and any(name in space.get(_FIELDS, ()) for space in hosts):
                raise SandboxError(
                    f"{class_.__name__} has private fields, which would be written out; leave it out"
                )
            inner.append(getattr(value, name, None))
    for each in inner:
        _check_shown(each, seen)


def _plain_call(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    if "config" in kwargs:
        raise SandboxError("validate_call() takes no config here")
    return real(*args, **kwargs)


_GUARDED: dict[str, Guard] = {
    "BaseModel.model_validate": _validate,
    "BaseModel.model_rebuild": _rebuild,
    "BaseModel.model_post_init": _begin,
    "BaseModel.model_copy": _copy,
    "BaseModel.model_json_schema": _described,
    **dict.fromkeys(("BaseModel.model_dump", "BaseModel.model_dump_json"), _dump),
    **dict.fromkeys(("BaseModel.dict", "BaseModel.json"), _dump),
}


def _prepare() -> None:
    """Check annotations of guest models, and look up the names in their texts as in the guest's module."""
    replace_everywhere("pydantic._internal._namespace_utils", "get_module_ns_of", _home)
    replace_everywhere("pydantic._internal._typing_extra", "parent_frame_namespace", _around)
    made: Any = importlib.import_module("pydantic._internal._generate_schema")
    replace(made.GenerateSchema, "_generate_schema_inner", _of_types)


def _of_types(real: Any) -> Any:
    """Refuse a dict as an annotation: it counts as a core schema, by which any attribute is read."""

    def inner(self: Any, obj: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(obj, dict):
            made = self.model_type_stack.get()
            if asking() is not None or (made is not None and provenance.is_guest_class(made)):
                raise SandboxTypeError("a dict is no annotation; write dict[str, int], or a class of its own")
        return real(self, obj, *args, **kwargs)

    return inner


def _home(real: Any) -> Any:
    def found(obj: Any) -> Any:
        guards, function = asking(), _function(obj)
        if guards is None:
            return real(obj)
        if type(function) is types.FunctionType and provenance.session_of(function) is not None:
            return function.__globals__
        if not issubclass(type(obj), type) or not guards.classes.is_guest(obj):
            return real(obj)
        statement = provenance.statement_of(obj)
        if statement is not None:
            return statement.body.__globals__
        frame = next(frames_of(guards), None)  # the frame that defines the class
        return real(obj) if frame is None else frame.f_globals

    return found


def _function(obj: Any) -> Any:
    """Return the function behind a method or a partial."""
    while type(obj) is types.MethodType or isinstance(obj, functools.partial):
        obj = obj.func if isinstance(obj, functools.partial) else obj.__func__
    return obj


def _around(real: Any) -> Any:
    def found(*, parent_depth: int = 2, force: bool = False) -> Any:
        guards = asking()
        if guards is None:
            return real(parent_depth=parent_depth + 1, force=force)
        frame = next(frames_of(guards), None)
        is_function = frame is not None and frame.f_code.co_flags & CO_OPTIMIZED
        return own_names(frame.f_locals) if frame is not None and is_function else None

    return found


LIBRARIES = {
    "pydantic": Library(
        name="pydantic",
        # import by name; check paths of this machine; name attributes to read of any object; define core
        # schemas themselves; other packages
        modules={
            "": less(
                "ImportString PyObject FilePath DirectoryPath NewPath SocketPath",
                "GetPydanticSchema Get*SchemaHandler",
                "TypeAdapter create_model with_config parse_obj_as schema_of schema_json_of",
                "dataclasses v1 plugin mypy experimental deprecated *_",
            ),
            "alias_generators": only("to_camel to_pascal to_snake"),
        },
        functions={"": {"validate_call": _plain_call}},
        denied=frozenset({"BaseModel.update_forward_refs", "BaseModel.parse_file", "FieldInfo.asdict"}),
        guarded=_GUARDED,
        # Host classes hold these for themselves.
        copied=frozenset(
            {
                "BaseModel.model_config", "BaseModel.model_fields", "BaseModel.model_computed_fields",
                "FieldInfo.metadata", "FieldInfo.json_schema_extra", "FieldInfo.examples",
                "FieldInfo.default",
            }
        ),
        writable=None,
        classes=ClassRules(
            makers=makers,
            is_settings=_is_config,
            check_statement=check_config,
            check_stored=_check_stored_config,
        ),
        prepare=_prepare,
    )
}  # fmt: skip
