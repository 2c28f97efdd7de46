"""Definitions of the classes that a signature names, written out for the model.

A definition is what a reader of the class would want: its fields with types, defaults and constraints, its
members, the signatures of its public methods and the first line of its docstring. Nothing of a class is
called: only its annotations, its defaults and the signatures of its functions are read.
"""

from __future__ import annotations

import dataclasses
import inspect
import keyword
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, Literal, TypeAlias, Union

import typing_extensions
from pydantic import BaseModel, RootModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from agex._interpreter.type_slots import module_of, mro_of, namespace_of
from agex.contract.annotation_names import is_record
from agex.contract.annotations import Scope, describe, strip
from agex.contract.fields import dict_keys, field_hints
from agex.contract.frame_schemas import (
    SchemaCheck,
    is_frame_model,
    is_schema,
    named_schema,
    schema_text,
    schemas_in,
)
from agex.contract.preview import short_repr
from agex.contract.signature import TaskSignature
from agex.errors import DefinitionError
from agex.escaping import line

__all__ = [
    "class_definition",
    "class_head",
    "class_methods",
    "columns_text",
    "definitions",
    "function_records",
    "named_records",
    "own_doc",
    "schemas",
    "signature_classes",
]

DEFINITION_CHARS = 3_000
"""Of the prompt, for all definitions of a signature together: about 800 tokens."""
DOC_CHARS = 160
DEFAULT_CHARS = 40
MOST_CLASSES = 60
"""Followed from one signature; what is deeper is found with ``help``."""
MOST_METHODS = 12
"""Methods of a class that are listed, before the rest is counted."""
MOST_MEMBERS = 24
"""Members of an enum that are listed, before the rest is counted."""

Shows: TypeAlias = Callable[[str], bool]
"""Whether a member of a class is shown, by its name."""


# -- which classes a signature names -----------------------------------------------------------


def signature_classes(signature: TaskSignature) -> list[type]:
    """Return the classes that the annotations of a signature lead to, those of the result first.

    Raises:
        DefinitionError: an annotation cannot be resolved.
    """
    owners = ("return", *signature.parameters)
    return _reached((signature.checker(name).annotation for name in owners), signature.scope)


def named_records(annotation: Any, scope: Scope) -> dict[str, Any]:
    """Return the classes that hold data to which a resolved annotation leads, by the names they have in code.

    Of two classes with one name the nearer one is there.
    """
    found: dict[str, Any] = {}
    for cls in _reached([annotation], scope):
        if is_record(cls) and cls.__name__.isidentifier():
            found.setdefault(cls.__name__, cls)
    return found


def function_records(functions: Iterable[Any]) -> list[type]:
    """Return the classes of data that the signatures of host functions lead to, each but once.

    Annotations that are still text are left out: nothing is evaluated.
    """
    named: list[Any] = []
    for function in functions:
        try:
            signature = inspect.signature(function, follow_wrapped=False)
        except (TypeError, ValueError):  # a builtin need not have one
            continue
        written = [signature.return_annotation, *(each.annotation for each in signature.parameters.values())]
        named += [each for each in written if each is not signature.empty and not isinstance(each, str)]
    return [cls for cls in _reached(named, Scope()) if is_record(cls)]


def _reached(annotations: Iterable[Any], scope: Scope) -> list[type]:
    """Return the classes of annotations, then those of their fields, and so on; each but once."""
    found: dict[type, None] = {}
    level = [cls for annotation in annotations for cls in _classes_in(annotation, scope)]
    while level and len(found) < MOST_CLASSES:
        below: list[type] = []
        for cls in level:
            if cls not in found:
                found[cls] = None
                inner = scope.of_class(cls)
                below += [each for hint in _field_hints(cls, scope) for each in _classes_in(hint, inner)]
        level = below
    return list(found)[:MOST_CLASSES]


def _field_hints(cls: type, scope: Scope) -> list[Any]:
    """Return the types of the fields of a class that holds data."""
    if issubclass(cls, BaseModel):
        return [info.annotation for info in cls.model_fields.values()]
    if issubclass(cls, Enum) or not is_record(cls):
        return []
    try:
        return list(field_hints(cls, scope.of_class(cls)).values())
    except DefinitionError:  # the checker has said so, or has no use for it
        return []


