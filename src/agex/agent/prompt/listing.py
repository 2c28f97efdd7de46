"""Registrations as text: the list in the prompt, and the ``help`` for one thing.

A listing has a budget in tokens. What does not fit keeps its name, then only counts; the
agent reads the rest with ``help()`` and ``dir()``.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from types import ModuleType
from typing import Any

from typing_extensions import is_typeddict

from agex._interpreter.type_slots import mro_of, name_of, qualname_of
from agex.agent.call.terms import Definition
from agex.agent.prompt.library_names import ALIASES, first_names, granted_names, missing_names
from agex.agent.registration import Pattern, Registration
from agex.contract import (
    class_definition,
    class_head,
    class_methods,
    function_records,
    own_doc,
    short_repr,
)
from agex.escaping import line

__all__ = ["documentation", "listing", "overview", "tokens", "written_signature"]

CHARS_PER_TOKEN = 3.5
"""A cautious estimate for code and English."""
LISTING_TOKENS = 4_000
"""Of the prompt, for all registrations together."""
MEMBERS = 40
"""Members listed of a class or module, before the rest is counted."""
DEFAULT_CHARS = 40
"""A parameter's default is shown up to here."""
DEFINITION_CHARS = 3_000
"""Of the definitions of the dicts that the functions of one module take and return."""
HELP_CHARS = 6_000
"""Characters that one ``help`` call may print."""
HEADINGS = {
    "function": "Functions",
    "task": "Functions carried out by other agents (NAME.map(items) calls one for each item, side by side)",
    "class": "Classes",
    "object": "Objects",
    "module": "Modules (importing them is optional)",
}


def tokens(text: str) -> int:
    """Estimate how many tokens *text* takes."""
    return int(len(text) / CHARS_PER_TOKEN) + 1


def listing(registrations: Iterable[Registration], limit: int = LISTING_TOKENS) -> str:
    """Return the registrations as the prompt shows them, in about *limit* tokens.

    ``high`` shows signature and docstring, ``medium`` the signature, ``low`` nothing. The high
    ones come first in the queue for the space, each group in order of registration.
    """
    shown = sorted(
        (one for one in registrations if one.visibility != "low"), key=lambda one: one.visibility != "high"
    )
    entries: dict[str, list[str]] = {}
    short: list[str] = []
    left = limit
    for one in shown:
        entry = _entry(one)
        if tokens(entry) <= left:
            entries.setdefault(one.kind, []).append(entry)
            left -= tokens(entry)
        else:
            short.append(one.name)
    sections = [
        f"{heading}:\n" + "\n".join(entries[kind]) for kind, heading in HEADINGS.items() if kind in entries
    ]
    return "\n\n".join([*sections, *_names_only(short, left)])


def _names_only(names: list[str], left: int) -> Iterator[str]:
    if not names:
        return
    kept: list[str] = []
    for name in names:
        left -= tokens(name) + 1
        if left < 0:
            break
        kept.append(name)
    dropped = len(names) - len(kept)
    count = f"{'and ' if kept else ''}{dropped} more; help() lists them" if dropped else ""
    yield "Also available (see help(name)): " + ", ".join([*kept, *([count] if count else [])])


def _entry(one: Registration) -> str:
    if one.kind in ("function", "task"):
        doc = one.doc if one.visibility == "high" else ""
        return _function(one.name, one.target, doc, is_async=one.is_async)
    if one.kind == "class":
        return _class(one)
    if one.kind == "object":
        return _members_block(f"{one.name}: {line(qualname_of(type(one.target)))}", one)
    return _module(one)


def _function(name: str, function: Any, doc: str, *, is_async: bool) -> str:
    text = f"{'async ' if is_async else ''}def {name}{signature_text(function)}"
    return f"{text}:\n{_quoted(doc)}" if doc else text


def _class(one: Registration) -> str:
    """Return a class with its fields and methods; at ``high`` with docstrings."""
    high = one.visibility == "high"
    head, *fields = class_head(one.target, one.name, partial(_is_visible, one))
    if not one.constructable:
        head = f"class {one.name}:  # cannot be created here, only used"
    methods = class_methods(one.target, partial(_is_visible, one), doc=partial(_about, one) if high else None)
    if len(methods) > MEMBERS:
        methods[MEMBERS:] = [f"... and {len(methods) - MEMBERS} more; see dir({one.name})"]
    doc = own_doc(one.target) if one.docstring is None else one.doc
    quoted = [_quoted(doc)] if high and doc else []
    return "\n".join([head, *quoted, *(f"    {each}" for each in (*fields, *methods))])


