"""The terms that kept code was written for, by name: where one differs, the code is not used."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agex.agent.call.terms import Definition
from agex.agent.prompt.listing import signature_text
from agex.agent.registration import Registration
from agex.contract import class_definition, definitions

if TYPE_CHECKING:
    from agex.agent.base import AgentBase

__all__ = ["differences", "terms_of"]

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
"""In the `repr` of an object, other in each process."""
_REGISTERED = "registered "
_TYPES = "the types"
_ALL = 10**9
"""Characters: nothing is left out of a text that is only compared."""


def terms_of(agent: AgentBase, definition: Definition) -> dict[str, str]:
    """Return the digest of each term, the same in each process.

    Raises:
        DefinitionError: an annotation cannot be resolved.
    """
    signature = definition.terms.signature
    texts = {
        "the signature": signature.render(doc=True),
        _TYPES: definitions(signature, chars=_ALL),
        "the primer": definition.primer or "",
        "the agent's primer": agent.primer or "",
        "the setup code": definition.setup or "",
        **{f"{_REGISTERED}{one.name}": _described(one) for one in agent.registrations},
    }
    return {name: _digest(text) for name, text in texts.items()}


def differences(then: Mapping[str, str], now: Mapping[str, str]) -> str:
    """Return the names of the terms that differ, as text."""
    said = []
    for name in sorted({*then, *now}):
        if name not in now:
            said.append(f"{name} is there no more")
        elif name not in then:
            said.append(f"{name} is new")
        elif then[name] != now[name]:
            said.append(f"{name} {'are others' if name == _TYPES else 'is another'}")
    return ", ".join(said)


def _digest(text: str) -> str:
    return hashlib.sha256(_ADDRESS.sub("", text).encode("utf-8", "backslashreplace")).hexdigest()[:16]


def _described(one: Registration) -> str:
    """Return a registration as text, with all that guest code may rely on."""
    settings = {
        name: _setting(value)
        for name, value in one.settings().items()
        if name not in ("visibility", "docstring", "timeout", "stays")
    }
    return "\n".join(
        [one.kind, _target(one), one.doc, *(f"{name}={text}" for name, text in settings.items())]
    )


def _target(one: Registration) -> str:
    target = one.target
    if one.kind in ("function", "task"):
        return f"{_home(target)}{signature_text(target)}"
    if one.kind == "class":
        return f"{_home(target)}\n{class_definition(target)}"
    if one.kind == "object":
        return f"{_home(type(target))}\n{class_definition(type(target))}"
    return str(target.__name__)


def _home(thing: Any) -> str:
    name = getattr(thing, "__qualname__", None) or type(thing).__qualname__
    return f"{getattr(thing, '__module__', None)}.{name}"


def _setting(value: Any) -> str:
    """Return a setting as text; a function by its name, for its `repr` is another in each process."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_setting(each)}" for name, each in sorted(value.items()))
    return _home(value) if callable(value) else repr(value)