def _classes_in(annotation: Any, scope: Scope) -> Iterator[type]:
    """Yield the classes in an annotation that have a definition to show."""
    rest = [annotation]
    seen: set[int] = set()
    while rest:
        each = rest.pop(0)
        try:
            each = strip(scope.resolve(each))[0]
        except DefinitionError:  # the checker has said so, or has no use for it
            continue
        if id(each) in seen:  # an alias may contain itself
            continue
        seen.add(id(each))
        if isinstance(each, typing.NewType):
            rest.insert(0, each.__supertype__)
            continue
        if isinstance(each, _ALIASES):
            rest.insert(0, each.__value__)
            continue
        if isinstance(each, list | tuple):
            rest[:0] = each
            continue
        origin, args = typing_extensions.get_origin(each), typing_extensions.get_args(each)
        cls = each if origin is None else origin
        if origin is Literal or origin is typing_extensions.Literal:
            continue
        if origin is typing.Annotated:
            args = args[:1]
        if is_frame_model(cls):  # its columns are told beside the classes
            continue
        if isinstance(cls, type) and cls not in (Union, types.UnionType) and _is_defined(cls):
            yield cls
        rest[:0] = args


_ALIAS = typing_extensions.TypeAliasType
_ALIASES = (_ALIAS, getattr(typing, "TypeAliasType", _ALIAS))


def _is_defined(cls: type) -> bool:
    """Return whether a class is the user's: its definition is not known to everybody."""
    home = str(module_of(cls))
    root = home.partition(".")[0]
    if root in sys.stdlib_module_names or root in _KNOWN:
        return getattr(sys.modules.get(home), cls.__name__, None) is not cls and is_record(cls)
    return is_record(cls) or not _is_installed(root)


_KNOWN = frozenset({"builtins", "numpy", "pandas", "pydantic", "typing_extensions"})


def _is_installed(root: str) -> bool:
    """Return whether a package is a library: its classes are known by their own documentation."""
    file = getattr(sys.modules.get(root), "__file__", None) or ""
    return "site-packages" in file or "dist-packages" in file


# -- the text ----------------------------------------------------------------------------------


def definitions(
    signature: TaskSignature,
    *,
    without: Iterable[type] = (),
    checks: Iterable[Any] = (),
    chars: int = DEFINITION_CHARS,
) -> str:
    """Return the definitions of the classes that a signature names, as Python; empty for none.

    Args:
        signature: of a task.
        without: classes that are shown elsewhere.
        checks: of the result; the columns of those that are schemas are written out, too.
        chars: for all of them together; of what does not fit, the names are listed.

    Raises:
        DefinitionError: an annotation cannot be resolved.
    """
    told = {*without}
    texts: list[str] = []
    left_out: list[str] = []
    for cls in signature_classes(signature):
        if cls in told:
            continue
        text = class_definition(cls)
        if len(text) + 1 <= chars:
            chars -= len(text) + 1
            texts.append(text)
        else:
            left_out.append(cls.__name__)
    for name, columns in _expected_columns(signature):
        texts.append(line(f"# {name}: columns {columns}"))
    texts += schemas(signature, checks)
    if left_out:
        texts.append(line(f"# also: {', '.join(left_out)}; see help(NAME)"))
    return "\n".join(texts)


def class_definition(cls: type, name: str = "") -> str:
    """Return the definition of a class in short: the first paragraph of its docstring beside its head."""
    head, *fields = class_head(cls, name or cls.__name__)
    methods = class_methods(cls, _is_public)
    if len(methods) > MOST_METHODS:
        methods[MOST_METHODS:] = [f"# ... {len(methods) - MOST_METHODS} more, see dir()"]
    first = line(" ".join(own_doc(cls).partition("\n\n")[0].split()))
    if first and len(first) <= DOC_CHARS:
        head += f": {first}" if "  # " in head else f"  # {first}"
    return "\n".join([head, *(f"    {each}" for each in (*fields, *methods))])


def _is_public(name: str) -> bool:
    return not name.startswith("_")


def own_doc(cls: type) -> str:
    """Return the docstring that a class has itself; nothing for one that Python makes up."""
    doc = namespace_of(cls).get("__doc__")
    if type(doc) is not str or doc.startswith(f"{cls.__name__}("):
        return ""
    return inspect.cleandoc(doc)


