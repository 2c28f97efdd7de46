"""The variables and bound names of one session, in the host, and their exchange with the worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agex import values
from agex.isolation.executor import names_of
from agex.isolation.rpc.task_environment import StaysThere
from agex.isolation.wire import run_result as outcome
from agex.isolation.wire.codec import is_kept, pack_groups, session_groups, session_header, unpack_groups
from agex.isolation.wire.error_codec import unpack_error
from agex.isolation.worker.connection import WorkerConnection
from agex.isolation.worker.host_requests import SessionCodec

__all__ = ["SessionVariables"]


class SessionVariables:
    """Variables of a session, given to its worker when it needs them and taken back when the host asks.

    Args:
        connection: to the worker.
        codec: of the session's values.
    """

    def __init__(self, connection: WorkerConnection, codec: SessionCodec) -> None:
        self._connection = connection
        self._codec = codec
        self._names: dict[str, Any] = {}
        self._modules: dict[str, str] = {}
        self._fresh: set[str] = set()  # names that the worker does not know yet
        self.bound: dict[str, Any] = {}
        """Names that guest code finds as it finds builtins."""

    def add(self, names: Mapping[str, Any]) -> None:
        """Add variables."""
        self._names.update(names)
        self._fresh.update(names)

    def bind(self, name: str, value: Any) -> None:
        """Bind a name that is no variable of guest code."""
        self.bound[name] = value
        self._fresh.add(name)

    def import_again(self, modules: Mapping[str, str]) -> None:
        """Bind variables to modules."""
        self._modules.update(modules)
        self._fresh.update(modules)

    def namespace(self) -> dict[str, Any]:
        """Return the variables, those that guest code changed as `agex.values.Packed`."""
        self._take_back()
        return {name: value for name, value in self._names.items() if name not in self.bound}

    def modules(self) -> dict[str, str]:
        """Return the variables that are modules, each with the import that makes it."""
        self._take_back()
        return dict(self._modules)

    def kept(self) -> dict[str, Any]:
        """Return the bound names that guest code writes to."""
        self._take_back()
        return {name: value for name, value in self.bound.items() if is_kept(value)}

    def has_here(self, name: str) -> bool:
        """Return whether the host has a variable as it is, and no worker has it."""
        return self._connection.worker is None and type(self._names.get(name)) is not values.Packed

    def here(self, name: str) -> Any:
        """Return a variable as the host has it; None where there is none."""
        return self._names.get(name)

    def fetched(self, name: str) -> Any:
        """Return a variable as the worker has it: a copy, or a function to call."""
        codec = self._codec
        done = self._connection.chore({"k": "get", "name": name})
        if done.header.get("error") is not None:
            return StaysThere(str(unpack_error(done.header["error"], codec.allow.registered)))
        return self._connection.checked(lambda: codec.unpack_in_time(done, done.parts))

    def expect_all(self) -> None:
        """Note that a new worker has none of the names."""
        self._fresh = {*self._names, *self.bound, *self._modules}

    def require_crossing(self) -> None:
        """Require that the names can be sent, before there is a worker.

        Raises:
            CannotCross: a variable can neither be copied nor used from there.
        """
        codec = self._codec
        _, plain = session_header({**self._names, **self.bound}, self.bound)
        session_groups(plain, codec.level, allow=codec.allow, guest=codec.exports)

    def put(self) -> None:
        """Send the worker the names that it does not have yet.

        Raises:
            CannotCross: a variable can neither be copied nor used from there.
        """
        if not self._fresh:
            return
        codec = self._codec
        given = {name: value for name, value in (self._names | self.bound).items() if name in self._fresh}
        header, plain = session_header(given, self.bound)
        header["modules"] = {name: self._modules[name] for name in self._fresh & self._modules.keys()}
        groups = session_groups(plain, codec.level, allow=codec.allow, guest=codec.exports)
        packed = pack_groups(groups)
        self._fresh = set()
        self._connection.chore({**header, "k": "put", "g": packed.header}, packed.parts)

    def _take_back(self) -> None:
        """Take the variables that guest code changed, as bytes."""
        connection = self._connection
        if not connection.has_run or connection.worker is None:
            return
        with connection.turn:
            done = connection.chore({"k": "sync"})
            connection.has_run = False
            groups = connection.checked(lambda: unpack_groups(done.header.get("g"), done.parts))
            for group in groups:
                own = replace(group, origin=self._codec.level)
                for name in own.names:
                    home = self.bound if name in self.bound else self._names
                    home[name] = values.Packed(own, name)
            there = {*names_of(outcome.listed(done.header.get("names")))}
            self._names = {name: value for name, value in self._names.items() if name in there}
            self._modules = dict(outcome.modules_of(done.header.get("modules")))