def _about(one: Registration, name: str, member: Any) -> str:
    """Return the first line on a member, as its registration or its docstring has it."""
    spec = one.configure.get(name)
    own = spec.docstring if spec is not None and spec.docstring else inspect.getdoc(member)
    return _first_line(own or "")


def _module(one: Registration) -> str:
    """Return a module: the names of it that code uses first, and those often tried that are not there."""
    alias = ALIASES.get(one.name)
    head = f"import {one.name}{f' as {alias}' if alias else ''}"
    names = visible_members(one)
    first = first_names(_module_name(one), names)
    if first:
        version = getattr(one.target, "__version__", "")
        lines = [f"{head}  # {line(str(version))}" if version else head]
        lines += _wrapped([*first, f"and {len(names) - len(first)} more" if len(names) > len(first) else ""])
        missing = missing_names(_module_name(one))
        return "\n".join([*lines, *_wrapped(missing, "not there: ")])
    about = _first_line(one.doc)
    lines = [f"{head}  # {about}" if about else head]
    if one.visibility != "high":
        return "\n".join([*lines, *_wrapped(names)])
    records = _record_names(one.target)
    names = [name for name in names if name not in records]
    shown = [_member_text(one, name) for name in names[:MEMBERS]]
    rest = [f"... and {len(names) - MEMBERS} more; see dir({one.name})"] if len(names) > MEMBERS else []
    dicts = _definitions(_own_records(one.target, names[:MEMBERS]))
    return "\n".join([*lines, *(textwrap.indent(each, "    ") for each in (*shown, *rest, *dicts))])


def _record_names(module: ModuleType) -> set[str]:
    """Return the names of the TypedDicts of a module, which are shown beside the functions that name them."""
    return {name for name, value in vars(module).items() if is_typeddict(value)}


def _own_records(module: ModuleType, names: Iterable[str]) -> list[type]:
    """Return the TypedDicts of a module to which the signatures of its functions *names* lead."""
    functions = [function for name in names if inspect.isfunction(function := vars(module).get(name))]
    own = {id(value) for value in vars(module).values()}
    return [cls for cls in function_records(functions) if is_typeddict(cls) and id(cls) in own]


def _definitions(classes: Iterable[type], chars: int = DEFINITION_CHARS) -> Iterator[str]:
    """Yield the definitions of classes, then the names of those for which there is no space."""
    left_out: list[str] = []
    for cls in classes:
        text = class_definition(cls)
        chars -= len(text) + 1
        if chars >= 0:
            yield text
        else:
            left_out.append(name_of(cls))
    if left_out:
        more = [f"and {len(left_out) - MEMBERS} more"] if len(left_out) > MEMBERS else []
        yield line(f"# also: {', '.join([*left_out[:MEMBERS], *more])}; see help(NAME)")


def _module_name(one: Registration) -> str:
    return str(getattr(one.target, "__name__", ""))


def _member_text(one: Registration, name: str) -> str:
    """Return a member of a module at ``high``: a class with its fields and methods."""
    member = inspect.getattr_static(one.target, name, None)
    own = isinstance(member, type) and member.__module__ == _module_name(one)
    return (
        class_definition(member, name)
        if own and isinstance(member, type)
        else _member(one, name, first_line=True)
    )


def _members_block(head: str, one: Registration) -> str:
    high = one.visibility == "high"
    lines = [f"{head}:", _quoted(one.doc)] if high and one.doc else [head]
    names = visible_members(one)
    lines += [f"    {_member(one, name, first_line=high)}" for name in names[:MEMBERS]]
    if len(names) > MEMBERS:
        lines.append(f"    ... and {len(names) - MEMBERS} more; see dir({one.name})")
    return "\n".join(lines)


def _member(one: Registration, name: str, *, first_line: bool) -> str:
    member = inspect.getattr_static(one.target, name, None)
    member = getattr(member, "__func__", member)
    if not callable(member):
        return name
    text = f"{name}{signature_text(member, bound=one.kind in ('class', 'object'))}"
    spec = one.configure.get(name)
    own = spec.docstring if spec is not None and spec.docstring else inspect.getdoc(member)
    doc = _first_line(own or "") if first_line else ""
    return f"{text}  # {doc}" if doc else text