def class_head(cls: type, name: str, shows: Shows = _is_public) -> list[str]:
    """Return the head of a class and its fields, members or annotated attributes, each as one line."""
    hints = _written_hints(cls)
    if issubclass(cls, Enum):
        return [f"class {name}({_enum_base(cls)}):", *_members(cls)]
    if issubclass(cls, BaseModel):
        base = "RootModel" if issubclass(cls, RootModel) else "BaseModel"
        closed = ["# no other keys"] if cls.model_config.get("extra") == "forbid" else []
        fields = [_model_field(cls, each, info) for each, info in cls.model_fields.items()]
        return [f"class {name}({base}):", *closed, *fields]
    if typing_extensions.is_typeddict(cls):
        return [f"class {name}(TypedDict):", *(_key(cls, *each) for each in hints.items())]
    if dataclasses.is_dataclass(cls):
        fields = [
            _field(each.name, each.type, _dataclass_default(each))
            for each in dataclasses.fields(cls)
            if each.init
        ]
        return [f"class {name}:  # dataclass", *fields]
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        named: Any = cls
        fields = [
            _field(each, hints.get(each, Any), _shown_default(named._field_defaults.get(each, _UNSET)))
            for each in named._fields
        ]
        return [f"class {name}(NamedTuple):", *fields]
    shown = [_field(each, hint, "") for each, hint in hints.items() if shows(each)]
    return [f"class {name}{_constructor(cls)}:", *shown, *_attributes(cls, hints, shows)]


_UNSET: Any = object()


def _attributes(cls: type, hints: Mapping[str, Any], shows: Shows) -> Iterator[str]:
    """Yield the data that a class holds itself: ``capacity = 1000``."""
    for base in _own_bases(cls):
        for name, value in namespace_of(base).items():
            if type(name) is str and shows(name) and name not in hints and _is_data(value):
                yield line(f"{name} = {_shown_default(value)}")


def _is_data(value: Any) -> bool:
    is_routine = inspect.isroutine(value) or type(value) in {property, classmethod, staticmethod}
    return not is_routine and not hasattr(type(value), "__get__") and not isinstance(value, type)


def _enum_base(cls: type) -> str:
    bases = [base.__name__ for base in mro_of(cls)[1:] if base.__module__ == "enum" and base is not Enum]
    public = [each for each in bases if each not in {"ReprEnum", "property"}]
    return public[0] if public else "Enum"


def _members(cls: type[Enum]) -> list[str]:
    pairs = [f"{name} = {short_repr(each.value, DEFAULT_CHARS)}" for name, each in cls.__members__.items()]
    if len(pairs) > MOST_MEMBERS:
        pairs[MOST_MEMBERS:] = [f"# ... {len(pairs) - MOST_MEMBERS} more, see dir()"]
    return [line("; ".join(pairs))] if pairs else []


def _model_field(cls: type[BaseModel], name: str, info: FieldInfo) -> str:
    if info.is_required():
        default = ""
    elif info.default is PydanticUndefined:
        default = _factory_text(info.default_factory)
    else:
        default = _shown_default(info.default)
    keys = dict_keys(name, info, cls)
    notes = [
        *_constraints(info.metadata),
        *([line(" ".join(info.description.split()))] if info.description else []),
        *([f"key in a dict: {keys[0]!r}"] if keys and name not in keys else []),
    ]
    return _field(name, info.annotation, default, "; ".join(notes))


def _constraints(metadata: Iterable[Any]) -> Iterator[str]:
    """Yield what constraints say, as a reader would write it: ``>= 1``, ``length 1..80``."""
    said: dict[str, Any] = {}
    for each in metadata:
        values = getattr(each, "__dict__", None) or {
            slot: getattr(each, slot) for slot in getattr(type(each), "__slots__", ()) if hasattr(each, slot)
        }
        said.update({key: value for key, value in values.items() if value is not None})
    for key, sign in (("gt", ">"), ("ge", ">="), ("lt", "<"), ("le", "<=")):
        if key in said:
            yield f"{sign} {short_repr(said[key], DEFAULT_CHARS)}"
    least, most = said.get("min_length"), said.get("max_length")
    if least is not None and most is not None:
        yield f"length {least}..{most}"
    elif least is not None or most is not None:
        yield f"length >= {least}" if most is None else f"length <= {most}"
    if "pattern" in said:
        yield f"matches {short_repr(said['pattern'], DEFAULT_CHARS)}"
    if "multiple_of" in said:
        yield f"multiple of {short_repr(said['multiple_of'], DEFAULT_CHARS)}"


