"""Registrations as text: the list in the prompt, and the ``help`` for one thing.

A listing has a budget in tokens. What does not fit keeps its name, then only counts; the
agent reads the rest with ``help()`` and ``dir()``.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from types import ModuleType
from typing import Any

from agex._interpreter.type_slots import mro_of, qualname_of
from agex.agent.registration import Pattern, Registration
from agex.contract import short_repr
from agex.escaping import line

__all__ = ["documentation", "listing", "overview", "tokens"]

CHARS_PER_TOKEN = 3.5
"""A cautious estimate for code and English."""
LISTING_TOKENS = 4_000
"""Of the prompt, for all registrations together."""
MEMBERS = 40
"""Members listed of a class or module, before the rest is counted."""
DEFAULT_CHARS = 40
"""A parameter's default is shown up to here."""
HELP_CHARS = 6_000
"""Characters that one ``help`` call may print."""
HEADINGS = {
    "function": "Functions",
    "task": "Functions carried out by other agents",
    "class": "Classes",
    "object": "Objects",
    "module": "Modules (import before use)",
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
        return _function(one.name, one.target, one.doc if one.visibility == "high" else "", is_async=False)
    if one.kind == "class":
        return _class(one)
    if one.kind == "object":
        return _members_block(f"{one.name}: {line(qualname_of(type(one.target)))}", one)
    return _members_block(f"import {one.name}", one)


def _function(name: str, function: Any, doc: str, *, is_async: bool) -> str:
    text = f"{'async ' if is_async else ''}def {name}{signature_text(function)}"
    return f"{text}:\n{_quoted(doc)}" if doc else text


def _class(one: Registration) -> str:
    constructor = signature_text(one.target) if one.constructable else ""
    head = f"class {one.name}{constructor.split(' -> ')[0]}"
    if not one.constructable:
        head += "  # cannot be created here, only used"
    return _members_block(head, one)


def _members_block(head: str, one: Registration) -> str:
    high = one.visibility == "high"
    lines = [head + ":"] if high and one.doc and one.kind != "module" else [head]
    if one.kind == "module":
        lines = [f"{head}  # {_first_line(one.doc)}" if _first_line(one.doc) else head]
    elif high and one.doc:
        lines.append(_quoted(one.doc))
    names = visible_members(one)
    if one.kind == "module" and not high:
        lines.extend(_wrapped(names))
        return "\n".join(lines)
    for name in names[:MEMBERS]:
        lines.append("    " + _member(one, name, first_line=high))
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


def _wrapped(names: list[str]) -> list[str]:
    text = ", ".join(names[:MEMBERS]) + (f", ... {len(names) - MEMBERS} more" if len(names) > MEMBERS else "")
    return textwrap.wrap(text, 100, initial_indent="    ", subsequent_indent="    ")


def visible_members(one: Registration) -> list[str]:
    """Return the names of the members that a registration lets through, sorted."""
    return sorted(
        name for name in _static_names(one.target) if name.isidentifier() and _is_visible(one, name)
    )


def _is_visible(one: Registration, name: str) -> bool:
    spec = one.configure.get(name)
    if spec is not None:
        return bool(spec.visibility != "low")
    return not name.startswith("_") and matches(one.include, name) and not matches(one.exclude, name)


def _static_names(target: Any) -> set[str]:
    """Return the attribute names of *target* without running any code of its class."""
    if isinstance(target, ModuleType):
        return {name for name, value in vars(target).items() if not isinstance(value, ModuleType)}
    classes = mro_of(target if isinstance(target, type) else type(target))
    names = {name for cls in classes if cls is not object for name in vars(cls)}
    names.update(name for cls in classes for name in inspect.get_annotations(cls))
    own = vars(target) if hasattr(target, "__dict__") and not isinstance(target, type) else {}
    return names | own.keys()


def matches(pattern: Pattern, name: str) -> bool:
    """Return whether a pattern matches *name*."""
    if callable(pattern):
        return pattern(name)
    globs = (pattern,) if isinstance(pattern, str) else pattern
    return any(fnmatchcase(name, glob) for glob in globs)


def signature_text(function: Any, *, bound: bool = False) -> str:
    """Return the signature as text, ``(...)`` where Python does not know it."""
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        return "(...)"
    parameters = list(signature.parameters.values())
    if bound and parameters and parameters[0].name in ("self", "cls"):
        parameters = parameters[1:]
    shown = [_short_default(one.replace(annotation=_unquoted(one.annotation))) for one in parameters]
    returned = _unquoted(signature.return_annotation)
    return line(str(signature.replace(parameters=shown, return_annotation=returned)))


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
    if callable(thing):
        name = getattr(thing, "__name__", type(thing).__name__)
        return _cut(f"{name}{signature_text(thing)}\n\n{inspect.getdoc(thing) or ''}".strip())
    return _cut(f"{type(thing).__qualname__} object\n\n{inspect.getdoc(type(thing)) or ''}".strip())


def _same_module(target: Any, thing: Any) -> bool:
    return (
        isinstance(target, ModuleType) and isinstance(thing, ModuleType) and target.__name__ == thing.__name__
    )


def _full(one: Registration) -> str:
    if one.kind in ("function", "task"):
        return _function(one.name, one.target, one.doc, is_async=False)
    head = f"{one.kind} {one.name}" + (signature_text(one.target) if one.kind == "class" else "")
    members = [_member(one, name, first_line=True) for name in visible_members(one)]
    return "\n".join([head, _quoted(one.doc), *("    " + member for member in members)])


def _cut(text: str) -> str:
    return (
        text
        if len(text) <= HELP_CHARS
        else text[:HELP_CHARS] + f"\n... ({len(text) - HELP_CHARS} more characters)"
    )