def _wrapped(names: list[str], before: str = "") -> list[str]:
    shown = [each for each in names if each]
    if not shown:
        return []
    more = [f"... {len(shown) - MEMBERS} more"] if len(shown) > MEMBERS else []
    text = before + ", ".join([*shown[:MEMBERS], *more])
    return textwrap.wrap(text, 106, initial_indent="    ", subsequent_indent="    ")


def visible_members(one: Registration) -> list[str]:
    """Return the names of the members that a registration lets through, sorted.

    Of a known library they are those that are granted, of any other module its own and not its imports.
    """
    names = granted_names(_module_name(one)) if one.kind == "module" else frozenset[str]()
    return sorted(
        name for name in names or _static_names(one.target) if name.isidentifier() and _is_visible(one, name)
    )


def _is_visible(one: Registration, name: str) -> bool:
    spec = one.configure.get(name)
    if spec is not None:
        return bool(spec.visibility != "low")
    return not name.startswith("_") and matches(one.include, name) and not matches(one.exclude, name)


def _static_names(target: Any) -> set[str]:
    """Return the attribute names of *target* without running any code of its class."""
    if isinstance(target, ModuleType):
        return _names_of_module(target)
    classes = mro_of(target if isinstance(target, type) else type(target))
    names = {name for cls in classes if cls is not object for name in vars(cls)}
    names.update(name for cls in classes for name in inspect.get_annotations(cls))
    own = vars(target) if hasattr(target, "__dict__") and not isinstance(target, type) else {}
    return names | own.keys()


def _names_of_module(module: ModuleType) -> set[str]:
    """Return the names that a module has for others: its ``__all__``, else what it defines itself."""
    public = vars(module).get("__all__")
    if isinstance(public, list | tuple):
        return {name for name in public if type(name) is str and name in vars(module)}
    held = {name: value for name, value in vars(module).items() if not isinstance(value, ModuleType)}
    own = {name for name, value in held.items() if _is_own(module, value)}
    return own if any(not name.startswith("_") for name in own) else set(held)  # a module of others' names


def _is_own(module: ModuleType, value: Any) -> bool:
    """Return whether a module has a value from its own package, and not by an import from another one."""
    is_definition = isinstance(value, type) or inspect.isroutine(value)
    home = getattr(value, "__module__", None) if is_definition else type(value).__module__
    root = str(home).partition(".")[0].lstrip("_")
    if is_definition:
        return home is None or root == module.__name__.partition(".")[0].lstrip("_")
    return root not in {"typing", "typing_extensions", "future"}


def matches(pattern: Pattern, name: str) -> bool:
    """Return whether a pattern matches *name*."""
    if callable(pattern):
        return pattern(name)
    globs = (pattern,) if isinstance(pattern, str) else pattern
    return any(fnmatchcase(name, glob) for glob in globs)


def signature_text(function: Any, *, bound: bool = False) -> str:
    """Return the signature as text, ``(...)`` where Python does not know it."""
    try:
        signature = written_signature(function)
    except (ValueError, TypeError):
        return "(...)"
    parameters = list(signature.parameters.values())
    if bound and parameters and parameters[0].name in ("self", "cls"):
        parameters = parameters[1:]
    shown = [_short_default(one.replace(annotation=_unquoted(one.annotation))) for one in parameters]
    returned = _unquoted(signature.return_annotation)
    return line(str(signature.replace(parameters=shown, return_annotation=returned)))


def written_signature(function: Any) -> inspect.Signature:
    """Return the signature as it is written: a task's own has annotations that are resolved.

    Raises:
        ValueError, TypeError: Python does not know it.
    """
    definition = getattr(function, "definition", None)
    if isinstance(definition, Definition):
        return definition.terms.signature.signature
    return inspect.signature(function)