def _key(cls: Any, name: str, hint: Any) -> str:
    annotation, qualifiers = strip(hint)
    required = name in cls.__required_keys__
    if typing_extensions.Required in qualifiers or typing_extensions.NotRequired in qualifiers:
        required = typing_extensions.Required in qualifiers
    written = _type(annotation)
    is_said = required or written.startswith(("NotRequired[", "Required["))
    shown = name if name.isidentifier() and not keyword.iskeyword(name) else short_repr(name, 80)
    return line(f"{shown}: {written}" if is_said else f"{shown}: NotRequired[{written}]")


def _field(name: str, annotation: Any, default: str, notes: str = "") -> str:
    text = f"{name}: {_type(annotation)}"
    if default:
        text += f" = {default}"
    return line(f"{text}  # {notes}" if notes else text)


def _type(annotation: Any) -> str:
    return describe(strip(annotation)[0])


def _dataclass_default(field: dataclasses.Field[Any]) -> str:
    if field.default is not dataclasses.MISSING:
        return _shown_default(field.default)
    made = field.default_factory
    return "" if made is dataclasses.MISSING else _factory_text(made)


_EMPTY: Mapping[Any, str] = {list: "[]", dict: "{}", set: "set()", tuple: "()"}


def _factory_text(factory: Any) -> str:
    return next((text for made, text in _EMPTY.items() if factory is made), "...")


def _shown_default(default: Any) -> str:
    if default is _UNSET:
        return ""
    text = short_repr(default, 2 * DEFAULT_CHARS)
    return "..." if text.startswith("<") or len(text) > DEFAULT_CHARS else text


def _constructor(cls: type) -> str:
    """Return the parameters that make an instance; nothing where the class says none."""
    held = (namespace_of(base).get(name) for base in mro_of(cls) for name in ("__init__", "__new__"))
    made = next(filter(None, held), None)
    return _parameters(made, bound=True).partition(" -> ")[0] if type(made) is types.FunctionType else ""


def class_methods(cls: type, shows: Shows, *, doc: Callable[[str, Any], str] | None = None) -> list[str]:
    """Return the methods and properties of a class, each as one line, then the operators it takes.

    Args:
        cls: the class.
        shows: which of them, by name.
        doc: gives the text beside a method, from its name and function.
    """
    found: dict[str, str] = {}
    for base in _own_bases(cls):
        for name, member in namespace_of(base).items():
            if type(name) is str and name not in found and shows(name):
                text, function = _method(name, member)
                about = line(doc(name, function)) if text and doc is not None else ""
                found[name] = line(f"{text}  # {about}" if about else text)
    taken = [sign for name, sign in _OPERATORS.items() if _defines(cls, name)]
    operators = [f"# also: {', '.join(taken)}"] if taken and not is_record(cls) else []
    return [*filter(None, found.values()), *operators]


_OPERATORS = {
    "__getitem__": "x[key]",
    "__setitem__": "x[key] = value",
    "__len__": "len(x)",
    "__iter__": "for each in x",
    "__contains__": "key in x",
    "__call__": "x(...)",
    "__enter__": "with x",
    "__add__": "x + y",
    "__sub__": "x - y",
    "__mul__": "x * y",
    "__matmul__": "x @ y",
    "__truediv__": "x / y",
    "__lt__": "x < y",
}


def _defines(cls: type, name: str) -> bool:
    return any(name in namespace_of(base) for base in _own_bases(cls))


def _own_bases(cls: type) -> list[type]:
    """Return the class and those of its bases whose members are worth telling."""
    own = str(module_of(cls)).partition(".")[0]
    roots = [(base, str(module_of(base)).partition(".")[0]) for base in mro_of(cls) if base is not object]
    return [base for base, root in roots if root == own or root not in _LIBRARIES]


_LIBRARIES = sys.stdlib_module_names | {"pydantic", "builtins", "typing_extensions"}
"""Packages whose base classes bring members that everybody knows, or that nobody calls."""


def _method(name: str, member: Any) -> tuple[str, Any]:
    """Return the signature of a method or property and its function; empty for anything else."""
    if type(member) is property:
        hint = _annotations(member.fget).get("return", _UNSET)
        return name if hint is _UNSET else f"{name}: {describe(hint)}", member.fget
    function = member.__func__ if type(member) in {classmethod, staticmethod} else member
    if not inspect.isroutine(function) or getattr(function, "__name__", "") == "<lambda>":
        return "", None
    is_async = "async " if inspect.iscoroutinefunction(function) else ""
    kind = {classmethod: "@classmethod ", staticmethod: "@staticmethod "}.get(type(member), "")
    text = f"{kind}{is_async}def {name}{_parameters(function, bound=type(member) is not staticmethod)}"
    return text, function


