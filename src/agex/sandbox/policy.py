"""What guest code may reach: registrations as data, and the decisions drawn from them.

Default deny: a :class:`Policy` grants nothing but the language itself. A grant is a name
(a function, a class, a live object) or an importable module. What a grant leads to by
public attributes is granted with it, except modules, which are never reached through
another one unless they belong to the same registered package.

An excluded member is denied by *name and type*: its name becomes contested, so that
programs which never say it pay nothing.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from agex.errors import DefinitionError
from agex.sandbox import hostclass, ledger, stdlib
from agex.sandbox.modules import ModuleGrant, Pattern, matches
from agex.sandbox.rewrite import Rules

__all__ = ["MemberSpec", "Pattern", "Policy"]

Visibility: TypeAlias = Literal["high", "medium", "low"]


@dataclass(frozen=True, kw_only=True)
class MemberSpec:
    """How one member of a registration differs from the rest of it."""

    visibility: Visibility | None = None
    """How much of it the agent is shown; None as its owner."""
    docstring: str | None = None
    """What the agent is told about it; None its own docstring."""
    constructable: bool | None = None
    """For a class: whether guest code may make instances; None as its owner."""


@dataclass
class _ClassRule:
    """Which public members of a class and its subclasses are denied."""

    include: Pattern
    exclude: Pattern
    configured: frozenset[str]

    def denies(self, name: str) -> bool:
        if name in self.configured or ledger.is_dunder(name):
            return False
        return not matches(self.include, name) or matches(self.exclude, name)


@dataclass
class Policy:
    """The grants of a sandbox.

    Args:
        strict: check the receiver of every attribute, for hosts that hand over live
            objects whose graph they do not know (see docs/security.md for the cost).
    """

    strict: bool = False
    names: dict[str, Any] = field(default_factory=dict, init=False)
    """What guest code finds as variables."""
    modules: dict[str, ModuleGrant] = field(default_factory=dict, init=False)
    """What guest code may import."""
    _rules: dict[type, _ClassRule] = field(default_factory=dict, init=False, repr=False)
    _sealed: set[type] = field(default_factory=set, init=False, repr=False)
    _contested: set[str] = field(default_factory=set, init=False, repr=False)
    _hot: set[str] = field(default_factory=set, init=False, repr=False)
    _writable: set[type] = field(default_factory=set, init=False, repr=False)
    _text: Rules | None = field(default=None, init=False, repr=False)

    @classmethod
    def default(cls, *, strict: bool = False) -> Policy:
        """Grant the standard set: the harmless part of the standard library."""
        policy = cls(strict=strict)
        policy.modules.update(stdlib.grants())
        return policy

    # -- granting ------------------------------------------------------------------

    def fn(self, function: Callable[..., Any], *, name: str | None = None) -> Callable[..., Any]:
        """Grant a function under *name*; return it unchanged."""
        if not callable(function):
            raise DefinitionError(f"Policy.fn needs a callable, got {type(function).__name__}")
        self._grant(name or getattr(function, "__name__", None), _plain_function(function), function)
        return function

    def cls(
        self,
        class_: type,
        *,
        name: str | None = None,
        constructable: bool = True,
        include: Pattern = "*",
        exclude: Pattern = "_*",
        configure: Mapping[str, MemberSpec] | None = None,
    ) -> type:
        """Grant a class: its public members, and its construction unless *constructable* is false."""
        if not isinstance(class_, type):
            raise DefinitionError(f"Policy.cls needs a class, got {type(class_).__name__}")
        self._rule(class_, include, exclude, configure or {})
        self._hot |= hostclass.private_names(class_)
        self._writable.add(class_)
        if not constructable:
            self._sealed.add(class_)
        self._grant(name or class_.__name__, class_, class_)
        return class_

    def module(
        self,
        module: Any,
        *,
        name: str | None = None,
        include: Pattern = "*",
        exclude: Pattern = ("_*", "*._*"),
        configure: Mapping[str, MemberSpec] | None = None,
        recursive: bool = True,
    ) -> Any:
        """Grant a module for import, or a live object as the variable *name*."""
        if not isinstance(module, types.ModuleType):
            if name is None:
                raise DefinitionError("a live object needs a name: module(connection, name='db')")
            self._rule(type(module), include, exclude, configure or {})
            self._writable.add(type(module))
            self._grant(name, module, module)
            return module
        curated = stdlib.grants().get(module.__name__)
        plain = include == "*" and exclude == ("_*", "*._*") and not configure
        if curated is not None and plain:
            self.modules[name or module.__name__] = curated
            return module
        grant = ModuleGrant(module, include=include, exclude=exclude, recursive=recursive)
        self.modules[name or module.__name__] = grant
        for owner, members in grant.class_exclusions():
            self._rule(owner, "*", members, configure or {})
        self._text = None
        return module

    def _grant(self, name: str | None, value: Any, target: Any) -> None:
        if not name or not name.isidentifier() or ledger.is_dunder(name):
            raise DefinitionError(f"{name!r} is not a usable name for {target!r}; pass name='an_identifier'")
        self.names[name] = value
        self._text = None

    def _rule(
        self, class_: type, include: Pattern, exclude: Pattern, configure: Mapping[str, MemberSpec]
    ) -> None:
        configured = frozenset(configure)
        rule = _ClassRule(include, exclude, configured)
        self._rules[class_] = rule
        members = hostclass.public_names(class_)
        self._contested |= {member for member in members if rule.denies(member)}
        self._text = None

    # -- deciding ------------------------------------------------------------------

    @property
    def text(self) -> Rules:
        """What this policy means for the text of a program."""
        if self._text is None:
            contested = ledger.CONTESTED | self._contested
            self._text = Rules(contested=frozenset(contested), hot=frozenset(self._hot), strict=self.strict)
        return self._text

    def denies(self, class_: type, name: str) -> bool:
        """Tell whether a registration excludes the public member *name* of *class_*."""
        if name not in self._contested:
            return False
        return any(rule.denies(name) for base in class_.__mro__ if (rule := self._rules.get(base)))

    def imports(self, name: str, value: Any) -> bool:
        """Tell whether a granted module gives *value* itself under *name*."""
        home = str(getattr(value, "__module__", ""))
        root = home.partition(".")[0]
        grants = [grant for grant in list(self.modules.values()) if grant.root == root]
        return any(vars(grant.copy()).get(name, self) is value for grant in grants)

    def is_sealed(self, class_: type) -> bool:
        """Tell whether guest code may not make instances of *class_*."""
        return class_ in self._sealed

    def is_writable(self, class_: type) -> bool:
        """Tell whether public data attributes of instances of *class_* may be assigned."""
        for base in class_.__mro__:
            if base in self._writable:
                return True
            root = str(getattr(base, "__module__", "")).partition(".")[0]
            if base is not object and root != "builtins" and self._covers(root):
                return True
        return False

    def _covers(self, root: str) -> bool:
        return any(grant.root == root for grant in self.modules.values())


def _plain_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a callable object whose attributes would show what it was made of."""
    if isinstance(function, (types.FunctionType, types.BuiltinFunctionType, types.MethodType, type)):
        return function
    if not isinstance(function, functools.partial):
        return function

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = getattr(function.func, "__name__", "partial")
    call.__doc__ = function.func.__doc__
    return call