class _Shown:
    """A default or annotation that is written as a given text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _unquoted(annotation: Any) -> Any:
    """Return an annotation that is still a string (PEP 563) as one that is written without quotes."""
    return _Shown(annotation) if isinstance(annotation, str) else annotation


def _short_default(parameter: inspect.Parameter) -> inspect.Parameter:
    if parameter.default is inspect.Parameter.empty:
        return parameter
    text = short_repr(parameter.default, 2 * DEFAULT_CHARS)  # not its own `__repr__`, which may be any code
    if text.startswith("<") or parameter.default is ... or " at 0x" in text or len(text) > DEFAULT_CHARS:
        text = "..."
    return parameter.replace(default=_Shown(text))


def _quoted(doc: str) -> str:
    inside = [line(each) for each in doc.replace('"""', '\\"\\"\\"').split("\n")]
    return "\n".join(f"    {each}" if each else "" for each in f'"""{chr(10).join(inside)}"""'.split("\n"))


def _first_line(doc: str) -> str:
    return line(doc.strip().split("\n", 1)[0].strip())


def overview(registrations: Iterable[Registration]) -> str:
    """Return what ``help()`` shows: the names of all that is registered."""
    lines = [f"{one.kind} {one.name}" for one in registrations]
    return _cut("\n".join(["help(x) says how to use x, dir(x) lists its attributes. Registered:", *lines]))


def documentation(thing: Any, registrations: Iterable[Registration]) -> str:
    """Return what ``help(thing)`` shows: the host text of a registered thing, else its docstring."""
    for one in registrations:
        if (
            one.target is thing
            or (type(thing) is str and thing == one.name)
            or _same_module(one.target, thing)
        ):
            return _cut(_full(one))
    if isinstance(thing, str):
        return f"No registered name {thing!r}."
    if isinstance(thing, type):
        return _cut(_class_help(thing))
    if callable(thing):
        name = getattr(thing, "__name__", type(thing).__name__)
        text = f"{name}{signature_text(thing)}\n\n{inspect.getdoc(thing) or ''}".strip()
        member = _registered_member(thing, name, registrations)
        dicts = [] if member is None else _own_records(*member)
        return _cut("\n\n".join([text, *_definitions(dicts)]))
    kind = type(thing)
    head, *more = _class_help(kind).split("\n")
    return _cut("\n".join([f"{qualname_of(kind)} object", *(["", head, *more] if more else [])]))


def _registered_member(
    thing: Any, name: Any, registrations: Iterable[Registration]
) -> tuple[ModuleType, list[str]] | None:
    """Return the registered module that has a function of this name, and the name.

    It goes by what the function says of itself, for guest code may have a stand-in.
    """
    home = getattr(thing, "__module__", None)
    for one in registrations:
        if type(home) is not str or type(name) is not str or one.kind != "module":
            continue
        if one.target.__name__ == home and name in visible_members(one):
            return one.target, [name]
    return None


def _class_help(cls: type) -> str:
    """Return what a class adds to its bases: docstring, fields, members and methods."""
    head, *fields = class_head(cls, name_of(cls))
    methods = class_methods(
        cls,
        lambda name: not name.startswith("_"),
        doc=lambda _, each: _first_line(inspect.getdoc(each) or ""),
    )
    doc = own_doc(cls) or ("" if fields or methods else inspect.getdoc(cls) or "")
    quoted = [_quoted(doc)] if doc else []
    return "\n".join([head, *quoted, *(f"    {each}" for each in (*fields, *methods))])


def _same_module(target: Any, thing: Any) -> bool:
    return (
        isinstance(target, ModuleType) and isinstance(thing, ModuleType) and target.__name__ == thing.__name__
    )


def _full(one: Registration) -> str:
    if one.kind in ("function", "task"):
        return _function(one.name, one.target, one.doc, is_async=one.is_async)
    if one.kind == "class":
        return _class(replace(one, visibility="high"))
    names = visible_members(one)
    dicts: list[str] = []
    if one.kind == "module":
        records = _record_names(one.target)
        names = [name for name in names if name not in records]
        dicts = [*_definitions(_own_records(one.target, names))]
    members = [_member(one, name, first_line=True) for name in names]
    missing = missing_names(_module_name(one)) if one.kind == "module" else []
    lines = [f"{one.kind} {one.name}", _quoted(one.doc), *_wrapped(missing, "not there: ")]
    return "\n".join([*lines, *(textwrap.indent(each, "    ") for each in (*members, *dicts))])


def _cut(text: str) -> str:
    return (
        text
        if len(text) <= HELP_CHARS
        else text[:HELP_CHARS] + f"\n... ({len(text) - HELP_CHARS} more characters)"
    )