def _annotations(owner: Any) -> dict[str, Any]:
    """Return the annotations that stand at a class or function itself, as they are written."""
    try:
        return dict(inspect.get_annotations(owner))
    except (TypeError, NameError, AttributeError):  # not of Python, or evaluated late and not defined
        return {}


def _parameters(function: Any, *, bound: bool) -> str:
    try:
        signature = inspect.signature(function, follow_wrapped=False)
    except (ValueError, TypeError):
        return "(...)"
    parameters = list(signature.parameters.values())[1 if bound else 0 :]
    shown = [
        f"{_STARS.get(each.kind, '')}{each.name}"
        + (f": {describe(each.annotation)}" if each.annotation is not each.empty else "")
        + (f" = {_shown_default(each.default)}" if each.default is not each.empty else "")
        for each in parameters
    ]
    keyword = next((i for i, each in enumerate(parameters) if each.kind is each.KEYWORD_ONLY), None)
    if keyword is not None and all(each.kind is not each.VAR_POSITIONAL for each in parameters):
        shown.insert(keyword, "*")
    returned = signature.return_annotation
    return f"({', '.join(shown)})" + (f" -> {describe(returned)}" if returned is not signature.empty else "")


_STARS: Mapping[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


def _written_hints(cls: type) -> dict[str, Any]:
    """Return the annotations of a class's fields as they are written: nothing is evaluated."""
    if issubclass(cls, Enum):
        return {}
    bases = [cls] if typing_extensions.is_typeddict(cls) else list(reversed(_own_bases(cls)))
    hints = {name: hint for base in bases for name, hint in _annotations(base).items()}
    return {name: hint for name, hint in hints.items() if not _is_of_class(hint)}


def _is_of_class(hint: Any) -> bool:
    """Return whether an annotation is that of a class variable."""
    if type(hint) is str:
        return hint.startswith(("ClassVar", "typing.ClassVar"))
    return hint is typing.ClassVar or typing.get_origin(hint) is typing.ClassVar


# -- columns of frames --------------------------------------------------------------------------


def _expected_columns(signature: TaskSignature) -> Iterator[tuple[str, str]]:
    """Yield the parameters, and the result, whose annotation carries a schema with columns."""
    for owner in ("return", *signature.parameters):
        annotation = signature.checker(owner).annotation
        if typing_extensions.get_origin(annotation) is typing.Annotated:
            for each in typing_extensions.get_args(annotation)[1:]:
                columns = "" if is_schema(each) else columns_text(each)
                if columns:
                    yield ("the result" if owner == "return" else owner), columns


def schemas(signature: TaskSignature, checks: Iterable[Any] = ()) -> list[str]:
    """Return the texts of the schemas of pandera in a signature and among checks, each once."""
    found: dict[int, str] = {}
    for owner in ("return", *signature.parameters):
        annotation = signature.checker(owner).annotation
        name = "the result" if owner == "return" else owner
        is_whole = typing_extensions.get_origin(annotation) is typing.Annotated
        for schema in schemas_in(annotation):
            told = name if is_whole else f"DataFrame[{named_schema(schema)}]"
            found.setdefault(id(schema), schema_text(schema, told))
    for check in checks:
        if isinstance(check, SchemaCheck):
            found.setdefault(id(check.schema), schema_text(check.schema, "the result"))
    return list(found.values())


def columns_text(schema: Any) -> str:
    """Return the columns that a schema or a check names in its ``columns``; empty for one that names none.

    They are a mapping of names to types, or a list of names.
    """
    columns = getattr(schema, "columns", None)
    if isinstance(columns, Mapping):
        parts = [f"{short_repr(name, 40)}: {_column_type(each)}" for name, each in columns.items()]
    elif isinstance(columns, list | tuple | set | frozenset):
        parts = [short_repr(name, 40) for name in columns]
    else:
        return ""
    return ", ".join(parts)


def _column_type(column: Any) -> str:
    """Return the type of a column: itself, or what a schema's column calls its ``dtype``."""
    dtype = getattr(column, "dtype", column)
    return describe(dtype) if isinstance(dtype, type) else str(dtype)[:DEFAULT_CHARS]
