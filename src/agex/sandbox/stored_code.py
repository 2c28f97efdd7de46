"""Functions and classes of guest code, made again from their source after they were stored or sent."""

from __future__ import annotations

import itertools
import types
from typing import Any

from agex.sandbox.classes.host_calls import written
from agex.sandbox.host_names import method, method_of, name_of, named
from agex.sandbox.runtime import provenance, source_lines
from agex.sandbox.sandbox import Sandbox
from agex.sandbox.session import Session

__all__ = ["KeptCode"]


class KeptCode:
    """Makes functions and classes of guest code again in a session; implements `agex.values.GuestCode`.

    They have the limits of that session, and the names that a task gives its code.

    Args:
        sandbox: makes another session while the first one runs.
        session: where they are made; its policy decides which host objects they may refer to.
    """

    _numbers = itertools.count(1)

    def __init__(self, sandbox: Sandbox, session: Session | None = None) -> None:
        self._sandbox = sandbox
        self._session = session or sandbox.session()

    def is_guest_function(self, value: object) -> bool:
        return isinstance(value, types.FunctionType) and provenance.session_of(value) is not None

    def is_guest_class(self, value: type) -> bool:
        return provenance.is_guest_class(value)

    def source(self, code: types.CodeType) -> str | None:
        return provenance.source_of(code)

    def class_body(self, value: type) -> types.FunctionType | None:
        statement = provenance.statement_of(value)
        return None if statement is None else statement.body

    def class_header(self, value: type) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        statement = provenance.statement_of(value)
        return None if statement is None else (statement.bases, statement.keywords)

    def class_number(self, value: type) -> int:
        statement = provenance.statement_of(value)
        return -1 if statement is None else statement.number

    def home_of(self, value: types.FunctionType | type) -> str | None:
        return self._session.importer.home_of(value)

    def at_home(self, home: str) -> Any:
        name, _, member = home.partition(":")
        try:
            module = self._session.imported(name, run=True)
        except ImportError:
            return None
        own = self._session.importer.own
        is_own = own is not None and own.owns(module)
        found = vars(module).get(member) if is_own or not member.startswith("_") else None
        is_class = isinstance(found, type) and provenance.is_guest_class(found)
        return found if is_class or self.is_guest_function(found) else None

    def may_store(self, value: type, name: str) -> bool:
        return provenance.may_store(value, name)

    def altered(self, value: type, *, dressed: bool) -> frozenset[str]:
        return provenance.altered(value, dressed=dressed)

    def written(self, value: object) -> object:
        return written(value)

    def store(self, value: type, name: str, attribute: object) -> None:
        self._session.store_on_class(value, name, attribute)

    def rebuild(self, source: str, name: str, namespace: dict[str, Any]) -> Any:
        session = self._session
        if session.is_running:
            session = self._sandbox.session(fs=session.files)
        result = session.define(source, f"<kept {next(self._numbers)}>", namespace)
        if result.error is not None:
            raise result.error
        made = namespace[name]
        if type(made) is types.FunctionType and self.is_guest_function(made):
            source_lines.show(made)
        return made

    def host_name(self, value: object) -> str | None:
        return name_of(self._session, value)

    def host_object(self, name: str) -> Any:
        return named(self._session, name, run=True)

    def method_of(self, value: object) -> tuple[Any, str] | None:
        return method_of(self._session, value)

    def method(self, owner: Any, name: str) -> Any:
        return method(self._session, owner, name)
