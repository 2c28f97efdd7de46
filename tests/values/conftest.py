"""A guest whose code the values of these tests come from: a session, as `agex.values` sees it."""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Any

import pytest

from agex.sandbox import host_names as hostnames
from agex.sandbox.classes.host_calls import written
from agex.sandbox.policy.policy import Policy
from agex.sandbox.runtime import provenance as origins
from agex.sandbox.runtime.limits import Limits
from agex.sandbox.session import Session
from agex.values import Allow, Group, decode, encode


class Guest:
    """A session, and the `GuestCode` over it."""

    def __init__(self, registered: Iterable[type] = (), seconds: float = 20.0, **hosts: Any) -> None:
        policy = Policy.default()
        for cls in registered:
            policy.cls(cls)
        self.allow = Allow(registered)
        self.hosts: dict[str, Any] = {**hosts, **{cls.__name__: cls for cls in registered}}
        self.session = Session(policy, Limits(seconds=seconds), {})
        for name, value in hosts.items():
            self.session.bind(name, value)
        self._programs = 0

    def run(self, source: str, **variables: Any) -> dict[str, Any]:
        """Run a program and return the variables after it."""
        self.session.globals.update(variables)
        self._programs += 1
        result = self.session.run(source, f"<turn {self._programs}>")
        if result.error is not None:
            raise result.error
        return result.namespace

    # -- GuestCode ---------------------------------------------------------------------------

    def is_guest_function(self, value: object) -> bool:
        return self.session.is_guest_function(value)

    def is_guest_class(self, value: type) -> bool:
        return self.session._guards.classes.is_guest(value)

    def source(self, code: types.CodeType) -> str | None:
        lines = self.session._sources.get(code.co_filename)
        return None if lines is None else "\n".join(lines)

    def class_body(self, value: type) -> types.FunctionType | None:
        statement = self.session._guards.classes.statement_of(value)
        return None if statement is None else statement.body

    def class_header(self, value: type) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        statement = self.session._guards.classes.statement_of(value)
        return None if statement is None else (statement.bases, statement.keywords)

    def class_number(self, value: type) -> int:
        statement = self.session._guards.classes.statement_of(value)
        return -1 if statement is None else statement.number

    def home_of(self, value: types.FunctionType | type) -> str | None:
        return self.session.importer.home_of(value)

    def at_home(self, home: str) -> Any:
        name, _, member = home.partition(":")
        return None if member.startswith("_") else vars(self.session.imported(name))[member]

    def altered(self, value: type, *, dressed: bool) -> frozenset[str]:
        return origins.altered(value, dressed=dressed)

    def written(self, value: object) -> object:
        return written(value)

    def store(self, value: type, name: str, attribute: object) -> None:
        self.session.store_on_class(value, name, attribute)

    def may_store(self, value: type, name: str) -> bool:
        return origins.may_store(value, name)

    def rebuild(self, source: str, name: str, namespace: dict[str, Any]) -> Any:
        self._programs += 1
        result = self.session.define(source, f"<kept {self._programs}>", namespace)
        if result.error is not None:
            raise result.error
        return namespace[name]

    def host_name(self, value: object) -> str | None:
        return hostnames.name_of(self.session, value)

    def host_object(self, name: str) -> Any:
        return hostnames.named(self.session, name)

    def method_of(self, value: object) -> tuple[Any, str] | None:
        return hostnames.method_of(self.session, value)

    def method(self, owner: Any, name: str) -> Any:
        return hostnames.method(self.session, owner, name)

    # -- keeping -----------------------------------------------------------------------------

    def groups(self, *names: str) -> list[Group]:
        """Encode some variables, or all."""
        variables = self.session.namespace
        return encode({n: variables[n] for n in names or variables}, allow=self.allow, guest=self)

    def load(self, groups: list[Group]) -> dict[str, Any]:
        """Load groups into this guest, and return the variables."""
        loaded: dict[str, Any] = {}
        for group in groups:
            copied = tuple(memoryview(bytes(part)) for part in group.buffers)
            kept = Group(names=group.names, stream=group.stream, buffers=copied)
            loaded |= decode(kept, allow=self.allow, guest=self)
        return loaded


@pytest.fixture
def make_guest() -> type[Guest]:
    """What makes a guest: a new one is another process, as far as code goes."""
    return Guest


@pytest.fixture
def moved():
    """Run a program in one guest, and give another one with its variables as they were kept."""

    def move(
        source: str, *names: str, lost: bool = False, registered: Iterable[type] = (), **hosts: Any
    ) -> Guest:
        first, second = Guest(registered, **hosts), Guest(registered, **hosts)
        first.run(source)
        groups = first.groups(*names)
        if not lost:
            assert [dict(group.lost) for group in groups if group.lost] == []
        second.session.globals.update(second.load(groups))
        return second

    return move
